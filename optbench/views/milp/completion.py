"""When everything has ended, in the time-indexed formulation: the columns ``makespan``,
``unfinished`` and ``running``.

Where the makespan is priced by a varying tariff, z_t ≥ Y_it, the sum of the starts of task i that
end after t, for every last task i and tick t. Written out this is a coefficient for each start and
each tick until its end. Past MAX_OUTLAST of them the sums become columns of their own,

    Y_it = Σ_{k,s: s + p_ik > t} start[i,k,s]               at the first tick,
    Y_it = Y_i,t−1 − Σ_{k,s: s + p_ik = t} start[i,k,s]     after it

with the same relaxation and a few coefficients per tick and per start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.ragged import ragged
from optbench.views.milp.arrays import BlockCollector
from optbench.views.milp.frame import Frame

if TYPE_CHECKING:
    from optbench.views.milp.time_indexed import Starts

# The sums are written out up to this many coefficients.
MAX_OUTLAST = 400_000


def last_tasks(instance: Instance) -> Ints:
    """Tasks without successors."""
    return np.setdiff1d(np.arange(instance.num_tasks), instance.edges.source)


def first_tick(base: Frame) -> int:
    """Return C0: the first tick at which everything can have ended."""
    return int(min(base.windows.critical_path, base.end))


def outlast_coefficients(base: Frame, begin: Ints, size: Ints) -> tuple[float, float]:
    """Return the number of coefficients of the rows of ``unfinished`` with the sums written out,
    and with columns for them; nothing is built.

    ``begin`` and ``size`` are, for each pair, its first start and the number of starts.
    """
    pairs, last = base.instance.pairs, last_tasks(base.instance)
    mine = np.flatnonzero(np.isin(pairs.task, last))
    count = size[mine].astype(float)
    # Ticks from C0 to the first end.
    nearest = begin[mine] + pairs.duration[mine] - float(first_tick(base))
    skipped = np.clip(-nearest, 0.0, count)
    written = ((count - skipped) * (nearest + skipped + nearest + count - 1.0) / 2.0).sum()
    cells = float(len(last)) * max(0.0, float(base.end) - first_tick(base))
    return float(max(0.0, written)) + cells, 4.0 * cells + 2.0 * float(count.sum())


def add_makespan(sheet: BlockCollector, base: Frame, x: Starts) -> int:
    """Add the column ``makespan`` and its rows ``finish``."""
    last, row, mine = _ends_of(base, x)
    low = min(base.windows.critical_path, base.end)
    column = sheet.add_columns("makespan", np.zeros((1, 0)), low, base.end)
    entries = [(np.arange(len(last)), np.full(len(last), column), 1.0), (row, mine, -x.end[mine])]
    sheet.add_rows("finish", last, entries, 0.0, np.inf)
    return column


def add_unfinished_per_tick(sheet: BlockCollector, base: Frame, x: Starts) -> int:
    """Add a column ``unfinished`` for each tick, at least 1 while some last task has not ended,
    with a row ``outlast`` for each last task and tick; return the first column.
    """
    last, row, mine = _ends_of(base, x)
    first = first_tick(base)
    ticks = np.arange(first, int(base.end))
    column = sheet.add_columns("unfinished", ticks, 0.0, 1.0)
    label = np.stack((np.repeat(last, len(ticks)), np.tile(ticks, len(last))), axis=1)
    cell = np.arange(len(label))
    own = (cell, column + np.tile(np.arange(len(ticks)), len(last)), 1.0)
    left = np.maximum(0, x.end[mine] - first)  # ticks from C0 on in which it has not ended
    if float(left.sum()) + len(label) <= MAX_OUTLAST:
        which, tick = ragged(np.zeros(len(mine)), left)
        entries = [own, (row[which] * len(ticks) + tick, mine[which], -1.0)]
        sheet.add_rows("outlast", label, entries, 0.0, np.inf)
        return column
    running = sheet.add_columns("running", label, 0.0, 1.0)
    later = np.flatnonzero(np.tile(ticks, len(last)) > first)
    some, ended = left > 0, (left > 0) & (left < len(ticks))
    entries = [
        (cell, running + cell, 1.0),
        (later, running + later - 1, -1.0),
        (row[some] * len(ticks), mine[some], -1.0),
        (row[ended] * len(ticks) + left[ended], mine[ended], 1.0),
    ]
    sheet.add_rows("running", label, entries, 0.0, 0.0)
    sheet.add_rows("outlast", label, [own, (cell, running + cell, -1.0)], 0.0, np.inf)
    return column


def running_values(label: Ints, end: Floats | Ints) -> Floats:
    """Return the columns ``running`` of a decision: one end per task."""
    task, tick = label.T
    return np.asarray(end[task] > tick, dtype=float)


def _ends_of(base: Frame, x: Starts) -> tuple[Ints, Ints, Ints]:
    """Return the last tasks, and the starts of each: the task and the column."""
    instance = base.instance
    last = last_tasks(instance)
    row = np.full(instance.num_tasks, -1)
    row[last] = np.arange(len(last))
    at = row[instance.pairs.task[x.pair]]
    mine = np.flatnonzero(at >= 0)
    return last, at[mine], mine
