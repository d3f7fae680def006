"""Workloads as real programs: what they print, how they fail, and that none outlives its run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optbench.errors import ParameterError
from optbench.hardware.calibration.load_program import (
    LoadError,
    LoadLine,
    check_workload,
    command_of,
    running_load,
)


def run_shell(text: str) -> list[LoadLine]:
    """Run a shell command as a load, to its end."""
    with running_load(["sh", "-c", text], {}) as load:
        while not load.ended:
            load.read_until(time.monotonic() + 0.05)
        load.check_end()
        return load.lines


def test_places_of_a_workload_are_filled_within_its_words() -> None:
    command = command_of("'./my load' --on={device} -n {size} --for {seconds}s", "0,1", 500, 2.5)
    assert command == ["./my load", "--on=0,1", "-n", "500", "--for", "2.5s"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("./load {size}", r"no \{device\}"),
        ("./load {device} {sise}", r"place \{sise\}; did you mean 'size'"),
        ("./load '{device}", "No closing quotation"),
        ("  ", "is empty"),
    ],
)
def test_a_workload_that_cannot_work_is_refused(template: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        check_workload(template)


def test_lines_are_measurements_and_other_words_are_ignored() -> None:
    first, second = run_shell(
        "echo warming up; sleep 0.06; echo units=3 seconds=0.05; sleep 0.05; "
        "echo 'units=1e1  seconds=0.04'"
    )
    assert (first.units, first.seconds, second.units) == (3.0, 0.05, 10.0)
    assert first.at_s + 0.04 < second.at_s
    assert second.begin_s == pytest.approx(second.at_s - 0.04)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo out of memory >&2; exit 7", "ended with exit code 7; it said: out of memory"),
        ("echo units=5 seconds=0.001; exit 3", "exit code 3"),
        ("kill -SEGV $$", "was ended by SIGSEGV; it said nothing"),
        ("true", "printed no line 'units=U seconds=S'"),
        ("echo done 5", "printed no line .*it said: done 5"),
        ("echo units=many seconds=1", "'units=many seconds=1'; units and seconds must be positive"),
        ("echo units=5 seconds=-1", "must be positive"),
        ("echo units=nan seconds=1", "must be positive"),
        ("echo units=inf seconds=1", "must be positive"),
        ("echo units=5 seconds=60", "'units=5 seconds=60' after running for "),
    ],
)
def test_a_load_that_fails_says_why(text: str, said: str) -> None:
    with pytest.raises(LoadError, match=said):
        run_shell(text)


def test_a_program_that_is_not_there() -> None:
    with (
        pytest.raises(LoadError, match=r"cannot be started: No such file.*'\./nothing'"),
        running_load(["./nothing"], {}),
    ):
        pass


def test_no_process_outlives_its_run(tmp_path: Path) -> None:
    """The program has a child that ignores SIGTERM; both are gone after the context."""
    pids = tmp_path / "pids"
    child = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    text = f"{shlex.join([sys.executable, '-c', child])} & echo $! $$ > {pids}; sleep 60"
    with running_load(["sh", "-c", text], {}) as load:
        while not pids.exists() or not pids.read_text().strip():
            load.read_until(time.monotonic() + 0.02)
        time.sleep(0.2)  # until the child ignores the signal
    for pid in map(int, pids.read_text().split()):
        until = time.monotonic() + 5
        while alive(pid) and time.monotonic() < until:
            time.sleep(0.01)
        assert not alive(pid)


KILLED = """
import os, signal, sys, time
from pathlib import Path
from optbench.hardware.calibration.load_program import running_load
pids = Path(sys.argv[2])
with running_load(["sh", "-c", sys.argv[1]], {}) as load:
    while not pids.exists() or not pids.read_text().strip():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_load_in_a_shell_ends_with_a_killed_calibration(tmp_path: Path) -> None:
    """The shell's child, and its grandchild that ignores SIGTERM; Linux ends the shell alone."""
    pids = tmp_path / "pids"
    deaf = "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    text = (
        f"sleep 60 & a=$!; (sh -c {shlex.quote(shlex.join([sys.executable, '-c', deaf]))} & "
        f"echo $a $! $$ > {pids}; wait); wait"
    )
    done = subprocess.run([sys.executable, "-c", KILLED, text, str(pids)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    for pid in map(int, pids.read_text().split()):
        until = time.monotonic() + 20
        while alive(pid) and time.monotonic() < until:
            time.sleep(0.01)
        assert not alive(pid)


COLLECTED = """
import sys, time
from optbench.hardware.calibration.load_program import running_load
sent = []
sys.addaudithook(lambda event, words: sent.append(words) if event == "os.killpg" else None)
with running_load(["sh", "-c", "echo units=1 seconds=0.001"], {}) as load:
    while not load.ended:
        load.read_until(time.monotonic() + 0.05)
    assert not sent
    load.check_end()
    print(load.process.returncode, len(sent))
print(len(sent))
"""


def test_the_group_of_a_collected_program_is_left_alone() -> None:
    """Its number may belong to others by then: SIGTERM and SIGKILL go to the group before the
    program is collected, and the end of the context sends none."""
    words = [sys.executable, "-c", COLLECTED]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["0", "2", "2"], done.stderr


def test_what_a_program_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    """The program ends well, and a child that holds no output of it would stay."""
    pids = tmp_path / "pids"
    text = f"sleep 60 >/dev/null 2>&1 & echo $! > {pids}; sleep 0.01; echo units=1 seconds=0.001"
    run_shell(text)
    assert not alive(int(pids.read_text()))


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_variables_reach_the_load() -> None:
    with running_load(["sh", "-c", "sleep 0.01; echo units=$N seconds=0.001"], {"N": "7"}) as load:
        load.read_until(time.monotonic() + 5)
    assert load.lines[0].units == 7
