"""``optbench run`` as a command: what it says, what it means to a script, and what survives Ctrl-C
and kill -9.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, Cli, environment

STUDY = """
question = "Which rule?"
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["fcfs", "random_rules"]
seeds = 2
work_limit = 5
bound_limit = "1s"
"""
# Takes its time, and decides as its seed says, unless it is told to crash.
PLUGIN = '''"""A rule in no hurry."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import optbench as ob
from .random_rules import RandomRules


@dataclass(frozen=True)
class Slow(RandomRules):
    """Waits, then decides."""

    wait_s: float = 0.0
    crash: bool = False

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        time.sleep(self.wait_s)
        if self.crash:
            raise ValueError(f"no more than {self.wait_s} s")
        return super().solve(instance, run)
'''
PATIENCE_S = 60.0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name in ("studies", "solvers"):
        (tmp_path / name).mkdir()
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "solvers" / "slow.py").write_text(PLUGIN)
    (tmp_path / "studies" / "tiny.toml").write_text(STUDY)
    return tmp_path


def lines(workspace: Path) -> list[dict[str, Any]]:
    file = workspace / ".optbench" / "results.jsonl"
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def start(workspace: Path, *words: str) -> subprocess.Popen[str]:
    command = [*COMMAND, "run", *words, "--no-track"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=workspace, env=environment(), stdout=pipe, stderr=pipe, text=True
    )


def until_lines(workspace: Path, number: int, process: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while len(lines(workspace)) < number and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.01)


def processes(workspace: Path) -> list[str]:
    """Commands of the processes that work there."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (
                os.readlink(path / "cwd").startswith(str(workspace))
                and int(path.name) != os.getpid()
            ):
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def test_a_study_runs_and_the_same_command_finds_it_done(cli: Cli, workspace: Path) -> None:
    first = cli("run", "tiny", "-n", "2", "--no-track")
    assert "optbench sync tiny  sends the runs to MLflow" in first.out
    assert first.code == 0
    assert "tiny  6 of 6 cells done, none failed" in first.out and "report written to" in first.out
    assert not first.err or "6 of 6 cells" in first.err.splitlines()[-1]
    again = cli("run", "studies/tiny.toml", "--json", "--no-track").json
    assert (again["study"], again["cells"], again["done"], again["failed"], again["skipped"]) == (
        "tiny",
        6,
        6,
        0,
        6,
    )
    assert {"config_hash", "gates", "claims", "report", "failures", "interrupted", "unmade"} <= set(
        again
    )
    assert {each["solver"]: each["ran"] for each in again["solvers"]} == {
        "fcfs": 2,
        "random_rules": 2,
    }
    assert len(lines(workspace)) == 6


def test_failures_are_said_with_the_command_that_repeats_them(cli: Cli, workspace: Path) -> None:
    (workspace / "studies" / "bad.toml").write_text(
        STUDY.replace('"random_rules"', '"slow:crash=yes,wait_s=0.01"')
    )
    done = cli("run", "bad", "--no-track")
    assert done.code == 5
    assert (
        "2 crashed: the solver raised an exception" in done.out
        and "no more than 0.01 s" in done.out
    )
    assert "slow:crash=yes,wait_s=0.01 | jobshop-3x3-0 | 0: crashed: ValueError" in done.err
    (command,) = [line.strip() for line in done.out.splitlines() if "-s slow" in line]
    repeated = cli(*command.split()[1:])
    assert repeated.code == 1 and "no more than 0.01 s" in repeated.out
    assert cli("run", "bad", "--retry", "--json", "--no-track").json["ran"] == 2
    assert cli("run", "bad", "--json", "--no-track").json["failures"]["crashed"]["count"] == 2


def test_a_gate_that_does_not_hold_is_an_exit_code(cli: Cli, workspace: Path) -> None:
    (workspace / "studies" / "strict.toml").write_text(STUDY + "\n[gates]\nfcfs = 'makespan < 1'\n")
    part = cli("run", "strict", "--only", "solver=random_rules", "--no-track")
    assert part.code == 0, "a gate on cells that were not asked for"
    done = cli("run", "strict", "--no-track", "--json")
    assert done.code == 6 and [gate["verdict"] for gate in done.json["gates"]] == ["fails"]


def test_a_part_that_is_none_is_answered_with_the_nearest(cli: Cli, workspace: Path) -> None:
    done = cli("run", "tiny", "--only", "solver=fcsf", "--no-track")
    assert done.code == 2 and "no cell has solver 'fcsf'; did you mean 'fcfs'?" in done.err
    assert lines(workspace) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_at_once_and_keeps_what_is_finished(
    cli: Cli, workspace: Path, sign: signal.Signals
) -> None:
    text = STUDY.replace('"random_rules"', '"slow:wait_s=0", "slow:wait_s=600"')
    (workspace / "studies" / "long.toml").write_text(text)
    process = start(workspace, "long", "-n", "2")
    until_lines(workspace, 4, process)
    process.send_signal(sign)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "finished cells are kept" in err and "interrupted: " in out and "Traceback" not in err
    kept = len(lines(workspace))
    assert 4 <= kept < 8 and processes(workspace) == []
    assert list((workspace / ".optbench" / "work").iterdir()) == []
    rest = cli("run", "long", "--only", "wait_s=0 ", "--only", "fcfs", "--json", "--no-track").json
    assert rest["done"] == 6 and rest["skipped"] == kept


def test_a_second_runner_is_told_who_is_at_work(cli: Cli, workspace: Path) -> None:
    (workspace / "studies" / "long.toml").write_text(
        STUDY.replace('"random_rules"', '"slow:wait_s=600"')
    )
    process = start(workspace, "long")
    until_lines(workspace, 1, process)
    second = cli("run", "long", "--no-track")
    assert second.code == 2 and f"is being run by process {process.pid} since" in second.err
    other = cli("run", "tiny", "--no-track", "--json")
    assert other.code == 0 and other.json["done"] == 6
    process.kill()
    process.communicate()


def test_killed_three_times_a_study_is_what_it_would_have_been(cli: Cli, workspace: Path) -> None:
    text = STUDY.replace('"random_rules"', '"random_rules", "slow:wait_s=0.2"').replace(
        "seeds = 2", "seeds = 3"
    )
    (workspace / "studies" / "killed.toml").write_text(text)
    rng = random.Random(0)
    for _ in range(3):
        process = start(workspace, "killed", "-n", "2")
        until_lines(workspace, len(lines(workspace)) + rng.randint(1, 3), process)
        time.sleep(rng.uniform(0.0, 0.2))
        process.kill()
        process.communicate()
    done = cli("run", "killed", "-n", "2", "--json", "--no-track").json
    assert (done["cells"], done["done"], done["failed"]) == (12, 12, 0)
    resumed = {line["key"]: essence(workspace, line) for line in lines(workspace)}
    assert Counter(line["key"] for line in lines(workspace)).most_common(1)[0][1] == 1
    give_up = time.monotonic() + PATIENCE_S
    while processes(workspace) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert processes(workspace) == []
    assert [
        path for name in ("work", "aside") for path in (workspace / ".optbench" / name).iterdir()
    ] == []
    (workspace / ".optbench").rename(workspace / "resumed")
    assert cli("run", "killed", "--json", "--no-track").json["done"] == 12
    assert {line["key"]: essence(workspace, line) for line in lines(workspace)} == resumed


def essence(workspace: Path, line: dict[str, Any]) -> tuple[Any, ...]:
    schedule = workspace / ".optbench" / "cells" / line["key"] / "schedule.json"
    return (
        line["objective"],
        line["bound"],
        line["status"],
        schedule.read_text() if schedule.exists() else None,
    )
