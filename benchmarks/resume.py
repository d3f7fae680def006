"""A study killed at twenty random moments and resumed, beside the same study undisturbed; writes
docs/results/resume.md.

    python benchmarks/resume.py [--kills 20] [--seed 0] [-o docs/results/resume.md]

200 cells under work limits, two at a time, each study in a workspace of its own. ``kill -9`` hits
the process of `optbench run`: in a fifth of the cases within two seconds of its start, otherwise a
random part of a second after a random number of further records. In the end keys, objectives,
bounds and schedules must be the same, in the local store and in MLflow, every cell once; nothing
may be left of the killed runners. About four minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

COMMAND = "python benchmarks/resume.py"
NAME, JOBS, LIMIT_S = "resumed", 2, 900.0
STUDY = """
question = "Is a study that was killed the study that was not?"
problems = ["jobshop:jobs=6,machines=5", "gpu_dag:tasks=10,gpus=4"]
solvers = [
    "random_rules:work_limit=6000",
    "lp_guided:work_limit=50",
    "cpsat:work_limit=1",
    "fcfs:work_limit=1",
]
seeds = 20
bound_limit = "20s"
"""
EARLY_SHARE, EARLY_S = 0.2, 2.0
# Time that the processes of a killed runner may take to end.
GONE_S = 10.0


@dataclass
class Trial:
    """One workspace and what happened in it."""

    folder: Path
    kills: list[str] = field(default_factory=list)
    left: int = 0
    seconds: float = 0.0

    @property
    def store(self) -> Path:
        return self.folder / ".optbench"

    def prepare(self, study: str) -> None:
        (self.folder / "studies").mkdir(parents=True)
        (self.folder / "optbench.toml").touch()
        (self.folder / "studies" / f"{NAME}.toml").write_text(study)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "optbench.cli.main", *words]
        env = {**os.environ, "OPTBENCH_WORKSPACE": str(self.folder), "PYTHONPATH": str(ROOT)}
        env.pop("MLFLOW_TRACKING_URI", None)
        return subprocess.Popen(
            command, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def finish(self, *words: str) -> dict[str, Any]:
        """Run a verb to its end."""
        process = self.start(*words, "--json")
        try:
            out, _ = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
        if process.returncode:
            raise SystemExit(
                f"optbench {' '.join(words)} ended with {process.returncode}: "
                f"{out.decode()[-2000:]}"
            )
        document: dict[str, Any] = json.loads(out)
        return document

    def lines(self) -> int:
        file = self.store / "results.jsonl"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def processes(self) -> list[int]:
        """Processes of this workspace, whoever their parent is by now."""
        mark = f"OPTBENCH_WORKSPACE={self.folder}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


def disturb(trial: Trial, rng: random.Random, tracked: bool = True) -> None:
    """Start the study and kill its runner at a random moment."""
    before = trial.lines()
    process = trial.start("run", NAME, "-n", str(JOBS), *([] if tracked else ["--no-track"]))
    began = time.monotonic()
    early = rng.random() < EARLY_SHARE
    if early:
        time.sleep(rng.uniform(0.0, EARLY_S))
    else:
        wanted = before + rng.randint(1, 14)
        while trial.lines() < wanted and process.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.5))
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    after = trial.lines()
    trial.kills.append(
        f"{'early' if early else 'at work'}, {time.monotonic() - began:.2f} s, {before} to {after}"
    )
    deadline = time.monotonic() + GONE_S
    while trial.processes() and time.monotonic() < deadline:
        time.sleep(0.02)
    trial.left += len(trial.processes())


def cells(trial: Trial) -> dict[str, dict[str, Any]]:
    """By key, what a cell came to; a key that stands twice is an error."""
    records = [
        json.loads(line) for line in (trial.store / "results.jsonl").read_text().splitlines()
    ]
    twice = [
        key for key, count in Counter(record["key"] for record in records).items() if count > 1
    ]
    if twice:
        raise SystemExit(f"recorded twice: {twice}")
    return {record["key"]: _essence(record, trial) for record in records}


def _essence(record: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """What must not depend on when it was computed."""
    schedule = trial.store / "cells" / record["key"] / "schedule.json"
    bounds = [(bound["level"], bound["value"], bound["source"]) for bound in record["bounds"]]
    return {
        "title": (record["cell"]["label"], record["cell"]["instance"], record["cell"]["seed"]),
        "status": record["status"],
        "reason": record["reason"],
        "objective": record["objective"],
        "metrics": record["metrics"],
        "bounds": bounds if record["cell"]["kind"] == "bound" else None,
        "schedule": json.loads(schedule.read_text()) if schedule.exists() else None,
    }


def tracked(trial: Trial) -> tuple[dict[str, float | None], list[str]]:
    """By key, the objective in MLflow; and what is there twice."""
    from optbench.track.tracking import Tracking

    client = Tracking(f"sqlite:///{trial.folder}/mlflow/mlflow.db", workspace=trial.folder).client
    experiment = client.get_experiment_by_name(f"optbench/{NAME}")
    assert experiment is not None
    found, token = [], None
    while True:
        page = client.search_runs([experiment.experiment_id], max_results=1000, page_token=token)
        found += list(page)
        token = page.token
        if not token:
            break
    children = [run for run in found if "optbench.key" in run.data.tags]
    count = Counter(run.data.tags["optbench.key"] for run in children)
    objectives = {
        run.data.tags["optbench.key"]: run.data.metrics.get("objective") for run in children
    }
    return objectives, [key for key, number in count.items() if number > 1]


def remains(trial: Trial) -> list[str]:
    """What killed runners left in the store's own folders."""
    return [
        str(path.relative_to(trial.store))
        for name in ("work", "aside")
        for path in (trial.store / name).iterdir()
    ]


def compare(plain: Trial, killed: Trial) -> Iterator[tuple[str, str, bool]]:
    """Each check: what, how much, whether it holds."""
    ours, theirs = cells(killed), cells(plain)
    yield "keys in the store", f"{len(ours)} and {len(theirs)}", set(ours) == set(theirs)
    for name in ("objective", "metrics", "schedule", "bounds", "status"):
        other = [key for key in theirs if ours.get(key, {}).get(name) != theirs[key][name]]
        has = sum(value[name] is not None for value in theirs.values())
        yield f"the same {name}", f"{has - len(other)} of {has}", not other
    yield "failed cells", str(sum(value["reason"] is not None for value in ours.values())), True
    (mine, mine_twice), (other_runs, other_twice) = tracked(killed), tracked(plain)
    yield (
        "runs of cells in MLflow",
        f"{len(mine)} and {len(other_runs)}",
        set(mine) == set(other_runs) == set(theirs),
    )
    yield (
        "in MLflow twice",
        f"{len(mine_twice)} and {len(other_twice)}",
        not (mine_twice or other_twice),
    )
    same = [
        key for key in theirs if mine.get(key) == other_runs.get(key) == theirs[key]["objective"]
    ]
    yield "the same objective in MLflow", f"{len(same)} of {len(theirs)}", len(same) == len(theirs)
    yield f"processes of killed runners after {GONE_S:g} s", str(killed.left), killed.left == 0
    left = remains(killed)
    yield "work folders left", ", ".join(left) or "0", not left


def report(seed: int, plain: Trial, killed: Trial, checks: Sequence[tuple[str, str, bool]]) -> str:
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = [
        "# A study killed and resumed",
        "",
        f"`{COMMAND} --kills {len(killed.kills)} --seed {seed}` at {commit.stdout.strip()},",
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}.",
        f"Undisturbed {plain.seconds:.0f} s; with {len(killed.kills)} times `kill -9` and starting",
        f"again {killed.seconds:.0f} s, `optbench sync` included in both.",
        "",
        "| check | undisturbed and resumed | holds |",
        "| --- | ---: | --- |",
        *(f"| {what} | {much} | {'yes' if holds else '**no**'} |" for what, much, holds in checks),
        "",
        "| kill | when | seconds after the start, records before and after |",
        "| ---: | --- | --- |",
        *(
            f"| {k} | {words.partition(', ')[0]} | {words.partition(', ')[2]} |"
            for k, words in enumerate(killed.kills, 1)
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kills", type=int, default=20, help="how often the runner is killed (default 20)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default 0)")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "resume.md"
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="optbench-resume-") as name:
        plain, killed = Trial(Path(name) / "plain"), Trial(Path(name) / "killed")
        for trial, kills in ((plain, 0), (killed, options.kills)):
            trial.prepare(STUDY)
            began = time.monotonic()
            for _ in range(kills):
                disturb(trial, rng)
                sys.stderr.write(f"killed: {trial.kills[-1]}\n")
            trial.finish("run", NAME, "-n", str(JOBS))
            trial.finish("sync")
            trial.seconds = time.monotonic() - began
        checks = list(compare(plain, killed))
        text = report(options.seed, plain, killed, checks)
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(holds for _, _, holds in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
