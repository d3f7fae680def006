"""Lines of a FIFO: what each means, and that what means nothing changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from optbench.hardware.clock_control.planned_clocks import PlannedSegment
from optbench.hardware.clock_control.task_events import (
    MOST_LINE,
    EventError,
    EventFileError,
    EventLines,
    StartedTasks,
    open_fifo,
    parse_event,
)
from tests.hardware.clock_control.plans import plan_of, segment

PREPARE = PlannedSegment("prepare", 0, 1)
FIRST, SECOND = segment("train it", 1, 2, (0,), 0.5), segment("train it", 3, 4, (0,), 1.0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"start a", ("start", "a")),
        (b"  end   task with spaces \r", ("end", "task with spaces")),
        (b"finish", ("finish", "")),
        (b"", ("", "")),
        (b"# start a", ("", "")),
        ("start größe".encode(), ("start", "größe")),
    ],
)
def test_a_line_is_read(line: bytes, expected: tuple[str, str]) -> None:
    assert parse_event(line) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"begin a", "'begin a' is no event; write `start TASK`"),
        (b"start", "'start' is no event"),
        (b"finish a", "'finish a' is no event"),
        (b"start \xff", r"not UTF-8 \(byte 6\)"),
        (b"start " + b"x" * MOST_LINE, "more than 4,096 bytes"),
    ],
)
def test_a_line_that_is_no_event_is_named(line: bytes, message: str) -> None:
    with pytest.raises(EventError, match=message):
        parse_event(line)


def test_each_start_begins_the_next_segment_of_a_task() -> None:
    tasks = StartedTasks(plan_of(PREPARE, FIRST, SECOND))
    assert tasks.clocks_left == 2
    seen = [
        tasks.take(line)
        for line in (b"start prepare", b"start train it", b"end train it", b"start train it")
    ]
    assert [each.segment for each in seen if each] == [PREPARE, FIRST, FIRST, SECOND]
    assert tasks.clocks_left == 1
    tasks.take(b"end train it")
    # The task without a clock still runs: nothing is left to do for it.
    assert tasks.clocks_left == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"start trian it"], "no task 'trian it'; did you mean 'train it'"),
        ([b"end train it"], "task 'train it' does not run"),
        ([b"start prepare", b"start prepare"], "task 'prepare' runs already"),
        (
            [b"start prepare", b"end prepare", b"start prepare"],
            "task 'prepare' has no segment left to start",
        ),
    ],
)
def test_an_event_that_does_not_fit_is_named(lines: list[bytes], message: str) -> None:
    tasks = StartedTasks(plan_of(PREPARE, FIRST))
    for line in lines[:-1]:
        tasks.take(line)
    with pytest.raises(EventError, match=message):
        tasks.take(lines[-1])


def test_lines_are_whole_however_they_arrive(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with open_fifo(path) as handle:
        writer, lines = os.open(path, os.O_WRONLY), EventLines()
        assert lines.read(handle) == []
        os.write(writer, b"start a\nen")
        assert lines.read(handle) == [(1, b"start a")]
        os.write(writer, b"d a\n\n")
        assert lines.read(handle) == [(2, b"end a"), (3, b"")]
        os.close(writer)
        # The last writer has gone: others may come.
        assert lines.read(handle) == []


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with open_fifo(path) as handle:
        writer, lines = os.open(path, os.O_WRONLY), EventLines()
        for _ in range(5):
            os.write(writer, b"x" * 10_000)
            assert lines.read(handle) == []
        os.write(writer, b"\nstart a\n")
        (number, long), following = lines.read(handle)
        assert (number, len(long), following) == (1, MOST_LINE + 1, (2, b"start a"))
        os.close(writer)


def test_what_is_no_fifo_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(EventFileError, match=r"missing': there is no such FIFO; make it with"),
        open_fifo(tmp_path / "missing"),
    ):
        pass
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(EventFileError, match="file' is no FIFO; make one with `mkfifo"),
        open_fifo(tmp_path / "file"),
    ):
        pass
