"""What every engine must do, whatever happens: stop, survive what cells do, and leave nothing."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.execute.engine_programs import (
    BOTH_ENGINES,
    PATIENCE_S,
    RAY_SLOWLY,
    EngineUnderTest,
    said,
    until,
)
from tests.hostile.cases import marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

ORDERLY = """
import atexit, threading, time
import optbench as ob
from ._everything import EVERYTHING
from ._honest import honest

def work():
    time.sleep(0.2)
    print("a thread has ended")

class Orderly(ob.Solver):
    supports = EVERYTHING

    def solve(self, instance, run):
        threading.Thread(target=work).start()
        atexit.register(print, "closed")
        return honest(instance)
"""
COUNTS = """
import torch, numba
import optbench as ob
from ._everything import EVERYTHING
from ._honest import honest

class Counts(ob.Solver):
    supports = EVERYTHING

    def solve(self, instance, run):
        print(f"torch {torch.get_num_threads()}, numba {numba.get_num_threads()}")
        return honest(instance)
"""


@RAY_SLOWLY
def test_a_killed_runner_takes_everything_with_it(engine: EngineUnderTest, root: Path) -> None:
    started = engine.program(
        root,
        "with engine(2) as executor:",
        (
            "    list(executor.run([job('loops'), job('spawns', how='pool'), job('spawns', "
            "how='lasting')]))"
        ),
    )
    # The runner, the zygote, two slots, two cells, and a child in its own session of the one that
    # makes such.
    until(lambda: sum("sleeping in its own session" in each for each in marked(root)) == 1)
    assert len(marked(root)) >= 7
    started.kill()
    started.communicate()
    until(lambda: marked(root) == [])


@RAY_SLOWLY
@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.6])
def test_a_runner_killed_while_libraries_are_loaded_leaves_nothing(
    engine: EngineUnderTest, root: Path, after_s: float
) -> None:
    started = engine.program(
        root,
        "with engine(1, solvers=['cpsat']) as executor:",
        "    list(executor.run([job('loops')]))",
    )
    until(lambda: len(marked(root)) >= 2)
    time.sleep(after_s)
    started.kill()
    started.communicate()
    until(lambda: marked(root) == [])


@RAY_SLOWLY
def test_stopping_while_libraries_are_loaded(engine: EngineUnderTest, root: Path) -> None:
    started = engine.program(
        root,
        "with engine(1, solvers=['cpsat']) as executor:",
        (
            "    assert list(executor.run([job('fcfs')], iter([False, False, False, False, "
            "True]).__next__)) == []"
        ),
        "    for outcome in executor.run([job('fcfs')]): say(outcome)",
    )
    assert said(started) == [["fcfs", None, None, None]]


@RAY_SLOWLY
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_runner_alone_decides_about_signals_of_the_terminal(
    engine: EngineUnderTest, root: Path, number: signal.Signals
) -> None:
    """Ctrl-C reaches the whole group of the foreground: cells are in sessions of their own."""
    started = engine.program(
        root,
        "signal.signal(signal.SIGINT, lambda *_: print('runner', flush=True))",
        "signal.signal(signal.SIGTERM, lambda *_: print('runner', flush=True))",
        "with engine(1) as executor:",
        "    list(executor.run([job('fcfs')]))",
        (
            f"    os.killpg(os.getpgid(0), {int(number)}) if os.getpgid(0) == os.getpid() else "
            f"os.kill(os.getpid(), {int(number)})"
        ),
        "    for outcome in executor.run([job('fcfs')]): say(outcome)",
    )
    out, errors = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, errors
    assert out.splitlines() == ["runner", '["fcfs", null, null, null]']


@BOTH_ENGINES
def test_stopping_kills_what_is_at_work_and_the_executor_goes_on(
    engine: EngineUnderTest, root: Path
) -> None:
    started = engine.program(
        root,
        "with engine(2) as executor:",
        "    stop = threading.Event()",
        "    threading.Timer(3.0, stop.set).start()",
        "    assert list(executor.run([job('loops'), job('loops', how='deaf')], "
        "stop.is_set)) == []",
        "    for outcome in executor.run([job('fcfs')]): say(outcome)",
    )
    assert said(started) == [["fcfs", None, None, None]]
    until(lambda: marked(root) == [])


@RAY_SLOWLY
def test_an_error_of_the_caller_kills_too(engine: EngineUnderTest, root: Path) -> None:
    started = engine.program(
        root,
        "try:",
        "    with engine(2) as executor:",
        (
            "        for outcome in executor.run(job(name) for name in ('fcfs', 'loops')): raise "
            "ValueError('mine')"
        ),
        "except ValueError as error:",
        "    print(json.dumps([str(error)]))",
    )
    assert said(started) == [["mine"]]
    until(lambda: marked(root) == [])


@RAY_SLOWLY
def test_jobs_are_taken_when_there_is_room_for_them(engine: EngineUnderTest, root: Path) -> None:
    started = engine.program(
        root,
        "taken = []",
        "def jobs():",
        "    for k in range(5):",
        "        taken.append(k)",
        "        yield job('fcfs')",
        "with engine(2) as executor:",
        "    outcomes = executor.run(jobs())",
        "    next(outcomes)",
        "    print(json.dumps([len(taken) <= 3, len(list(outcomes))]))",
    )
    assert json.dumps(said(started)) == "[[true, 4]]"


@RAY_SLOWLY
def test_without_landlock_a_cell_may_kill_its_slot_and_no_more(
    engine: EngineUnderTest, root: Path
) -> None:
    started = engine.program(
        root,
        "with engine(1, landlock=False) as executor:",
        (
            "    for outcome in executor.run([job('trespasses', how='kill'), job('fcfs')]): "
            "say(outcome)"
        ),
    )
    killed, honest = said(started)
    assert killed[:2] == ["trespasses", "signal"] and "signal 9" in str(killed[2])
    assert honest == ["fcfs", None, None, None]
    until(lambda: marked(root) == [])


@RAY_SLOWLY
def test_what_is_left_to_the_end_of_the_interpreter_is_done(
    engine: EngineUnderTest, root: Path
) -> None:
    (root / "solvers" / "orderly.py").write_text(ORDERLY)
    started = engine.program(
        root,
        "with engine(1) as executor:",
        "    for outcome in executor.run([job('orderly')]):",
        "        print(json.dumps([outcome.reason, outcome.left_processes, outcome.output]))",
    )
    assert said(started) == [[None, 0, "a thread has ended\nclosed\n"]]


@RAY_SLOWLY
def test_threads_of_libraries_that_were_loaded_before_are_those_of_the_cell(
    engine: EngineUnderTest, root: Path
) -> None:
    pytest.importorskip("torch")
    (root / "solvers" / "counts.py").write_text(COUNTS)
    started = engine.program(
        root,
        "def threaded(threads):",
        "    given = job('counts')",
        (
            "    return Job(given.key, 'solve', given.payload, CellBudget(20.0, threads=threads), "
            "given.folder)"
        ),
        "with engine(1, solvers=['counts']) as executor:",
        (
            "    for outcome in executor.run([threaded(1), threaded(2)]): "
            "print(json.dumps([outcome.output]))"
        ),
    )
    assert [str(output).splitlines()[-1] for (output,) in said(started)] == [
        "torch 1, numba 1",
        "torch 2, numba 2",
    ]


@RAY_SLOWLY
def test_a_job_may_be_longer_than_what_arrives_at_once(engine: EngineUnderTest, root: Path) -> None:
    started = engine.program(
        root,
        "given = job('fcfs')",
        (
            "large = Job(given.key, 'solve', {**given.payload, 'more': 'x' * 1_000_000}, "
            "given.budget, given.folder)"
        ),
        "with engine(1) as executor:",
        "    for outcome in executor.run([large]): say(outcome)",
    )
    assert said(started) == [["fcfs", None, None, None]]
