"""Two `optbench tune` commands on one study, one of them killed and started again; writes
docs/results/tune.md.

    python benchmarks/tune_workers.py [--kills 6] [--seed 0] [-o docs/results/tune.md]

The study gpu_dag_tune with trials in a journal, and a smaller one with trials in SQLite and in
PostgreSQL (a cluster of its own under a temporary folder; needs PostgreSQL's programs and
psycopg2). ``kill -9`` hits at random moments of one of the two commands either the command, or its
worker, or both at once; a command that is gone is started again. In the end no trial may be lost or
doubled, each must have all of its cells, every cell must stand in the store once, and MLflow must
show one run per trial. For gpu_dag_tune the tuned thresholds are compared with the defaults on
seeds that the search has not seen. Exit code 1 when anything does not hold. About five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._postgres_cluster import HOST, database_url, program, start_cluster  # noqa: E402
from benchmarks._tune_processes import holds_trial, left_of, workers_of  # noqa: E402
from benchmarks.tune_report import render  # noqa: E402

COMMAND = "python benchmarks/tune_workers.py"
LIMIT_S, GONE_S = 600.0, 30.0
AT_WORK_SHARE = 0.75
SMALL = """
question = "Are trials lost or doubled when workers are killed?"
problems = ["gpu_dag:tasks=12,gpus=4,deadlines=none"]
solvers = ["fixed_dvfs"]
seeds = 3
time_limit = "10s"
[tune]
solver = "fixed_dvfs"
seeds = [1000, 1001, 1002, 1003, 1004, 1005]
minimize = ["objective"]
trials = 60
[tune.space]
low_clock = { float = [0.0, 1.0] }
load = { float = [0.0, 1.0] }
"""


@dataclass
class Case:
    """One search under fire."""

    name: str
    study: str
    storage: str | None
    folder: Path
    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    seconds: float = 0.0
    told: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[str]:
        self.starts += 1
        words = [sys.executable, "-m", "optbench.cli.main", "tune", self.study, "-q", "--json"]
        words += ["--storage", self.storage] if self.storage else []
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
        return {
            key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"
        } | own

    def records(self) -> list[dict[str, Any]]:
        path = self.folder / ".optbench" / "results.jsonl"
        whole = path.read_text().rpartition("\n")[0] if path.is_file() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def count(self) -> int:
        path = self.folder / ".optbench" / "results.jsonl"
        return path.read_bytes().count(b"\n") if path.is_file() else 0


def run_case(case: Case, kills: int, rng: random.Random) -> None:
    """Both commands until the search is done; the second is killed again and again."""
    (case.folder / "optbench.toml").touch()
    (case.folder / "studies").mkdir()
    (case.folder / "studies" / "small.toml").write_text(SMALL)
    began = time.monotonic()
    steady, victim = case.start(), case.start()
    while steady.poll() is None and sum(case.kills.values()) < kills:
        if rng.random() < AT_WORK_SHARE:
            wait_for_worker(victim, steady)
        if wait_for_cells(case, rng.randrange(1, 12), steady, rng.random() * 0.4):
            kill(case, victim, rng)
        if victim.poll() is not None and steady.poll() is None:
            victim.communicate()
            victim = case.start()
    for process in (steady, victim):
        out, _ = process.communicate(timeout=LIMIT_S)
        if process.returncode != 0:
            case.problems.append(f"a command ended with exit code {process.returncode}")
        elif process is steady:
            case.told = json.loads(out)
    case.seconds = time.monotonic() - began


def wait_for_worker(victim: subprocess.Popen[str], steady: subprocess.Popen[str]) -> None:
    """Until it holds a trial, so that not every kill hits a command that is still starting."""
    while (
        steady.poll() is None
        and victim.poll() is None
        and not any(map(holds_trial, workers_of(victim)))
    ):
        time.sleep(0.05)


def wait_for_cells(case: Case, cells: int, steady: subprocess.Popen[str], then_s: float) -> bool:
    """Until so many further cells are in the store, and a moment longer; whether the search still
    goes on.
    """
    goal, deadline = case.count() + cells, time.monotonic() + 60
    while steady.poll() is None and case.count() < goal and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(then_s)
    return steady.poll() is None


def kill(case: Case, victim: subprocess.Popen[str], rng: random.Random) -> None:
    what = rng.choice(("command", "worker", "both"))
    workers = workers_of(victim)
    if what != "command" and not workers:
        return
    case.kills[what] += 1
    for pid in (workers if what != "command" else []) + ([victim.pid] if what != "worker" else []):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it had just ended
            continue
    if what != "worker":
        victim.wait()


def check(case: Case) -> None:
    """Trials, cells and MLflow runs; what does not hold goes into ``problems``."""
    import optuna

    from optbench.tune.storage import open_storage

    url = case.storage or case.told["storage"]
    trials = optuna.load_study(
        storage=open_storage(url), study_name=case.told["search"]
    ).get_trials()
    total = case.told["trials"]
    states = Counter(trial.state.name for trial in trials)
    expect(
        case,
        [trial.number for trial in trials] == list(range(total)),
        f"trial numbers {[t.number for t in trials]}",
    )
    expect(case, set(states) <= {"COMPLETE", "PRUNED"}, f"states {dict(states)}")
    records = case.records()
    keys = Counter(record["key"] for record in records)
    expect(
        case,
        set(keys.values()) == {1},
        f"{sum(n > 1 for n in keys.values())} cells stand in the store more than once",
    )
    by_key = {record["key"]: record for record in records}
    reference = trials[0].user_attrs["optbench.cells"]
    for trial in trials:
        check_trial(case, trial, reference, by_key)
    used = {key for trial in trials for key in trial.user_attrs["optbench.cells"]}
    adopted = [trial for trial in trials if trial.user_attrs.get("optbench.adopted")]
    case.facts = {
        "trials": total,
        "complete": states["COMPLETE"],
        "pruned": states["PRUNED"],
        "adopted": len(adopted),
        "cells": len(records),
        "cells_of_trials": len(used),
        "busy_s": sum(by_key[key]["total_s"] for key in used),
    }
    check_runs(case, total)


def check_trial(
    case: Case, trial: Any, reference: list[str], by_key: dict[str, dict[str, Any]]
) -> None:
    """The cells of a trial, and its value from the objectives in the store."""
    cells, instances = trial.user_attrs["optbench.cells"], len(reference)
    whole = trial.state.name == "COMPLETE"
    enough = len(cells) == instances if whole else 0 < len(cells) < instances
    what = f"trial {trial.number}"
    expect(case, enough, f"{what}, {trial.state.name.lower()}: {len(cells)} of {instances} cells")
    missing = [key for key in cells if key not in by_key]
    expect(case, not missing, f"{what}: {len(missing)} cells are not in the store")
    if not missing:
        pairs = zip(cells, reference, strict=False)
        changes = [by_key[a]["objective"] / by_key[b]["objective"] - 1 for a, b in pairs]
        again, told = sum(changes) / len(changes), trial.values[0]
        close = abs(again - told) < 1e-9
        expect(case, close, f"{what}: value {told}, from the store {again}")


def check_runs(case: Case, total: int) -> None:
    """One MLflow run per trial under one parent."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{case.folder / 'mlflow' / 'mlflow.db'}")
    (experiment,) = client.search_experiments(filter_string=f"name = 'optbench/{case.study}'")
    runs = client.search_runs([experiment.experiment_id], max_results=5000)
    numbers = Counter(
        int(run.data.tags["optbench.trial"])
        for run in runs
        if run.data.tags["optbench.kind"] == "trial"
    )
    parents = [run for run in runs if run.data.tags["optbench.kind"] == "tune"]
    expect(
        case,
        numbers == Counter(range(total)),
        f"MLflow has {sum(numbers.values())} runs of {len(numbers)} trials",
    )
    expect(case, len(parents) == 1, f"MLflow has {len(parents)} parents")
    below = {
        run.data.tags.get("mlflow.parentRunId")
        for run in runs
        if run.data.tags["optbench.kind"] == "trial"
    }
    expect(case, below == {run.info.run_id for run in parents}, "MLflow runs without the parent")
    case.facts["runs"] = len(runs)
    case.facts["artifacts"] = sorted(
        each.path for run in parents for each in client.list_artifacts(run.info.run_id)
    )


def expect(case: Case, holds: bool, otherwise: str) -> None:
    if not holds:
        case.problems.append(otherwise)


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of a database in a cluster of its own."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    server = start_cluster(folder, port)
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(
            [program("pg_isready"), "-h", HOST, "-p", str(port)],
            stdout=subprocess.DEVNULL,
            check=False,
        ).returncode:
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"PostgreSQL does not answer: {(folder / 'postgres.log').read_text()[-500:]}"
                )
            time.sleep(0.1)
        yield database_url(port)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def unseen(case: Case) -> dict[str, Any]:
    """Defaults and tuned thresholds on the study's seeds, from the store, and three of them solved
    again by hand.
    """
    from optbench import api

    file = tomllib.loads((case.folder / "tuned" / f"{case.study}.toml").read_text())
    defaults = {**file["params"], **file["provenance"]["defaults"]}
    seeds = set(file["provenance"]["validation_seeds"])
    found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for record in case.records():
        cell = record["cell"]
        if cell["kind"] == "solve" and cell["instance_seed"] in seeds:
            for name, params in (("tuned", file["params"]), ("defaults", defaults)):
                if cell["params"] == params:
                    found.setdefault((cell["target"], cell["instance_seed"]), {})[name] = record
    changes = {
        place: each["tuned"]["objective"] / each["defaults"]["objective"] - 1
        for place, each in found.items()
    }
    for place in sorted(found)[:3]:
        by_hand = api.solve(place[0], "fixed_dvfs", seed=place[1], bound=False, **file["params"])
        expect(
            case,
            by_hand.objective == found[place]["tuned"]["objective"],
            f"{place}: {by_hand.objective} by hand",
        )
    (goal,) = case.told["validation"]["goals"]
    mean = sum(changes.values()) / len(changes)
    expect(
        case,
        abs(mean - goal["change"]) < 1e-9,
        f"mean change {goal['change']}, from the store {mean}",
    )
    expect(
        case, goal["high"] < 0, f"the interval {goal['low']} to {goal['high']} does not exclude 0"
    )
    times = {
        name: statistics.median(each[name]["wall_s"] for each in found.values())
        for name in ("tuned", "defaults")
    }
    better = sum(change < -1e-9 for change in changes.values())
    worse = sum(change > 1e-9 for change in changes.values())
    return {
        "goal": goal,
        "instances": len(changes),
        "better": better,
        "worse": worse,
        "times": times,
        "file": file,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=6, help="of each search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results" / "tune.md")
    args = parser.parse_args()
    rng, began = random.Random(args.seed), time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="optbench-tune-") as name,
        postgres(Path(name)) as database,
    ):
        base = Path(name)
        cases = [
            Case("gpu_dag_tune, journal", "gpu_dag_tune", None, base / "journal"),
            Case("small, SQLite", "small", f"sqlite:///{base}/trials.db", base / "sqlite"),
            Case("small, PostgreSQL", "small", database, base / "postgres"),
        ]
        value: dict[str, Any] = {}
        for case in cases:
            case.folder.mkdir()
            run_case(case, args.kills, rng)
            check(case)
            deadline = time.monotonic() + GONE_S
            while (left := left_of(case.folder)) and time.monotonic() < deadline:
                time.sleep(0.2)
            expect(case, not left, f"processes left: {left}")
            expect(
                case,
                sum(case.kills.values()) >= args.kills,
                f"only {sum(case.kills.values())} kills before the end",
            )
            if case is cases[0]:
                value = unseen(case)
            state = "; ".join(case.problems) or "all holds"
            print(
                (
                    f"{case.name}: {dict(case.kills)} kills, {case.starts} starts, {case.facts}: "
                    f"{state}"
                ),
                flush=True,
            )
        args.output.write_text(
            render(COMMAND, cases, value, time.monotonic() - began), encoding="utf-8"
        )
        return 1 if any(case.problems for case in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
