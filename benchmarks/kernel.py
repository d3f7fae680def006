"""Speed and memory of the event kernel, and rules and bounds on 1,500 GPUs; writes
docs/results/kernel.md.

    python benchmarks/kernel.py [--quick] [-o docs/results/kernel.md]

Every line is measured in a process of its own, after one small run that loads the compiled code.
Kernel seconds are the best of three runs; an event is an end, a release or an arrival at a queue.
Memory is the peak of the process, instance and all.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import optbench as ob  # noqa: E402
from benchmarks._kernel_week import RUNS, week  # noqa: E402
from optbench.api import load_target  # noqa: E402
from optbench.bounds.auto import lower_bounds  # noqa: E402
from optbench.model.instance import Instance, Tasks  # noqa: E402
from optbench.plugins.discovery import load_solver  # noqa: E402
from optbench.plugins.policy import RulePolicy  # noqa: E402
from optbench.sim.kernel.dispatch import Rule, run  # noqa: E402
from optbench.sim.kernel.plant import plant_of  # noqa: E402
from optbench.sim.kernel.pointers import addresses  # noqa: E402
from optbench.sim.kernel.state import (  # noqa: E402
    EVENT_COUNT,
    NUM_DONE,
    new_state,
)
from optbench.sim.rules import list_rule  # noqa: E402

COMMAND = "python benchmarks/kernel.py"
FAMILIES = (
    "gpu_dag",
    "gpu_dag:tasks=200,gpus=40",
    "gpu_dag:tasks=1000,gpus=100,shape=random",
    "gpu_dag:tasks=1000,gpus=100,power_cap=0.6,price=true",
    "gpu_dag:tasks=5000,gpus=1500,shape=batch",
)
RULES = ("fcfs", "sjf_backfill", "edf", "heft", "min_energy", "fixed_dvfs")
STREAMS = (10_000, 100_000, 1_000_000)
POOLS = (8, 80, 800)
LARGE = {
    "layered": "gpu_dag:tasks=5000,gpus=1500",
    "batch": "gpu_dag:tasks=5000,gpus=1500,shape=batch,deadlines=none",
    "layered, individual devices": "gpu_dag:tasks=5000,gpus=1500,pooled=false,gang=1",
}
LARGE_RULES = ("fcfs", "heft", "min_energy", "lp_guided")


def stream(n: int, gap_s: float, pools: int, one_pool_each: bool) -> Instance:
    """Independent tasks of log-normal size, with exponential gaps or all at once; each free to
    choose, or bound to a pool.
    """
    m = ob.Model("stream", time="seconds")
    names = [m.pool(f"p{q}", count=64, idle_w=20.0) for q in range(pools)]
    for group in [[q] for q in range(pools)] if one_pool_each else [list(range(pools))]:
        modes = [m.mode({names[q]: k}, time_s=(1 + q % 4) / k**0.9, energy_j=100.0 * (1 + q % 4))
                 for q in group for k in (1, 2, 4)]  # fmt: skip
        m.task(units=1.0, kind=m.kind(modes=modes))
    m.minimize(energy_j=1.0)
    small, rng = m.build(), np.random.default_rng(0)
    kinds = len(small.tasks.kind)
    tasks = Tasks(
        kind=rng.integers(kinds, size=n),
        units=rng.lognormal(0, 0.5, n),
        release=small.to_ticks(np.cumsum(rng.exponential(gap_s, n)) if gap_s else np.zeros(n)),
        deadline=np.full(n, math.inf),
        deadline_hard=np.ones(n, dtype=bool),
        weight=np.ones(n),
        memory_gb=np.zeros(n),
    )
    return replace(small, tasks=tasks)


def timed(instance: Instance, rule: Rule) -> dict[str, float]:
    """Kernel seconds and events of a rule."""
    plant = plant_of(instance)
    state = new_state(plant)
    rows = addresses(plant), addresses(state), addresses(rule)
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        run(*rows, math.inf)
        seconds.append(time.perf_counter() - began)
    assert state.tally[NUM_DONE] == instance.num_tasks
    return {"kernel_s": min(seconds), "events": float(state.total[EVENT_COUNT])}


def rule_of(name: str, instance: Instance) -> Rule:
    policy = load_solver(name)[1]
    assert isinstance(policy, RulePolicy)
    return policy.rule(instance, np.random.default_rng(0))


def family(spec: str, name: str) -> dict[str, float]:
    instance = load_target(spec, 0)
    rule = rule_of(name, instance)
    timed(load_target("gpu_dag", 1), rule_of(name, load_target("gpu_dag", 1)))
    return timed(instance, rule)


def arrivals(n: int, gap_s: float) -> dict[str, float]:
    """``fcfs`` from the instance to the end, and the kernel alone."""
    policy = load_solver("fcfs")[1]
    assert isinstance(policy, RulePolicy)
    policy.play(stream(100, gap_s, 4, False), np.random.default_rng(0))
    instance = stream(n, gap_s, 4, False)
    began = time.perf_counter()
    trace = policy.play(instance, np.random.default_rng(0))
    out = {"total_s": time.perf_counter() - began}
    assert trace.schedule is not None
    del trace
    return out | timed(instance, rule_of("fcfs", instance))


def crowd(pools: int) -> dict[str, float]:
    """As much work per pool, whatever their number; one queue each."""
    instance = stream(100_000, 0.02 * 4 / pools, pools, True)
    rule = list_rule(instance, ready_weight=1.0, end_weight=1.0, strict=True)
    return timed(instance, rule)


def large(form: str, name: str) -> dict[str, Any]:
    """Instance, rule, verification and bound, as a user would."""
    ob.solve(load_target("gpu_dag", 1), name, work_limit=0.1, bound=False)
    began = time.perf_counter()
    instance = load_target(LARGE[form], 0)
    built = time.perf_counter()
    result = ob.solve(instance, name, time_limit_s=15.0, bound=False)
    solved = time.perf_counter()
    bound = max(lower_bounds(instance, time_limit_s=30.0), key=lambda found: found.value)
    ended = time.perf_counter()
    assert isinstance(result.objective, float)
    return {
        "build_s": built - began,
        "solve_s": solved - built,
        "rule_s": result.wall_s,
        "bound_s": ended - solved,
        "objective": result.objective,
        "bound": bound.value,
        "source": bound.source,
        "total_s": ended - began,
    }


Measure = Callable[..., dict[str, Any]]
MEASURES: dict[str, Measure] = {
    "family": family,
    "arrivals": arrivals,
    "crowd": crowd,
    "week": week,
    "large": large,
}


def fresh(measure: str, *arguments: Any) -> dict[str, Any]:
    """One measure in a process of its own, with its peak memory."""
    call = [sys.executable, __file__, "--measure", json.dumps([measure, *arguments])]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{measure}{arguments} failed:\n{done.stderr}")
    out: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(measure, *arguments, out, flush=True)
    return out


def speed(out: dict[str, Any]) -> str:
    return (
        f"{out['events']:,.0f} | {1e3 * out['kernel_s']:.2f} | "
        f"{out['events'] / out['kernel_s'] / 1e6:.2f}"
    )


def families(quick: bool) -> list[str]:
    lines = [
        "| instance | rule | events | ms | million events/s |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for spec in FAMILIES[: 2 if quick else None]:
        lines += [f"| `{spec}` | {name} | {speed(fresh('family', spec, name))} |" for name in RULES]
    return lines


def streams(quick: bool) -> list[str]:
    lines = [
        (
            "| tasks | arrivals | from instance to schedule, s | events | kernel ms | million "
            "events/s | ns per event | peak MB |"
        ),
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    peaks = []
    for gap_s in (0.02, 0.0):
        for n in STREAMS[: 2 if quick else None]:
            out = fresh("arrivals", n, gap_s)
            peaks.append((gap_s, n, out["peak_mb"]))
            text = "one after another" if gap_s else "all at once"
            each = 1e9 * out["kernel_s"] / out["events"]
            lines.append(
                f"| {n:,} | {text} | {out['total_s']:.2f} | {speed(out)} | {each:.0f} | "
                f"{out['peak_mb']:.0f} |"
            )
    grown = [
        1e3 * (peaks[k + 1][2] - peaks[k][2]) / (peaks[k + 1][1] - peaks[k][1])
        for k in range(len(peaks) - 1)
        if peaks[k + 1][1] > peaks[k][1]
    ]
    lines += [
        "",
        "Memory grows by "
        + ", ".join(f"{each:.2f}" for each in grown)
        + " kB per task from each size to the next.",
    ]
    return lines


def crowds() -> list[str]:
    lines = ["| pools | events | kernel ms | million events/s |", "| ---: | ---: | ---: | ---: |"]
    return lines + [f"| {pools} | {speed(fresh('crowd', pools))} |" for pools in POOLS]


def on_1500(quick: bool) -> list[str]:
    lines = [
        (
            "| form | rule | objective | bound | gap | source | build s | rule s | with "
            "verification "
            "s | bound s | all s | peak MB |"
        ),
        "| --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for form in LARGE:
        for name in LARGE_RULES[: 1 if quick else None]:
            o = fresh("large", form, name)
            gap = (o["objective"] - o["bound"]) / o["objective"]
            seconds = " | ".join(
                f"{o[key]:.2f}" for key in ("build_s", "rule_s", "solve_s", "bound_s", "total_s")
            )
            lines.append(
                f"| {form} | {name} | {o['objective']:.6g} | {o['bound']:.6g} | {100 * gap:.1f} "
                f"% | {o['source']} | "
                f"{seconds} | {o['peak_mb']:.0f} |"
            )
    return lines


def page(quick: bool) -> str:
    return "\n".join(
        [
            "# The event kernel: speed and memory",
            "",
            f"`{COMMAND}{' --quick' * quick}`, one thread, {platform.machine()}, Python",
            f"{platform.python_version()}, numba {version('numba')}; each line in a process of its",
            f"own, best of {RUNS} runs of the kernel, compiled code loaded.",
            "",
            "## Events per second",
            "",
            *families(quick),
            "",
            "## Streams of independent tasks through fcfs: 4 pools of 64 devices, 12 modes",
            "",
            "All at once, every task waits in one queue: what an event costs then grows with the",
            "logarithm of its length.",
            "",
            *streams(quick),
            "",
            "## Number of pools: 100,000 tasks, a queue per pool",
            "",
            *crowds(),
            "",
            (
                "## A week of 97,000 jobs on 8 pools, 64 modes each, first come first served per "
                "pool, arrivals delayed"
            ),
            "",
            "| mode | events | kernel ms | million events/s |",
            "| --- | ---: | ---: | ---: |",
            f"| a list rule's best of 64 | {speed(fresh('week', True))} |",
            f"| all GPUs free, one clock | {speed(fresh('week', False))} |",
            "",
            "## 5,000 tasks on 1,500 GPUs",
            "",
            "Bound: 30 s at most; lp_guided: 15 s. Individual devices: one GPU per task (pairs",
            "would be 1.9 million modes).",
            "",
            *on_1500(quick),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer lines")
    parser.add_argument("--measure", help="one measure, as JSON: name and arguments")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=ROOT / "docs" / "results" / "kernel.md",
        help="file to write",
    )
    options = parser.parse_args()
    if options.measure:
        name, *arguments = json.loads(options.measure)
        out = MEASURES[name](*arguments)
        print(
            json.dumps(out | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3})
        )
        return 0
    options.output.write_text(page(options.quick))
    print(options.output.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
