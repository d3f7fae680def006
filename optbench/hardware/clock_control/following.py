"""Setting the clocks of a plan as time goes on: by the clock, or by the tasks' real starts and
ends.

By the clock, the change of time t of the schedule is made at the start plus t seconds of a clock
that is never set (``time.monotonic``). By events, a device has the clock of the segment that
started on it last among those that run, and is released when none does: a task that overlaps the
one before it, against the schedule, takes over at once and gives the clock back at its end.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optbench.hardware.clock_control.clock_changes import (
    ClockChange,
    SupportedClock,
    clock_of,
    devices_of,
)
from optbench.hardware.clock_control.controlled_clocks import ClockControl
from optbench.hardware.clock_control.device_map import MappedDevices
from optbench.hardware.clock_control.interruptions import Interruptions, wait_for
from optbench.hardware.clock_control.planned_clocks import ClockPlan, PlannedSegment
from optbench.hardware.clock_control.restoring import RestoreOutcome
from optbench.hardware.clock_control.task_events import (
    FINISH,
    SILENCE_S,
    START,
    EventError,
    EventLines,
    StartedTasks,
    TaskEvent,
)

if TYPE_CHECKING:
    from optbench.hardware.gpus.nvml_session import GpuDevice

# Until the start, the wall clock is looked at this often: it may be set meanwhile. So are the lock
# files, always: somebody may remove them.
GLANCE_S = 1.0
# A silent launcher is warned about so often before its clocks are given up.
WARNINGS = 5


@dataclass(frozen=True)
class AppliedChange:
    """A change that was made: ``at_s`` after the start, ``late_s`` after its time in the schedule
    (None where events say the time); the driver took ``call_s``.
    """

    at_s: float
    late_s: float | None
    call_s: float
    device: GpuDevice
    task: str
    mhz: int | None


@dataclass
class FollowedPlan:
    """What has happened so far; ``interrupted`` names the signal or silence that ended it, and
    ``outcomes`` what became of the devices then.
    """

    applied: list[AppliedChange] = field(default_factory=list)
    refused_events: list[str] = field(default_factory=list)
    interrupted: str | None = None
    outcomes: tuple[RestoreOutcome, ...] = ()

    @property
    def restored(self) -> bool:
        """Whether the clocks of every device were restored, or had never been locked."""
        states = {each.state for each in self.outcomes}
        return bool(states) and states <= {"restored", "untouched"}

    @property
    def latest_s(self) -> float:
        """The largest delay of a change behind the schedule."""
        return max((each.late_s for each in self.applied if each.late_s is not None), default=0.0)


@dataclass(frozen=True)
class PlanFollower:
    """What both ways need: the clocks, the signals, and who is told of each change."""

    control: ClockControl
    stop: Interruptions
    show: Callable[[AppliedChange], None]
    warn: Callable[[str], None]
    result: FollowedPlan = field(default_factory=FollowedPlan)

    devices: tuple[GpuDevice, ...] = ()

    def wait(self, until: float | None, **handles: int) -> frozenset[str]:
        """Wait as ``wait_for`` does, and no longer than GLANCE_S; a dead watchdog is replaced, a
        signal is noted, and a Ctrl-Z stops the process without its locks.
        """
        soon = time.monotonic() + GLANCE_S
        until = soon if until is None else min(soon, until)
        watchdog = self.control.watchdog.handle
        ready = wait_for({"stop": self.stop.handle, "watchdog": watchdog, **handles}, until)
        if "watchdog" in ready:
            self.control.check_watchdog()
        self.control.check_locks()
        while self.stop.stop_wanted and self.stop.name is None:
            self.warn("stopped: the clocks are released, and locked again with SIGCONT (`fg`)")
            with self.control.released(self.devices):
                self.stop.stop_here()
        if self.stop.name is not None:
            self.result.interrupted = self.stop.name
        return ready

    def change(self, change: ClockChange, begin: float, planned: bool) -> None:
        """Make a change; ``begin`` is the start on ``time.monotonic``."""
        called = time.monotonic()
        if change.mhz is None:
            self.control.release(change.device)
        else:
            self.control.lock(change.device, change.mhz, change.mhz)
        done = time.monotonic()
        late_s = done - begin - change.at_s if planned else None
        applied = AppliedChange(
            done - begin, late_s, done - called, change.device, change.task, change.mhz
        )
        self.result.applied.append(applied)
        self.show(applied)


def follow_clock(
    follower: PlanFollower, changes: Sequence[ClockChange], start_at: float | None
) -> None:
    """Make the changes at their times after ``start_at``, seconds of the wall clock, or now."""
    while start_at is not None and (left_s := start_at - time.time()) > 0:
        follower.wait(time.monotonic() + left_s)
        if follower.result.interrupted:
            return
    begin = time.monotonic() + (0.0 if start_at is None else start_at - time.time())
    for change in changes:
        due = begin + change.at_s
        while True:
            follower.wait(due)
            if follower.result.interrupted:
                return
            if time.monotonic() >= due:
                break
        follower.change(change, begin, planned=True)


def follow_events(
    follower: PlanFollower,
    plan: ClockPlan,
    devices: MappedDevices,
    clocks: Mapping[tuple[str, float], SupportedClock],
    fifo: int,
    patience_s: float = SILENCE_S,
) -> None:
    """Make the changes that the events in a FIFO mean, until every clock has been used, or until
    no line has come for ``patience_s`` after everything that runs should have ended.
    """
    begin, lines, progress = time.monotonic(), EventLines(), StartedTasks(plan)
    running, silence = _Running(devices, clocks), _Silence(patience_s, follower.warn)
    while progress.clocks_left:
        ready = follower.wait(None, events=fifo)
        if follower.result.interrupted:
            return
        if "events" not in ready:
            if silence.is_too_long(running.segments, time.monotonic()):
                follower.result.interrupted = f"no event for {patience_s:g} s"
                return
            continue
        silence.heard(time.monotonic())
        for number, line in lines.read(fifo):
            try:
                event = progress.take(line)
            except EventError as error:
                words = f"events, line {number}: {error}; nothing was changed"
                follower.result.refused_events.append(words)
                follower.warn(words)
                continue
            if event is not None and event.kind == FINISH:
                return
            now_s = time.monotonic() - begin
            silence.noted(event, time.monotonic())
            for change in running.changes(event, now_s):
                follower.change(change, begin, planned=False)


class _Silence:
    """Whether a launcher that left clocks locked says nothing any more: it may have died.

    A task may take its time: only what comes after the planned end of all that runs counts.
    """

    def __init__(self, patience_s: float, warn: Callable[[str], None]) -> None:
        self._patience_s, self._warn = patience_s, warn
        self._last = self._warned = time.monotonic()
        self._due: dict[str, float] = {}

    def heard(self, now: float) -> None:
        """A line has come, whatever it says."""
        self._last = self._warned = now

    def noted(self, event: TaskEvent | None, now: float) -> None:
        """A segment starts: until its planned end nothing needs to be said."""
        if event is None or event.segment is None:
            return
        segment = event.segment
        self._due.pop(segment.task, None)
        if event.kind == START:
            self._due[segment.task] = now + segment.end_s - segment.start_s

    def is_too_long(self, running: frozenset[str], now: float) -> bool:
        """Whether the clocks of the tasks that run are to be given up; warned of before."""
        since = max(self._last, *self._due.values(), 0.0)
        if not running or now <= since:
            return False
        if now - since >= self._patience_s:
            self._warn(
                f"no event for {now - self._last:,.0f} s: whoever writes them has probably died. "
                "The clocks are restored"
            )
            return True
        if now - max(since, self._warned) >= self._patience_s / WARNINGS:
            self._warned = now
            self._warn(
                f"no event for {now - self._last:,.0f} s, and by the schedule {_named(running)} "
                f"should have ended; in {since + self._patience_s - now:,.0f} s the clocks are "
                "restored. Any line, `# still here` too, says that the tasks still run"
            )
        return False


def _named(tasks: frozenset[str]) -> str:
    first = min(tasks)
    return repr(first) if len(tasks) == 1 else f"{first!r} and {len(tasks) - 1} more"


class _Running:
    """The segments that run on each device, in order of their real starts."""

    def __init__(
        self, devices: MappedDevices, clocks: Mapping[tuple[str, float], SupportedClock]
    ) -> None:
        self._devices, self._clocks = devices, clocks
        self._on: dict[str, list[PlannedSegment]] = defaultdict(list)
        self._locked: dict[str, int] = {}

    @property
    def segments(self) -> frozenset[str]:
        """The tasks whose clocks are set now."""
        return frozenset(each.task for own in self._on.values() for each in own)

    def changes(self, event: TaskEvent | None, now_s: float) -> Iterable[ClockChange]:
        """What a start or an end changes."""
        if event is None or event.segment is None or event.segment.clock is None:
            return
        segment = event.segment
        for device in devices_of(segment, self._devices):
            own = self._on[device.uuid]
            if event.kind == START:
                own.append(segment)
            else:
                own.remove(segment)
            if not own:
                self._locked.pop(device.uuid, None)
                yield ClockChange(now_s, device, segment.task, None)
                continue
            mhz = self._clocks[device.uuid, clock_of(own[-1])].mhz
            if self._locked.get(device.uuid) != mhz:
                self._locked[device.uuid] = mhz
                yield ClockChange(now_s, device, own[-1].task, mhz)
