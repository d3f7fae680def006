"""hgnn where things change: failed devices, busy links, other workloads, and what it does with
problems of each matrix dimension; writes docs/results/hgnn_robust.md.

    python benchmarks/hgnn_robust.py [--trained FILE]

A tenth of the devices of every pool of GPUs (drawn at random, never all of a pool) fails for good
within the first half of the schedule. Energy is compared with the same policy on the same instance
without failures. Throughput is units of work per second of the schedule.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent, tuned_rule  # noqa: E402
from optbench.api import load_target  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.schedule import Schedule  # noqa: E402
from optbench.model.verify import Verdict, verify  # noqa: E402
from optbench.plugins.discovery import load_solver  # noqa: E402
from optbench.plugins.policy import Policy  # noqa: E402
from optbench.rules import Fault, find_milestones  # noqa: E402

SEEDS = (10, 11, 12, 13, 14)
CLUSTER = "gpu_cluster:nodes=16,tasks=400"
SHAPES = ("batch", "pipeline", "data_parallel")
FAILED = 0.1


def played(
    spec: str, instance: Instance, faults: Sequence[Fault] = ()
) -> tuple[Verdict, Schedule] | None:
    """Return the verdict and the schedule of a policy, with faults; None where work is lost."""
    policy = load_solver(spec)[1]
    assert isinstance(policy, Policy)
    schedule = policy.play(instance, np.random.default_rng(0), faults).schedule
    return None if schedule is None else (verify(instance, schedule), schedule)


def complete(spec: str, instance: Instance) -> tuple[Verdict, Schedule]:
    """Return the verdict and the schedule of a policy that loses no work."""
    found = played(spec, instance)
    if found is None:
        raise RuntimeError(f"{spec} left work of {instance.name} undone")
    return found


def failures(instance: Instance, horizon: float, seed: int) -> list[Fault]:
    """Return faults of a tenth of all GPUs, one device at a time."""
    rng = np.random.default_rng(seed)
    pools = [p for p, name in enumerate(instance.pools.names) if not name.startswith("cpu")]
    devices = np.repeat(pools, instance.pools.count[pools] - 1)  # one of each pool stays
    total = int(instance.pools.count[pools].sum())
    chosen = rng.choice(devices, size=max(1, round(FAILED * total)), replace=False)
    times = rng.integers(0, max(1, int(horizon / 2)), size=len(chosen))
    rows = zip(times.tolist(), chosen.tolist(), strict=True)
    return [Fault(float(time), int(pool), 1) for time, pool in rows]


def cluster(spec: str, seed: int) -> Instance:
    made = load_target(spec, seed)
    assert isinstance(made, Instance)
    return made


def change_rows(policies: dict[str, str]) -> list[str]:
    """Return the lines on failures and busy links."""
    lines = [
        "| policy | energy with failures, % more | makespan, % more | tasks lost | throughput on "
        "busy links, % less |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, spec in policies.items():
        energy, makespan, lost, slower = [], [], 0, []
        for seed in SEEDS:
            instance = cluster(CLUSTER, seed)
            usual, schedule = complete(spec, instance)
            horizon = float(schedule.end.max())
            found = played(spec, instance, failures(instance, horizon, seed))
            lost += found is None
            if found is not None:
                hit = found[0]
                energy.append(hit.metrics["energy_j"] / usual.metrics["energy_j"] - 1.0)
                makespan.append(hit.metrics["makespan_s"] / usual.metrics["makespan_s"] - 1.0)
            busy, _ = complete(spec, cluster(f"{CLUSTER},congestion=yes", seed))
            slower.append(1.0 - usual.metrics["makespan_s"] / busy.metrics["makespan_s"])
        lines.append(
            f"| {name} | {percent(energy)} | {percent(makespan)} | {lost} | {percent(slower)} |"
        )
    return lines


def shape_rows(policies: dict[str, str]) -> list[str]:
    """Return the gaps by shape of the work."""
    lines = [f"| policy | {' | '.join(SHAPES)} |", "| --- " * (len(SHAPES) + 1) + "|"]
    bounds = {}
    for shape in SHAPES:
        for seed in SEEDS:
            found = find_milestones(cluster(f"{CLUSTER},shape={shape}", seed))
            assert found is not None
            bounds[shape, seed] = found.bound.value
    for name, spec in policies.items():
        cells = []
        for shape in SHAPES:
            gaps = []
            for seed in SEEDS:
                verdict, _ = complete(spec, cluster(f"{CLUSTER},shape={shape}", seed))
                gaps.append(1.0 - bounds[shape, seed] / verdict.objectives[0])
            cells.append(percent(gaps))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def dimension_rows(spec: str) -> list[str]:
    """Return where problems of each matrix dimension run, and at what clock."""
    rows: dict[str, list[tuple[bool, float]]] = {}
    for seed in SEEDS:
        instance = cluster(CLUSTER, seed)
        _, schedule = complete(spec, instance)
        modes, names = instance.modes, instance.pools.names
        for task, mode in zip(schedule.task.tolist(), schedule.mode.tolist(), strict=True):
            dimension = modes.kind_names[instance.tasks.kind[task]].rsplit("-", 1)[-1]
            if dimension.isdigit():
                part = "below 400" if int(dimension) < 400 else "400 to 1,000"
                part = "above 1,000" if int(dimension) > 1000 else part
                cpu = names[modes.primary[mode]].startswith("cpu")
                rows.setdefault(part, []).append((cpu, float(modes.clock[mode])))
    lines = ["| matrix dimension | tasks | on CPUs, % | mean clock |", "| --- | --- | --- | --- |"]
    for part in ("below 400", "400 to 1,000", "above 1,000"):
        found = rows.get(part, [])
        share = 100.0 * float(np.mean([cpu for cpu, _ in found])) if found else 0.0
        clock = float(np.mean([clock for _, clock in found])) if found else float("nan")
        lines.append(f"| {part} | {len(found)} | {share:.1f} | {clock:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    shipped = ROOT / "solvers" / "hgnn" / "clusters.safetensors"
    parser.add_argument("--trained", default=str(shipped))
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "hgnn_robust.md")
    args = parser.parse_args()
    hgnn = f"hgnn:checkpoint={args.trained}"
    policies = {"hgnn": hgnn, "path_milestones": "path_milestones", "tuned rule": tuned_rule()}
    lines = page_head("hgnn where things change", "python benchmarks/hgnn_robust.py")
    lines += [f"`{CLUSTER}`, report seeds {SEEDS[0]} to {SEEDS[-1]}.", ""]
    lines += [*change_rows(policies), "", "Gap to the certified bound by shape of the work, %:", ""]
    lines += [*shape_rows(policies), "", "What hgnn does with problems by dimension:", ""]
    lines += dimension_rows(hgnn)
    args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
