"""The cost of waiting in the stream LP: undone units, by the size of their tasks.

Tasks of class c with similar units make a group b, the largest of u_b units. g_bs units of it are
processed in slot s of width w_s, q_bs are there and undone at its end, and h_bs is the time
integral of the undone units over the slot. What is done in a slot is undone until its beginning at
least, so that with a_bs = Σ u_j (there_j − b_s) over those that come in it

    Σ_b∈c g_bs = Σ_k x_cks,    q_bs = q_b,s−1 + A_bs − g_bs,    h_bs ≥ w_s q_bs − a_bs
    q, g, h ≥ 0

While task j is undone, its undone units are u_j at most, so that it is there for ∫ undone_j / u_j
at least; where it runs to its end in one mode, they fall evenly, and it is in the system half its
running time longer:

    Σ_j weight_j (time in the system − ingress latency)
        ≥ Σ_bs weight_b h_bs / u_b  (+ ½ Σ weight t_k x_cks)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.bounds.lp.linear_program import LpColumns, LpRows
from optbench.bounds.streams.stream_traffic import Traffic
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.timegrid import ulp
from optbench.units import SUM_MARGIN

# Units of the tasks of one group differ by at most this factor, or by that which makes this many
# groups of a class.
RATIO, MOST_GROUPS = 1.5, 12


@dataclass(frozen=True, eq=False)
class Waiting:
    """Columns h of the slots that end, with their class and 1 / u_b, rounded down."""

    column: Ints
    of: Ints
    per_unit: Floats


def groups_of(instance: Instance, work: Traffic) -> tuple[Ints, Ints, Floats]:
    """Return the group of each task that arrives, class and largest units of each group."""
    here = work.here
    units = instance.tasks.units[here]
    of = work.of[here]
    least, most = np.full(work.num_classes, np.inf), np.zeros(work.num_classes)
    np.minimum.at(least, of, units)
    np.maximum.at(most, of, units)
    ratio = np.maximum(np.log(RATIO), np.log(most / least) / MOST_GROUPS)[of]
    level = np.minimum(np.floor(np.log(units / least[of]) / ratio), MOST_GROUPS).astype(np.int64)
    keys, group = np.unique(of * (MOST_GROUPS + 1) + level, return_inverse=True)
    largest = np.zeros(len(keys))
    np.maximum.at(largest, group.reshape(-1), units)
    return group.reshape(-1), keys // (MOST_GROUPS + 1), largest


def add_waiting(
    columns: LpColumns,
    rows: LpRows,
    instance: Instance,
    work: Traffic,
    edges: Floats,
    slot: Ints,
    x: Ints,
    cell: Ints,
) -> Waiting:
    """Add groups, given the slot in which each task arrives, and class times slot (flat) of
    each x.
    """
    group, of, largest = groups_of(instance, work)
    count, groups, width = len(edges) - 1, len(of), np.diff(edges)
    units = instance.tasks.units[work.here]
    at = group * count + slot
    come = np.bincount(at, weights=units, minlength=groups * count).reshape(groups, count)
    stay = np.where(np.isfinite(edges[1:]), edges[1:], 0.0)[slot] - work.there_s[work.here]
    area = np.bincount(at, weights=units * np.maximum(stay, 0.0), minlength=groups * count).reshape(
        groups, count
    )
    total = np.cumsum(come, axis=1) * (1 + SUM_MARGIN)
    upper = total.copy()
    if not instance.is_open:
        upper[:, -1] = 3 * SUM_MARGIN * total[:, -1]
    here = np.arange(groups * count).reshape(groups, count)
    g = columns.add(groups * count, 0.0, np.repeat(total[:, -1], count)).reshape(groups, count)
    q = columns.add(groups * count, 0.0, upper.ravel()).reshape(groups, count)
    left = (come * (1 + SUM_MARGIN)).ravel()
    before = (here[:, 1:], q[:, :-1], -1.0)
    rows.add("undone", left, (here, q, 1.0), before, (here, g, 1.0), equal=True)
    by_class = of[:, None] * count + np.arange(count)
    rows.add(
        "by_group",
        np.zeros(work.num_classes * count),
        (cell, x, 1.0),
        (by_class, g, -1.0),
        equal=True,
    )
    ends = np.flatnonzero(np.isfinite(width))
    # Rounding of the edges, and of the times between them.
    w, slip = width[ends], 8.0 * ulp(edges[1:][ends])
    h = columns.add(groups * len(ends), 0.0, (w * total[:, ends] * 2).ravel()).reshape(
        groups, len(ends)
    )
    early = (
        np.maximum(come[:, ends] * w - area[:, ends], 0.0)
        + (3 * SUM_MARGIN * w + slip) * total[:, ends]
    )
    row = np.arange(groups * len(ends)).reshape(groups, len(ends))
    rows.add("waiting", -early.ravel(), (row, h, 1.0), (row, q[:, ends], -w))
    return Waiting(
        h.ravel(), np.repeat(of, len(ends)), np.nextafter(np.repeat(1.0 / largest, len(ends)), 0.0)
    )
