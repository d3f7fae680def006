"""Output of a search: progress on stderr, the result on stdout or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import (
    BAD,
    DIM,
    GOOD,
    attributes,
    escape,
    figure,
    joined,
    length,
    show,
    table,
    table_of,
)

if TYPE_CHECKING:
    from optbench.tune.search import TuneProgress, TuneRun
    from optbench.tune.validation import TunedComparison, Validation


class SearchProgress(LiveLine):
    """Show the progress of a search; a context manager."""

    waiting = "running the defaults"

    def describe(self, now: TuneProgress) -> Step:
        """``12 of 100 trials, 2 at work, best -7.4 % against the defaults, about 35.0 s left``."""
        left_s = now.eta_s if now.done < now.total else None
        words = joined(
            f"{now.done} of {now.total} trials",
            now.running and f"{now.running} at work",
            now.best is not None and f"best {signed(now.best)} against the defaults",
            now.front is not None and f"{now.front} on the front",
            left_s is not None and f"about {length(left_s)} left",
        )
        return Step(words, now.done, now.total)


def document(done: TuneRun) -> dict[str, Any]:
    """``tune --json``."""
    from optbench.tune.storage import shown

    found = done.validation
    states = [trial.state.name for trial in done.trials if trial.number < done.total]
    return {
        "study": done.task.study.name,
        "search": done.task.name,
        "storage": shown(done.url),
        "trials": done.total,
        "done": done.done,
        "complete": states.count("COMPLETE"),
        "pruned": states.count("PRUNED"),
        **attributes(done, "ran", "deaths", "interrupted"),
        "goals": [
            ("maximize " if goal.maximize else "minimize ") + goal.expression
            for goal in done.task.section.goals
        ],
        "defaults": dict(done.task.defaults),
        "best": None if found is None or found.chosen is None else _trial(found.chosen),
        "front": [] if found is None else [_trial(trial) for trial in found.front],
        "validation": None if found is None else _validation(found),
        "params_file": None if found is None or found.path is None else str(found.path),
        "page": None if done.page is None else str(done.page),
        "tracked": done.tracked,
    }


def _trial(trial: Any) -> dict[str, Any]:
    return {"trial": trial.number, "params": dict(trial.params), "losses": list(trial.values)}


def _validation(found: Validation) -> dict[str, Any]:
    return {
        **attributes(found, "instances", "seen", "broken", "broken_defaults"),
        **attributes(found, "failed", "failed_defaults", "wall_s", "wall_defaults_s"),
        "goals": [
            {
                **attributes(each, "goal", "defaults", "tuned"),
                "change": each.natural.value,
                "low": each.natural.low,
                "high": each.natural.high,
                "verdict": each.verdict,
            }
            for each in found.comparisons
        ],
    }


def show_tuned(done: TuneRun, told: dict[str, Any]) -> None:
    """Show the outcome: trials, parameters, their value on unseen instances, and the files
    written.
    """
    state = "interrupted: " if done.interrupted else ""
    dead = f", {done.deaths} workers died and were replaced" if done.deaths else ""
    show(
        f"\n[bold]{escape(told['study'])}[/]  {state}{told['done']:,} of {told['trials']:,} "
        "trials done "
        f"[{DIM}]({told['pruned']:,} pruned, {told['ran']:,} by this command{dead})[/]"
    )
    found = done.validation
    if found is None:
        show("the same command continues the search")
        return
    if found.chosen is None:
        constraints = ", ".join(done.task.section.constraints)
        show(
            f"[{BAD}]no trial keeps the constraints[/] ({escape(constraints)}); widen the space, "
            "or try more trials"
        )
        return
    if len(found.front) > 1:
        show(
            "",
            _front_table(done),
            f"[{DIM}]* nearest to the best of all goals at once, in units of the front's extent[/]",
        )
    rows = [
        (escape(name), _shown(done.task.defaults[name]), _shown(value))
        for name, value in found.chosen.params.items()
    ]
    columns = ("parameter", "defaults", f"trial {found.chosen.number}")
    show("", table(columns, rows, right=columns[1:]))
    show("", _comparison_table(found), "", escape(verdict(found)))
    show(
        f"written to [bold]{escape(str(found.path))}[/]; use it with -p "
        f"params={escape(_relative(str(found.path)))}"
    )
    if told["page"]:
        show(f"history, importance and slices: [bold]{escape(_relative(told['page']))}[/]")
    if told["tracked"]:
        show(f"[{DIM}]{escape(told['tracked'])}[/]")


def verdict(found: Validation) -> str:
    """The verdict in words."""
    unseen = where(found)
    if found.unchanged:
        return (
            "The search found nothing better than the defaults, which the file therefore "
            f"holds ({unseen} nothing changes)."
        )
    if found.failed > found.failed_defaults:
        return (
            f"Not to be recommended: {found.failed:,} failures {unseen}, "
            f"{found.failed_defaults:,} of the defaults."
        )
    if found.broken:
        return f"Not to be recommended: {unseen} it breaks {', '.join(found.broken)}."
    if found.broken_defaults:
        price = ", ".join(f"{each.goal} {signed(each.natural.value)}" for each in found.comparisons)
        return (
            f"The defaults break {', '.join(found.broken_defaults)} {unseen}; keeping it "
            f"makes a difference of {price}."
        )
    return " ".join(_sentence(each, unseen) for each in found.comparisons)


def where(found: Validation) -> str:
    """The instances of the comparison; those that the search used prove little about others."""
    if not found.seen:
        return f"on {found.instances:,} instances that the search has not seen"
    if found.seen == found.instances:
        return f"on the search's own {found.instances:,} instances with other seeds"
    return f"on {found.instances:,} instances, {found.seen:,} of which the search has seen"


def _sentence(each: TunedComparison, unseen: str) -> str:
    natural = each.natural
    change, interval = signed(natural.value), f"95 % interval {_interval(each)}"
    if each.verdict == "better":
        return f"{each.goal}: better than the defaults {unseen}, {change} ({interval})."
    if each.verdict == "worse":
        return f"{each.goal}: WORSE than the defaults {unseen}, {change} ({interval})."
    known = interval if natural.known else "too few instances for an interval"
    return f"{each.goal}: not proven better than the defaults {unseen}, {change} ({known})."


def _comparison_table(found: Validation) -> Any:
    colour = {"better": GOOD, "worse": BAD, "level": DIM}
    columns: dict[str, Callable[[TunedComparison], str]] = {
        "goal, unseen seeds": lambda each: escape(each.goal),
        "defaults": lambda each: figure(each.defaults),
        "tuned": lambda each: figure(each.tuned),
        "change": lambda each: f"[{colour[each.verdict]}]{signed(each.natural.value)}[/]",
        "95 % interval": lambda each: _interval(each) if each.natural.known else "-",
    }
    return table_of(found.comparisons, columns, left=("goal, unseen seeds",))


def _interval(each: TunedComparison) -> str:
    return f"{signed(each.natural.low)} to {signed(each.natural.high)}"


def _front_table(done: TuneRun) -> Any:
    found = done.validation
    assert found is not None and found.chosen is not None
    names = [axis.name for axis in done.task.section.space]
    goals = [f"{goal.loss} of {goal.expression}" for goal in done.task.section.goals]
    rows = [
        (
            f"{k}{'*' if trial.number == found.chosen.number else ''}",
            *(signed(value) for value in trial.values),
            *(_shown(trial.params[name]) for name in names),
        )
        for k, trial in enumerate(found.front, start=1)
    ]
    return table(("point", *map(escape, goals), *map(escape, names)), rows, right=(*goals, *names))


def signed(share: float | None) -> str:
    """Format a relative change: ``-7.43 %``."""
    return "-" if share is None else f"{100 * share:+.2f} %"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def _relative(path: str) -> str:
    from pathlib import Path

    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
