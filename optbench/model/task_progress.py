"""The progress of each task of a schedule, in rational numbers.

A segment of length l in a mode in which its whole task takes D ticks is l / D of the task, an empty
segment where D = 0 the whole of it. A task is complete when its shares add up to 1 or more; its
work done is units · min(1, sum), its energy follows the sum.

Where tasks have checkpoints, only l' of a segment's l ticks count towards completion: all of the
task's last segment, and of one before it what the last checkpoint has saved,

    l' = c ⌊l / c⌋        c = checkpoint of the task        l' = l where c = 0, 0 where c = ∞.

The energy of a segment is still that of all its l ticks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.schedule import Schedule


@dataclass(frozen=True, eq=False)
class TaskProgress:
    """Per task: sum of its shares (rounded), whether it is complete (exact), first start and last
    end (inf and −inf without a segment), running ticks. Per segment: D of its task in its mode, and
    its share of the task.
    """

    share: Floats
    complete: Bools
    first: Floats
    last: Floats
    work: Floats
    whole: Ints
    part: Floats

    def units_done(self, instance: Instance) -> Floats:
        """Units of work done per task; a complete task counts once, even if more was done."""
        share = np.where(self.complete, 1.0, np.minimum(self.share, 1.0))
        return np.asarray(instance.tasks.units * share, dtype=float)

    def finish(self, instance: Instance) -> Floats:
        """The end of each task; one that is incomplete at the horizon ends no earlier."""
        if not instance.is_open:
            return np.maximum(self.last, 0.0)
        release = np.asarray(instance.tasks.release, dtype=float)
        return np.where(self.complete, self.last, np.maximum(float(instance.end_of_time), release))


def late_share(instance: Instance, finish: Floats, here: Bools) -> float:
    """The share of these tasks, of those with a deadline, that finish after it; 0 without any."""
    due = np.isfinite(instance.tasks.deadline) & here
    late = finish[due] > instance.tasks.deadline[due]
    return float(late.mean()) if len(late) else 0.0


def progress(instance: Instance, schedule: Schedule) -> TaskProgress:
    """The progress of every task."""
    n, start, end = instance.num_tasks, schedule.start.astype(float), schedule.end.astype(float)
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    segments = np.bincount(schedule.task, minlength=n)
    if segments.max(initial=0) <= 1:
        first[schedule.task], last[schedule.task] = start, end
    else:
        np.minimum.at(first, schedule.task, start)
        np.maximum.at(last, schedule.task, end)
    whole = whole_durations(instance, schedule)
    part = segment_shares(schedule, whole)
    counted, kept = schedule, part
    if instance.tasks.checkpoint is not None:
        counted = replace(schedule, end=schedule.start + counted_ticks(instance, schedule))
        kept = segment_shares(counted, whole)
    share = np.bincount(schedule.task, weights=kept, minlength=n).astype(float)
    work = np.bincount(schedule.task, weights=end - start, minlength=n).astype(float)
    complete = complete_tasks(counted, share, whole, segments)
    return TaskProgress(share, complete, first, last, work, whole, part)


def whole_durations(instance: Instance, schedule: Schedule) -> Ints:
    """D of each segment: ticks that its whole task takes in its mode."""
    return instance.duration(schedule.mode, instance.tasks.units[schedule.task])


def counted_ticks(instance: Instance, schedule: Schedule) -> Ints:
    """The ticks of each segment that count towards completion."""
    length = schedule.end - schedule.start
    if instance.tasks.checkpoint is None or len(length) == 0:
        return length
    order = np.lexsort((schedule.end, schedule.start, schedule.task))
    task = schedule.task[order]
    last = np.zeros(len(length), dtype=bool)
    last[order[np.append(task[1:] != task[:-1], True)]] = True
    saved = saved_ticks(length, instance.tasks.checkpoint[schedule.task])
    return np.where(last, length, saved)


def saved_ticks(length: Ints, checkpoint: Floats) -> Ints:
    """What the last checkpoint within each length has saved: c ⌊l / c⌋."""
    every = np.where(np.isfinite(checkpoint), np.maximum(checkpoint, 1.0), 1.0).astype(np.int64)
    saved = length // every * every
    return np.where(np.isfinite(checkpoint), saved, 0)


def lost_energy_j(instance: Instance, schedule: Schedule, made: TaskProgress) -> Floats:
    """Energy of each segment's ticks that do not count towards completion."""
    energy_j = instance.energy_j(schedule.mode, instance.tasks.units[schedule.task])
    lost = schedule.end - schedule.start - counted_ticks(instance, schedule)
    share = np.where(made.whole > 0, lost / np.maximum(made.whole, 1), 0.0)
    return np.asarray(energy_j * share, dtype=float)


def segment_shares(schedule: Schedule, whole: Ints) -> Floats:
    """(end − start) / D of each segment, 1 where D = 0."""
    length = schedule.end - schedule.start
    return np.where(whole > 0, length / np.maximum(whole, 1), 1.0)


def segment_energy_j(instance: Instance, schedule: Schedule, part: Floats | None = None) -> Floats:
    """Energy of each segment: its share (``part`` if known) of that of its task."""
    energy_j = instance.energy_j(schedule.mode, instance.tasks.units[schedule.task])
    if part is None:
        part = segment_shares(schedule, whole_durations(instance, schedule))
    return np.asarray(energy_j * part, dtype=float)


def complete_tasks(schedule: Schedule, share: Floats, whole: Ints, segments: Ints) -> Bools:
    """Whether the shares of each task add up to 1 or more, exactly."""
    # Each share and each sum has a relative rounding error of at most 2^-53.
    unclear = (segments > 0) & (
        np.abs(share - 1.0) <= (segments + 4.0) * 2.0**-51 * np.maximum(1.0, share)
    )
    complete = (share > 1.0) & ~unclear
    length = schedule.end - schedule.start
    one = unclear & (segments == 1)
    rows = np.flatnonzero(one[schedule.task])
    complete[schedule.task[rows]] = (length >= whole)[rows]
    several = unclear & ~one
    rows = np.flatnonzero(several[schedule.task])
    rows = rows[np.argsort(schedule.task[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(schedule.task[rows], prepend=-1))
    for of_task in np.split(rows, begins[1:]) if len(rows) else ():
        shares = zip(length[of_task].tolist(), whole[of_task].tolist(), strict=True)
        complete[schedule.task[of_task[0]]] = exact_progress(shares) >= 1
    return complete


def exact_progress(segments: Iterable[tuple[int, int]]) -> Fraction:
    """The sum of length / duration; a segment of no duration is a whole task."""
    ticks: dict[int, int] = {}
    total = Fraction(0)
    for length, duration in segments:
        if duration == 0:
            total += 1
        else:
            ticks[duration] = ticks.get(duration, 0) + length
    return total + sum(
        (Fraction(length, duration) for duration, length in ticks.items()), Fraction(0)
    )


def ticks_left(segments: Iterable[tuple[int, int]], duration: int) -> int:
    """Ticks until a task with these past (length, duration) is complete, in a mode of ``duration``.

    The first whole number L with L / duration + progress ≥ 1; ``sim.kernel.remaining`` holds the
    compiled twin.
    """
    left = 1 - exact_progress(segments)
    if left <= 0:
        return 0
    return -((-left.numerator * duration) // left.denominator)
