"""Precedence rows of the time-indexed formulation, aggregated and disaggregated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optbench.model.instance import Floats, Ints
from optbench.model.ragged import ragged
from optbench.views.milp.arrays import BlockCollector, Entries
from optbench.views.milp.frame import Frame, Transfers

if TYPE_CHECKING:
    from optbench.views.milp.time_indexed import Starts


def disaggregated_nonzeros(base: Frame, x: Starts) -> float:
    """Estimate the number of coefficients of the disaggregated rows."""
    instance = base.instance
    columns = np.diff(x.ptr[instance.pairs.ptr])
    ticks = np.maximum(0.0, base.latest - base.head)
    i, j = instance.edges.source, instance.edges.target
    return float((ticks[j] * (columns[i] + columns[j]) / 2).sum())


def add_aggregated(
    sheet: BlockCollector, base: Frame, x: Starts, uniform: Floats, sent: Transfers
) -> None:
    """Add S_j − E_i − Σ l send >= 0, the lag on the right where it does not depend on the pools
    (not NaN in ``uniform``).
    """
    edges, first = base.instance.edges, x.ptr[base.instance.pairs.ptr]
    size = np.diff(first)
    entries: list[Entries] = []
    for task, time, sign in ((edges.target, x.tick, 1.0), (edges.source, x.end, -1.0)):
        row, col = ragged(first[task], size[task])
        keep = time[col] > 0
        entries.append((row[keep], col[keep], sign * time[col[keep]]))
    lag = sent.lag(base.instance)
    at = np.flatnonzero(np.isnan(uniform[sent.edge]) & (lag > 0))
    entries.append((sent.edge[at], sent.first + at, -lag[at]))
    sheet.add_rows(
        "precede",
        np.arange(len(edges.source)),
        entries,
        np.where(np.isnan(uniform), 0.0, uniform),
        np.inf,
    )


def add_disaggregated(sheet: BlockCollector, base: Frame, x: Starts) -> None:
    labels, entries, rows = [np.zeros((0, 3), dtype=np.int64)], [], 0
    for e in range(len(base.instance.edges.source)):
        sheet.check()
        for c, (consumers, lag) in enumerate(_classes(base, e)):
            ticks, parts = _class_rows(base, x, e, consumers, lag)
            entries += [(row + rows, col, value) for row, col, value in parts]
            labels.append(np.stack((np.full(len(ticks), e), np.full(len(ticks), c), ticks), axis=1))
            rows += len(ticks)
    sheet.add_rows("precede", np.concatenate(labels), entries, -np.inf, 0.0)


def _classes(base: Frame, e: int) -> list[tuple[Ints, Floats]]:
    """Return consumer pairs with the same lag from every producer pair; and all of them with the
    smallest lags, if classes differ.
    """
    instance = base.instance
    pairs, primary = instance.pairs, instance.modes.primary
    i, j = int(instance.edges.source[e]), int(instance.edges.target[e])
    producers, consumers = (np.arange(pairs.ptr[task], pairs.ptr[task + 1]) for task in (i, j))
    sender, receiver = primary[pairs.mode[producers]], primary[pairs.mode[consumers]]
    lags = np.asarray(
        instance.lag(sender[:, None], receiver[None, :], instance.edges.data_gb[e]), dtype=float
    )
    distinct, which = np.unique(lags, axis=1, return_inverse=True)
    which = which.reshape(-1)
    out = [(consumers[which == c], distinct[:, c]) for c in range(distinct.shape[1])]
    return [*out, (consumers, lags.min(axis=1))] if len(out) > 1 else out


def _class_rows(
    base: Frame, x: Starts, e: int, consumers: Ints, lag: Floats
) -> tuple[Ints, list[Entries]]:
    """Return ticks t, and the entries of  started by t − arrived by t <= 0."""
    pairs, edges = base.instance.pairs, base.instance.edges
    producers = np.arange(pairs.ptr[edges.source[e]], pairs.ptr[edges.source[e] + 1])
    _, col_j = ragged(x.ptr[consumers], np.diff(x.ptr)[consumers])
    which, col_i = ragged(x.ptr[producers], np.diff(x.ptr)[producers])
    arrival = x.end[col_i] + lag[which]
    if len(col_j) == 0:
        return np.zeros(0, dtype=np.int64), []
    low, high = int(x.tick[col_j].min()), int(x.tick[col_j].max())
    # From the last arrival on, the row holds for any starts.
    if len(arrival) and np.isfinite(arrival).all():
        high = min(high, int(arrival.max()) - 1)
    if high < low:
        return np.zeros(0, dtype=np.int64), []
    linked = np.isfinite(arrival) & (arrival <= high)
    col_i, begin = col_i[linked], np.maximum(arrival[linked].astype(np.int64), low)
    started, t = ragged(x.tick[col_j] - low, np.maximum(0, high + 1 - x.tick[col_j]))
    arrived, u = ragged(begin - low, high + 1 - begin)
    return np.arange(low, high + 1), [(t, col_j[started], 1.0), (u, col_i[arrived], -1.0)]
