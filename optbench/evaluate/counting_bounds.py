"""Which bounds count for which solver.

Certified bounds of an instance, from any source, count for every solver of a study. A bound that
only a solver claims (proof ``solver``) counts for its own run, and for other runs where the study
trusts that solver by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optbench.model.measures import Value, gap
from optbench.shapes.protocol.shape import Sense
from optbench.store.records import Record
from optbench.study.cells import Cell

BoundRow = Mapping[str, Any]


def counts_for_all(cell: Cell, record: Record, row: BoundRow, trust: Iterable[str]) -> bool:
    """Whether a bound counts for other runs: certified, or of a trusted solver."""
    if cell.kind == "bound":
        return bool(row["proof"] != "solver")
    certified = record.labelled and row["proof"] != "solver"
    return certified or cell.solver in trust or cell.label in trust


def best_of_level(rows: Iterable[BoundRow], level: int, sense: Sense = "min") -> float | None:
    """Return the highest of some bounds on one level; the lowest of upper bounds."""
    values = (float(row["value"]) for row in rows if int(row.get("level", 0)) == level)
    return best_bound(values, sense)


def best_bound(values: Iterable[float], sense: Sense) -> float | None:
    """Return the highest of lower bounds, the lowest of upper ones."""
    return max(values, default=None) if sense == "min" else min(values, default=None)


def shared_bounds(
    joined: Iterable[tuple[Cell, Record | None]], trust: Iterable[str]
) -> dict[str, float]:
    """Return, by instance, the best bound on the first level that counts for every solver."""
    lows: dict[str, float] = {}
    for cell, record in joined:
        if record is None or record.failed:
            continue
        rows = [row for row in record.bounds if counts_for_all(cell, record, row, trust)]
        low = best_of_level(rows, 0, cell.sense)
        if low is not None:
            both = (low, lows.get(cell.instance_hash, low))
            lows[cell.instance_hash] = max(both) if cell.sense == "min" else min(both)
    return lows


def largest_gap_over_levels(
    value: Value | None, shared: float | None, rows: Iterable[BoundRow], sense: Sense = "min"
) -> float | None:
    """Return the largest gap between a value and the best bound of its level; None without a
    value or where a level has no bound. ``shared`` is one more bound on the first level.
    """
    if value is None:
        return None
    values, rows = value if isinstance(value, tuple) else (value,), list(rows)
    found = []
    for level, each in enumerate(values):
        own = best_of_level(rows, level, sense)
        lows = [low for low in (own, shared if level == 0 else None) if low is not None]
        found.append(gap(each, best_bound(lows, sense)))
    known = [each for each in found if each is not None]
    return max(known) if len(known) == len(found) else None
