"""Rows of a study: each cell's record beside the bounds that all solvers of its instance share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optbench.bench.judge import failed
from optbench.bench.records import Reason, Record
from optbench.bench.study.cells import Cell
from optbench.bench.study.planning import Plan
from optbench.model.instance import TOLERANCE
from optbench.model.measures import gap

# What a cell without a gap counts as in every mean of gaps.
MISSING_GAP = 1.0


@dataclass(frozen=True)
class Row:
    """A cell of a study as it counts: with the best bound of its own and of its instance; None where it has not run."""

    cell: Cell
    record: Record | None

    @property
    def counted_gap(self) -> float:
        """The largest gap of any level; 1 when there is none."""
        value = None if self.record is None or self.record.failed else self.record.gap
        if value is None:
            return MISSING_GAP
        return max(value) if isinstance(value, tuple) else value


def rows(plan: Plan, records: Mapping[str, Record]) -> list[Row]:
    """The study's solves, bounded and checked against each other: a bound above any verified objective is false."""
    shared = {key: records[cell.key] for key, cell in plan.bounding.items() if cell.key in records}
    best = _best_objectives(plan, records)
    out = []
    for cell in plan.solving:
        record = records.get(cell.key)
        if record is not None:
            record = _checked(_bounded(record, shared.get(cell.instance_hash)), best.get(cell.instance_hash))
        out.append(Row(cell, record))
    return out


def _best_objectives(plan: Plan, records: Mapping[str, Record]) -> dict[str, tuple[float, str]]:
    """By instance, the best verified objective of a single level, and whose it is."""
    best: dict[str, tuple[float, str]] = {}
    for cell in plan.solving:
        record = records.get(cell.key)
        value = None if record is None or record.failed else record.objective
        if isinstance(value, float) and (cell.instance_hash not in best or value < best[cell.instance_hash][0]):
            best[cell.instance_hash] = (value, cell.label)
    return best


def _bounded(record: Record, shared: Record | None) -> Record:
    """With the better of the cell's own bound and the shared one."""
    if shared is None or not isinstance(shared.bound, float) or isinstance(record.bound, tuple):
        return record
    bounds = tuple(sorted([*record.bounds, *shared.bounds], key=lambda each: -each["value"]))
    low = max(shared.bound, record.bound if record.bound is not None else shared.bound)
    value = record.objective if isinstance(record.objective, float) else None
    return replace(record, bound=low, bounds=bounds, gap=gap(value, low))


def _checked(record: Record, best: tuple[float, str] | None) -> Record:
    if best is None or record.failed or not isinstance(record.bound, float):
        return record
    value, label = best
    if record.bound > value + TOLERANCE * max(1.0, abs(value)):
        words = f"its bound {record.bound!r} exceeds the objective {value!r} that {label} reached and the verifier confirmed"
        return failed(record, Reason("false_bound", words))
    return record
