"""Environment = kernel = verifier under random decisions, and steps per second; writes
docs/results/env_equivalence.md.

    python benchmarks/env_equivalence.py [--seeds 200] [--first 0] [--seconds 3] [-o FILE]

Exit code 1 when anything disagrees.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.views.env import Batch, FleetEnv, SchedulingEnv, layout_of  # noqa: E402
from tests.reference.kernel_runs import (  # noqa: E402 (the tests are no installed package)
    RELATIVE,
    at_random,
    by_keys,
    disagreements,
    driven,
    play,
    totals,
    whole_trace,
    why_not_dead,
)
from tests.reference.mixed_instances import mixed_instance, permuted  # noqa: E402

COMMAND = "python benchmarks/env_equivalence.py"
SPEED_SPEC = "gpu_dag:tasks=60"
SIZES = (1, 16, 256)
# Instances of finer ticks than this are those that were declared in seconds.
FINE_TICK_S = 1e-3


@dataclass(frozen=True)
class Compared:
    """One instance: what it was, what disagreed, how long the episode was, how it ended, the
    largest relative difference.
    """

    family: str
    features: frozenset[str]
    wrong: tuple[str, ...]
    starts: int
    waits: int
    end: str
    difference: float


def compare(seed: int) -> Compared:
    """Play random decisions in the environment; drive the kernel by hand; verify; play again;
    permute.
    """
    instance, wrong = mixed_instance(seed), []
    slots = 3 if seed % 3 == 0 else instance.num_tasks
    first, second = (
        play(SchedulingEnv(instance, slots=slots), at_random(np.random.default_rng(seed)))
        for _ in range(2)
    )
    seat = first.env.seat
    plant, state = driven(instance, first.decisions)
    if whole_trace(instance, plant, state) != whole_trace(instance, seat.plant, seat.state):
        wrong.append("the kernel driven by hand makes another trace")
    if (
        first.observations != second.observations
        or seat.state.total.tobytes() != second.env.seat.state.total.tobytes()
    ):
        wrong.append("the same seed makes another trace")
    difference = 0.0
    if first.schedule is None:
        wrong += why_not_dead(instance, plant, state)
        end = "dead end"
    else:
        kernel, environment = totals(state), totals(seat.state)
        for name, value in kernel.items():
            if not np.isclose(value, environment[name], rtol=RELATIVE, atol=1e-12):
                wrong.append(f"{name}: {value!r} by hand, {environment[name]!r} in the environment")
        wrong += disagreements(instance, seat.state, first.schedule)
        end = "feasible" if first.objective is not None else "deadline, horizon or limit missed"
        if (first.cost <= RELATIVE) != (first.objective is not None):
            wrong.append(f"the cost is {first.cost!r}, the objective {first.objective!r}")
        if first.objective is not None:
            value = (
                first.objective[0]
                if isinstance(first.objective, tuple)
                else float(str(first.objective))
            )
            difference = abs(first.reward + value) / max(abs(value), 1e-9)
            if difference > RELATIVE:
                wrong.append(f"the rewards sum to {first.reward!r}, the objective is {value!r}")
    wrong += _permutation(seed)
    family = instance.name.partition("-")[0] + (
        " (fine ticks)" if instance.tick_s < FINE_TICK_S else ""
    )
    return Compared(
        family, instance.features, tuple(wrong), len(first.decisions), first.waits, end, difference
    )


def _permutation(seed: int) -> list[str]:
    instance, rng = mixed_instance(seed), np.random.default_rng(seed)
    n = instance.num_tasks
    order, keys = rng.permutation(n), rng.random((n, int(np.diff(instance.modes.kind_ptr).max())))
    one = play(SchedulingEnv(instance, slots=n), by_keys(keys)).env.seat.state
    two = play(
        SchedulingEnv(permuted(instance, order), slots=n), by_keys(keys[order])
    ).env.seat.state
    columns = ("status", "mode", "start", "end")
    return [
        f"permuted tasks: another {column}"
        for column in columns
        if (getattr(one, column)[order] != getattr(two, column)).any()
    ]


def rates(seconds: float) -> list[tuple[str, int, float]]:
    """(what, how many, steps per second), the first legal action everywhere."""
    instance = load_problem(SPEED_SPEC).instance(0)
    out = []
    for num in SIZES:
        envs = [SchedulingEnv(instance) for _ in range(num)]
        infos = [env.reset(seed=0)[1] for env in envs]
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            for b, env in enumerate(envs):
                _, _, over, _, info = env.step(int(infos[b]["action_mask"].argmax()))
                infos[b] = env.reset()[1] if over else info
            steps += num
        out.append(("Python loop over SchedulingEnv", num, steps / (time.perf_counter() - began)))
    for num in SIZES:
        fleet = FleetEnv(instance, num, copy=False)
        fleet.reset(seed=0)
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            fleet.step(fleet.action_masks().argmax(axis=1))
            steps += num
        out.append(("FleetEnv", num, steps / (time.perf_counter() - began)))
    for num in SIZES:
        batch = Batch(layout_of(instance), num)
        for b in range(num):
            batch.seat(b, instance)
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            batch.open()
            while not batch.over.all():
                steps += int(num - batch.over.sum())
                batch.step(batch.masks.argmax(axis=1))
        out.append(("Batch", num, steps / (time.perf_counter() - began)))
    return out


def report(
    rows: list[Compared], first: int, wall_s: float, speeds: list[tuple[str, int, float]]
) -> str:
    wrong = [f"seed {first + k}: {line}" for k, row in enumerate(rows) for line in row.wrong]
    ends, families = Counter(row.end for row in rows), Counter(row.family for row in rows)
    features = Counter(feature for row in rows for feature in row.features)
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "gymnasium", "numpy"))
    lines = [
        "# Environment = kernel = verifier",
        "",
        f"`{COMMAND} --first {first} --seeds {len(rows)}`: {len(rows)} random instances",
        "(`tests/reference/mixed_instances.py`), each played once by random legal actions.",
        "Compared are the trace of the environment, that of the kernel driven by hand with the",
        "same decisions (bytes), the kernel's makespan, energy, flow time, tardiness, cost and",
        "carbon against the verifier's (relative 1e-9), the sum of rewards against minus the",
        "verified objective, zero cost against feasibility, the same seed twice (bytes of",
        "observations, times and totals), and the tasks in another order with the decision rule",
        "permuted. A dead end is examined by hand: no task that is ready could start even on the",
        "empty plant.",
        "",
        f"**{len(wrong)} disagreements.** {sum(row.starts for row in rows):,} starts,",
        f"{sum(row.waits for row in rows):,} waits; largest relative difference of rewards and",
        f"objective {max(row.difference for row in rows):.1e}; {wall_s:.0f} s.",
        *(f"- {line}" for line in wrong[:50]),
        "",
        "| episodes that ended | |",
        "| --- | ---: |",
        *(f"| {end} | {count} |" for end, count in ends.most_common()),
        "",
        "| family | instances |",
        "| --- | ---: |",
        *(f"| {family} | {count} |" for family, count in sorted(families.items())),
        "",
        "Features: "
        + ", ".join(f"{name} {count}" for name, count in sorted(features.items()))
        + ".",
        "",
        "## Steps per second",
        "",
        f"`{SPEED_SPEC}`, one thread, the first legal action; every episode is verified at its end",
        "but those of `Batch`, the bare compiled step with its observations.",
        "",
        "| | " + " | ".join(f"B = {num}" for num in SIZES) + " |",
        "| --- |" + " ---: |" * len(SIZES),
        *(
            f"| {what} | "
            + " | ".join(f"{rate:,.0f}" for name, _, rate in speeds if name == what)
            + " |"
            for what in dict.fromkeys(name for name, _, _ in speeds)
        ),
        "",
        f"{platform.processor() or platform.machine()}, Python {platform.python_version()},",
        f"{packages}.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=200, help="number of instances")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="per measurement of steps per second"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "env_equivalence.md"
    )
    options = parser.parse_args()
    began = time.perf_counter()
    rows = []
    for seed in range(options.first, options.first + options.seeds):
        rows.append(compare(seed))
        for line in rows[-1].wrong:
            print(f"seed {seed}: {line}", file=sys.stderr)
    text = report(rows, options.first, time.perf_counter() - began, rates(options.seconds))
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
