"""The verdict of a report in sentences: the best solver, distances, proofs, simple rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from optbench.errors import with_article
from optbench.evaluate.scores import Score
from optbench.evaluate.stats import Estimate
from optbench.evaluate.summaries import Summary, difference
from optbench.model.result import OPTIMAL_GAP
from optbench.report.formatting import counted, figures, listed, percent, points, with_interval
from optbench.report.study_report import StudyReport

# Solvers named one by one in a sentence.
MOST_NAMED = 4


def verdict(report: StudyReport) -> list[str]:
    """The sentences, with the answer first; the tables of the report support each of them."""
    ranked, failures = _ranked(report), list(_failures(report))
    if not ranked:
        return ["Nothing has run yet."]
    if all(row.objective is None for row in report.table.rows):
        return [f"No solver has reached {with_article(report.decision)}.", *failures]
    if report.score is not None:
        return [_closest(report, report.score), *_behind(report), *failures, *_rules(report)]
    if all(row.study_gap is None for row in report.table.rows):
        return [_unbounded(report), *failures]
    if len(ranked) > 1 and not report.costs.columns:
        apart = "The solvers have run on different instances: nothing can be compared yet."
        return [apart, *failures]
    proofs = [*_proven(report), *_trusted(report)]
    return [_best(report), *_behind(report), *proofs, *failures, *_rules(report)]


def _ranked(report: StudyReport) -> Sequence[Summary]:
    """The solvers that have run and have a rank, best first; references if nothing else has run."""
    return [each for each in report.ranked if not each.clairvoyant] or report.ranked


def _best(report: StudyReport) -> str:
    first, *others = _ranked(report)
    assert first.study_gap is not None
    where = f"over {counted(first.study_gap.count, 'instance')}"
    within = f"on average within {with_interval(first.study_gap)} of the best bounds {where}"
    if first.optimal == first.compared:
        within = f"proven optimal {where}"
    solved = [each for each in others if each.solved]
    level = [first, *(e for e in solved if _is_level(e) or _is_equal(report, e))]
    decisions = f"{report.decision}s"
    if not others:
        return f"{first.label}: its {decisions} are {within}."
    if first.study_gap.count == 1:
        named = [(each.label, each.study_gap) for each in _ranked(report)[:MOST_NAMED]]
        gaps = ", ".join(
            f"{label} {percent(None if gap is None else gap.value)}" for label, gap in named
        )
        return f"One instance alone, which says nothing of others: gaps of {gaps}."
    if len(level) > 1:
        return (
            f"{_named(level)} cannot be told apart: the {decisions} of {first.label}, first by "
            f"mean, are {within}."
        )
    return f"{first.label} is best: its {decisions} are {within}."


def _closest(report: StudyReport, score: Score) -> str:
    """The answer of a study that ranks by a formula of its own."""
    first, *others = _ranked(report)
    if first.score is None:
        return f"No solver has a value of {score.source}, by which this study ranks."
    shown = with_interval if score.is_share else figures
    value = f"{shown(first.score)} on average over {counted(first.score.count, 'instance')}"
    scored = [each for each in others if each.score is not None and not each.unscored]
    level = [first, *filter(_is_level, scored)]
    if len(level) > 1:
        mean = f"{first.label}, first by mean, is at {value}"
        return f"By {score.words}, {_named(level)} cannot be told apart; {mean}."
    other = ""
    if scored:
        last = scored[-1]
        other = f"; {last.label}, the last of {len(_ranked(report))}, is at {shown(last.score)}"
    return f"By {score.words}, {first.label} is best: {value}{other}."


def _named(solvers: Sequence[Summary | str]) -> str:
    names = [each if isinstance(each, str) else each.label for each in solvers]
    more = len(names) - MOST_NAMED
    return listed(names) if more <= 0 else f"{listed(names[:MOST_NAMED])}, and {more} more"


def _is_level(summary: Summary) -> bool:
    """Whether a solver is not significantly different from the first."""
    return summary.behind is None or not summary.behind.known or not summary.behind.apart_from_zero


def _is_equal(report: StudyReport, summary: Summary) -> bool:
    """Whether a solver equals the first everywhere; gaps that count as optimal are equal."""
    behind, within = summary.behind, OPTIMAL_GAP if report.score is None else 0.0
    return behind is not None and max(abs(behind.low), abs(behind.high)) <= within


def _behind(report: StudyReport) -> Iterator[str]:
    """The distances of the other solvers from the first."""
    first, *others = _ranked(report)
    others = [each for each in others if each.solved and not each.unscored]
    same = [each for each in others if _is_equal(report, each)]
    level = [each for each in others if _is_level(each) and each not in same]
    worse = [each for each in others if not _is_level(each) and each not in same]
    if same:
        what = "gaps" if report.score is None else "values"
        yield f"{_named([first, *same])} have the same {what}."
    if any(each.behind is not None and each.behind.known for each in level):
        behind = f"behind {first.label} are {_distances(report, level)}"
        yield f"The differences may be chance: {behind}."
    if worse:
        last = ""
        if len(worse) > MOST_NAMED:
            last = f"; {worse[-1].label} is last, by {_write(report)(worse[-1].behind)}"
        yield f"Clearly behind {first.label} are {_distances(report, worse)}{last}."
    unscored = [each for each in _ranked(report) if each.unscored]
    if unscored and report.score is not None:
        yield (
            f"Placed last, for cells without a value of {report.score.source}: {_named(unscored)}."
        )
    without = [each for each in _ranked(report) if not each.solved]
    if without:
        yield f"Without any {report.decision}: {_named(without)}."


def _write(report: StudyReport) -> Callable[[Estimate | None], str]:
    """The function that writes a difference."""
    return points if report.score is None or report.score.is_share else figures


def _distances(report: StudyReport, found: list[Summary]) -> str:
    return ", ".join(
        f"{each.label} by {_write(report)(each.behind)}" for each in found[:MOST_NAMED]
    )


def _proven(report: StudyReport) -> Iterator[str]:
    """The number of instances with a proven optimum, and how often the first solver reaches it."""
    first = _ranked(report)[0]
    instances = {row.cell.instance_hash for row in report.table.rows if row.record is not None}
    proven = len(instances & report.table.proven)
    if proven == len(instances):
        yield "The optimum of every instance is proven: the gaps are what is really lost."
    elif proven:
        of = f"{proven:,} of {counted(len(instances), 'instance')}"
        what = f"The optimum of {of} is proven" + _by_shared_bounds(report, proven)
        yield f"{what}; elsewhere a gap is the most that may be lost."
    else:
        what = "No optimum is proven" + _by_shared_bounds(report, proven)
        yield f"{what}: the gaps are the most that may be lost, not what is."
    if proven and first.optimal < first.compared:
        by_itself = "" if first.proved == first.optimal else f" ({first.proved:,} by its own proof)"
        yield (
            f"{first.label} ends at a proven optimum in {first.optimal:,} of "
            f"{counted(first.compared, 'cell')}{by_itself}."
        )


def _by_shared_bounds(report: StudyReport, proven: int) -> str:
    """Words for the bounds that count for every solver, where a run's own prove more optima."""
    optimal = {row.cell.instance_hash for row in report.table.rows if row.optimal}
    return " by a certified or trusted bound" if len(optimal) > proven else ""


def _trusted(report: StudyReport) -> Iterator[str]:
    """The solvers whose bounds count without a certificate."""
    trust = report.plan.study.trust
    if trust:
        what = "whose bounds count" if len(trust) == 1 else "each of whose bounds counts"
        yield (
            f"The study trusts {listed(list(trust))}, {what} for every solver without a "
            "certificate."
        )


def _failures(report: StudyReport) -> Iterator[str]:
    failed = sum(each.failed for each in report.summaries)
    unsolved = sum(each.unsolved for each in report.summaries)
    for count, what in (
        (failed, "failed"),
        (unsolved, f"ended without {with_article(report.decision)}"),
    ):
        if count:
            yield (
                f"{counted(count, 'cell')} {what} and {'counts' if count == 1 else 'count'} as "
                "a gap of 100 %."
            )
    unbounded = sum(record.failed for record in report.bounding)
    if unbounded:
        yield (
            f"The bounding of {counted(unbounded, 'instance')} failed: gaps there rest on what "
            "solvers proved."
        )
    yield from _infeasible(report)


def _infeasible(report: StudyReport) -> Iterator[str]:
    """Instances without a schedule, either certified or claimed by a solver and not refuted."""
    certain, said = set(), {}
    for row in report.table.rows:
        # A refused decision has the same word as its reason; it says nothing of the instance.
        if row.record and not row.failed and row.state == "infeasible":
            said[row.cell.instance_hash] = row.cell.label
            if (row.record.infeasibility or {}).get("proof", "solver") != "solver":
                certain.add(row.cell.instance_hash)
    said = {instance: label for instance, label in said.items() if instance not in certain}
    if certain:
        have = "has" if len(certain) == 1 else "have"
        what = f"{counted(len(certain), 'instance')} {have} no {report.decision}"
        yield f"{what}: that is certified."
    if said:
        who = _named(list(dict.fromkeys(said.values())))
        where = counted(len(said), "instance")
        yield (
            f"No {report.decision} refutes that {where} cannot be solved, as {who} says without a "
            "certificate."
        )


def _rules(report: StudyReport) -> Iterator[str]:
    """The methods that do no better than a simple rule, learned ones first."""
    ranked = _ranked(report)
    kinds = report.kinds
    rule = next((each for each in ranked if kinds[each.label] == "rule"), None)
    if rule is None:
        return
    after = [each for each in ranked[ranked.index(rule) + 1 :] if each.solved]
    for kind, method in (("learned", "learned method"), ("other", "method")):
        found = [each for each in after if kinds[each.label] == kind]
        for clearly, does in ((True, "does better than"), (False, "does as well as")):
            them = [each for each in found if _beaten(report, rule.label, each.label) == clearly]
            if them:
                what = method if len(them) == 1 else f"{method}s"
                yield f"The simple rule {rule.label} {does} the {what} {_named(them)}."


def _beaten(report: StudyReport, rule: str, other: str) -> bool:
    """Whether the rule is significantly better."""
    found = difference(report.rows[other], report.rows[rule], lambda row: report.merit(row))
    return found is not None and found.apart_from_zero and found.low > 0


def _unbounded(report: StudyReport) -> str:
    """The answer where no instance has a bound, so that only ranks and objectives compare."""
    ranked = sorted(
        _ranked(report), key=lambda each: each.rank if each.rank is not None else float("inf")
    )
    first = ranked[0]
    side = "lower bound" if report.senses == {"min"} else "bound"
    words = f"No instance has a {side}, so nothing is proven and every gap counts as 100 %"
    if len(ranked) == 1 or first.rank is None:
        return f"{words}."
    rpd = "" if first.rpd is None else f", {percent(first.rpd.value)} above the best known"
    place = f"average rank {first.rank:.2f} of {len(ranked)}{rpd}"
    return f"{words}. By objective {first.label} is first: {place}."
