"""Training on two processes against one, and against the ordinary data-parallel way, one part of
HyperScale added at a time; writes docs/results/gnn_training_speed.md and
docs/results/raw/gnn_training_speed.jsonl.

    python benchmarks/gnn_training_speed.py [--rounds 3] [--graphs cora,...] [--networks gcn,...]
                                            [--page-only]

The ordinary way is our own runtime with a random balanced partition, plain CSR kernels (a GAT
without fusions), an exchange of the halo in each layer, and no overlap. All ways of a graph take
turns in each round; an epoch's time is the median of a round, and ratios are taken within rounds.
Rows that are there are not run again. It wants a quiet machine of two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS  # noqa: E402
from benchmarks._gnn_speed_page import SpeedRow, page  # noqa: E402
from benchmarks._gnn_trainings import (  # noqa: E402
    NETWORKS,
    PUBLIC,
    LabelledData,
    best_plan,
    instance_of,
    job_of,
    machine_load,
    modelled,
    nodes_of,
    public_data,
    random_parts,
    spectral_parts,
    trained,
)

PAGE, RAW = RESULTS / "gnn_training_speed.md", RESULTS / "raw" / "gnn_training_speed.jsonl"
FEATURES, CLASSES = 128, 8
WARM, FIT_REPEATS, BALANCE = 3, 2, ",imbalance=0.03"


@dataclass(frozen=True)
class SpeedGraph:
    """A graph, the networks that are trained on it, epochs of a round, seconds to partition it."""

    spec: str
    epochs: int
    partition_s: float = 3.0
    networks: tuple[str, ...] = NETWORKS


GRAPHS = {
    "cora": SpeedGraph("graph=cora", 25),
    "citeseer": SpeedGraph("graph=citeseer", 15),
    "molecules": SpeedGraph("graph=molecules,nodes=20000", 15),
    "power": SpeedGraph("graph=power,nodes=25000", 10, 6.0),
    "community": SpeedGraph("graph=community,nodes=20000", 10, 6.0),
    "million": SpeedGraph("graph=community,nodes=200000", 5, 20.0, ("gcn",)),
}
# Devices of speeds 1 and 1/2: graph, parts, and the devices of the cost model.
UNEQUAL, UNEQUAL_PARTS, UNEQUAL_SPEEDS = ("community",), 6, (1.0, 0.5)


@dataclass(frozen=True)
class TrainingWay:
    """A way to train: the process of every node, kernels, overlap, speeds of the processes."""

    name: str
    device: Any
    fusions: tuple[str, ...]
    overlap: bool
    speeds: tuple[float, ...]


@lru_cache(maxsize=2)
def data_of(graph: str) -> LabelledData:
    if graph in PUBLIC:
        return public_data(graph)
    drawn = instance_of(f"{GRAPHS[graph].spec},parts=2{BALANCE}").data.graph
    rng, n = np.random.default_rng(0), drawn.num_nodes
    features = rng.standard_normal((n, FEATURES), dtype=np.float32)
    labels, split = rng.integers(0, CLASSES, n), np.ones(n, dtype=np.int64)
    return LabelledData(graph, drawn, features, labels, split, CLASSES)


@lru_cache(maxsize=8)
def partition_of(graph: str, parts: int) -> Any:
    spec = f"{GRAPHS[graph].spec},parts={parts}{BALANCE}"
    return spectral_parts(instance_of(spec), GRAPHS[graph].partition_s)


@lru_cache(maxsize=32)
def plan_of(graph: str, network: str) -> tuple[str, ...]:
    data = data_of(graph)
    more = f",parts=2{BALANCE}"
    instance = modelled(GRAPHS[graph].spec, network, data.features.shape[1], data.classes, more)
    return best_plan(instance, network, FIT_REPEATS)


def placed(graph: str, network: str, part: Any, fusions: tuple[str, ...]) -> Any:
    """The device of every part with the least modelled step, of all placements."""
    from optbench.shapes.gnn_training.step_costs import step_costs
    from optbench.shapes.gnn_training.training_plan import TrainingPlan

    data = data_of(graph)
    more = f",parts={UNEQUAL_PARTS}{BALANCE},devices=2:1"
    spec = GRAPHS[graph].spec
    given = modelled(spec, network, data.features.shape[1], data.classes, more).data
    names = [each.name for each in given.fusions]
    chosen = np.array(sorted(names.index(each) for each in fusions), dtype=np.int64)
    every = (np.array(each) for each in product((0, 1), repeat=UNEQUAL_PARTS))
    costs = [
        (step_costs(given, TrainingPlan(part, each, fusions=chosen)).step_s, each.tolist())
        for each in every
    ]
    return np.array(min(costs)[1])


def equal_ways(graph: str, network: str) -> Iterator[TrainingWay]:
    """One process, then two of the same speed."""
    from optbench.gnn.kernels.kernel_names import plain_csr

    kind: Any = network
    csr, best = plain_csr(kind, 2), plan_of(graph, network)
    n = data_of(graph).graph.num_nodes
    one, even = np.zeros(n, dtype=np.int64), (1.0, 1.0)
    yield TrainingWay("one", one, csr, False, (1.0,))
    yield TrainingWay("one_fused", one, best, False, (1.0,))
    yield TrainingWay("data_parallel", random_parts(n, 2), csr, False, even)
    part = partition_of(graph, 2)
    yield TrainingWay("partition", part, csr, False, even)
    yield TrainingWay("fusion", part, best, False, even)
    yield TrainingWay("overlap", part, best, True, even)


def unequal_ways(graph: str, network: str) -> Iterator[TrainingWay]:
    """Two processes of speeds 1 and 1/2."""
    from optbench.gnn.kernels.kernel_names import plain_csr

    kind: Any = network
    csr, best = plain_csr(kind, 2), plan_of(graph, network)
    part = partition_of(graph, UNEQUAL_PARTS)
    random = random_parts(data_of(graph).graph.num_nodes, 2)
    yield TrainingWay("unequal_data_parallel", random, csr, False, UNEQUAL_SPEEDS)
    yield TrainingWay("unequal_identity", part % 2, best, True, UNEQUAL_SPEEDS)
    device = placed(graph, network, part, best)
    yield TrainingWay("unequal_placement", device[part], best, True, UNEQUAL_SPEEDS)


def rows_so_far() -> list[SpeedRow]:
    if not RAW.exists():
        return []
    lines = RAW.read_text(encoding="utf-8").splitlines()
    return list({row.key: row for row in (SpeedRow(**json.loads(each)) for each in lines)}.values())


def run_graph(graph: str, networks: Sequence[str], rounds: int) -> None:
    """Run what is missing of a graph, round by round."""
    known = {row.key for row in rows_so_far()}
    wanted = [each for each in GRAPHS[graph].networks if each in networks]
    names = ["one", "one_fused", "data_parallel", "partition", "fusion", "overlap"]
    if graph in UNEQUAL:
        names += ["unequal_data_parallel", "unequal_identity", "unequal_placement"]
    for turn in range(rounds):
        missing = {
            (network, name)
            for network in wanted
            for name in names
            if (graph, network, name, turn) not in known
        }
        if not missing:
            continue
        ways = [
            (network, way)
            for network in wanted
            for way in every_way(graph, network)
            if (network, way.name) in missing
        ]
        # The same processes take one job after the other; others have other speeds.
        for speeds in dict.fromkeys(way.speeds for _, way in ways):
            run_ways(graph, turn, [each for each in ways if each[1].speeds == speeds])


def every_way(graph: str, network: str) -> Iterator[TrainingWay]:
    yield from equal_ways(graph, network)
    if graph in UNEQUAL:
        yield from unequal_ways(graph, network)


def run_ways(graph: str, turn: int, ways: list[tuple[str, TrainingWay]]) -> None:
    """Train by processes of the same speeds, and append their rows."""
    from optbench.gnn.runtime.core_placement import cores_of_devices, usable_cores

    data = data_of(graph)
    jobs = []
    for network, way in ways:
        others: dict[str, Any] = {
            "speeds": way.speeds,
            "cores": cores_of_devices(way.speeds, usable_cores()),
            "epochs": WARM + GRAPHS[graph].epochs,
            "fusions": way.fusions,
            "overlap": way.overlap,
        }
        job = job_of(network, data.classes, len(way.speeds), **others)
        jobs.append((job, nodes_of(data, way.device)))
    with tempfile.TemporaryDirectory(prefix="optbench-speed-") as folder:
        found = trained(Path(folder), jobs)
    for (network, way), result in zip(ways, found, strict=True):
        seconds = result.step_s[WARM:]
        ends = np.concatenate([data.graph.tail, data.graph.head]).reshape(2, -1)
        row = SpeedRow(
            graph,
            network,
            way.name,
            turn,
            data.graph.num_nodes,
            data.graph.num_edges,
            1e3 * float(np.median(seconds)),
            1e3 * float(min(seconds)),
            result.sent_mb_per_step,
            int((way.device[ends[0]] != way.device[ends[1]]).sum()),
            ", ".join(way.fusions) or "none",
            busy_shares(result.device_rows),
            result.solo_speeds,
            machine_load(),
        )
        with RAW.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(row)) + "\n")
        print(graph, network, way.name, turn, f"{row.epoch_ms:.1f} ms", flush=True)


def busy_shares(device_rows: list[list[dict[str, Any]]]) -> list[float]:
    """The share of the time that each process computed."""
    return [
        sum(row["busy_s"] for row in rows) / sum(row["seconds"] for row in rows)
        for rows in device_rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    if not args.page_only:
        import torch

        torch.set_num_threads(1)
        RAW.parent.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        for graph in args.graphs.split(","):
            run_graph(graph, args.networks.split(","), args.rounds)
            print(f"{graph}: {time.perf_counter() - began:.0f} s so far", flush=True)
    lines = page(rows_so_far())
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
