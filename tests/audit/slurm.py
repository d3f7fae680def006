"""Generated Slurm logs of a cluster with nodes and queues, as ``sacct --parsable2`` prints them."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np

HEADER = "JobID|Submit|Eligible|Start|End|Elapsed|State|AllocTRES|NodeList\n"
ORIGIN = np.datetime64("2026-03-01T00:00:00")


@dataclass(frozen=True)
class Partition:
    """Nodes with GPUs of one type; ``share`` is its share of the jobs."""

    gpu_type: str
    nodes: int
    gpus_per_node: int
    share: float


PARTITIONS = (
    Partition("a100", 24, 8, 0.5),
    Partition("v100", 24, 4, 0.3),
    Partition("h100", 8, 8, 0.2),
)


@dataclass
class Queue:
    """Jobs of one partition in order of arrival, and the free GPUs of its nodes."""

    free: list[int]
    waiting: deque[int] = field(default_factory=deque)


def sacct_log(
    jobs: int,
    partitions: tuple[Partition, ...] = PARTITIONS,
    load: float = 0.7,
    seed: int = 0,
    steps: bool = False,
) -> str:
    """A log of jobs of 1 to 16 GPUs: first come, first served in each partition, on the first nodes
    that have room.

    ``load`` is the share of all GPUs that is busy on average; ``steps`` adds a row for each job's
    batch step.
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(partitions), jobs, p=[each.share for each in partitions])
    gpus = rng.choice((1, 2, 4, 8, 16), jobs, p=(0.62, 0.14, 0.12, 0.1, 0.02))
    room = np.asarray([each.nodes * each.gpus_per_node for each in partitions])
    gpus = np.minimum(gpus, room[kind])
    length = np.maximum(30, rng.lognormal(6.5, 1.3, jobs)).astype(np.int64)
    work = np.bincount(kind, weights=gpus * length, minlength=len(partitions))
    span = float((work / room).max()) / load
    release = np.sort(rng.random(jobs) * span).astype(np.int64)
    start, nodes = run_queue(
        partitions, kind.tolist(), gpus.tolist(), length.tolist(), release.tolist()
    )
    return text_of(
        partitions, kind.tolist(), gpus.tolist(), release, start, start + length, nodes, steps
    )


def run_queue(
    partitions: tuple[Partition, ...],
    kind: list[int],
    gpus: list[int],
    length: list[int],
    release: list[int],
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[list[int]]]:
    """Starts, and the nodes of each job."""
    queues = [Queue([each.gpus_per_node] * each.nodes) for each in partitions]
    ends: list[tuple[int, int]] = []
    start = np.zeros(len(kind), dtype=np.int64)
    nodes: list[list[int]] = [[] for _ in kind]

    def serve(p: int, now: int) -> None:
        queue, size = queues[p], partitions[p].gpus_per_node
        while queue.waiting:
            job = queue.waiting[0]
            share, taken = min(gpus[job], size), []
            for node, left in enumerate(queue.free):
                if left >= share:
                    taken.append(node)
                    if len(taken) * share >= gpus[job]:
                        break
            if len(taken) * share < gpus[job]:
                return
            queue.waiting.popleft()
            for node in taken:
                queue.free[node] -= share
            start[job], nodes[job] = now, taken
            heapq.heappush(ends, (now + length[job], job))

    for job, now in [*enumerate(release), (-1, 1 << 60)]:
        while ends and ends[0][0] <= now:
            at, done = heapq.heappop(ends)
            p = kind[done]
            for node in nodes[done]:
                queues[p].free[node] += min(gpus[done], partitions[p].gpus_per_node)
            serve(p, at)
        if job >= 0:
            queues[kind[job]].waiting.append(job)
            serve(kind[job], now)
    return start, nodes


def text_of(
    partitions: tuple[Partition, ...],
    kind: list[int],
    gpus: list[int],
    release: np.ndarray[tuple[int], np.dtype[np.int64]],
    start: np.ndarray[tuple[int], np.dtype[np.int64]],
    end: np.ndarray[tuple[int], np.dtype[np.int64]],
    nodes: list[list[int]],
    steps: bool,
) -> str:
    times = [
        np.datetime_as_string(ORIGIN + column.astype("timedelta64[s]")).tolist()
        for column in (release, start, end)
    ]
    rows = [HEADER]
    for job, (eligible, begin, finish) in enumerate(zip(*times, strict=True)):
        name = partitions[kind[job]].gpu_type
        where = ",".join(f"{node:03}" for node in nodes[job])
        span, held = f"{eligible}|{eligible}|{begin}|{finish}||COMPLETED", f"cpu={8 * gpus[job]}"
        listed = f"{name}n[{where}]"
        devices = f"gres/gpu:{name}={gpus[job]},gres/gpu={gpus[job]}"
        rows.append(f"{100_000 + job}|{span}|billing=8,{held},{devices},mem=64G|{listed}\n")
        if steps:
            rows.append(f"{100_000 + job}.batch|{span}|{held},mem=64G|{listed}\n")
    return "".join(rows)
