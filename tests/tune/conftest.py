"""A workspace with a search that takes seconds, and its command in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_server import CommandServer

COMMAND = (sys.executable, "-m", "optbench.cli.main")
TIMEOUT_S = 180
STUDY = """
problems = ["gpu_dag:tasks=5,gpus=2,deadlines=none"]
solvers = ["fixed_dvfs"]
seeds = 2
time_limit = "5s"
[tune]
solver = "fixed_dvfs"
seeds = [100, 101]
minimize = ["objective"]
trials = 4
startup = 3
[tune.space]
low_clock = { float = [0.0, 1.0] }
high_clock = { float = [0.0, 1.0] }
"""
# Long enough for a worker to be killed in the middle of a trial.
SLOW_SOLVER = '''
"""First come, first served, after a nap."""

import time
from dataclasses import dataclass

import optbench as ob
from optbench.plugins.discovery import load_solver


@dataclass(frozen=True)
class Sleepy(ob.Solver):
    """Sleeps before it starts."""

    depth: float = 0.5
    supports = load_solver("fcfs")[1].supports

    def solve(self, instance, run):
        time.sleep(0.25)
        return load_solver("fcfs")[1].solve(instance, run)
'''
SLOW_STUDY = """
problems = ["gpu_dag:tasks=4,gpus=2,deadlines=none"]
solvers = ["sleepy"]
seeds = 2
time_limit = "5s"
[tune]
solver = "sleepy"
seeds = [100, 101]
minimize = ["objective"]
trials = 4
pruner = "none"
space = { depth = { float = [0.0, 1.0] } }
"""


@dataclass(frozen=True)
class Workspace:
    """A folder with studies, and what a search left in it."""

    root: Path
    server: CommandServer

    def add(self, name: str, text: str) -> None:
        (self.root / "studies" / f"{name}.toml").write_text(text)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """``optbench WORDS`` in a process group of its own."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, code: int = 0) -> Any:
        """The JSON of a command that must end with this exit code."""
        done = self.server.run([*words, "--json"], self.root, self.environment(), TIMEOUT_S)
        assert done.code == code, done.err
        assert "Traceback" not in done.err
        return json.loads(done.out)

    def environment(self) -> dict[str, str]:
        dropped = ("OPTBENCH_DEBUG", "FORCE_COLOR", "COLUMNS", "MLFLOW_TRACKING_URI")
        kept = {key: value for key, value in os.environ.items() if key not in dropped}
        return {**kept, "OPTBENCH_WORKSPACE": str(self.root)}

    def lines(self) -> Counter[str]:
        """How often each key stands in the store."""
        text = (self.root / ".optbench" / "results.jsonl").read_text()
        return Counter(json.loads(line)["key"] for line in text.splitlines())


@pytest.fixture
def workspace(tmp_path: Path, command_server: CommandServer) -> Workspace:
    (tmp_path / "optbench.toml").touch()
    for folder in ("studies", "solvers", "problems"):
        (tmp_path / folder).mkdir()
    found = Workspace(tmp_path, command_server)
    found.add("mini", STUDY)
    found.add("slow", SLOW_STUDY)
    (tmp_path / "solvers" / "sleepy.py").write_text(SLOW_SOLVER)
    return found


def states(trials: Sequence[Any]) -> Counter[str]:
    return Counter(trial.state.name for trial in trials)
