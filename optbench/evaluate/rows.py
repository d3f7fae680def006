"""Rows of a study: each cell's record with its gaps, checked against those of its instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from optbench.evaluate.counting_bounds import (
    counts_for_all,
    largest_gap_over_levels,
    shared_bounds,
)
from optbench.model.measures import Value
from optbench.model.result import OPTIMAL_GAP
from optbench.run.best_known import (
    BestKnown,
    best_known,
    costs_of_levels,
    exceeds,
    levels_of,
    published,
    sign_of,
    verified_objectives_by_instance,
)
from optbench.run.judge import as_failed
from optbench.store.records import Reason, Record
from optbench.study.cells import Cell
from optbench.study.declared import BEST
from optbench.study.planning import Plan

# The gap with which a cell without a gap counts in every mean.
MISSING_GAP = 1.0
# The state of a cell that has not been run.
NOT_RUN = "not run"
Reached = Mapping[str, list[tuple[Value, str]]]


@dataclass(frozen=True)
class Row:
    """A cell of a study with what it counts for; ``record`` is None if it has not been run.

    ``gap`` is between the objective and the best bound of this run, from any source, and does not
    depend on other runs. ``study_gap`` is to the better of the run's own bounds and ``low``, the
    best bound of the instance that is certified or from a trusted solver; ``shared_gap`` uses
    ``low`` only. ``rpd`` is (objective − best known) / best known, ``regret`` the same against the
    study's reference; of lexicographic objectives, both are of the first level. Both are None where
    they do not apply: ``no_excess`` says why.
    """

    cell: Cell
    record: Record | None
    study_gap: float | None = None
    shared_gap: float | None = None
    low: float | None = None
    rpd: float | None = None
    regret: float | None = None

    @property
    def failed(self) -> bool:
        return self.record is not None and self.record.failed

    @property
    def objective(self) -> Value | None:
        """The verified objective; None where there is no verified schedule."""
        return None if self.record is None or self.record.failed else self.record.objective

    @property
    def gap(self) -> float | None:
        """The largest gap of any level, to this run's own bounds."""
        value = None if self.record is None or self.record.failed else self.record.gap
        return None if value is None else max(levels_of(value))

    @property
    def last_gap(self) -> float | None:
        """The gap of the last level, to this run's own bounds: those with the levels before it held
        at what the decision reached.
        """
        value = None if self.record is None or self.record.failed else self.record.gap
        return None if value is None else levels_of(value)[-1]

    @property
    def counted_last_gap(self) -> float:
        """The gap of the last level, at most 1; 1 where there is none."""
        return _counted(self.last_gap)

    @property
    def counted_gap(self) -> float:
        """The gap, at most 1; 1 where there is none."""
        return _counted(self.gap)

    @property
    def counted_study_gap(self) -> float:
        """The study gap, at most 1; 1 where there is none."""
        return _counted(self.study_gap)

    @property
    def no_excess(self) -> str | None:
        """Why a relative excess (rpd, regret) does not apply to this cell."""
        if self.objective is None:
            return None
        if self.cell.sense == "max":
            return "its objective is maximised"
        return "the best known objective is not positive" if self.rpd is None else None

    @property
    def proved(self) -> bool:
        """Whether the run proved its objective optimal by its own bound."""
        return self.gap is not None and self.gap <= OPTIMAL_GAP

    @property
    def optimal(self) -> bool:
        """Whether a certified bound, a trusted one or the run's own proves the objective."""
        return self.study_gap is not None and self.study_gap <= OPTIMAL_GAP

    @property
    def proven(self) -> bool:
        """Whether the objective is optimal by a certified or trusted bound."""
        return self.shared_gap is not None and self.shared_gap <= OPTIMAL_GAP

    @property
    def state(self) -> str:
        """The result in a word: a status, the reason of a failure, or ``not run``."""
        if self.record is None:
            return NOT_RUN
        if self.record.reason is not None:
            return self.record.reason.kind
        if self.objective is not None:
            return "optimal" if self.optimal else "feasible"
        return self.record.status


def _counted(gap: float | None) -> float:
    """Limit a gap to 1, which a gap of signs that differ is."""
    return MISSING_GAP if gap is None else min(gap, MISSING_GAP)


@dataclass(frozen=True)
class Contradiction:
    """Two records of one instance, or a record and a published figure, that cannot both be right.

    ``guilty`` is the cell that does not count because of it; None where a published figure
    disagrees, which proves nothing.
    """

    instance: str
    guilty: Cell | None
    words: str


@dataclass(frozen=True)
class Table:
    """A study's solves in order, the best known objective by instance hash, contradictions."""

    plan: Plan
    rows: tuple[Row, ...]
    best: Mapping[str, BestKnown]
    contradictions: tuple[Contradiction, ...]

    @cached_property
    def proven(self) -> frozenset[str]:
        """Hashes of the instances whose best known objective is optimal on every level."""
        closed = {row.cell.instance_hash for row in self.rows if row.proven}
        single = {
            instance
            for instance, known in self.best.items()
            if known.proven and not isinstance(known.value, tuple)
        }
        return frozenset(closed | single)

    @property
    def labels(self) -> tuple[str, ...]:
        """Solvers, in the order of the study."""
        return tuple(dict.fromkeys(row.cell.label for row in self.rows))

    @property
    def ran(self) -> int:
        return sum(row.record is not None for row in self.rows)

    def of(self, label: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.cell.label == label)


def table(plan: Plan, records: Mapping[str, Record]) -> Table:
    """Join a plan with its records; a refuted bound or proof fails as ``false_bound``."""
    solving = plan.solving
    senses = {cell.instance_hash: cell.sense for cell in solving}
    reached = verified_objectives_by_instance(solving, records)
    witnesses = {
        instance: _strongest(values, senses[instance]) for instance, values in reached.items()
    }
    found: list[Contradiction] = []
    shared = list(_shared(plan, records, witnesses, found))
    joined: list[tuple[Cell, Record | None]] = []
    for cell in solving:
        record = records.get(cell.key)
        if record is not None and not record.failed:
            refuted = _refuted(cell, record, witnesses.get(cell.instance_hash, []))
            if refuted is not None:
                found.append(Contradiction(cell.instance, cell, refuted))
                record = as_failed(record, Reason("false_bound", refuted))
        joined.append((cell, record))
    public = _public(solving)
    lows = shared_bounds([*shared, *joined], plan.study.trust)
    best = best_known(reached, lows, public, senses)
    found += _against_published(solving, reached, lows, public)
    return Table(plan, tuple(_rows(plan, joined, best, lows)), best, tuple(found))


def _shared(
    plan: Plan, records: Mapping[str, Record], reached: Reached, found: list[Contradiction]
) -> Iterator[tuple[Cell, Record]]:
    """Yield the bounding of each instance, unless a bound of it exceeds a reached objective."""
    for instance, cell in plan.bounding.items():
        record = records.get(cell.key)
        if record is not None and not record.failed:
            refuted = _refuted(cell, record, reached.get(instance, []))
            if refuted is None:
                yield cell, record
            else:
                found.append(Contradiction(cell.instance, cell, refuted))


def _strongest(reached: list[tuple[Value, str]], sense: str) -> list[tuple[Value, str]]:
    """Return the reached objectives that refute all that any refutes: one of each value."""
    if not any(isinstance(value, tuple) for value, _ in reached):
        return [min(reached, key=lambda each: costs_of_levels(each[0], sense))]
    return list({value: (value, label) for value, label in reversed(reached)}.values())


def _refuted(cell: Cell, record: Record, reached: list[tuple[Value, str]]) -> str | None:
    """Return in words the verified schedule that a proof of this record contradicts, if any.

    The bound of a later level holds with the levels before it at this record's own objectives; it
    does not hold for schedules that are worse there.
    """
    if not reached:
        return None
    if record.status == "infeasible":
        value, label = reached[0]
        decision = "schedule" if cell.shape is None else "decision"
        there = f"{label} has a {decision} of {value!r} that the verifier confirmed"
        return f"{cell.instance}: {cell.label} says that it is infeasible, but {there}"
    own = () if record.objective is None else levels_of(record.objective)
    for level, (bound, source) in _best_bounds(record, cell.sense).items():
        for value, label in reached:
            values = levels_of(value)
            worse = any(there > here for there, here in zip(values[:level], own[:level]))
            if level >= len(values) or worse:
                continue
            if (level == 0 or own) and exceeds(bound, values[level], cell.sense):
                of = f" of level {level + 1}" if len(values) > 1 else ""
                who = f"{cell.instance}: {cell.label}'s bound {bound!r}{of} ({source})"
                there = f"{values[level]!r} that {label} reached and the verifier confirmed"
                does = "exceeds" if cell.sense == "min" else "is below"
                return f"{who} {does} the objective {there}"
    return None


def _best_bounds(record: Record, sense: str) -> dict[int, tuple[float, str]]:
    """Return, by level, the record's best bound and its source."""
    sign = sign_of(sense)
    best: dict[int, tuple[float, str]] = {}
    for entry in record.bounds:
        level = int(entry.get("level", 0))
        if level not in best or sign * entry["value"] > sign * best[level][0]:
            best[level] = (entry["value"], str(entry["source"]))
    return best


def _public(cells: tuple[Cell, ...]) -> dict[str, tuple[float, float]]:
    """Return the published lower and upper bound by instance."""
    target_of = {cell.instance_hash: cell.target for cell in cells}
    known = published(target_of.values())
    return {instance: known[target] for instance, target in target_of.items() if target in known}


def _against_published(
    cells: tuple[Cell, ...],
    reached: Reached,
    lows: Mapping[str, float],
    public: Mapping[str, tuple[float, float]],
) -> Iterator[Contradiction]:
    names = {cell.instance_hash: cell.instance for cell in cells}
    for instance, (low, upper) in public.items():
        name = names[instance]
        for value, label in reached.get(instance, []):
            if exceeds(low, levels_of(value)[0]):
                words = f"reached {value!r}, below the published lower bound {low!r}"
                yield Contradiction(name, None, f"{name}: {label} {words}")
        if instance in lows and exceeds(lows[instance], upper):
            words = f"{lows[instance]!r} is above the published upper bound {upper!r}"
            yield Contradiction(name, None, f"{name}: the bound {words}")


def _rows(
    plan: Plan,
    joined: list[tuple[Cell, Record | None]],
    best: Mapping[str, BestKnown],
    lows: Mapping[str, float],
) -> Iterator[Row]:
    """Yield rows with their gaps and distances from the best known and the reference."""
    label, trust = plan.study.reference, plan.study.trust
    reference = {
        (cell.instance_hash, cell.seed): _first_objective(record)
        for cell, record in joined
        if cell.label == label and _first_objective(record) is not None
    }
    for cell, record in joined:
        instance, value = cell.instance_hash, _first_objective(record)
        known = best[instance].first if instance in best else None
        other = known if label == BEST else reference.get((instance, cell.seed))
        low = lows.get(instance)
        gaps: tuple[float | None, float | None] = (None, None)
        if record is not None and not record.failed:
            certain = [row for row in record.bounds if counts_for_all(cell, record, row, trust)]
            gaps = (
                largest_gap_over_levels(record.objective, low, record.bounds, cell.sense),
                largest_gap_over_levels(record.objective, low, certain, cell.sense),
            )
        rpd, regret = (relative_excess(value, each, cell) for each in (known, other))
        yield Row(cell, record, *gaps, low, rpd, regret)


def _first_objective(record: Record | None) -> float | None:
    if record is None or record.failed or record.objective is None:
        return None
    return levels_of(record.objective)[0]


def relative_excess(value: float | None, reference: float | None, cell: Cell) -> float | None:
    """Return (value − reference) / |reference|; 0 for 0 over 0, None where it does not apply."""
    if value is None or reference is None or cell.sense == "max":
        return None
    if reference == 0 or (reference < 0 and cell.shape is not None):
        return 0.0 if value == reference == 0 else None
    return (value - reference) / abs(reference)
