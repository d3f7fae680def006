"""The primal integral of a cell's incumbents over time."""

from __future__ import annotations

import json

from optbench.evaluate.rows import Row
from optbench.model.measures import primal_integral
from optbench.run.best_known import BestKnown
from optbench.store.run_store import Store

TRAJECTORY = "trajectory.json"


def primal_integral_s(row: Row, best: BestKnown | None, store: Store) -> float | None:
    """Return the seconds of primal gap against the best known objective, up to the time limit (the
    solver's end where there is none).

    A cell without an objective, or without a stored trajectory, has the gap 1 all the time. None
    where there is no best known objective. Incumbents are of the first level, as the cell's process
    reported them.
    """
    if row.record is None or best is None:
        return None
    end_s = row.cell.budget.time_limit_s or row.record.wall_s
    if end_s is None:
        return None
    if row.objective is None:
        return end_s
    try:
        points = json.loads((store.cell(row.cell.key) / TRAJECTORY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        points = []
    found = [
        (float(p["t_s"]), float(p["objective"]))
        for p in points
        if p["objective"] is not None and p.get("level", 0) == 0
    ]
    return primal_integral(found, best.first, end_s)
