"""``gpu apply`` on made-up GPUs: what is locked when, who excludes whom, and how it always ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from optbench.cli.verbs.gpu_verbs.apply_clocks import permission_remedy
from optbench.hardware.clock_control.device_lock import is_held
from optbench.hardware.clock_control.journal import ClockRange, Journal, new_header
from optbench.hardware.clock_control.state_folder import VARIABLE
from tests.hardware.clock_control.kill_trials import await_that
from tests.hardware.clock_control.planned_files import FULL_MHZ, HALF_MHZ, write_plan
from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def machine(gpu_machines: MachineMaker) -> GpuMachine:
    """Two devices; a plan of two segments on each, of 0.1 s, at half and at full clock."""
    made = gpu_machines(num_devices=2)
    write_plan(made.folder, 2, [0.1] * 4)
    return made


def apply(machine: GpuMachine, state: Path, *words: str) -> subprocess.Popen[str]:
    return machine.start(
        ["gpu", "apply", "schedule.json", "--execute", *words], **{VARIABLE: str(state)}
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


def of_device(machine: GpuMachine, device: int) -> list[tuple[str, int]]:
    """What was locked and reset on a device."""
    return [(each.kind, each.high_mhz) for each in machine.calls() if each.device == device]


def test_a_dry_run_shows_devices_and_clocks_and_changes_nothing(
    machine: GpuMachine, state: Path
) -> None:
    words: list[str | Path] = ["gpu", "apply", "instance.json", "schedule.json"]
    found = machine.run([*words, "--map", "gpu=1,0", "--json"], **{VARIABLE: str(state)}).json
    first, second = machine.uuid(1), machine.uuid(0)
    assert [each["uuid"] for each in found["map"]["gpu"]] == [first, second]
    # Tasks 0 and 2 run on device 0 of the pool at half and full clock, 1 and 3 on device 1.
    assert [tuple(each.values()) for each in found["changes"]] == [
        (0.0, first, "task 0", HALF_MHZ),
        (0.0, second, "task 1", HALF_MHZ),
        (0.1, first, "task 2", FULL_MHZ),
        (0.1, second, "task 3", FULL_MHZ),
        (0.2, first, "task 2", None),
        (0.2, second, "task 3", None),
    ]
    assert [(each["task"], each["devices"], each["clock"]) for each in found["segments"]] == [
        ("task 0", [0], 0.5),
        ("task 1", [1], 0.5),
        ("task 2", [0], 1.0),
        ("task 3", [1], 1.0),
    ]
    assert [each["deviation"] for each in found["clocks"]] == [0.0] * 4
    assert {each["top_mhz"] for each in found["map"]["gpu"]} == {FULL_MHZ}
    assert "interval colouring" in found["colouring"]
    assert "in longer ones it is reset: the idle power" in found["between"]
    out = machine.run(words, **{VARIABLE: str(state)}).out
    assert "Nothing was changed. With --execute the clocks are locked." in out
    assert (machine.calls(), list(state.iterdir())) == ([], [])


def test_clocks_are_set_and_restored_and_what_was_left_before_is_restored_first(
    gpu_machines: MachineMaker, state: Path
) -> None:
    machine = gpu_machines(num_devices=3)
    write_plan(machine.folder, 2, [0.1] * 4)
    for k in (0, 2):  # a device of the plan and another one
        header = new_header(machine.uuid(k), f"GPU {k}", "gpu apply", None, {})
        journal = Journal.begin(state, header)
        journal.note_lock(ClockRange(900, 900))
        journal.close()
        machine.set(k, locked_low_mhz=900, locked_high_mhz=900)
    code, out, err = finish(apply(machine, state, "--map", "gpu=0,1", "--restore-to", "210-1200"))
    assert code == 0
    assert err.count("left by an earlier process: GPU") == 2
    run = [("lock", HALF_MHZ), ("lock", FULL_MHZ), ("lock", 1200), ("lock", 1200)]
    # The reset is that of the journal; the range is set at the end of the plan, and at the end.
    assert of_device(machine, 0) == [("reset", 0), *run]
    assert of_device(machine, 1) == run
    assert of_device(machine, 2) == [("reset", 0)]
    assert [machine.locked(k) for k in range(3)] == [(210, 1200), (210, 1200), None]
    assert list(state.glob("*.journal*")) == []
    assert "restored; 6 changes" in out


def test_a_second_apply_is_refused_and_a_signal_restores(machine: GpuMachine, state: Path) -> None:
    first = apply(machine, state, "--start-at", "+60s")
    await_that(lambda: len(list(state.glob("*.journal"))) == 2, first)
    # Journals are there before the first lock.
    assert machine.calls() == []
    code, _, err = finish(apply(machine, state))
    assert code == 2
    assert f"process {first.pid} (gpu apply schedule.json, since" in err
    first.send_signal(signal.SIGTERM)
    code, out, _ = finish(first)
    assert code == 130
    assert "restored (interrupted by SIGTERM); 0 changes" in out
    assert (machine.calls(), list(state.glob("*.journal*"))) == ([], [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_in_the_middle_restores(
    machine: GpuMachine, state: Path, number: signal.Signals
) -> None:
    write_plan(machine.folder, 2, [60.0] * 2)
    before = signal.signal(number, signal.SIG_DFL)  # `nohup make test` ignores hang-ups
    try:
        process = apply(machine, state)
    finally:
        signal.signal(number, before)
    await_that(lambda: machine.locked(1) is not None, process)
    process.send_signal(number)
    code, out, _ = finish(process)
    assert code == 130
    assert f"interrupted by {number.name}" in out
    assert [machine.locked(k) for k in range(2)] == [None, None]


def test_events_say_when_tasks_run(machine: GpuMachine, state: Path) -> None:
    os.mkfifo(machine.folder / "events")
    process = apply(machine, state, "--map", "gpu=0,1", "--events", "events", "--json")
    lines = [
        "start task 1",
        "start task 9",
        "begin task 0",
        "end task 0",
        "start task 3",  # overlaps task 1, against the schedule: it takes over
        "end task 3",  # task 1 gets its clock back
        "end task 1",
        "start task 0",
        "end task 0",
        "start task 2",
        "end task 2",
    ]
    with (machine.folder / "events").open("w") as fifo:
        fifo.write("".join(f"{line}\n" for line in lines))
    code, out, err = finish(process)
    assert code == 0
    half, full, reset = ("lock", HALF_MHZ), ("lock", FULL_MHZ), ("reset", 0)
    assert of_device(machine, 1) == [half, full, half, reset, reset]
    assert of_device(machine, 0) == [half, reset, full, reset, reset]
    assert "line 2: the schedule has no task 'task 9'; did you mean 'task" in err
    assert "line 3: 'begin task 0' is no event" in err
    assert "line 4: task 'task 0' does not run; nothing was changed" in err
    assert '"interrupted": null' in out


def test_finish_ends_a_run_by_events(machine: GpuMachine, state: Path) -> None:
    os.mkfifo(machine.folder / "events")
    process = apply(machine, state, "--events", "events")
    with (machine.folder / "events").open("w") as fifo:
        fifo.write("start task 0\nfinish\n")
    assert finish(process)[0] == 0
    assert [machine.locked(k) for k in range(2)] == [None, None]


def test_a_device_that_is_lost_ends_the_run_and_the_others_are_restored(
    machine: GpuMachine, state: Path
) -> None:
    write_plan(machine.folder, 2, [0.3] * 8)
    process = apply(machine, state)
    await_that(lambda: machine.locked(1) is not None, process)
    machine.lose(0)
    code, _, err = finish(process)
    assert code == 2
    assert "nvmlDeviceSetGpuLockedClocks: the GPU is lost" in err
    assert machine.locked(1) is None
    left = state / f"{machine.uuid(0)}.journal"
    assert list(state.glob("*.journal")) == [left]
    assert f"its clocks are not restored: GPU 0 (NVIDIA A100-PCIE-40GB, {machine.uuid(0)})" in err
    assert f"The journal {left} is kept" in err
    # The watchdog has tried as well, and its log says so.
    assert "kept: its clocks are not restored" in (state / "watchdog.log").read_text()
    machine.set(0, lost_from_ns=0)
    assert machine.run(["gpu", "restore"], **{VARIABLE: str(state)}).code == 0
    assert machine.locked(0) is None


def test_without_permission_nothing_is_locked_and_nothing_left(
    machine: GpuMachine, state: Path
) -> None:
    machine.set(0, deny_clocks=1)
    code, _, err = finish(apply(machine, state))
    assert code == 2
    assert "nvmlDeviceSetGpuLockedClocks: no permission" in err
    assert permission_remedy(os.geteuid(), ["gpu", "apply", "schedule.json", "--execute"]) in err
    assert list(state.glob("*.journal*")) == []


def test_the_remedy_is_the_whole_command_or_for_root_the_container() -> None:
    words = ["gpu", "apply", "a b.json", "--execute"]
    assert permission_remedy(1000, words) == (
        "Run: sudo -E env \"PATH=$PATH\" optbench gpu apply 'a b.json' --execute"
    )
    assert "`--cap-add SYS_ADMIN`" in permission_remedy(0, words)


def test_a_dead_watchdog_is_replaced_and_the_new_one_restores(
    machine: GpuMachine, state: Path
) -> None:
    write_plan(machine.folder, 2, [60.0] * 2)
    process = apply(machine, state)
    await_that(lambda: machine.locked(1) is not None, process)
    (watchdog,) = psutil.Process(process.pid).children()
    # It is in a session of its own, and what ends a group does not end it.
    assert os.getsid(watchdog.pid) == watchdog.pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        watchdog.send_signal(number)
    time.sleep(0.05)
    assert [each.pid for each in psutil.Process(process.pid).children()] == [watchdog.pid]
    watchdog.kill()

    def replaced() -> bool:
        found = psutil.Process(process.pid).children()
        return len(found) == 1 and found[0].pid != watchdog.pid

    await_that(replaced, process)
    process.kill()
    _, err = process.communicate()
    assert f"the watchdog (process {watchdog.pid}) died; another one is started" in err
    await_that(lambda: not any(is_held(state, machine.uuid(k)) for k in range(2)))
    assert [machine.locked(k) for k in range(2)] == [None, None]
    assert (state / "watchdog.log").read_text().count("restored: locked clocks were reset") == 2
