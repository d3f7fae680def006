"""Figures of a schedule of arriving work: power over time, sojourns, routing shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.html.bands import column_means
from optbench.model.instance import Floats, Instance
from optbench.model.metrics import power_trace
from optbench.model.schedule import Schedule
from optbench.model.stream_metrics import routing_shares
from optbench.model.task_progress import progress

# Means of power over so many parts of the time that is watched: hours of a week.
BINS = 168


@dataclass(frozen=True, eq=False)
class Operation:
    """``watts[k]`` is the mean power from ``edges_s[k]`` to ``edges_s[k + 1]``, ``sojourn_s`` the
    sorted times in the system of completed tasks, of ``arrivals`` in all. ``shares[g, p]`` is the
    share at pool p of the tasks that came in at g and began (NaN without such tasks)."""

    edges_s: Floats
    watts: Floats
    sojourn_s: Floats
    arrivals: int
    shares: Floats


def operation(instance: Instance, schedule: Schedule, bins: int = BINS) -> Operation:
    """The figures of a schedule, whose instance must have a stream of arrivals."""
    assert instance.stream is not None
    trace = power_trace(instance, schedule)
    edges = np.linspace(trace.t[0], trace.t[-1], bins + 1)
    watts = column_means(trace.t, trace.busy_w.sum(axis=0) + trace.rest_w.sum(axis=0), edges)
    found = progress(instance, schedule)
    release = np.asarray(instance.tasks.release, dtype=float)
    sojourn = np.sort((found.last - release)[found.complete]) * instance.tick_s
    arrivals = (
        int((release < instance.horizon).sum())
        if instance.is_open and instance.horizon is not None
        else len(release)
    )
    return Operation(
        edges * instance.tick_s, watts, sojourn, arrivals, routing_shares(instance, schedule)
    )
