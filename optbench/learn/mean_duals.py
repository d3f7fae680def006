"""What devices were worth in hindsight, on the average of some days, as a table of fees for planned starts: no network.

    fee[p, s] = unit · mean over days of π[p, s] / unit        π: duals of the slotted programme, as in ``site_evolution``

The price of waiting is the best of the grid that the imitation has, on the first two days. It is what a network of prices has
to beat: the same planner, the same hindsight, and nothing that is learned of tariffs or sites.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.learn.site_evolution import LATER_AND_ROOM, WAITING, Day
from optbench.learn.site_prices import planned
from optbench.model.instance import Floats
from optbench.sim.kernel.site_plans import Plans
from optbench.sim.plans import Board


@dataclass(frozen=True, eq=False)
class DualTable:
    """``duals[pool, slot]`` in units of fees; ``extra`` as in ``site_prices``: waiting, working on, room."""

    problem: str
    pools: tuple[str, ...]
    duals: Floats
    extra: Floats

    def fits(self, board: Board) -> bool:
        return self.pools == board.instance.pools.names and self.duals.shape[1] == board.slots

    def plans(self, board: Board, unit: float) -> Plans:
        return planned(board, unit * self.duals, unit, self.extra)


def fitted(problem: str, days: Sequence[Day], slot_s: float) -> DualTable:
    """The mean of these days, at the price of waiting that is best on the first two of them."""
    duals = np.mean([day.worth(slot_s) for day in days], axis=0)
    pools = tuple(days[0].instance.pools.names)
    tables = [DualTable(problem, pools, duals, np.array([w, *LATER_AND_ROOM])) for w in WAITING]
    few = days[:2]
    return min(
        tables, key=lambda table: sum(day.loss_of(table.plans(day.board, day.unit)) for day in few)
    )


def write_tables(path: Path, tables: Sequence[DualTable], about: Mapping[str, Any]) -> None:
    """Tables as JSON, after where they come from."""
    rows = [
        {
            "problem": table.problem, "pools": list(table.pools), "extra": table.extra.tolist(),
            "duals": [[round(float(each), 5) for each in row] for row in table.duals],
        }
        for table in tables
    ]  # fmt: skip
    path.write_text(json.dumps({**about, "tables": rows}) + "\n", encoding="utf-8")


def read_tables(path: Path) -> list[DualTable]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["tables"]
        return [
            DualTable(
                row["problem"],
                tuple(row["pools"]),
                np.array(row["duals"], dtype=float),
                np.array(row["extra"], dtype=float),
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileFormatError(
            f"{path}: no tables of mean duals ({error}); benchmarks/geo_room.py --tables writes them"
        ) from None
