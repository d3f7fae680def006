"""Programs that use one of the engines in a workspace of hostile solvers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.cases import MARK, Study, run

PATIENCE_S = 120.0

# A program of its own, since plug-ins are found by what the environment says when they are first
# imported.
PROGRAM = """
import json, os, pickle, signal, sys, threading, time
from functools import partial
from pathlib import Path
from optbench import api
from optbench.execute.base import Job
from optbench.execute.local import LocalExecutor
from optbench.execute.ray_cluster.ray_executor import RayExecutor
from optbench.study.declared import CellBudget

# While a cluster is joined, what is printed goes to standard error: Ray prints too.
print = partial(print, file=sys.__stdout__)
ADDRESS = os.environ.get("ADDRESS_OF_CLUSTER")

folder = Path(sys.argv[1]) / "work"
folder.mkdir()
instance = folder / "instance.pickle"
instance.write_bytes(pickle.dumps(api.load_target("jobshop:jobs=3,machines=3")))


def job(solver, **params):
    payload = {"instance_file": str(instance), "solver": solver, "params": params, \
"seed": 0, "threads": 1}
    payload |= {"time_limit_s": 20.0, "work_limit": None}
    key = f"{solver}-{'-'.join(params.values())}-{time.monotonic_ns()}"
    return Job(key, "solve", payload, CellBudget(20.0), folder / key)


def engine(jobs, solvers=(), **options):
    if ADDRESS is None:
        return LocalExecutor(jobs, solvers, **options)
    return RayExecutor(jobs, solvers, address=ADDRESS, **options)


def say(outcome):
    reason = outcome.reason
    answer = outcome.answer or {}
    crash = (answer.get("result") or {}).get("message")
    print(json.dumps([outcome.key.split("-")[0], reason and reason.kind, \
reason and reason.message, crash]), flush=True)


def main():
    EXECUTE


main()
"""


@dataclass(frozen=True)
class EngineUnderTest:
    """An engine: the environment of its driver, and the arguments of ``optbench run``."""

    name: str
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    arguments: tuple[str, ...] = ()

    def program(self, root: Path, *lines: str) -> subprocess.Popen[str]:
        """Start a program that uses the engine in a workspace of hostile solvers."""
        code = PROGRAM.replace("EXECUTE", "\n    ".join(lines))
        return subprocess.Popen(
            [sys.executable, "-c", code, str(root)],
            cwd=root,
            env={**self.environment, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def study(self, root: Path, solvers: Sequence[str], **options: Any) -> Study:
        """Run a study in such a workspace."""
        return run(root, solvers, arguments=self.arguments, environment=self.environment, **options)


# A test that both engines must pass, and one that takes long on a cluster.
BOTH_ENGINES = pytest.mark.parametrize("engine", ["local", "ray"], indirect=True)
RAY_SLOWLY = pytest.mark.parametrize(
    "engine", ["local", pytest.param("ray", marks=pytest.mark.slow)], indirect=True
)


def said(started: subprocess.Popen[str]) -> list[list[str | None]]:
    out, errors = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
