"""What the benchmarks of hgnn share: training of one checkpoint, one run of a policy with its
verified objective, paired intervals, and the lines that say how a page was made.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optbench.model.instance import Instance
    from optbench.shapes.protocol.shape import AnyInstance

ROOT = Path(__file__).resolve().parents[1]
RULES = Path(__file__).with_name("hgnn_rules.json")
STREAM_RULES = Path(__file__).with_name("hgnn_stream_rules.json")
STREAMS_FILE = ROOT / "solvers" / "hgnn" / "streamed_on.txt"
RESULTS = ROOT / "docs" / "results"
TRAINED_ON = tuple(
    f"gpu_cluster:{line}"
    for line in (ROOT / "solvers" / "hgnn" / "trained_on.txt").read_text(encoding="utf-8").split()
)


@dataclass(frozen=True)
class Trained:
    """A checkpoint that a benchmark trains: how, and into which file."""

    path: Path
    settings: tuple[str, ...]
    seed: int
    problems: tuple[str, ...] = TRAINED_ON
    solver: str = "hgnn"

    def train(self) -> None:
        """Train it, unless it is trained; what was begun goes on."""
        if self.path.exists() and not self.path.with_name(f"{self.path.name}.state").exists():
            return
        command = [sys.executable, "-m", "optbench.cli.main", "train", self.solver]
        command += ["--seed", str(self.seed), "-o", str(self.path), "--no-track", "-q"]
        for problem in self.problems:
            command += ["--on", problem]
        for setting in self.settings:
            command += ["-p", setting]
        subprocess.run(command, check=True, cwd=ROOT)
        print(f"trained: {self.path.name}", flush=True)

    def spec(self) -> str:
        return f"{self.solver}:checkpoint={self.path}"


def train_all(wanted: Iterable[Trained], processes: int) -> None:
    """Train what is not trained, so many at a time."""
    with ThreadPoolExecutor(processes) as pool:
        for job in [pool.submit(each.train) for each in wanted]:
            job.result()


def file_name(words: str) -> str:
    """Return words with everything but letters and digits replaced."""
    return "".join(letter if letter.isalnum() else "_" for letter in words)


@dataclass(frozen=True)
class PlayedRun:
    """One run of a policy: the verified objective and its main parts; seconds of the processor."""

    objective: float
    energy_j: float
    makespan_s: float
    tardiness_s: float
    cpu_s: float


def play(spec: str, given: AnyInstance, seed: int = 0, repeats: int = 1) -> PlayedRun:
    """Play a policy; the least processor time of the repeats counts, after everything is loaded."""
    from optbench.model.instance import task_instance
    from optbench.model.verify import verify
    from optbench.plugins.discovery import load_solver
    from optbench.plugins.policy import Policy

    instance = task_instance(given, "a benchmark of hgnn")
    policy = load_solver(spec)[1]
    assert isinstance(policy, Policy)
    least = np.inf
    for _ in range(repeats):
        began = time.process_time()
        schedule = policy.play(instance, np.random.default_rng(seed)).schedule
        least = min(least, time.process_time() - began)
    if schedule is None:
        raise RuntimeError(f"{spec} left work of {instance.name} undone")
    verdict = verify(instance, schedule)
    if not isinstance(verdict.objective, float):
        raise RuntimeError(f"{spec} on {instance.name}: {verdict.violations}")
    m = verdict.metrics
    return PlayedRun(verdict.objective, m["energy_j"], m["makespan_s"], m["tardiness_s"], least)


def tuned_rule() -> str:
    """Return the spec of ``tuned_rule`` with the prices of ``hgnn_rules.py``."""
    found = json.loads(RULES.read_text(encoding="utf-8"))["tuned_rule"]
    return "tuned_rule:" + ",".join(f"{name}={value}" for name, value in found.items())


def stream_rule(devices: int, path: Path = STREAM_RULES) -> str:
    """Return the spec of ``tuned_rule`` as tuned for streams, for a cluster of so many devices.

    Its price of time is a share of what the makespan costs, which grows with the cluster; what a
    second of a task is worth does not, so that the share is taken of as many devices as it was
    tuned on. On a large cluster as many tasks are tried as there are devices, as hgnn does.
    """
    about = json.loads(path.read_text(encoding="utf-8"))
    found = about["tuned_rule"] | {
        "time": round(about["tuned_rule"]["time"] * about["devices"] / devices, 8),
        "depth": max(100, devices),
    }
    return "tuned_rule:" + ",".join(f"{name}={value}" for name, value in found.items())


def training_streams() -> list[tuple[str, int]]:
    """Return the streams on which read-outs and rules are trained, each with its seed."""
    lines = STREAMS_FILE.read_text(encoding="utf-8").split()
    return [(spec, 1000 + place) for place, spec in enumerate(lines)]


def stream_cost(spec: str, given: Instance) -> float:
    """Return the verified objective of a run without what the end of the stream costs, which comes
    with the last arrivals: energy beyond that of resting devices, transfers and tardiness.
    """
    from optbench.model.objective_prices import end_cost

    run = play(spec, given)
    return run.objective - end_cost(given) * run.makespan_s / given.tick_s


def percent(values: list[float]) -> str:
    """Return the mean with its 95 % interval, in per cent."""
    from optbench.evaluate.stats import estimate

    found = estimate([100.0 * value for value in values])
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def above(runs: Sequence[PlayedRun], base: Sequence[PlayedRun], name: str = "objective") -> str:
    """Return by how much a figure of runs is above that of others, paired, in per cent."""
    pairs = zip(runs, base, strict=True)
    return percent([getattr(mine, name) / getattr(other, name) - 1.0 for mine, other in pairs])


def page_head(title: str, command: str, times: str = "of the processor") -> list[str]:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    machine = platform.processor() or platform.machine()
    return [
        f"# {title}",
        "",
        f"`{command}`, one thread. Machine: {machine}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, versions in `constraints.txt`; commit {commit.strip()}; "
        f"{time.strftime('%Y-%m-%d')}. Times are those {times}.",
        "",
    ]
