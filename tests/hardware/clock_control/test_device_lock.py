"""A device is held by one process, until that process and whoever inherited the lock have ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.hardware.clock_control.device_lock import (
    RESTORING,
    DeviceBusyError,
    DeviceLock,
    hold_devices,
    holder_of,
    is_held,
    try_device,
)
from optbench.hardware.clock_control.state_folder import StateFolderError


def sleeper(lock: DeviceLock, seconds: float) -> subprocess.Popen[bytes]:
    """A process that inherits a lock, as the watchdog does."""
    words = [sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"]
    return subprocess.Popen(words, pass_fds=[lock.handle])


def test_a_held_device_is_refused_with_its_holder(state: Path) -> None:
    with hold_devices(state, ["GPU-1"], "gpu apply a.json"):
        assert is_held(state, "GPU-1")
        assert not is_held(state, "GPU-2")
        told = f"GPU-1: process {os.getpid()} \\(gpu apply a.json, since .* UTC\\) controls"
        with pytest.raises(DeviceBusyError, match=told), hold_devices(state, ["GPU-1"], "another"):
            pass
        with hold_devices(state, ["GPU-2"], "another"):
            pass
    assert not is_held(state, "GPU-1")


def test_all_devices_are_held_or_none(state: Path) -> None:
    with hold_devices(state, ["GPU-2"], "first"):
        with pytest.raises(DeviceBusyError), hold_devices(state, ["GPU-1", "GPU-2"], "second"):
            pass
        assert not is_held(state, "GPU-1")


def test_a_process_that_inherited_the_lock_keeps_the_device(state: Path) -> None:
    with try_device(state, "GPU-1", "first") as lock:
        assert lock is not None
        heir = sleeper(lock, 60)
    try:
        assert is_held(state, "GPU-1")
        with try_device(state, "GPU-1", "second") as other:
            assert other is None
    finally:
        heir.kill()
        heir.wait()
    assert not is_held(state, "GPU-1")


def test_somebody_who_restores_is_waited_for(state: Path) -> None:
    with try_device(state, "GPU-1", RESTORING) as lock:
        assert lock is not None
        heir = sleeper(lock, 0.5)
    with hold_devices(state, ["GPU-1"], "second") as held:
        assert list(held) == ["GPU-1"]
    heir.wait()


def test_the_watchdog_of_a_dead_process_is_waited_for_no_longer_than_said(state: Path) -> None:
    with try_device(state, "GPU-1", "gpu apply") as lock:
        assert lock is not None
        heir = sleeper(lock, 60)
        # No process has this number: the largest one that Linux gives is below 2^22.
        said = state / "GPU-1.lock"
        said.write_text(said.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {2**23}'))
    try:
        told = f"the watchdog of process {2**23}, which has died, \\(gpu apply"
        with (
            pytest.raises(DeviceBusyError, match=told),
            hold_devices(state, ["GPU-1"], "second", patience_s=0.4),
        ):
            pass
    finally:
        heir.kill()
        heir.wait()


def test_only_its_owner_may_open_a_lock_file(state: Path) -> None:
    path = state / "GPU-1.lock"
    path.touch(mode=0o644)
    with hold_devices(state, ["GPU-1"], "first"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_file_that_cannot_be_opened_is_named_with_a_remedy(state: Path) -> None:
    (state / "GPU-1.lock").mkdir()
    told = rf"GPU-1.lock cannot be opened: Is a directory; it belongs to user {os.geteuid()} .*rm "
    with pytest.raises(StateFolderError, match=told), hold_devices(state, ["GPU-1"], "first"):
        pass


def test_a_lock_says_whether_its_file_is_the_one_that_others_find(state: Path) -> None:
    path = state / "GPU-1.lock"
    with hold_devices(state, ["GPU-1"], "first") as held:
        assert held["GPU-1"].is_there(state)
        path.unlink()
        assert not held["GPU-1"].is_there(state)
        with hold_devices(state, ["GPU-1"], "second") as others:
            assert others["GPU-1"].is_there(state)
            assert not held["GPU-1"].is_there(state)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_damaged_lock_file_does_no_harm(state: Path, content: bytes) -> None:
    (state / "GPU-1.lock").write_bytes(content)
    assert holder_of(state, "GPU-1") == "another process"
    with hold_devices(state, ["GPU-1"], "second"):
        assert f"process {os.getpid()}" in holder_of(state, "GPU-1")
