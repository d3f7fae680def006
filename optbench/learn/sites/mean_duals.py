"""The mean worth of devices in hindsight over some days, as a table of fees for planned starts,
without a network.

    fee[p, s] = unit · mean over days of π[p, s] / unit

with π the duals of the slotted LP, as in ``price_evolution``.

The prices of waiting and of working on and the room are the best of a small grid on validation
days, as for the network. Such a table, and the same planner with free devices, are the baselines
for a network of prices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.learn.sites.price_evolution import LATER_AND_ROOM, TrainingDay
from optbench.learn.sites.prices import plans_at_fees
from optbench.model.instance import Floats
from optbench.sim.kernel.sites.plans import Plans
from optbench.sim.sites.plans import BookingTable

# Logarithms of the price of waiting that are tried.
WAITING = (-6.0, -5.0, -4.5, -4.0, -3.5, -3.0, -2.5, -2.0)


@dataclass(frozen=True, eq=False)
class DualTable:
    """``duals[pool, slot]`` in units of fees; ``extra`` as in ``site_prices``: waiting, working on,
    room.

    ``name`` is "table", or "none" where all duals are zero.
    """

    name: str
    problem: str
    pools: tuple[str, ...]
    duals: Floats
    extra: Floats

    def fits(self, board: BookingTable) -> bool:
        return self.pools == board.instance.pools.names and self.duals.shape[1] == board.slots

    def plans(self, board: BookingTable, unit: float) -> Plans:
        return plans_at_fees(board, unit * self.duals, unit, self.extra)


def mean_device_worth(problem: str, days: Sequence[TrainingDay], slot_s: float) -> Floats:
    """Return the mean worth of devices over these days, by pool and slot."""
    return np.asarray(np.mean([day.worth(slot_s) for day in days], axis=0), dtype=float)


def with_best_extra(table: DualTable, others: Floats, days: Sequence[TrainingDay]) -> DualTable:
    """Return the table with the extra numbers of least loss on these days; ``others`` are the
    network's values for the last two.
    """
    pairs = (LATER_AND_ROOM, tuple(others.tolist()))
    tables = [replace(table, extra=np.array([w, *pair])) for pair in pairs for w in WAITING]
    return min(
        tables, key=lambda each: sum(day.loss_of(each.plans(day.board, day.unit)) for day in days)
    )


def write_tables(path: Path, tables: Sequence[DualTable], about: Mapping[str, Any]) -> None:
    """Write tables as JSON, preceded by their provenance."""
    rows = [
        {
            "name": table.name,
            "problem": table.problem,
            "pools": list(table.pools),
            "extra": table.extra.tolist(),
            "duals": [[round(float(each), 5) for each in row] for row in table.duals],
        }
        for table in tables
    ]
    path.write_text(json.dumps({**about, "tables": rows}) + "\n", encoding="utf-8")


def read_tables(path: Path) -> list[DualTable]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["tables"]
        return [
            DualTable(
                row["name"],
                row["problem"],
                tuple(row["pools"]),
                np.array(row["duals"], dtype=float),
                np.array(row["extra"], dtype=float),
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileFormatError(
            f"{path}: not a file of mean duals ({error}); benchmarks/geo_room.py --tables writes "
            "them"
        ) from None
