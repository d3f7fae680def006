"""The score by which a study ranks its solvers if its file names one; lower is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.rows import Row, Table
from optbench.evaluate.summaries import Summary, summaries
from optbench.study.expectations import scope
from optbench.study.formula_binding import cell_number
from optbench.study.formula_names import LAST_LEVEL

# Descriptions of formulas that are a single name.
WORDS = {
    "gap_frontier": "distance from the certified front at its own units and its own mean time",
    "gap_own": "distance from the certified least J per unit at its own units",
    "gap_offered": "distance from the certified least J per unit at all units offered",
    "gap": "gap to its own bound",
    LAST_LEVEL: "gap of the last level, with the levels before it held at what the run reached",
    "study_gap": "gap to the best bound of the study",
    "rpd": "excess over the best known",
    "regret": "excess over the reference",
}  # fmt: skip


@dataclass(frozen=True)
class Score:
    """``source`` is the formula, ``values`` its value by the key of each cell that has one."""

    source: str
    values: Mapping[str, float]

    @property
    def words(self) -> str:
        return WORDS.get(self.source, self.source)

    @property
    def is_share(self) -> bool:
        """Whether it is shown in percent."""
        return self.source in WORDS

    @property
    def is_last_gap(self) -> bool:
        """Whether it is the gap of the last level, which then stands for the gap of a cell."""
        return self.source == LAST_LEVEL

    def of(self, row: Row) -> float | None:
        return self.values.get(row.cell.key)


def score_of(table: Table) -> Score | None:
    """Return the score of a study's cells; None where the study ranks by gaps."""
    study = table.plan.study
    if not study.rank:
        return None
    columns, values = CellColumns(table.rows), {}
    for label in columns.labels:
        node = cell_number(study.rank, scope(study, label))
        for row, value in zip(
            columns.rows(label), columns.vector(label, node).tolist(), strict=True
        ):
            if row is not None and not isnan(value):
                values[row.cell.key] = value
    return Score(study.rank, values)


def ranked(table: Table) -> list[Summary]:
    """Return the solvers of a study, best first, by the study's ranking."""
    score = score_of(table)
    return summaries(table, None if score is None else score.of)
