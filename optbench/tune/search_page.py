"""The page of a search: its history or the front of its goals, and the effect of each parameter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from optbench import __version__
from optbench.html import svg
from optbench.html.page import footer, header, page, row, scroll, section, table
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
HISTORY_AXIS = "trial; against the defaults: below 0 is better, marks at the upper edge lie above it"


def render(known: Trials, found: Validation | None) -> str:
    """The page as text."""
    task, trials = known.task, known.all()
    done = [trial for trial in trials if trial.state.is_finished() and trial.values]
    chosen = None if found is None or found.chosen is None else found.chosen.number
    title = f"{task.study.name}: {', '.join(('max ' if g.maximize else 'min ') + g.expression for g in task.section.goals)}"
    body = [header(title, task.study.question)]
    if found is not None and found.comparisons:
        body.append(section("On seeds that the search has not seen", _warnings(found), _comparisons(found.comparisons)))
    for name, chart in all_charts(known, chosen).items():
        body.append(section(name, scroll(chart)))
    body.append(section("Trials", _table(known, done, chosen)))
    facts = (f"optbench {__version__}", task.entry.label, f"{len(done)} trials", f"{len(task.points)} instances each", task.name)
    body.append(footer(*facts))
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
        found = optuna.importance.get_param_importances(known.study, evaluator=evaluator, target=lambda trial: trial.values[goal])
    return {name: float(share) for name, share in found.items()}, method


def _history(trials: Sequence[FrozenTrial], goal: Goal, chosen: int | None) -> str:
    marks = [_mark(trial, float(trial.number), trial.values[0], chosen) for trial in trials]
    line: list[tuple[float, float]] = []
    for trial in trials:
        if is_candidate(trial) and (not line or trial.values[0] < line[-1][1]):
            line.append((float(trial.number), trial.values[0]))
    y = search_charts.Quantity(f"{goal.loss} of {goal.expression}", percent=True, cut=True)
    return search_charts.scatter(marks, search_charts.Quantity(HISTORY_AXIS, whole=True), y, WIDE, line)


def _front(trials: Sequence[FrozenTrial], goals: Sequence[Goal], chosen: int | None) -> str:
    """The first two goals; the front is among all of them."""
    front = {trial.number for trial in front_of(trials)}
    marks = []
    for trial in trials:
        mark = _mark(trial, trial.values[0], trial.values[1], chosen)
        look = mark.look if mark.look == "best" or trial.number not in front else "on-front"
        marks.append(Mark(mark.x, mark.y, look, mark.words))
    words = f"{goals[0].loss} of {goals[0].expression}, against {goals[1].loss} of {goals[1].expression}; below 0 is better"
    x = search_charts.Quantity(words, percent=True, cut=True)
    return search_charts.scatter(marks, x, search_charts.Quantity(goals[1].expression, percent=True, cut=True), WIDE)


def _slice(trials: Sequence[FrozenTrial], axis: SpaceAxis, goal: Goal, k: int, chosen: int | None) -> str:
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
    look = "best" if trial.number == chosen else "pruned" if pruned else "done" if is_candidate(trial) else "broken"
    changes = ", ".join(f"{100 * value:+.2f} %" for value in trial.values)
    words = [f"trial {trial.number}: {changes}{' so far, pruned' if pruned else ''}"]
    words += [f"{name} {_shown(value)}" for name, value in trial.params.items()]
    words += [f"breaks {name}" for name, value in trial.constraints.items() if value > 0]
    return Mark(x, y, look, words)


def _warnings(found: Validation) -> str:
    """Reasons to trust the comparison less."""
    said = [f"The chosen configuration breaks {text} here, which it kept in the search." for text in found.broken]
    if not found.broken:
        said += [f"The defaults break {text}, which the chosen configuration keeps." for text in found.broken_defaults]
    if found.seen:
        said.append(f"{found.seen} of the {found.instances} instances are the search's own, with other seeds of the solver.")
    if found.failed > found.failed_defaults:
        said.append(f"{found.failed} cells failed, {found.failed_defaults} of the defaults.")
    return "".join(f'<p class="bad">{escape(each)}</p>' for each in said)


def _comparisons(comparisons: Sequence[TunedComparison]) -> str:
    rows = []
    for each in comparisons:
        natural = each.natural
        interval = f"{100 * natural.low:+.2f} % to {100 * natural.high:+.2f} %" if natural.known else "unknown"
        class_ = {"better": "good", "worse": "bad", "level": ""}[each.verdict]
        change = f'<span class="{class_}">{100 * natural.value:+.2f} %</span>'
        cells = (_number(each.defaults), _number(each.tuned), change, interval)
        rows.append(row(escape(each.goal), cells))
    return table(("goal", "defaults", "tuned", "change", "95 % interval"), rows, "trials")


def _table(known: Trials, done: Sequence[FrozenTrial], chosen: int | None) -> str:
    names = [axis.name for axis in known.task.section.space]
    goals = [f"{goal.loss} of {goal.expression}" for goal in known.task.section.goals]
    rows = []
    for trial in done:
        state = "chosen" if trial.number == chosen else trial.state.name.lower()
        cells = (state, *(f"{100 * value:+.2f} %" for value in trial.values), *(_shown(trial.params[name]) for name in names))
        rows.append(row(str(trial.number), [escape(cell) for cell in cells]))
    return table(("trial", "state", *goals, *names), rows, "trials")


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"
