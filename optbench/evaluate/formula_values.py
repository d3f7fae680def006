"""Evaluate formulas over the columns of a study, with unknown values and bootstrap intervals.

Everything is computed over samples of the units (rows of indices with weights): the study itself is
one sample, the bootstrap draws thousands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optbench.evaluate.cell_columns import CellColumns, Floats, arithmetic, compare
from optbench.evaluate.stats import bootstrap_interval, mean
from optbench.study import formula_syntax as syntax
from optbench.study.formula_binding import Formula
from optbench.study.formula_syntax import Aggregate, Binary, Call, Leaf, Node, Number, Unary

Indices = NDArray[np.int64]
# Resampling gives no interval for extremes: those of a resample lie inside those of the sample.
NOT_RESAMPLED = ("max", "min")


class UnknownValueError(Exception):
    """A value is unknown; the message is the reason."""


@dataclass(frozen=True)
class Part:
    """The value of a part of a formula; None where it is unknown."""

    text: str
    value: float | None


@dataclass(frozen=True)
class Evaluation:
    """``value`` is None where unknown, for the reasons ``why``; ``parts`` are read from cells."""

    value: float | bool | None
    why: tuple[str, ...]
    parts: tuple[Part, ...]


def evaluate(formula: Formula, columns: CellColumns) -> Evaluation:
    """Evaluate a formula over the study."""
    sample = Sample.whole(columns)
    parts, why = [], []
    for leaf in dict.fromkeys(formula.leaves):
        try:
            parts.append(Part(leaf.text, float(sample.leaf(leaf)[0])))
        except UnknownValueError as error:
            parts.append(Part(leaf.text, None))
            why.append(str(error))
    value: float | bool | None
    if formula.condition:
        unknown: list[tuple[Node, str]] = []
        value = holds(formula.term, sample, unknown)
        why = why or [f"{formula.source[term.at : term.end]}: {words}" for term, words in unknown]
    else:
        try:
            value = float(sample.number(formula.term)[0])
        except UnknownValueError as error:
            value, why = None, why or [str(error)]
    return Evaluation(value, tuple(dict.fromkeys(why)) if value is None else (), tuple(parts))


def interval(formula: Formula, columns: CellColumns) -> tuple[float, float] | None:
    """Return the 95 % interval of a number, or None.

    Instances are resampled within each target, jointly for all solvers; of a single instance, seeds
    are. None where fewer than two were run, where a value is unknown, and for extremes.
    """
    if formula.condition or any(leaf.function in NOT_RESAMPLED for leaf in formula.leaves):
        return None
    members, strata = _clusters(columns)
    if members is None or len(members) < 2 or evaluate(formula, columns).value is None:
        return None
    known = members
    vectors: dict[tuple[str, Node], Floats] = {}

    def statistic(drawn: Floats, weights: Floats) -> Floats:
        picks = known[drawn.astype(np.int64)].reshape(len(drawn), -1)
        sample = Sample(columns, picks, np.repeat(weights, known.shape[1]), vectors)
        return sample.number(formula.term)

    with np.errstate(invalid="ignore"):  # a resample may divide by zero; then there is no interval
        low, high = bootstrap_interval(np.arange(len(members), dtype=float), strata, statistic)
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None


def holds(term: Node, sample: Sample, unknown: list[tuple[Node, str]] | None = None) -> bool | None:
    """Evaluate a condition; None where it depends on an unknown value.

    ``unknown`` receives the comparisons that cannot be evaluated, with the reason.
    """
    if isinstance(term, Unary):
        inner = holds(term.operand, sample, unknown)
        return None if inner is None else not inner
    assert isinstance(term, Binary)
    if term.op in ("and", "or"):
        found = (holds(term.left, sample, unknown), holds(term.right, sample, unknown))
        decisive = term.op == "or"
        if decisive in found:
            return decisive
        return None if None in found else not decisive
    try:
        return bool(compare(term.op, sample.number(term.left), sample.number(term.right))[0])
    except UnknownValueError as error:
        if unknown is not None:
            unknown.append((term, str(error)))
        return None


def _clusters(columns: CellColumns) -> tuple[Indices | None, list[str]]:
    """Return the groups of units that are resampled together, with their targets.

    A group are the seeds and repetitions of an instance; of a single instance, the repetitions of a
    seed. None where groups differ in size.
    """
    alone = len({unit.instance_hash for unit in columns.units}) == 1
    groups: dict[tuple[str, int], list[int]] = {}
    for k, unit in enumerate(columns.units):
        groups.setdefault((unit.instance_hash, unit.seed if alone else 0), []).append(k)
    if len({len(group) for group in groups.values()}) != 1:
        return None, []
    targets = [columns.units[group[0]].target for group in groups.values()]
    return np.array(list(groups.values()), dtype=np.int64), targets


class Sample:
    """Units drawn from a study: ``picks`` has a row per sample and a column per draw, ``weights``
    are those of the draws.

    ``vectors`` keeps the values of expressions from one sample to the next and is given for
    resamples; a division by zero is then infinite or NaN instead of an UnknownValueError.
    """

    def __init__(
        self,
        columns: CellColumns,
        picks: Indices,
        weights: Floats,
        vectors: dict[tuple[str, Node], Floats] | None = None,
    ) -> None:
        self.columns, self.picks, self.weights = columns, picks, weights
        self.resampled = vectors is not None
        self._vectors = {} if vectors is None else vectors

    @classmethod
    def whole(cls, columns: CellColumns) -> Sample:
        """Return the study itself as a sample."""
        count = len(columns.units)
        return cls(columns, np.arange(count, dtype=np.int64)[None, :], np.ones(count))

    def number(self, term: Node) -> Floats:
        """Return one number per sample."""
        if isinstance(term, Number):
            return np.full(len(self.picks), term.value)
        if isinstance(term, Leaf):
            return self.leaf(term)
        if isinstance(term, Unary):
            return -self.number(term.operand)
        if isinstance(term, Call):
            return np.abs(self.number(term.args[0]))
        assert isinstance(term, Binary)
        value = arithmetic(term.op, self.number(term.left), self.number(term.right))
        if not self.resampled and not np.isfinite(value[0]):
            if term.op != "/":
                raise UnknownValueError("the number is too large for a float")
            what = " / ".join(leaf.text for leaf in syntax.leaves(term.right)) or "a constant"
            raise UnknownValueError(f"division by zero: {what} is 0")
        return value

    def leaf(self, leaf: Leaf) -> Floats:
        if self.columns.blocked is not None:
            raise UnknownValueError(self.columns.blocked)
        return self._aggregate(leaf) if isinstance(leaf, Aggregate) else self._compare_pairs(leaf)

    def _drawn(self, label: str, node: Node) -> Floats:
        """Return the values of an expression, samples × draws; all must be known."""
        key = (label, node)
        if key not in self._vectors:
            vector = self.columns.vector(label, node)
            if len(vector) == 0:
                raise UnknownValueError(f"the study has no cell of {label}")
            raise_missing(self.columns, label, node, np.isnan(vector))
            self._vectors[key] = vector
        return self._vectors[key][self.picks]

    def _aggregate(self, term: Aggregate) -> Floats:
        values, weights = self._drawn(term.label, term.of_cell), self.weights
        if term.function in ("mean", "share"):
            return mean(values, weights)
        if term.function in ("sum", "count"):
            return np.asarray(values @ weights, dtype=float)
        if term.function == "gm":
            if float(values.min()) + term.extra <= 0:
                raise UnknownValueError(
                    f"{term.text}: {values.min():g} + {term.extra:g} is not above 0; take a "
                    "greater shift"
                )
            return np.exp(mean(np.log(values + term.extra), weights)) - term.extra
        share = {"median": 0.5, "max": 1.0, "min": 0.0}.get(term.function, term.extra / 100)
        return np.asarray(np.quantile(values, share, axis=1), dtype=float)

    def _compare_pairs(self, term: syntax.Paired) -> Floats:
        """Return, per sample, the ratio of the means of two solvers, or the mean of their relative
        differences; raise UnknownValueError where a division by 0 leaves it undefined.
        """
        ours, theirs = self._drawn(term.a, term.x), self._drawn(term.b, term.y)
        if term.function == "ratio":
            low = mean(theirs, self.weights)
            if not self.resampled and low[0] == 0:
                raise UnknownValueError(f"{term.text}: the mean of {term.b} is 0")
            return arithmetic("/", mean(ours, self.weights), low)
        relative = relative_difference(ours, theirs)
        if np.isnan(relative).any():
            unit = self.columns.units[int(self.picks[0][np.isnan(relative[0]).argmax()])]
            why = "and no relative difference to 0 exists; use ratio or means"
            raise UnknownValueError(f"{term.text}: {term.b} is 0 on {unit.instance}, {why}")
        return mean(relative, self.weights)


def relative_difference(ours: Floats, theirs: Floats) -> Floats:
    """Return (ours − theirs) / |theirs|; 0 where both are 0, NaN where only theirs is."""
    with np.errstate(all="ignore"):
        return np.where(
            (ours == 0) & (theirs == 0),
            0.0,
            np.where(theirs == 0, np.nan, (ours - theirs) / np.abs(theirs)),
        )


def raise_missing(columns: CellColumns, label: str, node: Node, missing: NDArray[np.bool_]) -> None:
    """Raise UnknownValueError for the missing values of a solver."""
    units = np.flatnonzero(missing)
    if len(units) == 0:
        return
    first = columns.units[int(units[0])]
    reason = columns.missing(label, int(units[0]), node)
    count = f"{len(units)} of {len(columns.units)} cells of {label} have no value"
    raise UnknownValueError(f"{count}: {first.instance}, seed {first.seed}, {reason}")
