"""Metrics of schedules of arriving work: work done, times in the system, queues.

Of the N tasks released before the end H (the horizon of an open instance, else the last end), task
j is in the system for D_j, from its release to its end; D_j is infinite if it does not end.
``sojourn_censored_s`` is (1/N) Σ_j min(D_j, H − release_j), which cannot be reduced by leaving work
undone; the other sojourn metrics are over completed tasks. ``queue_mean`` is the mean over [opens,
H] of the number of tasks that were released and have not begun, or have been interrupted.
"""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.task_progress import TaskProgress, late_share, progress
from optbench.model.timegrid import grid_up
from optbench.units import DAY_S

PERCENTILES = (50, 95, 99)
# Days of an open instance whose queue at the end is a metric of its own.
MOST_DAYS = 14
# Seconds between two samples of the log that ``logged_units`` follows.
LOG_EVERY_S = 20.0


def stream_metrics(
    instance: Instance, schedule: Schedule, found: TaskProgress, finish: Floats, energy_j: float
) -> dict[str, float]:
    """Metrics of instances with arrivals, by name."""
    tick_s, release = instance.tick_s, np.asarray(instance.tasks.release, dtype=float)
    end = float(instance.end_of_time) if instance.is_open else float(found.last.max(initial=0.0))
    here = release < end if instance.is_open else np.ones(len(release), dtype=bool)
    completed_here = found.complete & here
    present = np.minimum(finish, end)[here] - release[here]
    sojourn = (found.last - release)[completed_here]
    begun = np.isfinite(found.first)
    running = begun & ~found.complete & here & (found.last >= end)
    arrivals, completed, in_progress = (
        int(here.sum()),
        int(completed_here.sum()),
        int(running.sum()),
    )
    units = float(found.units_done(instance).sum())
    times = sojourn if len(sojourn) else present if len(present) else np.zeros(1)
    percentiles = np.percentile(times, PERCENTILES) * tick_s
    # There is none if no task ran at the sampling times.
    logged = logged_units(instance, schedule, found) or units
    span = end - instance.opens
    return {
        "arrivals": float(arrivals),
        "completed": float(completed),
        "in_progress": float(in_progress),
        "queue_end": float(arrivals - completed - in_progress),
        "units_offered": float(instance.tasks.units[here].sum()),
        "units_done": units,
        "j_per_unit": energy_j / units if units > 0 else float("inf"),
        "j_per_unit_logged": energy_j / logged if logged > 0 else float("inf"),
        "sojourn_mean_s": float(times.mean()) * tick_s,
        **{
            f"sojourn_p{p}_s": float(value)
            for p, value in zip(PERCENTILES, percentiles, strict=True)
        },
        "sojourn_censored_s": float(present.sum()) / max(1, arrivals) * tick_s,
        "service_mean_s": float(found.work[completed_here].mean()) * tick_s if completed else 0.0,
        "queue_mean": _waiting_ticks(instance, schedule, finish, end) / span if span > 0 else 0.0,
        "slo_violation": late_share(instance, finish, here),
        **_queue_by_day(instance, schedule, found),
    }


def routing_shares(instance: Instance, schedule: Schedule, waits_at: Ints | None = None) -> Floats:
    """By ingress and pool: the share of the tasks that came in at the ingress and began at the
    pool.

    ``waits_at`` gives the pool in whose queue a task stands, or -1; such a task counts as well. Of
    an interrupted task its first part counts. Where nothing began, the shares are NaN.
    """
    stream = instance.stream
    assert stream is not None
    pool = np.full(instance.num_tasks, -1) if waits_at is None else waits_at.copy()
    order = np.lexsort((schedule.start, schedule.task))
    begun, first = np.unique(schedule.task[order], return_index=True)
    pool[begun] = instance.modes.primary[schedule.mode[order][first]]
    sent = pool >= 0
    counts = np.zeros((len(stream.latency_s), instance.num_pools))
    np.add.at(counts, (stream.ingress[sent], pool[sent]), 1.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / counts.sum(axis=1, keepdims=True), dtype=float)


def _waiting_ticks(instance: Instance, schedule: Schedule, finish: Floats, end: float) -> float:
    """Sum over all tasks of the ticks within [opens, end] in which they wait."""
    begin = float(instance.opens)
    last = max(begin, end)
    there = np.clip(np.asarray(instance.tasks.release, dtype=float), begin, last)
    gone = np.clip(finish, begin, last)
    at_work = np.clip(schedule.end.astype(float), begin, last) - np.clip(
        schedule.start.astype(float), begin, last
    )
    return float(np.maximum(gone - there, 0.0).sum() - at_work.sum())


def _queue_by_day(instance: Instance, schedule: Schedule, found: TaskProgress) -> dict[str, float]:
    """``queue_day1`` and so on, at the end of each day, without running tasks."""
    day = float(grid_up(DAY_S / instance.tick_s))
    if not instance.is_open or instance.horizon is None:
        return {}
    days = min(MOST_DAYS, int(instance.horizon // day))
    # Half a tick before the horizon, tasks that are cut off there still run.
    times = np.minimum(day * np.arange(1, days + 1), instance.horizon - 0.5)
    counts = queue_counts(instance, schedule, times, found).tolist()
    return {f"queue_day{k}": float(count) for k, count in enumerate(counts, 1)}


def logged_units(
    instance: Instance,
    schedule: Schedule,
    found: TaskProgress | None = None,
    every_s: float = LOG_EVERY_S,
) -> float:
    """Units as the simulator of CHSAC-AF logs them: each running task adds ``every_s`` / T at each
    sample, and each end adds (end mod ``every_s``) / T.

    This is slightly too much, since a task that began inside an interval counts the whole of it.
    Work in modes of zero duration is not counted.
    """
    time_s = instance.modes.time_per_unit_s[schedule.mode]
    long = time_s > 0
    end, start, time_s = (
        schedule.end[long].astype(float),
        schedule.start[long].astype(float),
        time_s[long],
    )
    every, tick_s = float(max(1.0, grid_up(every_s / instance.tick_s))), instance.tick_s
    done = (found or progress(instance, schedule)).complete[schedule.task[long]]
    samples = (
        np.where(done, np.ceil(end / every) - 1, np.floor(end / every)) - np.ceil(start / every) + 1
    )
    after = np.where(done, end % every, 0.0)
    return float(((np.maximum(samples, 0) * every + after) * tick_s / time_s).sum())


def queue_counts(
    instance: Instance, schedule: Schedule, times: Floats, found: TaskProgress | None = None
) -> Ints:
    """The number of tasks that wait at each time: released, and neither running nor completed."""
    release = np.sort(np.asarray(instance.tasks.release, dtype=float))
    found = found or progress(instance, schedule)
    start, end = np.sort(schedule.start.astype(float)), np.sort(schedule.end.astype(float))
    done = np.sort(found.last[found.complete])
    arrived = np.searchsorted(release, times, side="right")
    busy = np.searchsorted(start, times, side="right") - np.searchsorted(end, times, side="right")
    return np.asarray(arrived - busy - np.searchsorted(done, times, side="right"), dtype=np.int64)
