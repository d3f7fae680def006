"""How fast weeks at sites are played and verified; writes docs/results/geo_speed.md.

    python benchmarks/geo_speed.py [--runs 15] [--most-days 100] [--most-sites 800] [-o FILE]

The reference week (96,748 jobs) through three policies, from the instance to the schedule, and
verified with every metric; cost per event from one day to 100 days, and from 8 to 800 sites at the
same load per site and the same number of jobs; the first call of all, compiled and from the cache,
in processes of their own. Limits are those of the issue; exit code 1 beyond one of them. Needs
$OPTBENCH_DATA, a quiet machine, and 5 GB for 100 days.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from optbench.api import load_target  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.plugins.discovery import load_solver  # noqa: E402
from optbench.plugins.policy import Policy  # noqa: E402

COMMAND = "python benchmarks/geo_speed.py"
POLICIES = ("default_policy", "ucb1", "joint_nf")
WEEK_MS, VERIFY_S, COMPILE_S = 20.0, 0.5, 15.0
DAYS = (1, 3, 10, 30, 100)
COPIES = (1, 3, 10, 30, 100)
FIRST = """
import sys, time
import numpy as np
sys.path.insert(0, {root!r})
from optbench.api import load_target
from optbench.plugins.discovery import load_solver
instance, policy = load_target("geo_dc:days=0.05"), load_solver("default_policy")[1]
began = time.perf_counter()
policy.play(instance, np.random.default_rng(0))
print(time.perf_counter() - began)
"""


@dataclass(frozen=True)
class Timed:
    """Best and median seconds by the clock, and best seconds of the processor, which other load
    disturbs less.
    """

    best_s: float
    median_s: float
    cpu_s: float


@dataclass(frozen=True)
class Line:
    """One instance: jobs, events (arrivals, starts and ends), seconds to play it."""

    what: str
    jobs: int
    events: int
    time: Timed

    @property
    def ns(self) -> float:
        return 1e9 * self.time.cpu_s / self.events


def timed(work: Callable[[], object], runs: int) -> Timed:
    work()
    clock, cpu = [], []
    for _ in range(runs):
        began, cpu_began = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
    return Timed(min(clock), sorted(clock)[len(clock) // 2], min(cpu))


def play(instance: Instance, name: str) -> Any:
    policy = load_solver(name)[1]
    assert isinstance(policy, Policy)
    return policy.play(instance, np.random.default_rng(0))


def line(what: str, instance: Instance, name: str, runs: int) -> Line:
    schedule = play(instance, name).schedule
    events = instance.num_tasks + 2 * schedule.num_segments
    return Line(what, instance.num_tasks, events, timed(lambda: play(instance, name), runs))


def verified(instance: Instance, name: str) -> Timed:
    schedule = play(instance, name).schedule
    return timed(lambda: verify(instance, schedule), 5)


def many_sites(copies: int, folder: Path) -> Instance:
    """Every site and every ingress so many times, as much load for each, and the same number of
    jobs.
    """
    data = json.loads((ROOT / "problems/_geo_paper.json").read_text())
    sites, ways, names = data["sites"], data["wan_latency_ms"], data["ingresses"]
    data["sites"] = {f"{name}-{k}": site for k in range(copies) for name, site in sites.items()}
    data["ingresses"] = [f"{name}-{k}" for k in range(copies) for name in names]
    data["wan_latency_ms"] = {
        f"{name}-{k}": {
            f"{site}-{q}": way for q in range(copies) for site, way in ways[name].items()
        }
        for k in range(copies)
        for name in names
    }
    file = folder / f"sites-{copies}.json"
    file.write_text(json.dumps(data))
    made: Instance = load_target(f"geo_dc:sites={file},days={7 / copies!r}")
    return made


def first_call() -> tuple[float, float]:
    """Seconds of the first play in a process with an empty cache, and in the next one."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "OPTBENCH_CACHE": cache}
        words = [sys.executable, "-c", FIRST.format(root=str(ROOT))]
        cold, warm = (
            float(
                subprocess.run(
                    words, env=environment, capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(2)
        )
    return cold, warm


def table(lines: list[Line]) -> list[str]:
    head = [
        "| | jobs | events | ms, best | ms, median | ms of the processor | ns per event |",
        "| --- |" + " ---: |" * 6,
    ]
    rows = [
        f"| {each.what} | {each.jobs:,} | {each.events:,} | {1e3 * each.time.best_s:.1f} | "
        f"{1e3 * each.time.median_s:.1f} "
        f"| {1e3 * each.time.cpu_s:.1f} | {each.ns:.0f} |"
        for each in lines
    ]
    return head + rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--most-days", type=int, default=100)
    parser.add_argument("--most-sites", type=int, default=800)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/results/geo_speed.md")
    args = parser.parse_args()
    record = Path(os.environ["OPTBENCH_DATA"]) / "chsac-af/reference/arrivals.csv.gz"
    week = load_target(f"geo_dc:arrivals={record}")
    weeks = [line(f"`{name}`", week, name, args.runs) for name in POLICIES]
    checks = {name: verified(week, name) for name in POLICIES}
    few = max(3, args.runs // 5)
    by_days = [
        line(f"{d} days", load_target(f"geo_dc:days={d}"), "joint_nf", few)
        for d in DAYS
        if d <= args.most_days
    ]
    with tempfile.TemporaryDirectory() as folder:
        by_sites = [
            line(f"{8 * k} sites", many_sites(k, Path(folder)), "joint_nf", few)
            for k in COPIES
            if 8 * k <= args.most_sites
        ]
    cold, warm = first_call()
    text = report(weeks, checks, by_days, by_sites, cold, warm)
    args.output.write_text(text, encoding="utf-8")
    print(text)
    slow = [
        each.what for each in weeks if 1e3 * each.time.best_s > WEEK_MS and each.what != "`ucb1`"
    ]
    slow += [f"verify {name}" for name, each in checks.items() if each.best_s > VERIFY_S]
    slow += ["compilation"] if cold > COMPILE_S else []
    for what in slow:
        print(f"{what}: beyond its limit", file=sys.stderr)
    return 1 if slow else 0


def report(
    weeks: list[Line],
    checks: dict[str, Timed],
    by_days: list[Line],
    by_sites: list[Line],
    cold: float,
    warm: float,
) -> str:
    versions = (
        f"Python {platform.python_version()}, numpy {version('numpy')}, numba {version('numba')}"
    )
    load = os.getloadavg()[0]
    machine = f"{platform.machine()} ({os.cpu_count()} cores, load {load:.1f} at the end)"
    lines = [
        "# Weeks at sites: speed",
        "",
        f"`{COMMAND}`, one thread of {machine}, {versions}. Played from the instance to the",
        "schedule: plant, grid of modes, routes, kernel. Best and median of repeated runs in one",
        "process.",
        "",
        f"## The reference week, played (limit {WEEK_MS:.0f} ms for default_policy and joint_nf)",
        "",
        *table(weeks),
        "",
        f"## Verified with every metric (limit {VERIFY_S} s)",
        "",
        "| schedule of | s, best | s, median |",
        "| --- | ---: | ---: |",
        *(
            f"| `{name}` | {each.best_s:.3f} | {each.median_s:.3f} |"
            for name, each in checks.items()
        ),
        "",
        "## From one day to 100: joint_nf, uniform routes",
        "",
        *table(by_days),
        "",
        "## From 8 sites to 800, as much load for each, as many jobs: joint_nf, uniform routes",
        "",
        *table(by_sites),
        "",
        f"## The first call (limit {COMPILE_S:.0f} s)",
        "",
        f"{cold:.1f} s with nothing compiled, {warm:.2f} s in the next process, from the cache.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
