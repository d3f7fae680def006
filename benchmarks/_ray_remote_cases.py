"""Searches and trainings on a two-node cluster under fire, and what has to hold of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.tune_workers import SMALL, Case
from tests.ray_nodes import RayNodes

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 900.0
ACTOR = "ray::TuneActor"
POOL_ACTOR = "ray::NodeWorker"


@dataclass
class RayCase(Case):
    """A search whose workers are on the nodes of a cluster."""

    nodes: RayNodes | None = None
    workers: int = 2
    said: list[str] = field(default_factory=list)

    def start(self) -> subprocess.Popen[str]:
        self.starts += 1
        words = [sys.executable, "-m", "optbench.cli.main", "tune", self.study, "--json"]
        words += ["--storage", self.storage] if self.storage else []
        words += ["-n", str(self.workers)]
        if self.nodes is not None:
            words += ["--backend", "ray", "--address", self.nodes.address]
        with (self.folder / "errors.txt").open("a") as errors:
            return subprocess.Popen(
                words,
                cwd=self.folder,
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def environment(self) -> dict[str, str]:
        own = {"OPTBENCH_WORKSPACE": str(self.folder), "PYTHONPATH": str(ROOT)}
        kept = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
        return {**kept, **(self.nodes.environment() if self.nodes is not None else {}), **own}

    def prepare(self) -> None:
        """Make the workspace."""
        self.folder.mkdir(parents=True)
        (self.folder / "optbench.toml").touch()
        (self.folder / "studies").mkdir()
        (self.folder / "studies" / "small.toml").write_text(SMALL)

    def told_on_stderr(self) -> list[str]:
        lines = (self.folder / "errors.txt").read_text().splitlines()
        own = [line for line in lines if line.startswith("optbench: ")]
        return [line for line in own if "adopted" in line or "lost" in line]


def processes(title: str, nodes: RayNodes) -> list[psutil.Process]:
    """The actors of a kind that the raylets of a cluster have started."""
    found = []
    for raylet in nodes.raylets():
        for child in raylet.children():
            words = child.cmdline()
            if words and words[0].startswith(title):
                found.append(child)
    return found


def wait_for_cells(case: RayCase, command: subprocess.Popen[str], cells: int) -> bool:
    """Until so many cells are in the store; whether the search still goes on."""
    deadline = time.monotonic() + LIMIT_S
    while command.poll() is None and case.count() < cells and time.monotonic() < deadline:
        time.sleep(0.05)
    return command.poll() is None


def kill_worker(case: RayCase) -> str:
    """``kill -9`` of one worker of the search."""
    assert case.nodes is not None
    workers = processes(ACTOR, case.nodes)
    if not workers:
        return ""
    workers[0].kill()
    case.kills["worker"] += 1
    return f"worker {workers[0].pid}"


def kill_node(case: RayCase) -> str:
    """``kill -9`` of the second node's raylet; another node joins."""
    assert case.nodes is not None
    raylet = case.nodes.workers()[0]
    case.nodes.kill_node(raylet)
    case.kills["node"] += 1
    case.nodes.add_node()
    return f"node of raylet {raylet.pid}"


def trials_of(case: Case) -> list[tuple[dict[str, Any], tuple[float, ...]]]:
    """Parameters and values of all trials, in order."""
    import optuna

    from optbench.tune.storage import open_storage

    url = case.storage or case.told["storage"]
    known = optuna.load_study(storage=open_storage(url), study_name=case.told["search"])
    return [(trial.params, tuple(trial.values or ())) for trial in known.get_trials()]


@dataclass
class Training:
    """A training of one solver, run in several ways; ``told`` is what each printed."""

    solver: str
    problems: tuple[str, ...]
    settings: dict[str, str]
    folder: Path
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    wall_s: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)

    def output(self, way: str) -> Path:
        suffix = "json" if self.solver == "learned_prices" else "safetensors"
        return self.folder / f"{self.solver}-{way}.{suffix}"

    def command(self, way: str, *words: str) -> list[str]:
        given = [word for problem in self.problems for word in ("--on", problem)]
        given += [word for pair in self.settings.items() for word in ("-p", "=".join(pair))]
        return [
            *(sys.executable, "-m", "optbench.cli.main", "train", self.solver, *given),
            *("-o", str(self.output(way)), "--no-track", "--json", *words),
        ]

    def run(self, way: str, nodes: RayNodes | None, *words: str, kill: str = "") -> None:
        """Train once; with ``kill`` a node or a worker is killed in the middle."""
        extra = ("--backend", "ray", "--address", nodes.address) if nodes is not None else ()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment |= nodes.environment() if nodes is not None else {}
        errors = (self.folder / f"{self.solver}-{way}.err").open("w")
        began = time.monotonic()
        with errors, subprocess.Popen(
            self.command(way, *extra, *words),
            cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as process:  # fmt: skip
            if kill and nodes is not None:
                self._kill_in_the_middle(way, nodes, process, kill)
            out, _ = process.communicate(timeout=LIMIT_S)
        self.wall_s[way] = time.monotonic() - began
        said = (self.folder / f"{self.solver}-{way}.err").read_text()
        if process.returncode:
            raise SystemExit(f"{self.solver}, {way}: exit code {process.returncode}: {said[-800:]}")
        self.told[way] = {**json.loads(out), "said": said}

    def _kill_in_the_middle(
        self, way: str, nodes: RayNodes, process: subprocess.Popen[str], kill: str
    ) -> None:
        """Wait until the training has saved a state, then kill."""
        kept = self.output(way).with_name(f"{self.output(way).name}.state")
        deadline = time.monotonic() + LIMIT_S
        while not kept.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        if kill == "node":
            nodes.kill_node(nodes.workers()[0])
        else:
            processes(POOL_ACTOR, nodes)[0].kill()

    def said_when_killed(self) -> list[str]:
        """What the training said on standard error when a node was killed."""
        return str(self.told["node killed"]["said"]).splitlines()

    def weights(self, way: str) -> Any:
        """What the checkpoint holds, without when and how long it was trained."""
        path = self.output(way)
        if path.suffix == ".json":
            return json.loads(path.read_text())["theta"]
        from safetensors.numpy import load_file

        return {name: value.tobytes() for name, value in load_file(str(path)).items()}

    def is_same(self, way: str, as_way: str) -> bool:
        return bool(self.weights(way) == self.weights(as_way))
