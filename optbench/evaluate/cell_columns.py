"""Cells as columns: one number per cell of a solver, NaN where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optbench.evaluate.rows import Row
from optbench.store.records import Record
from optbench.study.formula_names import CONDITIONS, LAST_LEVEL, MEASURED
from optbench.study.formula_syntax import Binary, Call, Name, Node, Number, Unary, names_in
from optbench.units import EQUAL

Floats = NDArray[np.float64]
OF_PROCESS = ("total_s", "cpu_s", "peak_memory_mb")
OF_SOLVE = ("wall_s", "time_to_first_s")


@dataclass(frozen=True)
class Unit:
    """The key by which cells of different solvers are compared."""

    target: str
    instance: str
    instance_hash: str
    seed: int
    repetition: int


class CellColumns:
    """The rows of a study by solver; ``blocked`` is a reason why nothing can be evaluated."""

    def __init__(self, rows: Sequence[Row], blocked: str | None = None) -> None:
        self.blocked = blocked
        found: dict[tuple[str, int, int], Unit] = {}
        for row in rows:
            cell = row.cell
            place = (cell.instance_hash, cell.instance_seed, cell.repetition)
            found.setdefault(
                place,
                Unit(
                    cell.target,
                    cell.instance,
                    cell.instance_hash,
                    cell.instance_seed,
                    cell.repetition,
                ),
            )
        self.units = tuple(found.values())
        index = {place: k for k, place in enumerate(found)}
        self._rows: dict[str, list[Row | None]] = {}
        for row in rows:
            cell = row.cell
            column = self._rows.setdefault(cell.label, [None] * len(self.units))
            column[index[cell.instance_hash, cell.instance_seed, cell.repetition]] = row

    @cached_property
    def senses(self) -> frozenset[str]:
        """The senses of the objectives."""
        return frozenset(
            row.cell.sense for rows in self._rows.values() for row in rows if row is not None
        )

    @cached_property
    def signed(self) -> bool:
        """Whether objectives and metrics may be negative: those of schedules are not."""
        return any(
            row is not None and row.cell.shape is not None
            for rows in self._rows.values()
            for row in rows
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._rows)

    def rows(self, label: str) -> Sequence[Row | None]:
        """Return the rows of a solver, one per unit; None where the study has no such cell."""
        return self._rows.get(label, [None] * len(self.units))

    def cells(self, label: str) -> list[Row]:
        """Return the rows of a solver that the study has."""
        return [row for row in self.rows(label) if row is not None]

    @cached_property
    def bounds(self) -> Mapping[str, float]:
        """The best certified or trusted bound of each instance with one level."""
        every = [row for rows in self._rows.values() for row in rows if row is not None]
        several = {row.cell.instance_hash for row in every if isinstance(row.objective, tuple)}
        return {
            row.cell.instance_hash: row.low
            for row in every
            if row.low is not None and row.cell.instance_hash not in several
        }

    def measure(self, row: Row | None, name: str) -> float:
        """Return one measure of one cell; NaN where the cell has none."""
        value = None if row is None or row.record is None else self._value(row, row.record, name)
        return float("nan") if value is None or not np.isfinite(value) else float(value)

    def _value(self, row: Row, record: Record, name: str) -> float | None:
        if name in CONDITIONS:
            return float(row.objective is not None if name == "solved" else getattr(row, name))
        if name in ("gap", "study_gap"):
            return row.counted_gap if name == "gap" else row.counted_study_gap
        if name == LAST_LEVEL:
            return row.counted_last_gap
        if name == "bound":
            return self.bounds.get(row.cell.instance_hash)
        if name == "objective":
            return row.objective if isinstance(row.objective, (int, float)) else None
        if name in ("rpd", "regret"):
            return row.rpd if name == "rpd" else row.regret
        if name.startswith(MEASURED):
            return _mean_reading(record, name) if row.objective is not None else None
        if name in OF_PROCESS or (name in OF_SOLVE and not row.failed):
            value: float | None = getattr(record, name)
            return value
        return (
            record.metrics.get(name) if row.objective is not None and name not in OF_SOLVE else None
        )

    def vector(self, label: str, node: Node) -> Floats:
        """Evaluate an expression for each cell; conditions give 1 for true and 0 for false."""
        if isinstance(node, Number):
            return np.full(len(self.units), node.value)
        if isinstance(node, Name):
            return np.array([self.measure(row, node.text) for row in self.rows(label)], dtype=float)
        if isinstance(node, Call):
            return np.abs(self.vector(label, node.args[0]))
        if isinstance(node, Unary):
            inner = self.vector(label, node.operand)
            return -inner if node.op == "-" else 1.0 - inner
        assert isinstance(node, Binary)
        return combine(node.op, self.vector(label, node.left), self.vector(label, node.right))

    def missing(self, label: str, unit: int, node: Node) -> str:
        """Explain why an expression has no value for a cell."""
        row = self.rows(label)[unit]
        if row is None:
            return "is no cell of the study"
        if row.record is None:
            return "has not been run"
        if row.failed and row.record.reason is not None:
            return f"failed: {row.record.reason.kind}"
        name = next((each for each in names_in(node) if np.isnan(self.measure(row, each))), None)
        if name is None:
            return "divides by zero"
        if isinstance(row.objective, tuple) and name in ("objective", "bound"):
            return (
                f"has an objective of {len(row.objective)} levels: name metrics instead of {name}"
            )
        if row.objective is None:
            decision = "schedule" if row.cell.shape is None else "decision"
            return f"has no {decision} ({row.state}, {row.record.termination})"
        if name in ("rpd", "regret") and row.no_excess is not None:
            return f"has no {name}: {row.no_excess}"
        if name.startswith(MEASURED):
            words = "set `measure = 5` in the study to take five readings"
            return f"has no {name}: {row.record.measured.get('reason', words)}"
        known = ", ".join(sorted(row.record.metrics))
        return (
            f"has no {name}; its metrics are {known}"
            if name not in ("bound", "rpd", "regret")
            else f"has no {name}"
        )


def _mean_reading(record: Record, name: str) -> float | None:
    """The mean of the readings of a measured metric."""
    row = record.measured.get("metrics", {}).get(name.removeprefix(MEASURED))
    return None if row is None else float(row["mean"])


def combine(op: str, left: Floats, right: Floats) -> Floats:
    """Combine two columns; what is unknown stays so unless the other side decides and / or."""
    unknown = np.isnan(left) | np.isnan(right)
    with np.errstate(all="ignore"):
        if op in ("and", "or"):
            decided = 0.0 if op == "and" else 1.0
            merged = np.fmin(left, right) if op == "and" else np.fmax(left, right)
            return np.where(
                (left == decided) | (right == decided), decided, np.where(unknown, np.nan, merged)
            )
        if op in "+-*/":
            value = arithmetic(op, left, right)
            return np.where(np.isfinite(value), value, np.nan)
        return np.where(unknown, np.nan, compare(op, left, right).astype(float))


def arithmetic(op: str, left: Floats, right: Floats) -> Floats:
    """Compute with two columns; a division by zero gives an infinity or NaN."""
    with np.errstate(all="ignore"):
        return np.asarray(
            {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op](left, right),
            dtype=float,
        )


def compare(op: str, left: Floats, right: Floats) -> NDArray[np.bool_]:
    """Compare two columns; numbers that differ by rounding only are equal."""
    with np.errstate(invalid="ignore"):
        equal = np.abs(left - right) <= EQUAL * np.maximum(np.abs(left), np.abs(right))
        less = (left < right) & ~equal
        greater = (left > right) & ~equal
    found = {
        "<": less,
        "<=": less | equal,
        ">": greater,
        ">=": greater | equal,
        "==": equal,
        "!=": less | greater,
    }
    return np.asarray(found[op], dtype=bool)
