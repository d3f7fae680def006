"""Terminal output of an explanation: parts of the gap, costly decisions, values of resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.output import DIM, escape, figure, percent, show, table, table_of

if TYPE_CHECKING:
    from optbench.blaming import Blame
    from optbench.bounds.anatomy import Anatomy
    from optbench.bounds.explain import Explanation
    from optbench.bounds.marginal import MarginalValue

# Parts below this share of the objective are rounding errors.
NOTHING = 1e-7
SHOWN = 10


def show_explanation(explanation: Explanation) -> None:
    """Show the three tables of an explanation."""
    found = explanation.objective
    label = escape(explanation.instance.objective.label)
    show(
        f"[bold]where the gap comes from[/]  [{DIM}]{label}: {figure(found.objective)} is "
        f"{figure(found.excess)} above the "
        f"certified {escape(found.source)} bound {figure(found.bound)}[/]"
    )
    if explanation.unavoidable > NOTHING * abs(found.objective):
        show(
            f"[{DIM}]{figure(explanation.unavoidable)} of it is in every schedule, by the best "
            "bound known[/]"
        )
    show("", parts_table(explanation), "")
    if found.decisions:
        title = "the most expensive decisions, and the choice at the prices of the LP"
        show(title, "", decisions_table(explanation), "")
    if explanation.marginal_values:
        show(
            (
                "one more of each resource: no schedule is then below the floor; the price is what "
                "the bound falls by"
            ),
            "",
            values_table(explanation),
            "",
        )


def show_blame(blamed: Blame) -> None:
    """Show whose fault the gap is, and the evidence."""
    verdict, *evidence = blamed.sentences
    show(f"[bold]{escape(verdict)}[/]", *(f"  {escape(line)}" for line in evidence), "")


def parts_table(explanation: Explanation) -> Any:
    """The table of the parts of the gap that are not rounding, and of their energy."""
    from optbench.bounds.explain import PART_WORDS

    found, energy = explanation.objective, explanation.energy
    rows = []
    for name, words in PART_WORDS.items():
        columns = [a for a in (found, energy) if a is not None]
        if any(abs(a.parts[name]) > NOTHING * max(1.0, abs(a.objective)) for a in columns):
            rows.append((name, *(cell for a in columns for cell in _amount(a, name)), words))
    total = [cell for a in (found, energy) if a is not None for cell in (figure(a.excess), "100 %")]
    rows.append(("excess", *total, ""))
    heads = (
        ("objective", "share") if energy is None else ("objective", "share", "energy (J)", "of it")
    )
    return table(("part", *heads, "what it is"), rows, right=heads)


def _amount(found: Anatomy, name: str) -> tuple[str, str]:
    value = found.parts[name]
    share = value / found.excess if found.excess > 0 else 0.0
    return figure(value), percent(share) if value > 0 else "-"


def decisions_table(explanation: Explanation) -> Any:
    """The table of the tasks whose modes and starts cost most."""
    from optbench.bounds.explain import mode_words

    instance = explanation.instance
    rows = []
    for d in explanation.objective.decisions[:SHOWN]:
        instead = "-" if d.instead == d.mode else escape(mode_words(instance, d.instead))
        costs = (
            figure(v) if v > NOTHING * d.total else "-"
            for v in (d.clock, d.count, d.placement, d.waiting, d.total)
        )
        rows.append(
            (
                escape(instance.tasks.name(d.task)),
                escape(mode_words(instance, d.mode)),
                instead,
                *costs,
            )
        )
    numbers = ("clock", "count", "placement", "waiting", "together")
    return table(("task", "runs on", "instead", *numbers), rows, right=numbers)


def values_table(explanation: Explanation) -> Any:
    """The table of certified bounds with one unit more of each resource."""
    columns: dict[str, Callable[[MarginalValue], str]] = {
        "more": lambda value: f"+{value.amount:g} {value.unit}".strip(),
        "of": lambda value: escape(value.resource),
        "floor": lambda value: figure(value.floor),
        "price": lambda value: figure(value.price),
        "saves at most": lambda value: figure(explanation.saves_at_most(value)),
        "proof": lambda value: value.how,
    }
    return table_of(explanation.marginal_values, columns, left=("of", "proof"))
