"""``gpu restore`` replays journals: after a restart, of lost devices, without permission."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

from optbench.hardware.clock_control.device_lock import hold_devices, try_device
from optbench.hardware.clock_control.journal import ClockRange, Journal, new_header, read_journal
from optbench.hardware.clock_control.state_folder import VARIABLE
from tests.cli.conftest import Outcome
from tests.hardware.conftest import MachineMaker
from tests.hardware.gpu_machine import GpuMachine

BEFORE = {"power_limit_w": 400.0, "application_clock_mhz": 1410}


def left_locked(
    machine: GpuMachine, state: Path, device: int = 0, restore_to: ClockRange | None = None
) -> Path:
    """A device that is locked, with the journal of a process that has died; the journal's path."""
    uuid = machine.uuid(device)
    header = new_header(uuid, f"GPU {device}", "gpu apply", restore_to, BEFORE)
    journal = Journal.begin(state, header)
    journal.note_lock(ClockRange(705, 705))
    journal.close()
    machine.set(device, locked_low_mhz=705, locked_high_mhz=705)
    return journal.path


def restore(machine: GpuMachine, state: Path, *words: str) -> tuple[Outcome, list[Any]]:
    outcome = machine.run(["gpu", "restore", "--json", *words], **{VARIABLE: str(state)})
    found = outcome.json
    return outcome, found.get("devices", [found])


def test_a_journal_is_replayed_and_removed(gpu_machine: GpuMachine, state: Path) -> None:
    path = left_locked(gpu_machine, state)
    row, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps({**json.loads(row), "boot_id": "of an earlier start"}) + "\n" + rest)
    gpu_machine.set(power_limit_w=300.0)
    outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, found["state"], gpu_machine.locked()) == (0, "restored", None)
    assert found["words"] == (
        "locked clocks were reset; the host was restarted since; somebody else changed its power "
        "limit from 400 to 300 W"
    )
    assert not path.exists()
    plain = gpu_machine.run(["gpu", "restore"], **{VARIABLE: str(state)})
    assert plain.out == f"nothing to restore: no journal in {state}\n"


def test_a_range_is_restored_where_one_was_named(gpu_machine: GpuMachine, state: Path) -> None:
    left_locked(gpu_machine, state, restore_to=ClockRange(210, 1200))
    _, (found,) = restore(gpu_machine, state)
    assert gpu_machine.locked() == (210, 1200)
    assert "locked to 210 to 1,200 MHz again, as --restore-to says" in found["words"]


@pytest.mark.parametrize("content", [b"", b'{"format": "optb', b"\x00" * 200])
def test_a_journal_without_a_readable_line_resets_its_device(
    gpu_machine: GpuMachine, state: Path, content: bytes
) -> None:
    path = left_locked(gpu_machine, state)
    path.write_bytes(content)
    outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, gpu_machine.locked(), path.exists()) == (0, None, False)
    assert "so that it was restored to be safe" in found["words"]


def test_of_two_journals_one_may_fail(gpu_machines: MachineMaker, state: Path) -> None:
    machine = gpu_machines(num_devices=2)
    paths = [left_locked(machine, state, k) for k in range(2)]
    machine.set(0, deny_clocks=1)
    outcome, found = restore(machine, state)
    assert outcome.code == 2
    assert [each["state"] for each in found] == ["kept", "restored"]
    assert "no permission; run the same command as root" in found[0]["words"]
    assert f"The journal {paths[0]} is kept" in found[0]["words"]
    assert [path.exists() for path in paths] == [True, False]
    assert (machine.locked(0), machine.locked(1)) == ((705, 705), None)
    machine.set(0, deny_clocks=0)
    assert restore(machine, state)[0].code == 0
    assert machine.locked(0) is None


def test_a_device_that_is_gone_keeps_its_journal_until_it_is_forgotten(
    gpu_machine: GpuMachine, state: Path
) -> None:
    path = left_locked(gpu_machine, state)
    there, uuid = gpu_machine.uuid(), "GPU-99999999-gone"
    gone = path.rename(state / f"{uuid}.journal")
    gone.write_text(gone.read_text().replace(there, uuid).replace('"host": "', '"host": "far-'))
    outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, found["state"], gone.exists()) == (2, "kept", True)
    assert "the driver has no such device now (it was locked on host far-" in found["words"]
    assert f"--forget {uuid}` removes the journal" in found["words"]
    outcome, (found,) = restore(gpu_machine, state, "--forget", uuid)
    assert (outcome.code, found["state"], gone.exists()) == (0, "forgotten", False)
    left_locked(gpu_machine, state)
    outcome, (found,) = restore(gpu_machine, state, "--forget", there)
    assert outcome.code == 2
    assert "the driver has this device, and its clocks may be locked" in found["error"]
    outcome, (found,) = restore(gpu_machine, state, "--forget", "GPU-7")
    assert "unknown device with a journal: 'GPU-7'" in found["error"]


def test_a_lost_device_keeps_its_journal(gpu_machine: GpuMachine, state: Path) -> None:
    path = left_locked(gpu_machine, state)
    gpu_machine.lose()
    outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, path.exists()) == (2, True)
    assert "the GPU is lost" in found["words"]


def test_without_a_driver_journals_are_kept_and_none_is_no_error(
    gpu_machine: GpuMachine, state: Path
) -> None:
    nothing = {"LD_LIBRARY_PATH": "", VARIABLE: str(state)}
    assert gpu_machine.run(["gpu", "restore"], **nothing).code == 0
    path = left_locked(gpu_machine, state)
    outcome = gpu_machine.run(["gpu", "restore"], **nothing)
    assert (outcome.code, path.exists()) == (2, True)
    assert "no NVIDIA driver (libnvidia-ml.so.1 not found)" in outcome.out


def test_a_device_of_a_process_that_lives_is_left_to_it(
    gpu_machine: GpuMachine, state: Path
) -> None:
    path = left_locked(gpu_machine, state)
    with hold_devices(state, [gpu_machine.uuid()], "gpu apply night.json"):
        outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, found["state"], path.exists()) == (0, "held", True)
    assert "(gpu apply night.json, since" in found["words"]
    assert gpu_machine.locked() == (705, 705)


def test_a_device_that_is_held_by_nobody_known_is_not_called_restored(
    gpu_machine: GpuMachine, state: Path
) -> None:
    path = left_locked(gpu_machine, state)
    with try_device(state, gpu_machine.uuid(), "gpu apply"):
        pass
    lock = state / f"{gpu_machine.uuid()}.lock"
    # The process that signed has died: no process has this number.
    lock.write_text(lock.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {2**23}'))
    with lock.open() as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, found["state"], path.exists()) == (2, "kept", True)
    assert f"`sudo fuser -v {lock}` shows which process it is" in found["words"]
    assert restore(gpu_machine, state)[0].code == 0
    assert gpu_machine.locked() is None


def test_a_lock_file_that_cannot_be_opened_keeps_the_journal(
    gpu_machine: GpuMachine, state: Path
) -> None:
    path = left_locked(gpu_machine, state)
    (state / f"{gpu_machine.uuid()}.lock").mkdir()
    outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, found["state"], path.exists()) == (2, "kept", True)
    assert "cannot be opened: Is a directory; it belongs to user" in found["words"]


def test_a_journal_without_a_lock_is_removed_and_no_clock_is_touched(
    gpu_machine: GpuMachine, state: Path
) -> None:
    header = new_header(gpu_machine.uuid(), "GPU 0", "gpu apply", None, BEFORE)
    Journal.begin(state, header).close()
    outcome, (found,) = restore(gpu_machine, state)
    assert (outcome.code, found["state"], gpu_machine.calls()) == (0, "untouched", [])
    assert read_journal(state, gpu_machine.uuid()) is None


def test_gpu_list_shows_what_the_journal_set(gpu_machine: GpuMachine, state: Path) -> None:
    left_locked(gpu_machine, state)
    listed = gpu_machine.run(["gpu", "list", "--json"], **{VARIABLE: str(state)}).json
    found = listed["devices"][0]["locked_clocks"]
    assert (found["state"], found["source"], found["high_mhz"]) == ("locked", "journal", 705)
