"""Convert an instance back to a shop or a project; an error names the part that prevents it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optbench.errors import UnsupportedError
from optbench.formats.classical import Project, Shop
from optbench.formats.text import MAX_NUMBER
from optbench.model.instance import Instance

# Features that the published layouts cannot express. Each layout checks modes and resources itself.
BEYOND = {
    "releases": "release times",
    "deadlines": "hard deadlines",
    "transfers": "data transfers",
    "power_cap": "power caps",
    "cooling": "cooled places",
    "congestion": "busy links",
    "limits": "limits on metrics",
    "preemption": "preemption",
    "checkpoints": "checkpoints",
    "waking": "devices that take time or energy to wake",
    "fixed_horizon": "a fixed horizon",
}


def check_classical(instance: Instance, target: str) -> None:
    """Check that the instance only has a makespan and whole durations."""
    lost = [what for feature, what in BEYOND.items() if feature in instance.features]
    if instance.objective.metrics - {"makespan", "makespan_s"}:
        lost.append(f"the objective {instance.objective.label}")
    if (
        instance.pools.rest_w.any()
        or instance.modes.power_w.any()
        or instance.modes.energy_per_unit_j.any()
    ):
        lost.append("power and energy")
    if instance.tasks.user is not None:
        lost.append("users")
    if instance.pools.failures_per_s is not None:
        lost.append("failure rates")
    if lost:
        what = f"{', '.join(lost)} of {instance.name!r}"
        raise refusal(target, f"cannot express {what}; write 'optbench' instead")
    longest = instance.pairs.duration.max(initial=0)
    if longest > MAX_NUMBER:
        most = f"durations up to {MAX_NUMBER:,}"
        raise refusal(target, f"holds {most}; {instance.name!r} has {longest:,}")


def refusal(target: str, why: str) -> UnsupportedError:
    return UnsupportedError(f"format {target!r} {why}")


def choices(instance: Instance) -> Iterator[list[tuple[int, dict[int, int]]]]:
    """The modes of each task as (duration, devices by pool)."""
    pairs, modes = instance.pairs, instance.modes
    for task in range(instance.num_tasks):
        out = []
        for row in range(int(pairs.ptr[task]), int(pairs.ptr[task + 1])):
            needs = slice(modes.req_ptr[pairs.mode[row]], modes.req_ptr[pairs.mode[row] + 1])
            devices = dict(
                zip(modes.req_pool[needs].tolist(), modes.req_count[needs].tolist(), strict=True)
            )
            out.append((int(pairs.duration[row]), devices))
        yield out


def project_of(instance: Instance, target: str) -> Project:
    """Convert to a project; every task must have one mode."""
    check_classical(instance, target)
    durations, requirements = [], []
    for task, modes in enumerate(choices(instance)):
        if len(modes) != 1:
            given = f"{instance.tasks.name(task)!r} has {len(modes)}"
            raise refusal(target, f"allows one mode per task; {given}")
        duration, devices = modes[0]
        durations.append(duration)
        requirements.append([devices.get(pool, 0) for pool in range(instance.num_pools)])
    edges = list(zip(instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True))
    return Project(instance.pools.count.tolist(), durations, requirements, edges)


def shop_of(instance: Instance, target: str, flexible: bool) -> Shop:
    """Convert to a shop: chains of tasks on one machine each, in job shops each machine once."""
    check_classical(instance, target)
    if (instance.pools.count > 1).any():
        pool = int(np.argmax(instance.pools.count > 1))
        given = f"pool {instance.pools.names[pool]!r} has {instance.pools.count[pool]}"
        raise refusal(target, f"has single machines; {given}")
    alternatives: list[list[tuple[int, int]]] = []
    for task, modes in enumerate(choices(instance)):
        if any(len(devices) != 1 for _, devices in modes) or (len(modes) != 1 and not flexible):
            allowed = "alternatives of one machine each" if flexible else "one machine"
            given = f"{instance.tasks.name(task)!r} has other modes"
            raise refusal(target, f"allows a task {allowed}; {given}")
        alternatives.append([(next(iter(devices)), duration) for duration, devices in modes])
    jobs = [[alternatives[task] for task in chain] for chain in chains_of(instance, target)]
    machines = set(range(instance.num_pools))
    if not flexible:
        for j, job in enumerate(jobs):
            if len(job) != len(machines) or {machine for [(machine, _)] in job} != machines:
                remedy = f"job {j} differs. Write 'fjsp' instead"
                raise refusal(target, f"wants every machine once in every job; {remedy}")
    return Shop(instance.num_pools, jobs)


def chains_of(instance: Instance, target: str) -> list[list[int]]:
    """The jobs: every task has at most one predecessor and one successor."""
    successor: dict[int, int] = {}
    has_predecessor: set[int] = set()
    for source, after in zip(
        instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True
    ):
        if source in successor or after in has_predecessor:
            task = source if source in successor else after
            given = f"{instance.tasks.name(task)!r} has two neighbours on one side"
            raise refusal(target, f"allows chains of tasks only; {given}")
        successor[source] = after
        has_predecessor.add(after)
    out = []
    for first in range(instance.num_tasks):
        if first not in has_predecessor:
            chain = [first]
            while chain[-1] in successor:
                chain.append(successor[chain[-1]])
            out.append(chain)
    return out
