"""``gpu apply`` while somebody removes its files, stops it, hangs up, or leaves it alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from optbench.hardware.calibration.clock_sweep import ending_signals
from optbench.hardware.clock_control.device_lock import is_held
from optbench.hardware.clock_control.interruptions import without_stopping
from optbench.hardware.clock_control.state_folder import VARIABLE
from tests.hardware.clock_control.kill_trials import await_that
from tests.hardware.clock_control.planned_files import HALF_MHZ, write_plan
from tests.hardware.gpu_machine import GpuMachine

APPLY = ("gpu", "apply", "schedule.json", "--execute")


def apply(machine: GpuMachine, state: Path, *words: str) -> subprocess.Popen[str]:
    """An apply of a plan of a minute at half clock, once it has locked."""
    write_plan(machine.folder, 1, [60.0])
    process = machine.start([*APPLY, *words], **{VARIABLE: str(state)})
    await_that(lambda: machine.locked() == (HALF_MHZ, HALF_MHZ), process)
    return process


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def test_clocks_are_restored_without_their_journal(gpu_machine: GpuMachine, state: Path) -> None:
    process = apply(gpu_machine, state, "--json")
    (state / f"{gpu_machine.uuid()}.journal").unlink()
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert (code, gpu_machine.locked()) == (130, None)
    found = json.loads(out)
    assert (found["restored"], found["devices"][0]["state"]) == (True, "restored")
    assert "its journal was removed by somebody else meanwhile" in err


def test_clocks_that_cannot_be_restored_are_not_called_so_without_a_journal(
    gpu_machine: GpuMachine, state: Path
) -> None:
    process = apply(gpu_machine, state)
    (state / f"{gpu_machine.uuid()}.journal").unlink()
    gpu_machine.set(deny_clocks=1)
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert (code, gpu_machine.locked()) == (2, (HALF_MHZ, HALF_MHZ))
    assert "restored" not in out
    assert f"run `nvidia-smi -i {gpu_machine.uuid()} -rgc` as root" in err


def test_the_watchdog_restores_without_a_journal(gpu_machine: GpuMachine, state: Path) -> None:
    process = apply(gpu_machine, state, "--restore-to", "210-1200")
    (state / f"{gpu_machine.uuid()}.journal").unlink()
    process.kill()
    process.communicate()
    await_that(lambda: not is_held(state, gpu_machine.uuid()))
    assert gpu_machine.locked() == (210, 1200)
    assert "its journal was removed by somebody else" in (state / "watchdog.log").read_text()


def test_a_watchdog_that_replaces_another_is_told_what_was_locked(
    gpu_machine: GpuMachine, state: Path
) -> None:
    process = apply(gpu_machine, state)
    (first,) = psutil.Process(process.pid).children()
    first.kill()
    await_that(
        lambda: [p.pid for p in psutil.Process(process.pid).children()] not in ([first.pid], [])
    )
    (state / f"{gpu_machine.uuid()}.journal").unlink()
    process.kill()
    process.communicate()
    await_that(lambda: not is_held(state, gpu_machine.uuid()))
    assert gpu_machine.locked() is None


def test_a_removed_journal_is_written_again_at_the_next_lock(
    gpu_machine: GpuMachine, state: Path
) -> None:
    write_plan(gpu_machine.folder, 1, [0.6, 60.0])
    process = gpu_machine.start(APPLY, **{VARIABLE: str(state)})
    await_that(lambda: gpu_machine.locked() == (HALF_MHZ, HALF_MHZ), process)
    journal = state / f"{gpu_machine.uuid()}.journal"
    journal.unlink()
    await_that(lambda: journal.exists() and '"set"' in journal.read_text(), process)
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert (code, gpu_machine.locked(), journal.exists()) == (130, None, False)
    assert "was removed; it is written again" in err


def test_a_removed_lock_file_ends_the_run(gpu_machine: GpuMachine, state: Path) -> None:
    process = apply(gpu_machine, state)
    (state / f"{gpu_machine.uuid()}.lock").unlink()
    code, out, err = finish(process)
    assert (code, gpu_machine.locked()) == (2, None)
    assert "was removed, so that another process may control its clocks too" in err
    assert "restored" not in out


def test_who_lost_its_lock_file_leaves_the_next_one_alone(
    gpu_machine: GpuMachine, state: Path
) -> None:
    first = apply(gpu_machine, state)
    first.send_signal(signal.SIGSTOP)  # so that the second one is there before the first one looks
    for path in [*state.glob("*.lock"), *state.glob("*.journal")]:
        path.unlink()
    second = gpu_machine.start(APPLY, **{VARIABLE: str(state)})
    await_that(lambda: {call.pid for call in gpu_machine.calls()} == {first.pid, second.pid})
    first.send_signal(signal.SIGCONT)
    code, _, err = finish(first)
    assert code == 2
    assert f"process {second.pid} (gpu apply schedule.json, since" in err
    assert gpu_machine.locked() == (HALF_MHZ, HALF_MHZ)
    assert len(list(state.glob("*.journal"))) == 1
    second.send_signal(signal.SIGTERM)
    assert finish(second)[0] == 130
    assert [call.pid for call in gpu_machine.calls() if call.kind == "reset"] == [second.pid]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_that_is_ignored_already_stays_ignored(
    gpu_machine: GpuMachine, state: Path, number: signal.Signals
) -> None:
    write_plan(gpu_machine.folder, 1, [0.3])
    command = ["sh", "-c", f"trap '' {number.name[3:]}; exec \"$@\"", "sh"]
    process = subprocess.Popen(
        [*command, sys.executable, "-m", "optbench.cli.main", *APPLY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=gpu_machine.folder,
        env=gpu_machine.environment(**{VARIABLE: str(state)}),
    )
    await_that(lambda: gpu_machine.locked() is not None, process)
    process.send_signal(number)
    code, out, _ = finish(process)
    # To its end: one lock, one reset after the segment, none of them late by the signal.
    assert code == 0
    assert "restored; 2 changes" in out


def test_a_calibration_leaves_an_ignored_hang_up_alone() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_stopped_apply_has_no_locks(gpu_machine: GpuMachine, state: Path) -> None:
    process = apply(gpu_machine, state)
    process.send_signal(signal.SIGTSTP)
    seen = psutil.Process(process.pid)
    await_that(lambda: seen.status() == psutil.STATUS_STOPPED, process)
    assert gpu_machine.locked() is None
    process.send_signal(signal.SIGCONT)
    await_that(lambda: gpu_machine.locked() == (HALF_MHZ, HALF_MHZ), process)
    process.send_signal(signal.SIGTSTP)
    await_that(lambda: seen.status() == psutil.STATUS_STOPPED, process)
    # A termination comes with the continuation.
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    code, _, err = finish(process)
    assert (code, gpu_machine.locked()) == (130, None)
    assert err.count("stopped: the clocks are released") == 2


def test_where_nothing_handles_ctrl_z_it_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with without_stopping():
        os.kill(os.getpid(), signal.SIGTSTP)
    assert "Ctrl-Z is ignored" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL


def test_a_watchdog_that_cannot_be_replaced_ends_in_one_clear_error(
    gpu_machine: GpuMachine, state: Path
) -> None:
    code = """
import os, signal, time
from optbench.errors import OptbenchError
from optbench.hardware.clock_control import controlled_clocks as control
from optbench.hardware.gpus.nvml_session import gpu_session

control.MOST_WATCHDOGS = 2
handles = lambda: sorted(os.listdir('/proc/self/fd'))
with gpu_session() as session:
    device = session.find('0')
    before = handles()
    try:
        with control.controlled_clocks(session, [device], 'a test') as clocks:
            clocks.lock(device, 705, 705)
            while True:
                os.kill(clocks.watchdog.pid, signal.SIGKILL)
                while not clocks.watchdog.has_died():
                    time.sleep(0.01)
                clocks.check_watchdog()
    except OptbenchError as error:
        print(type(error).__name__, error)
    print('handles left:', len(handles()) - len(before))
"""
    outcome = gpu_machine.python(code, **{VARIABLE: str(state)})
    assert "WatchdogError the watchdog died 2 times" in outcome.out
    assert "handles left: 0" in outcome.out
    assert (outcome.code, gpu_machine.locked()) == (0, None)
    assert list(state.glob("*.journal")) == []


def test_a_launcher_that_died_loses_its_clocks(gpu_machine: GpuMachine, state: Path) -> None:
    write_plan(gpu_machine.folder, 1, [0.1, 0.1])
    os.mkfifo(gpu_machine.folder / "events")
    words = [*APPLY, "--events", "events", "--silence", "1.5s"]
    process = gpu_machine.start(words, **{VARIABLE: str(state)})
    with (gpu_machine.folder / "events").open("w") as fifo:
        fifo.write("start task 0\n")
    code, out, err = finish(process)
    assert (code, gpu_machine.locked()) == (130, None)
    assert "by the schedule 'task 0' should have ended" in err
    assert "whoever writes them has probably died" in err
    assert "(interrupted by no event for 1.5 s)" in out


def test_a_launcher_with_nothing_to_run_may_be_silent(gpu_machine: GpuMachine, state: Path) -> None:
    write_plan(gpu_machine.folder, 1, [0.1, 0.1])
    os.mkfifo(gpu_machine.folder / "events")
    words = [*APPLY, "--events", "events", "--silence", "500ms"]
    process = gpu_machine.start(words, **{VARIABLE: str(state)})
    with (gpu_machine.folder / "events").open("w") as fifo:
        fifo.write("start task 0\nend task 0\n")
    await_that(lambda: len(gpu_machine.calls()) == 2, process)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2.5)
    with (gpu_machine.folder / "events").open("w") as fifo:
        fifo.write("finish\n")
    code, _, err = finish(process)
    assert (code, "no event" in err) == (0, False)
