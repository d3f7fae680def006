"""What a configuration is worth: its results against those of the defaults.

A goal that is a metric is compared instance by instance. The change on instance i is

    (mᵢ − rᵢ) / sᵢ        rᵢ: the defaults' value,  sᵢ = max(|rᵢ|, mean |r| / 10)

with the mean over the instances of the same problem: the relative difference, but where rᵢ is next
to nothing (no tardiness, say), which would make any difference infinite. A goal that is a formula
over cells has one value for all instances, and one change,  (F − R) / |R|. For a goal that is
maximised the sign is turned. A configuration's value is the mean of its changes: 0 is as good as
the defaults, −0.1 is 10 % better.

What has no result counts as MISSING, ten times worse than the defaults; so does anything worse than
that, so that failing never pays. Where the defaults have no result, a result counts as −1 and none
as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.formula_values import Sample, UnknownValueError, evaluate, holds, interval
from optbench.evaluate.rows import Row
from optbench.evaluate.stats import Estimate, estimate
from optbench.store.records import Record
from optbench.study.formula_binding import Formula, condition, number
from optbench.study.formula_syntax import Binary, Call, Node, Unary
from optbench.study.tune_section import Goal, own_scope
from optbench.tune.search_task import SearchPoint, SearchTask

MISSING, FOUND = 10.0, -1.0
# What a constraint that fails by nothing (5 < 5) is broken by: a sampler takes all of 0 and less
# for kept.
BARELY = 1e-9
SCALE_SHARE = 0.1
TUNED, DEFAULTS = "tuned", "defaults"
# What a formula over all instances is kept under.
WHOLE = SearchPoint("", 0)

Records = Mapping[SearchPoint, Record | None]
# By goal, the defaults' values by instance; of a formula one value, of WHOLE.
Reference = Mapping[str, Mapping[SearchPoint, float | None]]


def columns_of(**by_label: Records) -> CellColumns:
    """Configurations side by side."""
    rows, lost = [], []
    for label, records in by_label.items():
        for point, record in records.items():
            if record is None:
                lost.append(f"{point.name} cannot be made")
            else:
                cell = replace(record.cell, target=point.target, instance_seed=point.seed)
                rows.append(Row(replace(cell, label=label), record))
    return CellColumns(rows, lost[0] if lost else None)


def values_of(task: SearchTask, goal: Goal, records: Records) -> dict[SearchPoint, float | None]:
    """A goal's values: by instance, or one for all of them."""
    if not goal.is_metric:
        value = evaluate(_number(task, goal.expression, TUNED), columns_of(tuned=records)).value
        return {WHOLE: None if value is None else float(value)}
    measure, out = CellColumns(()).measure, {}
    for point, record in records.items():
        value = measure(None if record is None else Row(record.cell, record), goal.expression)
        out[point] = None if np.isnan(value) else value
    return out


def why_missing(goal: Goal, task: SearchTask, records: Records) -> str:
    """Why a goal has no value on any instance."""
    found = evaluate(_number(task, goal.expression, TUNED), columns_of(tuned=records))
    return "; ".join(found.why) or "no result"


def changes_of(
    task: SearchTask, records: Records, reference: Reference
) -> list[dict[SearchPoint, float]]:
    """By goal, how much worse than the defaults each instance is."""
    out = []
    for goal in task.section.goals:
        known = reference[goal.expression]
        scale, changes = scales(known), {}
        for point, value in values_of(task, goal, records).items():
            changes[point] = change(value, known[point], scale[point], goal)
        out.append(changes)
    return out


def scales(reference: Mapping[SearchPoint, float | None]) -> dict[SearchPoint, float]:
    """By instance, what a change of 1 is."""
    sizes: dict[str, list[float]] = {}
    for point, value in reference.items():
        if value is not None:
            sizes.setdefault(point.target, []).append(abs(value))
    floors = {target: SCALE_SHARE * sum(each) / len(each) for target, each in sizes.items()}
    return {
        point: max(abs(value or 0.0), floors.get(point.target, 0.0)) or 1.0
        for point, value in reference.items()
    }


def change(value: float | None, reference: float | None, scale: float, goal: Goal) -> float:
    """How much worse than the defaults, relative; below 0 is better."""
    if value is None:
        return MISSING if reference is not None else 0.0
    if reference is None:
        return FOUND
    difference = (value - reference) / scale
    return min(MISSING, -difference if goal.maximize else difference)


def excess(task: SearchTask, text: str, records: Records) -> float:
    """By how much a constraint is broken, relative to its right side: 0 or less where it holds,
    MISSING where it is unknown.
    """
    formula = condition(text, own_scope(TUNED, task.study.metrics))
    sample = Sample.whole(columns_of(tuned=records))
    kept = holds(formula.term, sample)
    try:
        found = _excess(formula.term, sample)
    except UnknownValueError:  # of an `or` that holds, say, one side may be unknown
        found = 0.0 if kept else MISSING
    return min(found, 0.0) if kept else max(found, BARELY)


def _excess(term: Node, sample: Sample) -> float:
    if isinstance(term, Unary):
        return -_excess(term.operand, sample)
    assert isinstance(term, Binary)
    if term.op in ("and", "or"):
        parts = (_excess(term.left, sample), _excess(term.right, sample))
        return max(parts) if term.op == "and" else min(parts)
    left, right = float(sample.number(term.left)[0]), float(sample.number(term.right)[0])
    over = (left - right) / (abs(right) or 1.0)
    found = {"<=": over, "<": over, ">=": -over, ">": -over, "==": abs(over), "!=": -abs(over)}[
        term.op
    ]
    return min(MISSING, found)


def compared(
    task: SearchTask,
    goal: Goal,
    ours: Records,
    theirs: Records,
    changes: Mapping[SearchPoint, float],
) -> Estimate:
    """The mean change with its interval: of paired instances, or of a formula by drawing instances
    anew for both at once.
    """
    if goal.is_metric:
        return estimate(list(changes.values()), [point.target for point in changes])
    tuned, plain = (_number(task, goal.expression, label).term for label in (TUNED, DEFAULTS))
    both = Binary("/", Binary("-", tuned, plain), Call("abs", (plain,)))
    found = interval(Formula(goal.expression, both, False), columns_of(tuned=ours, defaults=theirs))
    low, high = found if found is not None else (-np.inf, np.inf)
    low, high = (-high, -low) if goal.maximize else (low, high)
    return Estimate(changes[WHOLE], float(low), float(high), len(ours))


def paired_means(
    ours: Mapping[SearchPoint, float | None], theirs: Mapping[SearchPoint, float | None]
) -> tuple[float | None, float | None]:
    """Means over the instances on which both have a value: where one fails, the other's would be
    the mean of other instances.
    """
    pairs = [
        (a, b) for point, a in ours.items() if a is not None and (b := theirs[point]) is not None
    ]
    if not pairs:
        return None, None
    return sum(a for a, _ in pairs) / len(pairs), sum(b for _, b in pairs) / len(pairs)


def means_of(task: SearchTask, records: Records) -> dict[str, float]:
    """What people read of a trial: of a metric the plain mean over the cells that have it, of a
    formula its value.
    """
    out = {}
    for goal in task.section.goals:
        values = [value for value in values_of(task, goal, records).values() if value is not None]
        if values:
            out[goal.expression] = sum(values) / len(values)
    return out


def _number(task: SearchTask, text: str, own: str) -> Formula:
    return number(text, own_scope(own, task.study.metrics))
