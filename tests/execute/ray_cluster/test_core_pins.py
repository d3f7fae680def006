"""A core belongs to one holder at a time, whoever asks, and is free again when the holder ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.errors import OptbenchError
from optbench.execute.ray_cluster.core_pins import CorePins

HOLDER = """
import sys, time
from pathlib import Path
from optbench.execute.ray_cluster.core_pins import CorePins
pins = CorePins(Path(sys.argv[1]))
assert pins.take(2, [0, 1, 2])
print("held", flush=True)
time.sleep(60)
"""


def test_what_is_held_is_not_given_again(tmp_path: Path) -> None:
    with CorePins(tmp_path) as first, CorePins(tmp_path) as second:
        assert first.take(2, [4, 5, 6]) and list(first.cores) == [4, 5]
        assert second.take(1, [4, 5, 6]) and list(second.cores) == [6]
        second.close()
        # Two are needed and one is free: none is held meanwhile.
        assert not second.take(2, [4, 5, 6]) and list(second.cores) == []
        first.close()
        assert second.take(2, [4, 5, 6]) and list(second.cores) == [4, 5]


def test_cores_of_a_killed_process_are_free(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None and started.stdout.readline() == "held\n"
    with CorePins(tmp_path) as pins:
        assert not pins.take(2, [0, 1, 2])
        started.send_signal(signal.SIGKILL)
        started.communicate()
        assert pins.take(3, [0, 1, 2])


def test_more_cores_than_there_are(tmp_path: Path) -> None:
    with CorePins(tmp_path) as pins, pytest.raises(OptbenchError, match=r"3 cores are needed.* 2 "):
        pins.take(3, [0, 1])


def test_the_files_may_be_locked_by_every_user(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    with CorePins(folder) as pins:
        assert pins.take(1, [7])
    assert folder.stat().st_mode & 0o7777 == 0o1777
    # Nobody may read them, so that a cell, which may not write, cannot open and lock them.
    assert os.stat(folder / "7").st_mode & 0o777 == 0o222
    with CorePins(folder) as again:
        assert again.take(1, [7])
