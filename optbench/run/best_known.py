"""The best known objective of each instance, verified in the study or published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optbench.data.registry import bounds_table, data_sets
from optbench.model.measures import Value, contradicts, gap
from optbench.model.result import OPTIMAL_GAP
from optbench.store.records import Record
from optbench.study.cells import Cell

PUBLISHED = "published"
TABLE = "bounds.json"


@dataclass(frozen=True)
class BestKnown:
    """``by`` is a solver's label or ``published``; ``low`` is the best bound for all solvers."""

    value: Value
    by: str
    low: float | None = None

    @property
    def first(self) -> float:
        """The value of the first level."""
        return levels_of(self.value)[0]

    @property
    def proven(self) -> bool:
        """Whether no schedule is better on the first level."""
        reached = gap(self.first, self.low)
        return reached is not None and (
            reached <= OPTIMAL_GAP or (self.low is not None and self.first <= self.low)
        )


def levels_of(value: Value) -> tuple[float, ...]:
    """Return a value as one number per level."""
    return value if isinstance(value, tuple) else (value,)


def exceeds(bound: float, objective: float) -> bool:
    """Whether a bound contradicts an objective that was reached."""
    return contradicts(objective, bound)


def published(targets: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return lower and upper bounds of the targets that are public instances."""
    tables: dict[str, Mapping[str, tuple[int, int]]] = {}
    out: dict[str, tuple[float, float]] = {}
    for target in dict.fromkeys(targets):
        folder, slash, rest = target.partition("/")
        if not slash or folder not in data_sets():
            continue
        if folder not in tables:
            files = [file for file in data_sets()[folder].files if file.path == f"{folder}/{TABLE}"]
            tables[folder] = bounds_table(files[0]) if files else {}
        row = tables[folder].get(rest.split("/")[-1].rsplit(".", 1)[0])
        if row is not None:
            out[target] = (float(row[0]), float(row[1]))
    return out


def best_known(
    reached: Mapping[str, Sequence[tuple[Value, str]]],
    lows: Mapping[str, float],
    public: Mapping[str, tuple[float, float]],
) -> dict[str, BestKnown]:
    """Return the lexicographic minimum by instance; single published values count too."""
    out = {}
    for instance in dict.fromkeys([*reached, *public]):
        found = min(reached.get(instance, ()), key=lambda each: levels_of(each[0]), default=None)
        upper = public[instance][1] if instance in public else None
        if upper is not None and (
            found is None or (not isinstance(found[0], tuple) and upper < found[0])
        ):
            found = (upper, PUBLISHED)
        if found is not None:
            out[instance] = BestKnown(*found, lows.get(instance))
    return out


def verified_objectives_by_instance(
    cells: Iterable[Cell], records: Mapping[str, Record]
) -> dict[str, list[tuple[Value, str]]]:
    """Return, by instance hash, the verified objective of every cell that did not fail, with the
    label of its solver.
    """
    out: dict[str, list[tuple[Value, str]]] = {}
    for cell in cells:
        record = records.get(cell.key)
        if record is not None and not record.failed and record.objective is not None:
            out.setdefault(cell.instance_hash, []).append((record.objective, cell.label))
    return out
