"""The page of a search: its history or the front of its goals, and the effect of each parameter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from optbench import __version__
from optbench.html import svg
from optbench.html.page import footer, header, page, row, scroll, section, table, text_table
from optbench.study.tune_section import Goal, SpaceAxis
from optbench.tune import search_charts
from optbench.tune.search_charts import Mark
from optbench.tune.trial_front import front_of
from optbench.tune.trials import Trials, is_candidate
from optbench.tune.validation import TunedComparison, Validation

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

WIDE, SMALL = (svg.WIDTH, 360.0), (390.0, 260.0)
# With fewer trials, importances are noise.
LEAST_FOR_IMPORTANCE = 12
TREES_SEED = 0
HISTORY_AXIS = (
    "trial; against the defaults: below 0 is better, marks at the upper edge lie above it"
)


def render(known: Trials, found: Validation | None) -> str:
    """The page as text."""
    task, trials = known.task, known.all()
    done = [trial for trial in trials if trial.state.is_finished() and trial.values]
    chosen = None if found is None or found.chosen is None else found.chosen.number
    goals = (f"{'max' if g.maximize else 'min'} {g.expression}" for g in task.section.goals)
    title = f"{task.study.name}: {', '.join(goals)}"
    body = [header(title, task.study.question)]
    if found is not None and found.comparisons:
        heading, compared = "On seeds that the search has not seen", _comparisons(found.comparisons)
        body.append(section(heading, _warnings(found), compared))
    for name, chart in all_charts(known, chosen).items():
        body.append(section(name, scroll(chart)))
    body.append(section("Trials", _table(known, done, chosen)))
    counts = (f"{len(done)} trials", f"{len(task.points)} instances each")
    body.append(footer(f"optbench {__version__}", task.entry.label, *counts, task.name))
    return page(title, body, __package__, search_charts.STYLES)


def all_charts(known: Trials, chosen: int | None) -> dict[str, str]:
    """Charts by their headings; a chart with too few trials is left out."""
    goals, trials = known.task.section.goals, [trial for trial in known.all() if trial.values]
    out: dict[str, str] = {}
    if not trials:
        return out
    if len(goals) == 1:
        out["History"] = _history(trials, goals[0], chosen)
    else:
        out["Front"] = _front(trials, goals, chosen)
    for k, goal in enumerate(goals):
        of = f" for {goal.expression}" if len(goals) > 1 else ""
        shares, method = importance(known, k)
        if shares:
            out[f"Importance{of} ({method})"] = search_charts.bars(list(shares.items()))
        slices = "".join(_slice(trials, axis, goal, k, chosen) for axis in known.task.section.space)
        out[f"Parameters{of}"] = f'<div class="slices">{slices}</div>'
    return out


def importance(known: Trials, goal: int) -> tuple[dict[str, float], str]:
    """Shares of a goal's variance that parameters explain, and the method; empty for few trials."""
    import optuna

    complete = [trial for trial in known.all() if is_candidate(trial)]
    if len(complete) < LEAST_FOR_IMPORTANCE or len({trial.values[goal] for trial in complete}) < 2:
        return {}, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            evaluator: Any = optuna.importance.FanovaImportanceEvaluator(seed=TREES_SEED)
            method = "fANOVA"
        except ImportError:  # it grows its trees with scikit-learn
            evaluator, method = optuna.importance.PedAnovaImportanceEvaluator(), "PED-ANOVA"
        found = optuna.importance.get_param_importances(
            known.study, evaluator=evaluator, target=lambda trial: trial.values[goal]
        )
    return {name: float(share) for name, share in found.items()}, method


def _history(trials: Sequence[FrozenTrial], goal: Goal, chosen: int | None) -> str:
    marks = [_mark(trial, float(trial.number), trial.values[0], chosen) for trial in trials]
    line: list[tuple[float, float]] = []
    for trial in trials:
        if is_candidate(trial) and (not line or trial.values[0] < line[-1][1]):
            line.append((float(trial.number), trial.values[0]))
    y = search_charts.Quantity(f"{goal.loss} of {goal.expression}", percent=True, cut=True)
    return search_charts.scatter(
        marks, search_charts.Quantity(HISTORY_AXIS, whole=True), y, WIDE, line
    )


def _front(trials: Sequence[FrozenTrial], goals: Sequence[Goal], chosen: int | None) -> str:
    """The first two goals; the front is among all of them."""
    front = {trial.number for trial in front_of(trials)}
    marks = []
    for trial in trials:
        mark = _mark(trial, trial.values[0], trial.values[1], chosen)
        on_front = mark.look != "best" and trial.number in front
        marks.append(replace(mark, look="on-front") if on_front else mark)
    first, second = (f"{goal.loss} of {goal.expression}" for goal in goals[:2])
    title = f"{first}, against {second}; below 0 is better"
    x = search_charts.Quantity(title, percent=True, cut=True)
    y = search_charts.Quantity(goals[1].expression, percent=True, cut=True)
    return search_charts.scatter(marks, x, y, WIDE)


def _slice(
    trials: Sequence[FrozenTrial], axis: SpaceAxis, goal: Goal, k: int, chosen: int | None
) -> str:
    names = [str(choice) for choice in axis.choices]
    marks = []
    for trial in trials:
        value = trial.params[axis.name]
        at = float(names.index(str(value))) if names else float(value)
        marks.append(_mark(trial, at, trial.values[k], chosen))
    x = search_charts.Quantity(axis.name, log=axis.log, names=names)
    y = search_charts.Quantity(f"{goal.loss} of {goal.expression}", percent=True, cut=True)
    return search_charts.scatter(marks, x, y, SMALL)


def _mark(trial: FrozenTrial, x: float, y: float, chosen: int | None) -> Mark:
    pruned = trial.state.name == "PRUNED"
    look = "pruned" if pruned else "done" if is_candidate(trial) else "broken"
    look = "best" if trial.number == chosen else look
    changes = ", ".join(map(_change, trial.values))
    words = [f"trial {trial.number}: {changes}{' so far, pruned' if pruned else ''}"]
    words += [f"{name} {_shown(value)}" for name, value in trial.params.items()]
    words += [f"breaks {name}" for name, value in trial.constraints.items() if value > 0]
    return Mark(x, y, look, words)


def _warnings(found: Validation) -> str:
    """Reasons to trust the comparison less."""
    here = "The chosen configuration breaks {} here, which it kept in the search."
    there = "The defaults break {}, which the chosen configuration keeps."
    said = [here.format(text) for text in found.broken]
    said = said or [there.format(text) for text in found.broken_defaults]
    if found.seen:
        seen = f"{found.seen} of the {found.instances} instances are the search's own"
        said.append(f"{seen}, with other seeds of the solver.")
    if found.failed > found.failed_defaults:
        said.append(f"{found.failed} cells failed, {found.failed_defaults} of the defaults.")
    return "".join(f'<p class="bad">{escape(each)}</p>' for each in said)


def _comparisons(comparisons: Sequence[TunedComparison]) -> str:
    rows = []
    for each in comparisons:
        natural, interval = each.natural, "unknown"
        if natural.known:
            interval = f"{_change(natural.low)} to {_change(natural.high)}"
        class_ = {"better": "good", "worse": "bad", "level": ""}[each.verdict]
        change = f'<span class="{class_}">{_change(natural.value)}</span>'
        cells = (_number(each.defaults), _number(each.tuned), change, interval)
        rows.append(row(escape(each.goal), cells))
    return table(("goal", "defaults", "tuned", "change", "95 % interval"), rows, "trials")


def _table(known: Trials, done: Sequence[FrozenTrial], chosen: int | None) -> str:
    names = [axis.name for axis in known.task.section.space]
    goals = [f"{goal.loss} of {goal.expression}" for goal in known.task.section.goals]
    rows = []
    for trial in done:
        state = "chosen" if trial.number == chosen else trial.state.name.lower()
        values, params = map(_change, trial.values), (_shown(trial.params[name]) for name in names)
        rows.append((str(trial.number), state, *values, *params))
    return text_table(("trial", "state", *goals, *names), rows, "trials")


def _change(share: float) -> str:
    return f"{100 * share:+.2f} %"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"
