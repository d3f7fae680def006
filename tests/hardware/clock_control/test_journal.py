"""A journal says what was locked, whatever moment it was cut off at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from optbench.hardware.clock_control.device_lock import hold_devices
from optbench.hardware.clock_control.journal import (
    ClockRange,
    Journal,
    JournalError,
    journal_entry,
    journals,
    locked_range,
    new_header,
    read_journal,
)

HALF, FULL = ClockRange(705, 705), ClockRange(1410, 1410)
BEFORE = {"power_limit_w": 400.0, "application_clock_mhz": 1410}


def begun(state: Path, uuid: str = "GPU-1", restore_to: ClockRange | None = None) -> Journal:
    return Journal.begin(state, new_header(uuid, "the device", "a test", restore_to, BEFORE))


def test_a_journal_is_read_back(state: Path) -> None:
    journal = begun(state, restore_to=ClockRange(210, 1410))
    journal.note_lock(HALF)
    found = read_journal(state, "GPU-1")
    assert found is not None
    assert found.header.restore_to == ClockRange(210, 1410)
    assert found.header.before == BEFORE
    assert (found.locked, found.touched, found.alive, found.damaged) == (HALF, True, False, None)
    assert not found.restarted
    assert not found.elsewhere
    assert [each.uuid for each in journals(state)] == ["GPU-1"]
    with hold_devices(state, ["GPU-1"], "a test"):
        assert journal_entry("GPU-1").alive  # type: ignore[union-attr]
    journal.remove()
    assert read_journal(state, "GPU-1") is None
    assert list(state.glob("*.journal*")) == []


def test_what_is_locked_follows_the_lines(state: Path) -> None:
    journal = begun(state)
    steps: list[Callable[[], None]] = [
        lambda: None,
        lambda: journal.note_lock(HALF),
        lambda: journal.note_lock(FULL),
        lambda: journal.note_refused("no permission"),
        lambda: journal.note_released(),
    ]
    seen = []
    for step in steps:
        step()
        found = read_journal(state, "GPU-1")
        assert found is not None
        seen.append((found.locked, found.touched))
    # A refused lock leaves what was before it; a release leaves nothing locked, yet a restoration
    # is due.
    assert seen == [(None, False), (HALF, True), (FULL, True), (HALF, True), (None, True)]


def test_a_device_whose_only_lock_was_refused_was_not_touched(state: Path) -> None:
    journal = begun(state)
    journal.note_lock(HALF)
    journal.note_refused("no permission")
    assert not read_journal(state, "GPU-1").touched  # type: ignore[union-attr]


def test_a_release_leaves_the_range_that_restoring_means(state: Path) -> None:
    journal = begun(state, restore_to=ClockRange(210, 900))
    journal.note_lock(HALF)
    journal.note_released()
    assert locked_range("GPU-1") == ClockRange(210, 900)


def test_wherever_a_journal_is_cut_off_it_is_read_and_a_lock_is_not_forgotten(state: Path) -> None:
    journal = begun(state)
    journal.note_lock(HALF)
    whole = journal.path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(len(whole)):
        journal.path.write_bytes(whole[:length])
        found = read_journal(state, "GPU-1")
        assert found is not None
        assert found.uuid == "GPU-1"
        # Only the whole first line alone says that nothing was locked.
        assert found.touched == (length != first), length
        assert (found.damaged is None) == (length == first), length


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"uuid": "GPU-2"},
        {"pid": "7"},
        {"host": None},
        {"restore_to": [1]},
        {"restore_to": [1.5, 2]},
        {"before": []},
    ],
)
def test_a_damaged_first_line_still_names_the_device(
    state: Path, change: dict[str, object]
) -> None:
    journal = begun(state)
    row = json.loads(journal.path.read_text())
    journal.path.write_text(json.dumps({**row, **change}) + "\n")
    found = read_journal(state, "GPU-1")
    assert found is not None
    assert (found.uuid, found.touched) == ("GPU-1", True)
    assert found.damaged == "the first line is damaged"
    assert found.header.restore_to is None


def test_a_line_in_the_middle_may_be_damaged(state: Path) -> None:
    journal = begun(state)
    journal.note_lock(HALF)
    journal.note_lock(FULL)
    lines = journal.path.read_bytes().split(b"\n")
    journal.path.write_bytes(b"\n".join([lines[0], b"\x00\xff", lines[2], b""]))
    found = read_journal(state, "GPU-1")
    assert found is not None
    assert (found.damaged, found.locked) == ("line 2 is damaged", FULL)


def test_a_restart_of_the_host_ends_every_lock(state: Path) -> None:
    journal = begun(state)
    journal.note_lock(HALF)
    assert locked_range("GPU-1") == HALF
    row, rest = journal.path.read_text().split("\n", 1)
    journal.path.write_text(json.dumps({**json.loads(row), "boot_id": "another"}) + "\n" + rest)
    assert locked_range("GPU-1") is None
    assert journal_entry("GPU-1").restarted  # type: ignore[union-attr]


def test_a_journal_that_cannot_be_written_is_an_error(state: Path) -> None:
    (state / "GPU-1.journal").mkdir()
    with pytest.raises(JournalError, match=r"GPU-1\.journal cannot be written: Is a directory"):
        begun(state)
