"""Charts of schedules with thousands of segments: bands of occupancy instead of bars, mean power.

Time is cut into equal columns. A band is as high as the mean number of devices that a group of
tasks holds in the column; the power of a column is its mean. Device-time and energy are therefore
those of the schedule, column by column.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.html import colours, svg
from optbench.html.axes import Axis
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import PowerTrace, profile_of, requirements
from optbench.model.schedule import Schedule

# Most bars and steps of power that are drawn one by one, and the number of columns instead.
MOST_BARS, MOST_STEPS, COLUMNS = 2000, 2000, 600


def is_needed(schedule: Schedule) -> bool:
    """Whether there are too many segments to draw each."""
    return schedule.num_segments > MOST_BARS


def peaks(instance: Instance, schedule: Schedule) -> dict[int, int]:
    """Most devices busy at once in each pool that is used."""
    row, pool, count = requirements(instance, schedule.mode)
    start, end = schedule.start.astype(float)[row], schedule.end.astype(float)[row]
    out = {}
    for p in np.unique(pool).tolist():
        here = (pool == p) & (end > start)
        if here.any():
            out[p] = int(
                np.rint(profile_of(start[here], end[here], count[here].astype(float))[1].max())
            )
    return out


def occupancy(instance: Instance, schedule: Schedule, group: Ints, edges: Floats) -> Floats:
    """``held[pool, group, column]``: mean devices held between the edges."""
    row, pool, count = requirements(instance, schedule.mode)
    start, end = schedule.start.astype(float)[row], schedule.end.astype(float)[row]
    of = group[schedule.task][row]
    held = np.zeros((instance.num_pools, int(group.max(initial=0)) + 1, len(edges) - 1))
    for p, g in np.unique(np.column_stack((pool, of)), axis=0).tolist():
        here = (pool == p) & (of == g)
        t, level = profile_of(start[here], end[here], count[here].astype(float))
        held[p, g] = column_means(
            np.append(t, max(float(t[-1]), float(edges[-1])) + 1.0), level, edges
        )
    return held


def column_means(t: Floats, level: Floats, edges: Floats) -> Floats:
    """Mean over each column of a function that is ``level[k]`` from ``t[k]`` to ``t[k + 1]``."""
    area = np.concatenate(([0.0], np.cumsum(level * np.diff(t))))
    width = np.diff(edges)
    return np.asarray(
        np.diff(np.interp(edges, t, area)) / np.where(width > 0, width, 1.0), dtype=float
    )


def draw(
    instance: Instance,
    schedule: Schedule,
    axis: Axis,
    top: dict[int, float],
    lanes: dict[int, int],
    height: float,
) -> str:
    """Bands of each pool's groups, stacked from the pool's last lane up."""
    group, names = colours.groups(instance)
    if len(names) == instance.num_tasks:
        group, names = np.zeros(instance.num_tasks, dtype=np.int64), ("tasks",)
    edges = np.linspace(0.0, axis.high, COLUMNS + 1)
    held = occupancy(instance, schedule, group, edges)
    xs = [axis.at(t) for t in edges.tolist()]
    out = []
    for p in lanes:
        if p < 0:
            continue
        base = top[p] + lanes[p] * height
        level = np.zeros(COLUMNS)
        for g in range(len(names)):
            if held[p, g].any():
                above = level + held[p, g]
                shape = svg.band(
                    xs, (base - height * above).tolist(), (base - height * level).tolist()
                )
                most = f"at most {held[p, g].max():.3g} devices"
                words = [names[g], f"{instance.pools.names[p]}  ·  {most}"]
                fill = colours.colour(colours.TASKS, g)
                area = svg.path(shape, fill=fill)
                out.append(svg.tag("g", svg.title(words) + area, class_="band"))
                level = above
    return "".join(out)


def coarse(trace: PowerTrace) -> PowerTrace:
    """The trace itself where it has few steps, else its means and sums of transfers by column."""
    if len(trace.t) <= MOST_STEPS:
        return trace
    edges = np.linspace(0.0, float(trace.t[-1]), COLUMNS + 1)
    column = np.clip(np.searchsorted(edges, trace.transfer_t, side="right") - 1, 0, COLUMNS - 1)
    sent = np.bincount(column, weights=trace.transfer_j, minlength=COLUMNS).astype(float)
    busy_w = np.asarray([column_means(trace.t, w, edges) for w in trace.busy_w])
    rest_w = np.asarray([column_means(trace.t, w, edges) for w in trace.rest_w])
    return replace(
        trace, t=edges, busy_w=busy_w, rest_w=rest_w, transfer_t=edges[:-1], transfer_j=sent
    )
