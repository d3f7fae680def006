"""The executor's own life: stopping, being killed, losing what it relies on; whatever happens,
nothing is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from optbench.execute.base import Job
from optbench.execute.cell_pool import CellPool, SlotHandle
from optbench.execute.message_channel import MessageChannel
from optbench.study.declared import CellBudget
from tests.hostile.cases import MARK, make_workspace, marked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
PATIENCE_S = 60.0

# A program of its own, since plug-ins are found by what the environment says when they are first
# imported.
PROGRAM = """
import json, os, pickle, signal, sys, threading, time
from pathlib import Path
from optbench import api
from optbench.execute.base import Job
from optbench.execute.local import LocalExecutor
from optbench.study.declared import CellBudget

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


def program(root: Path, *lines: str) -> subprocess.Popen[str]:
    """Start a program that uses an executor in a workspace of hostile solvers."""
    code = PROGRAM.replace("EXECUTE", "\n    ".join(lines))
    return subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        cwd=root,
        env={**os.environ, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "ws")


def said(started: subprocess.Popen[str]) -> list[list[str | None]]:
    out, errors = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]


def until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_killed_runner_takes_everything_with_it(root: Path) -> None:
    started = program(
        root,
        "with LocalExecutor(2) as executor:",
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


@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.6])
def test_a_runner_killed_while_libraries_are_loaded_leaves_nothing(
    root: Path, after_s: float
) -> None:
    started = program(
        root,
        "with LocalExecutor(1, solvers=['cpsat']) as executor:",
        "    list(executor.run([job('loops')]))",
    )
    until(lambda: len(marked(root)) >= 2)
    time.sleep(after_s)
    started.kill()
    started.communicate()
    until(lambda: marked(root) == [])


def test_stopping_while_libraries_are_loaded(root: Path) -> None:
    started = program(
        root,
        "with LocalExecutor(1, solvers=['cpsat']) as executor:",
        (
            "    assert list(executor.run([job('fcfs')], iter([False, False, False, False, "
            "True]).__next__)) == []"
        ),
        "    for outcome in executor.run([job('fcfs')]): say(outcome)",
    )
    assert said(started) == [["fcfs", None, None, None]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_runner_alone_decides_about_signals_of_the_terminal(
    root: Path, number: signal.Signals
) -> None:
    """Ctrl-C reaches the whole group of the foreground: cells are in sessions of their own."""
    started = program(
        root,
        "signal.signal(signal.SIGINT, lambda *_: print('runner', flush=True))",
        "signal.signal(signal.SIGTERM, lambda *_: print('runner', flush=True))",
        "with LocalExecutor(1) as executor:",
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


def test_stopping_kills_what_is_at_work_and_the_executor_goes_on(root: Path) -> None:
    started = program(
        root,
        "with LocalExecutor(2) as executor:",
        "    stop = threading.Event()",
        "    threading.Timer(3.0, stop.set).start()",
        "    assert list(executor.run([job('loops'), job('loops', how='deaf')], "
        "stop.is_set)) == []",
        "    for outcome in executor.run([job('fcfs')]): say(outcome)",
    )
    assert said(started) == [["fcfs", None, None, None]]
    assert marked(root) == []


def test_an_error_of_the_caller_kills_too(root: Path) -> None:
    started = program(
        root,
        "try:",
        "    with LocalExecutor(2) as executor:",
        (
            "        for outcome in executor.run(job(name) for name in ('fcfs', 'loops')): raise "
            "ValueError('mine')"
        ),
        "except ValueError as error:",
        "    print(json.dumps([str(error)]))",
    )
    assert said(started) == [["mine"]]
    assert marked(root) == []


def test_jobs_are_taken_when_there_is_room_for_them(root: Path) -> None:
    started = program(
        root,
        "taken = []",
        "def jobs():",
        "    for k in range(5):",
        "        taken.append(k)",
        "        yield job('fcfs')",
        "with LocalExecutor(2) as executor:",
        "    outcomes = executor.run(jobs())",
        "    next(outcomes)",
        "    print(json.dumps([len(taken) <= 3, len(list(outcomes))]))",
    )
    assert json.dumps(said(started)) == "[[true, 4]]"


def test_without_landlock_a_cell_may_kill_its_slot_and_no_more(root: Path) -> None:
    started = program(
        root,
        "with LocalExecutor(1, landlock=False) as executor:",
        (
            "    for outcome in executor.run([job('trespasses', how='kill'), job('fcfs')]): "
            "say(outcome)"
        ),
    )
    killed, honest = said(started)
    assert killed[:2] == ["trespasses", "signal"] and "signal 9" in str(killed[2])
    assert honest == ["fcfs", None, None, None]
    assert marked(root) == []


def test_a_killed_zygote_is_replaced(root: Path) -> None:
    started = program(
        root,
        "with LocalExecutor(1) as executor:",
        "    list(executor.run([job('fcfs')]))",
        "    threading.Timer(1.0, executor.pool.process.kill).start()",
        "    for outcome in executor.run([job('loops'), job('fcfs')]): say(outcome)",
    )
    lost, honest = said(started)
    assert lost[:2] == ["loops", "signal"] and "exit code -9" in str(lost[2])
    assert honest == ["fcfs", None, None, None]
    assert marked(root) == []


def test_a_library_that_kills_the_zygote_is_left_to_the_cells(root: Path) -> None:
    (root / "networkx.py").write_text("import os\nos._exit(3)\n")
    (root / "solvers" / "loops.py").write_text("import networkx\n")
    started = program(
        root,
        "sys.path.insert(0, sys.argv[1])",
        "with LocalExecutor(1, solvers=['loops']) as executor:",
        "    for outcome in executor.run([job('loops'), job('fcfs')]): say(outcome)",
    )
    lost, honest = said(started)
    assert lost[:2] == ["loops", "exited"] and "exit code 3" in str(lost[2])
    assert honest == ["fcfs", None, None, None]


def test_what_is_left_to_the_end_of_the_interpreter_is_done(root: Path) -> None:
    (root / "solvers" / "orderly.py").write_text(ORDERLY)
    started = program(
        root,
        "with LocalExecutor(1) as executor:",
        "    for outcome in executor.run([job('orderly')]):",
        "        print(json.dumps([outcome.reason, outcome.left_processes, outcome.output]))",
    )
    assert said(started) == [[None, 0, "a thread has ended\nclosed\n"]]


def test_threads_of_libraries_that_were_loaded_before_are_those_of_the_cell(root: Path) -> None:
    pytest.importorskip("torch")
    (root / "solvers" / "counts.py").write_text(COUNTS)
    started = program(
        root,
        "def threaded(threads):",
        "    given = job('counts')",
        (
            "    return Job(given.key, 'solve', given.payload, CellBudget(20.0, threads=threads), "
            "given.folder)"
        ),
        "with LocalExecutor(1, solvers=['counts']) as executor:",
        (
            "    for outcome in executor.run([threaded(1), threaded(3)]): "
            "print(json.dumps([outcome.output]))"
        ),
    )
    assert [str(output).splitlines()[-1] for (output,) in said(started)] == [
        "torch 1, numba 1",
        "torch 3, numba 3",
    ]


def test_a_job_may_be_longer_than_what_arrives_at_once(root: Path) -> None:
    started = program(
        root,
        "given = job('fcfs')",
        (
            "large = Job(given.key, 'solve', {**given.payload, 'more': 'x' * 1_000_000}, "
            "given.budget, given.folder)"
        ),
        "with LocalExecutor(1) as executor:",
        "    for outcome in executor.run([large]): say(outcome)",
    )
    assert said(started) == [["fcfs", None, None, None]]


def test_where_no_cell_can_be_started_none_has_failed(root: Path) -> None:
    (root / "file").write_text("")
    started = program(
        root,
        "from optbench.errors import OptbenchError",
        "given = job('fcfs')",
        (
            "nowhere = Job(given.key, 'solve', given.payload, given.budget, folder.parent / "
            "'file' / "
            "'work')"
        ),
        "with LocalExecutor(2) as executor:",
        "    try:",
        "        for outcome in executor.run([nowhere, nowhere, nowhere]): say(outcome)",
        "    except OptbenchError as error:",
        "        print(json.dumps([str(error)]))",
        "    for outcome in executor.run([given]): say(outcome)",
    )
    told, honest = said(started)
    assert "no cell can be started: [Errno 20] Not a directory" in str(told[0])
    assert honest == ["fcfs", None, None, None]


def test_the_time_of_a_job_does_not_begin_while_libraries_are_loaded(tmp_path: Path) -> None:
    pool = CellPool()
    runner, zygote = socket.socketpair()
    channel = MessageChannel(socket.socketpair()[0])
    with runner, zygote, contextlib.closing(channel):
        pool.control = MessageChannel(runner)
        job = Job("key", "solve", {}, CellBudget(1.0), tmp_path)
        pool.slots[0] = slot = SlotHandle(0, channel, job=job, sent_at=-1e6)
        assert slot.is_silent()
        MessageChannel(zygote).send({"slot": 0, "pid": 1})
        pool.read_zygote()
        assert slot.pid == 1 and not slot.is_silent()


def test_compiled_code_of_a_plugin_is_kept_for_its_next_cell(root: Path) -> None:
    """Cells cannot write beside the source: they keep it in a folder of the plug-in's own, per
    state of its code.
    """
    lines = (
        "with LocalExecutor(1, ['compiles']) as executor:",
        (
            "    for outcome in executor.run([job('compiles'), job('compiles')]): "
            "print(json.dumps([outcome.output.strip()]))"
        ),
    )
    assert said(program(root, *lines)) == [["loaded 0, compiled 1"], ["loaded 1, compiled 0"]]
    (folder,) = [
        path
        for path in (root / ".optbench" / "compiled").iterdir()
        if path.name.startswith("solver-compiles")
    ]
    assert any(folder.rglob("*.nbc")) and not (root / "solvers" / "__pycache__").exists()
    (root / "work" / "instance.pickle").unlink()
    (root / "work").rename(root / "earlier")
    file = root / "solvers" / "compiles.py"
    file.write_text(file.read_text().replace("a + b", "b + a"))
    assert said(program(root, *lines))[0] == ["loaded 0, compiled 1"]
