"""The best known objective of each instance, verified in the study or published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optbench.data.registry import bounds_table, data_sets
from optbench.model.measures import Value, contradicts, gap
from optbench.model.result import OPTIMAL_GAP
from optbench.shapes.protocol.shape import Sense
from optbench.store.records import Record
from optbench.study.cells import Cell

PUBLISHED = "published"
TABLE = "bounds.json"


@dataclass(frozen=True)
class BestKnown:
    """``by`` is a solver's label or ``published``; ``low`` is the best bound for all solvers, an
    upper one where the objective is maximised.
    """

    value: Value
    by: str
    low: float | None = None
    sense: Sense = "min"

    @property
    def first(self) -> float:
        """The value of the first level."""
        return levels_of(self.value)[0]

    @property
    def proven(self) -> bool:
        """Whether no decision is better on the first level."""
        reached = gap(self.first, self.low)
        if reached is None or self.low is None:
            return False
        sign = sign_of(self.sense)
        return reached <= OPTIMAL_GAP or sign * self.first <= sign * self.low


def sign_of(sense: str) -> int:
    """Return the factor that turns an objective into one that is minimised."""
    return 1 if sense == "min" else -1


def costs_of_levels(value: Value, sense: str = "min") -> tuple[float, ...]:
    """Return a value as one number per level, the less the better."""
    return tuple(sign_of(sense) * each for each in levels_of(value))


def levels_of(value: Value) -> tuple[float, ...]:
    """Return a value as one number per level."""
    return value if isinstance(value, tuple) else (value,)


def exceeds(bound: float, objective: float, sense: str = "min") -> bool:
    """Whether a bound contradicts an objective that was reached."""
    return contradicts(objective, bound, sense)


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
    senses: Mapping[str, Sense] | None = None,
) -> dict[str, BestKnown]:
    """Return the lexicographic minimum by instance, the maximum where ``senses`` says so; single
    published values count too.
    """
    out = {}
    for instance in dict.fromkeys([*reached, *public]):
        sense = (senses or {}).get(instance, "min")
        found = min(
            reached.get(instance, ()),
            key=lambda each: costs_of_levels(each[0], sense),
            default=None,
        )
        upper = public[instance][1] if instance in public else None
        if upper is not None and (
            found is None or (not isinstance(found[0], tuple) and upper < found[0])
        ):
            found = (upper, PUBLISHED)
        if found is not None:
            out[instance] = BestKnown(*found, lows.get(instance), sense)
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
