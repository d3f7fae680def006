"""What a schedule of arriving work is worth beyond energy: work done, times in the system, what waits at the end.

Of the N tasks released before the end H (the horizon of an open instance, else the last end), task j is in the system for D_j:
from its release to its end, or for ever. ``sojourn_censored_s`` is (1/N) Σ_j min(D_j, H − release_j), which leaving work undone
cannot make small; the other sojourns are those of completed tasks. ``queue_mean`` is the mean over [opens, H] of the number of
tasks that have arrived somewhere (or are on their way) and have not begun, or have been interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import TOLERANCE, Bools, Floats, Instance, Ints
from optbench.model.schedule import Schedule

PERCENTILES = (50, 95, 99)
DAY_S = 86_400.0
# Days of an open instance whose queue at the end is a metric of its own.
MOST_DAYS = 14


@dataclass(frozen=True, eq=False)
class Progress:
    """Per task: units done, whether all of them, first start and last end (inf, -inf without a segment), time at work."""

    units: Floats
    done: Bools
    first: Floats
    last: Floats
    work: Floats

    def finish(self, instance: Instance) -> Floats:
        """When each task has ended; what is undone at the horizon has not ended before it."""
        if not instance.is_open:
            return np.maximum(self.last, 0.0)
        release = np.asarray(instance.tasks.release, dtype=float)
        return np.where(self.done, self.last, np.maximum(float(instance.horizon or 0.0), release))


def progress(instance: Instance, schedule: Schedule) -> Progress:
    n, start, end = instance.num_tasks, schedule.start.astype(float), schedule.end.astype(float)
    units = np.bincount(schedule.task, weights=schedule.units, minlength=n).astype(float)
    first, last = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(first, schedule.task, start)
    np.maximum.at(last, schedule.task, end)
    whole = instance.tasks.units * (1.0 - TOLERANCE)
    work = np.bincount(schedule.task, weights=end - start, minlength=n).astype(float)
    return Progress(units, units >= whole, first, last, work)


def stream_metrics(instance: Instance, schedule: Schedule, found: Progress, energy_j: float) -> dict[str, float]:
    """Metrics of instances with arrivals, by name."""
    step, release = instance.step_s, np.asarray(instance.tasks.release, dtype=float)
    end = float(instance.horizon) if instance.is_open and instance.horizon is not None else float(found.last.max(initial=0.0))
    here = release < end if instance.is_open else np.ones(len(release), dtype=bool)
    present = np.minimum(found.finish(instance), end)[here] - release[here]
    sojourn = (found.last - release)[found.done]
    begun = np.isfinite(found.first)
    running = begun & ~found.done & (found.last >= end * (1.0 - TOLERANCE))
    arrivals, completed, in_progress = int(here.sum()), int(found.done.sum()), int(running.sum())
    units = float(found.units.sum())
    times = sojourn if len(sojourn) else present if len(present) else np.zeros(1)
    percentiles = np.percentile(times, PERCENTILES) * step
    due = np.isfinite(instance.tasks.deadline) & here
    late = found.finish(instance)[due] > instance.tasks.deadline[due] * (1.0 + TOLERANCE)
    logged = logged_units(instance, schedule, found) or units  # none where nothing ran when the samples were taken
    return {
        "arrivals": float(arrivals),
        "completed": float(completed),
        "in_progress": float(in_progress),
        "queue_end": float(arrivals - completed - in_progress),
        "units_offered": float(instance.tasks.units[here].sum()),
        "units_done": units,
        "j_per_unit": energy_j / units if units > 0 else float("inf"),
        "j_per_unit_logged": energy_j / logged if logged > 0 else float("inf"),
        "sojourn_mean_s": float(times.mean()) * step,
        **{f"sojourn_p{p}_s": float(value) for p, value in zip(PERCENTILES, percentiles, strict=True)},
        "sojourn_censored_s": float(present.sum()) / max(1, arrivals) * step,
        "service_mean_s": float(found.work[found.done].mean()) * step if completed else 0.0,
        "queue_mean": float((present - found.work[here]).sum()) / max(end - instance.opens, 1e-9),
        "slo_violation": float(late.mean()) if len(late) else 0.0,
        **_queue_by_day(instance, schedule, found),
    }


def _queue_by_day(instance: Instance, schedule: Schedule, found: Progress) -> dict[str, float]:
    """``queue_day1`` and so on, at the end of each day; what still runs at the horizon does not wait there."""
    if not instance.is_open or instance.horizon is None:
        return {}
    days = min(MOST_DAYS, int(instance.horizon // DAY_S))
    times = np.minimum(DAY_S * np.arange(1, days + 1), np.nextafter(float(instance.horizon), 0.0))
    counts = queue_counts(instance, schedule, times, found).tolist()
    return {f"queue_day{k}": float(count) for k, count in enumerate(counts, 1)}


def logged_units(instance: Instance, schedule: Schedule, found: Progress | None = None, every_s: float = 20.0) -> float:
    """Units as the simulator of CHSAC-AF logs them: each running task adds ``every_s`` / T at each sample, and each end adds
    (end mod ``every_s``) / T: a little too many, since a task that began inside an interval counts the whole of it.
    """
    end, start = schedule.end.astype(float), schedule.start.astype(float)
    time_s = instance.modes.time_per_unit_s[schedule.mode]
    done = (found or progress(instance, schedule)).done[schedule.task]
    samples = np.where(done, np.ceil(end / every_s) - 1, np.floor(end / every_s)) - np.ceil(start / every_s) + 1
    return float((np.maximum(samples, 0) * every_s / time_s).sum() + (np.where(done, end % every_s, 0.0) / time_s).sum())


def queue_counts(instance: Instance, schedule: Schedule, times: Floats, found: Progress | None = None) -> Ints:
    """Tasks that wait at each of these times: released, and neither at work nor done."""
    release = np.sort(np.asarray(instance.tasks.release, dtype=float))
    found = found or progress(instance, schedule)
    start, end = np.sort(schedule.start.astype(float)), np.sort(schedule.end.astype(float))
    done = np.sort(found.last[found.done])
    arrived = np.searchsorted(release, times, side="right")
    busy = np.searchsorted(start, times, side="right") - np.searchsorted(end, times, side="right")
    return np.asarray(arrived - busy - np.searchsorted(done, times, side="right"), dtype=np.int64)
