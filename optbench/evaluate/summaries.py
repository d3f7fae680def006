"""Summaries of a study's solvers over the cells that have run, with intervals over instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optbench.evaluate import stats
from optbench.evaluate.hardware_models import unequal_instances
from optbench.evaluate.references import clairvoyant_labels
from optbench.evaluate.rows import Row, Table
from optbench.model.measures import shifted_geomean
from optbench.run.best_known import costs_of_levels, sign_of
from optbench.units import EQUAL

# Draws of an interval: with thousands of instances fewer resamples suffice.
DRAWS, FEWEST_RESAMPLES = 4_000_000, 400


@dataclass(frozen=True)
class Summary:
    """One solver. All figures but ``planned``, ``ran`` and ``failed`` are over the ``compared``
    cells: those on instances and seeds on which every solver that has run anything has run.

    Gaps are over all cells, a cell without a gap counting as 1. rpd and regret are over cells with
    an objective (``count`` is the number of their instances). ``optimal`` counts cells whose
    objective any run proved optimal, ``proved`` those proved by their own run, ``solved`` those
    with an objective, of which ``no_excess`` have no rpd. ``behind`` is the
    study gap minus that of the first in the ranking, instance by instance; where the study ranks by
    its own formula, ``score`` is its value, ``behind`` refers to it, and ``unscored`` counts cells
    without a value.
    """

    label: str
    planned: int
    ran: int
    failed: int
    compared: int
    unsolved: int
    solved: int
    missing_gaps: int
    optimal: int
    proved: int
    study_gap: stats.Estimate | None
    gap: stats.Estimate | None
    rpd: stats.Estimate | None
    regret: stats.Estimate | None
    time_s: float | None
    rank: float | None
    wins: int
    behind: stats.Estimate | None = None
    score: stats.Estimate | None = None
    unscored: int = 0
    no_excess: int = 0
    # Instances on which it and the first in the ranking ran on different hardware.
    unequal: int = 0
    # It is shown, and has no rank: it used work before it arrived.
    clairvoyant: bool = False

    @property
    def optimal_share(self) -> float:
        return self.optimal / self.compared if self.compared else 0.0


@dataclass(frozen=True)
class Costs:
    """Objectives of the first level, ``values[solver, column]``, over the instances and seeds on
    which all solvers have run; ∞ where there is none. ``order`` is the value by which ranks are
    taken, the less the better: with a lexicographic objective, the rank on the instance; where it
    is maximised, its negative.
    """

    labels: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]
    values: stats.Floats
    order: stats.Floats


def summaries(table: Table, score: Callable[[Row], float | None] | None = None) -> list[Summary]:
    """Return the solvers of a study, best first: by mean gap to the best bounds, then by what they
    prove themselves, then by rank.

    With a score they are ordered by its mean over instances, lower being better; solvers with a
    cell without a score come after the others. Clairvoyant references come last, without a rank.
    """
    costs = costs_of(table)
    every = rows_by_label(table)
    by_label = compared(every, costs)
    places = {}
    unranked = clairvoyant_labels(table)
    kept = [k for k, label in enumerate(costs.labels) if label not in unranked]
    if costs.columns and kept:
        order = costs.order[kept]
        ranked = zip(stats.average_ranks(order).tolist(), stats.wins(order).tolist())
        places = dict(zip((costs.labels[k] for k in kept), ranked))
    found = [
        _summary(label, every[label], by_label[label], *places.get(label, (None, 0)))
        for label in every
    ]
    if score is not None:
        found = [_scored(each, by_label[each.label], score) for each in found]
    found = [replace(each, clairvoyant=each.label in unranked) for each in found]
    by_merit = _gap_order if score is None else _score_order
    found.sort(key=lambda each: (each.clairvoyant, *by_merit(each)))
    if not found or found[0].study_gap is None:
        return found
    first, value = by_label[found[0].label], score or _counted
    behind = (
        replace(
            each,
            behind=difference(by_label[each.label], first, value),
            unequal=len(unequal_instances(by_label[each.label], first)),
        )
        for each in found[1:]
    )
    return [found[0], *behind]


def compared(by_label: Mapping[str, Sequence[Row]], costs: Costs) -> dict[str, list[Row]]:
    """Return by solver the cells on which all are compared, or all cells if there is none."""
    columns = set(costs.columns)
    return {
        label: [
            row
            for row in rows
            if row.record is not None
            and (not columns or (row.cell.instance_hash, row.cell.seed) in columns)
        ]
        for label, rows in by_label.items()
    }


def rows_by_label(table: Table) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for row in table.rows:
        out.setdefault(row.cell.label, []).append(row)
    return out


def _gap_order(summary: Summary) -> tuple[float, float, float]:
    """Sort key by gaps; smaller is better, and solvers that have not run come last."""
    if summary.study_gap is None or summary.gap is None:
        return np.inf, np.inf, np.inf
    rank = np.inf if summary.rank is None else summary.rank
    return round(summary.study_gap.value / EQUAL), round(summary.gap.value / EQUAL), rank


def _scored(summary: Summary, rows: Sequence[Row], score: Callable[[Row], float | None]) -> Summary:
    return replace(
        summary, score=over_instances(rows, score), unscored=sum(score(row) is None for row in rows)
    )


def _score_order(summary: Summary) -> tuple[float, ...]:
    """Sort key by the score; solvers with a cell without a score come later."""
    if summary.score is None or summary.unscored:
        return (np.inf, *_gap_order(summary))
    return (summary.score.value, *_gap_order(summary))


def _summary(
    label: str, every: Sequence[Row], rows: Sequence[Row], rank: float | None, wins: int
) -> Summary:
    times = [time_s for row in rows if (time_s := counted_time_s(row)) is not None]
    return Summary(
        label,
        planned=len(every),
        ran=sum(row.record is not None for row in every),
        failed=sum(row.failed for row in every),
        compared=len(rows),
        unsolved=sum(row.objective is None and not row.failed for row in rows),
        solved=sum(row.objective is not None for row in rows),
        missing_gaps=sum(row.study_gap is None for row in rows),
        optimal=sum(row.optimal for row in rows),
        proved=sum(row.proved for row in rows),
        study_gap=over_instances(rows, _counted),
        gap=over_instances(rows, lambda row: row.counted_gap),
        rpd=over_instances(rows, lambda row: row.rpd),
        regret=over_instances(rows, lambda row: row.regret),
        time_s=shifted_geomean(times, stats.GEOMEAN_SHIFT_S) if times else None,
        rank=rank,
        wins=wins,
        no_excess=sum(row.no_excess is not None for row in rows),
    )


def over_instances(
    rows: Sequence[Row], value: Callable[[Row], float | None]
) -> stats.Estimate | None:
    """Estimate the mean of the instances' means; a problem's instances are a stratum."""
    found, strata = instance_means(rows, value)
    if not found:
        return None
    return stats.estimate(
        list(found.values()),
        [strata[instance] for instance in found],
        resamples=_resamples(len(found)),
    )


def _resamples(count: int) -> int:
    return max(FEWEST_RESAMPLES, min(stats.RESAMPLES, DRAWS // count))


def instance_means(
    rows: Sequence[Row], value: Callable[[Row], float | None]
) -> tuple[dict[str, float], dict[str, str]]:
    """Return by instance the mean over the cells that have a value, and its problem."""
    values: dict[str, list[float]] = {}
    strata: dict[str, str] = {}
    for row in rows:
        number = value(row)
        if number is not None:
            values.setdefault(row.cell.instance_hash, []).append(number)
            strata[row.cell.instance_hash] = row.cell.target
    return {instance: sum(each) / len(each) for instance, each in values.items()}, strata


def difference(
    ours: Sequence[Row], theirs: Sequence[Row], value: Callable[[Row], float | None]
) -> stats.Estimate | None:
    """Estimate ours − theirs over the instances that both have."""
    (mine, strata), (other, _) = instance_means(ours, value), instance_means(theirs, value)
    both = [instance for instance in mine if instance in other]
    if not both:
        return None
    ours_too, theirs_too, problems = (
        [mine[i] for i in both],
        [other[i] for i in both],
        [strata[i] for i in both],
    )
    return stats.paired_difference(ours_too, theirs_too, problems, resamples=_resamples(len(both)))


def _counted(row: Row) -> float:
    return row.counted_study_gap


def counted_time_s(row: Row) -> float | None:
    """Return the solving time, of failures at least the time limit; None without a limit."""
    assert row.record is not None
    taken = row.record.wall_s if row.record.wall_s is not None else row.record.total_s
    limit = row.cell.budget.time_limit_s
    if not row.failed:
        return taken
    return None if limit is None else max(taken, limit)


def costs_of(table: Table) -> Costs:
    """Return the costs of the solvers that have run anything, over what all of them have run."""
    labels = tuple(dict.fromkeys(row.cell.label for row in table.rows if row.record is not None))
    number = {label: k for k, label in enumerate(labels)}
    found: dict[tuple[str, int], dict[int, Row]] = {}
    for row in table.rows:
        if row.record is not None:
            found.setdefault((row.cell.instance_hash, row.cell.seed), {})[
                number[row.cell.label]
            ] = row
    columns = tuple(column for column, rows in found.items() if len(rows) == len(labels))
    values = np.full((len(labels), len(columns)), np.inf)
    order = values.copy()
    for j, column in enumerate(columns):
        reached = {
            k: costs_of_levels(row.objective, row.cell.sense)
            for k, row in found[column].items()
            if row.objective is not None
        }
        several = any(len(each) > 1 for each in reached.values())
        places = (
            {each: place for place, each in enumerate(sorted(set(reached.values())), 1)}
            if several
            else {}
        )
        for k, each in reached.items():
            values[k, j] = each[0] * sign_of(found[column][k].cell.sense)
            order[k, j] = places[each] if several else each[0]
    return Costs(labels, columns, values, order)
