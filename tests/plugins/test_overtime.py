"""A user's plug-in that goes on after its time is stopped; what it reported is kept."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import optbench as ob
from optbench.model.files.instance_json import write_instance
from optbench.plugins.overtime import Watched, killed_from_outside

# The limit of these runs, and how much later they may return on a busy machine; each would go on
# for an hour.
LIMIT_S, LATE_S, HOUR_S = 0.3, 10.0, 3600.0


def shop(tasks: int = 4) -> ob.Instance:
    """Tasks of one second each on one device: one after the other."""
    m = ob.Model("row")
    pool = m.pool("gpu", count=1)
    for _ in range(tasks):
        m.task(modes=[m.mode(pool, time_s=1)])
    m.minimize(makespan_s=1.0)
    return m.build()


def sleeping() -> None:
    time.sleep(HOUR_S)


def looping() -> None:
    end = time.monotonic() + HOUR_S
    while time.monotonic() < end:
        pass


def deaf() -> None:
    """Swallows every exception, for 1.5 s: nothing ends it before."""
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        try:
            while time.monotonic() < end:
                pass
        except BaseException:
            continue


WAYS = pytest.mark.parametrize("way", [sleeping, looping, deaf])


class GoesOn(ob.Solver):
    """Reports a schedule and then never returns."""

    supports: ClassVar[set[str]] = {"modes", "pooled", "energy"}

    def __init__(self, way: Callable[[], None], first: bool = True) -> None:
        self.way, self.first = way, first

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        if self.first:
            order = np.arange(instance.num_tasks)
            run.report(ob.Schedule.of(instance, np.zeros_like(order), order))
        self.way()
        return None


class Waits(ob.PythonPolicy):
    """Starts two tasks and then never decides again."""

    def __init__(self, way: Callable[[], None]) -> None:
        self.way, self.left = way, 2

    def decide(self, moment: ob.Moment) -> tuple[int, int]:
        if self.left == 0:
            self.way()
        self.left -= 1
        return int(moment.task[0]), int(moment.mode[0])


@WAYS
def test_a_solver_is_stopped_and_its_incumbent_kept(way: Callable[[], None]) -> None:
    began = time.monotonic()
    result = ob.solve(shop(), GoesOn(way), time_limit_s=LIMIT_S)
    assert time.monotonic() - began < LATE_S
    assert (result.termination, result.objective, result.verified) == ("time_limit", 4, True)


def test_without_an_incumbent_the_message_says_what_to_do() -> None:
    result = ob.solve(shop(), GoesOn(sleeping, first=False), time_limit_s=LIMIT_S)
    assert (result.status, result.termination) == ("unknown", "time_limit")
    assert result.message is not None and "time limit of 0.3 s" in result.message
    assert "run.time_left()" in result.message


@WAYS
def test_a_stop_ends_a_solver_too(way: Callable[[], None]) -> None:
    stop = threading.Event()
    threading.Timer(LIMIT_S, stop.set).start()
    began = time.monotonic()
    result = ob.solve(shop(), GoesOn(way), time_limit_s=None, stop=stop)
    assert time.monotonic() - began < LATE_S
    assert (result.termination, result.objective) == ("interrupted", 4)


@WAYS
def test_ctrl_c_in_python_keeps_the_incumbent(way: Callable[[], None]) -> None:
    """The signal arrives in the main thread, which waits for the one of the solver.

    Shells start background jobs with this signal ignored."""

    def interrupted() -> None:
        threading.Timer(LIMIT_S, _thread.interrupt_main).start()
        way()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = ob.solve(shop(), GoesOn(interrupted), time_limit_s=HOUR_S)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.termination, result.objective) == ("interrupted", 4)


@WAYS
def test_a_policy_is_stopped_in_solve(way: Callable[[], None]) -> None:
    result = ob.solve(shop(), Waits(way), time_limit_s=LIMIT_S)
    assert (result.status, result.termination) == ("unknown", "time_limit")


@WAYS
def test_a_policy_is_stopped_in_simulate_and_its_decisions_are_kept(
    way: Callable[[], None],
) -> None:
    """One task has ended at 1 s and the second runs, or has ended at 2 s."""
    began = time.monotonic()
    done = ob.simulate(shop(), Waits(way), time_limit_s=LIMIT_S)
    assert time.monotonic() - began < LATE_S
    assert (done.end, done.termination) == ("stopped", "time_limit")
    assert done.completed + done.in_progress == 2 and done.arrivals == 4
    assert done.verified and done.objective is None and done.decisions == 2


def test_a_stopped_simulation_of_arrivals_ends_where_it_is() -> None:
    """Nothing counts up to the horizon: neither time nor energy nor the objective."""
    whole = ob.simulate("geo_dc:days=0.002", "greedy", bound=False)
    done = ob.simulate("geo_dc:days=0.002", Waits(sleeping), time_limit_s=LIMIT_S, bound=False)
    assert (done.end, done.termination, done.objective) == ("stopped", "time_limit", None)
    assert 0 < done.now_s < whole.now_s and done.energy_j < whole.energy_j
    assert done.completed + done.in_progress == 2 < done.arrivals < whole.arrivals


def test_a_stop_ends_a_simulation() -> None:
    stop = threading.Event()
    threading.Timer(LIMIT_S, stop.set).start()
    done = ob.simulate(shop(), Waits(sleeping), stop=stop)
    assert (done.end, done.termination) == ("stopped", "interrupted")


def test_what_ends_in_time_is_left_alone() -> None:
    """The same values as in the caller's own thread, exceptions and context included."""
    with killed_from_outside():
        alone = ob.solve(shop(), Waits(lambda: None), seed=3)
    watched = ob.solve(shop(), Waits(lambda: None), seed=3)
    assert (watched.objective, watched.status, watched.termination) == (4, "optimal", "finished")
    assert alone.schedule is not None and watched.schedule is not None
    assert alone.schedule.start.tolist() == watched.schedule.start.tolist()

    def fails() -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        Watched(fails, lambda: True, threading.Event()).wait()


class Names(ob.Solver):
    """Remembers the thread that called it."""

    supports: ClassVar[set[str]] = {"modes", "pooled", "energy"}
    called_by: threading.Thread | None = None

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        self.called_by = threading.current_thread()
        return None


def test_only_plugins_of_a_user_get_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Names()
    ob.solve(shop(), solver, bound=False)
    assert solver.called_by is not threading.current_thread()
    monkeypatch.setattr("optbench.api.is_built_in", lambda plugin: True)
    ob.solve(shop(), solver, bound=False)
    assert solver.called_by is threading.current_thread()


def test_a_stopped_thread_reports_nothing_more() -> None:
    """What the sleeper reports when it wakes up comes after the result and changes nothing."""
    caught: list[BaseException] = []
    woken = threading.Event()

    class Late(GoesOn):
        def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
            try:
                time.sleep(2.0)
            except BaseException as error:
                caught.append(error)
            try:
                run.report_bound(1.0, "late")
            except BaseException as error:
                caught.append(error)
            woken.set()
            return None

    result = ob.solve(shop(), Late(sleeping), time_limit_s=LIMIT_S, bound=False)
    assert result.bound is None and woken.wait(LATE_S) and caught
    assert {type(error).__name__ for error in caught} == {"PluginStop"}


PLUGIN = '''
import time
import numpy as np
import optbench as ob

class Sleeper(ob.Solver):
    """Reports a schedule, and sleeps."""

    supports = frozenset({"modes", "pooled", "energy"})

    def solve(self, instance, run):
        order = np.arange(instance.num_tasks)
        run.report(ob.Schedule.of(instance, np.zeros_like(order), order))
        print("ready", flush=True)
        time.sleep(3600)
'''
POLICY = '''
import time
import optbench as ob

class Sleeper(ob.PythonPolicy):
    """Sleeps at its first decision."""

    def decide(self, moment):
        print("ready", flush=True)
        time.sleep(3600)
'''


@pytest.mark.parametrize(("verb", "source"), [("solve", PLUGIN), ("simulate", POLICY)])
def test_one_ctrl_c_ends_the_command(tmp_path: Path, verb: str, source: str) -> None:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "sleeper.py").write_text(source)
    ob_file = tmp_path / "row.json"
    write_instance(shop(), ob_file)
    words = [sys.executable, "-m", "optbench.cli.main", verb, str(ob_file), "-s", "sleeper"]
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(tmp_path)}
    more: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*words, "--json"], cwd=tmp_path, env=environment, **more) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    assert '"termination": "interrupted"' in out
    assert ('"objective": 4' in out) == (verb == "solve")
