"""``optbench tune`` as people use it: results, files, resuming, killed workers, two commands at
once.
"""

from __future__ import annotations

import os
import signal
import time
import tomllib
from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial

from optbench.api import load_target
from optbench.model.files.instance_json import write_instance
from optbench.tune.storage import open_storage

from .conftest import STUDY, Workspace, states


def trials_of(url: str, search: str) -> list[FrozenTrial]:
    return optuna.load_study(storage=open_storage(url), study_name=search).get_trials()


def journal(workspace: Workspace) -> Path | None:
    return next((workspace.root / ".optbench" / "tune").glob("*/trials.journal"), None)


def wait_for_trials(workspace: Workspace, count: int, timeout_s: float = 60.0) -> None:
    """Until so many trials are finished."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        path = journal(workspace)
        if path is not None and path.read_text().count('"state":1') >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{count} trials were not finished within {timeout_s} s")


def workers_of(pid: int) -> list[int]:
    """Worker processes: children that Python spawned."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    threads = Path(f"/proc/{pid}/task").iterdir()
    children += [child for thread in threads for child in (thread / "children").read_text().split()]
    return [
        int(child)
        for child in dict.fromkeys(children)
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def wait_for_end(pids: list[int], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not any(is_running(pid) for pid in pids):
            return
        time.sleep(0.05)
    raise AssertionError(f"still running: {[pid for pid in pids if is_running(pid)]}")


def is_running(pid: int) -> bool:
    """Not gone, and no zombie that waits for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def check_whole(workspace: Workspace, told: dict[str, object], cells: int) -> None:
    """Every trial once, each with all of its cells, each cell once in the store."""
    trials = trials_of(str(told["storage"]), str(told["search"]))
    assert [trial.number for trial in trials] == list(range(len(trials)))
    assert states(trials)["COMPLETE"] == told["trials"] == len(trials)
    assert all(len(trial.user_attrs["optbench.cells"]) == cells for trial in trials)
    keys = workspace.lines()
    assert set(keys.values()) == {1}
    assert all(key in keys for trial in trials for key in trial.user_attrs["optbench.cells"])


def test_a_search_ends_with_a_file_that_solve_accepts(workspace: Workspace) -> None:
    told = workspace.run("tune", "mini", "--no-track")
    assert (told["trials"], told["done"], told["ran"], told["interrupted"]) == (4, 4, 4, False)
    assert told["defaults"] == {"low_clock": 0.6, "high_clock": 1.0}
    assert (
        told["best"]["losses"][0] <= 0.0
    )  # the defaults are among the trials, and 0 by definition
    (goal,) = told["validation"]["goals"]
    assert told["validation"]["instances"] == 2 and goal["low"] <= goal["change"] <= goal["high"]

    file = tomllib.loads(Path(told["params_file"]).read_text())
    assert file["solver"] == "fixed_dvfs"
    assert file["params"] == {**told["best"]["params"], "load": 0.5}
    assert file["provenance"]["seeds"] == [100, 101] and file["provenance"]["validation_seeds"] == [
        0,
        1,
    ]
    page = Path(told["page"]).read_text()
    assert "<svg" in page and "http" not in page.replace("http://www.w3.org", "")

    by_file = workspace.run(
        "solve", "gpu_dag:tasks=5,gpus=2", "-s", "fixed_dvfs", "-p", "params=tuned/mini.toml"
    )
    words = [
        word for key, value in told["best"]["params"].items() for word in ("-p", f"{key}={value}")
    ]
    by_hand = workspace.run("solve", "gpu_dag:tasks=5,gpus=2", "-s", "fixed_dvfs", *words)
    assert by_file["objective"] == by_hand["objective"]
    workspace.add(
        "uses",
        'problems = ["gpu_dag:tasks=5,gpus=2"]\nsolvers = ["fixed_dvfs:params=tuned/mini.toml"]\n',
    )
    assert workspace.run("run", "uses", "--no-track")["failed"] == 0


def test_the_same_command_again_runs_nothing_and_more_trials_go_on(workspace: Workspace) -> None:
    first = workspace.run("tune", "mini", "--no-track", "--trials", "2")
    before = workspace.lines()
    again = workspace.run("tune", "mini", "--no-track", "--trials", "2")
    assert (again["ran"], again["best"]) == (0, first["best"]) and workspace.lines() == before
    more = workspace.run("tune", "mini", "--no-track")
    assert (more["ran"], more["done"]) == (2, 4)
    assert set(workspace.lines().values()) == {1}


def test_a_killed_worker_s_trial_is_finished_and_nothing_is_done_twice(
    workspace: Workspace,
) -> None:
    process = workspace.start("tune", "slow", "--no-track", "-n", "2", "--json")
    wait_for_trials(workspace, 1)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told = workspace.run("tune", "slow", "--no-track")
    assert told["ran"] == 0
    check_whole(workspace, told, cells=2)


def test_a_killed_command_is_resumed_and_its_trial_adopted(workspace: Workspace) -> None:
    process = workspace.start("tune", "slow", "--no-track")
    wait_for_trials(workspace, 1)
    workers = workers_of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for_end(workers)
    told = workspace.run("tune", "slow", "--no-track")
    assert 0 < told["ran"] < 4
    check_whole(workspace, told, cells=2)


@pytest.mark.slow
def test_a_second_command_joins(workspace: Workspace) -> None:
    first = workspace.start("tune", "slow", "--no-track", "--json")
    told = workspace.run("tune", "slow", "--no-track")
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    check_whole(workspace, told, cells=2)


def test_ctrl_c_keeps_what_is_finished(workspace: Workspace) -> None:
    process = workspace.start("tune", "slow", "--no-track", "--json")
    wait_for_trials(workspace, 1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert '"interrupted": true' in out
    told = workspace.run("tune", "slow", "--no-track")
    assert told["ran"] < 4
    check_whole(workspace, told, cells=2)


def test_several_goals_make_a_front_within_the_constraints(workspace: Workspace) -> None:
    goals = (
        'minimize = ["energy_j", "makespan_s"]\nconstraints = ["makespan_s <= 1e9", "failed == 0"]'
    )
    workspace.add(
        "several",
        STUDY.replace('minimize = ["objective"]', goals).replace("trials = 4", "trials = 7"),
    )
    told = workspace.run("tune", "several", "--no-track")
    front = [tuple(point["losses"]) for point in told["front"]]
    assert front == sorted(front) and front
    trials = trials_of(told["storage"], told["search"])
    assert all(trial.constraints["makespan_s <= 1e9"] < 0 for trial in trials)
    values = [tuple(trial.values) for trial in trials]
    dominated = {
        a
        for a in values
        for b in values
        if a != b and all(x >= y for x, y in zip(a, b, strict=True))
    }
    assert set(front) == set(values) - dominated
    files = sorted(Path(told["params_file"]).parent.glob("several*.toml"))
    assert len(files) == len(front) + 1
    assert told["best"] in told["front"]


def test_constraints_are_held_against_the_unseen_instances_too(workspace: Workspace) -> None:
    # What a task draws hangs on the seed alone: 10 J in the search, 5,000 J in the judging.
    (workspace.root / "problems" / "growing.py").write_text(GROWING)
    text = STUDY.replace("gpu_dag:tasks=5,gpus=2,deadlines=none", "growing").replace(
        "seeds = 2", "seeds = [7, 8]"
    )
    workspace.add(
        "grows", text.replace("trials = 4", 'trials = 2\nconstraints = ["max(energy_j) <= 1000"]')
    )
    told = workspace.run("tune", "grows", "--no-track")
    assert told["best"]["trial"] == 0 and told["validation"]["broken"] == ["max(energy_j) <= 1000"]
    assert tomllib.loads(Path(told["params_file"]).read_text())["provenance"][
        "validation_constraints_broken"
    ] == ["max(energy_j) <= 1000"]


def test_a_file_is_the_same_instance_whatever_the_seed(workspace: Workspace) -> None:
    file = workspace.root / "studies" / "one.json"
    write_instance(load_target("gpu_dag:tasks=4,gpus=2,deadlines=none", 0), file)
    text = STUDY.replace("gpu_dag:tasks=5,gpus=2,deadlines=none", "one.json").replace(
        "trials = 4", "trials = 2"
    )
    workspace.add("file", text)
    told = workspace.run("tune", "file", "--no-track")
    assert (told["validation"]["instances"], told["validation"]["seen"]) == (2, 2)
    write_instance(load_target("gpu_dag:tasks=4,gpus=2,deadlines=none", 1), file)
    assert workspace.run("tune", "file", "--no-track")["search"] != told["search"]


def test_constraints_that_nothing_keeps_are_said(workspace: Workspace) -> None:
    workspace.add(
        "never", STUDY.replace("trials = 4", 'trials = 2\nconstraints = ["energy_j <= 1"]')
    )
    told = workspace.run("tune", "never", "--no-track", code=3)
    assert told["best"] is None and told["params_file"] is None


def test_parameters_of_the_problem(workspace: Workspace) -> None:
    text = STUDY.replace('minimize = ["objective"]', 'minimize = ["energy_j"]')
    workspace.add("both", text + '"problem.gang" = { int = [1, 2] }\n')
    told = workspace.run("tune", "both", "--no-track")
    assert told["defaults"]["problem.gang"] == 2
    file = tomllib.loads(Path(told["params_file"]).read_text())
    assert file["problem"] == {"gang": told["best"]["params"]["problem.gang"]}
    solved = workspace.run("solve", "gpu_dag:tasks=5,gpus=2,params=tuned/both.toml", "-s", "fcfs")
    assert solved["verified"]


def test_a_study_without_a_section_says_so(workspace: Workspace) -> None:
    workspace.add("plain", 'problems = ["gpu_dag:tasks=5"]\nsolvers = ["fcfs"]\n')
    told = workspace.run("tune", "plain", code=2)
    assert "no [tune] section" in told["error"]


GROWING = '''
"""One task, whose energy hangs on the seed."""

from dataclasses import dataclass

import optbench as ob


@dataclass(frozen=True)
class Growing(ob.Problem):
    """Seeds below 100 are dear."""

    def instance(self, seed=0):
        m = ob.Model(f"growing-{seed}", tick_s=1)
        pool = m.pool("gpu", count=1)
        m.task("job", modes=[m.mode(pool, time_s=10 + seed % 3, \
energy_j=10 if seed >= 100 else 5000)])
        m.minimize(energy_j=1.0)
        return m.build()
'''
BROKEN = '''
"""Never works."""

from dataclasses import dataclass

import optbench as ob
from optbench.plugins.discovery import load_solver


@dataclass(frozen=True)
class Broken(ob.Solver):
    """Never works."""

    x: float = 0.5
    supports = load_solver("fcfs")[1].supports

    def solve(self, instance, run):
        raise RuntimeError("out of ideas")
'''


def test_defaults_without_any_result_are_refused(workspace: Workspace) -> None:
    (workspace.root / "solvers" / "broken.py").write_text(BROKEN)
    text = STUDY.replace('"fixed_dvfs"', '"broken"').partition("[tune.space]")[0]
    workspace.add("broken", text + "[tune.space]\nx = { float = [0.0, 1.0] }\n")
    told = workspace.run("tune", "broken", "--no-track", code=2)
    assert "no value for the defaults" in told["error"] and "crashed" in told["error"]
