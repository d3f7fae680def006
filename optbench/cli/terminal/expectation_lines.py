"""Terminal output of gates (a line each, with the cells that break it) and claims (a table)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.output import BAD, DIM, GOOD, escape, figure, percent, show, table_of

if TYPE_CHECKING:
    from optbench.evaluate.claim_ledger import ClaimResult
    from optbench.evaluate.gates import GateResult

UNSURE = "yellow"
COLOURS = {
    "holds": GOOD,
    "fails": BAD,
    "unknown": UNSURE,
    "not reproduced": BAD,
    "no data": UNSURE,
    "not checked": UNSURE,
}
LEGEND = (
    "holds: as good as the paper's figure, within the tolerance; bound: the best that "
    "certified bounds allow; a missing gap is 100 %"
)
# The number of cells shown for a gate that does not hold; the JSON has more.
WORST_SHOWN = 3


def show_gates(gates: Sequence[GateResult]) -> None:
    """Show each gate with its numbers; for one that does not hold, the reason and the worst
    cells.
    """
    from optbench.run.repeat_command import command_of

    if not gates:
        return
    show("", "[bold]gates[/]")
    for gate in gates:
        values = ", ".join(f"{part.text} = {short(part.value)}" for part in gate.parts)
        show(
            f"  {coloured(gate.verdict)}  [bold]{escape(gate.name)}[/]: "
            f"{escape(gate.expression)}  [{DIM}]{escape(values)}[/]"
        )
        if gate.remark:
            show(f"    {escape(gate.remark)}")
        for why in gate.why:
            show(f"    unknown: {escape(why)}")
        for each in gate.worst[:WORST_SHOWN]:
            said = each.why if each.value is None else f"{each.text} = {short(each.value)}"
            show(
                f"    {escape(each.cell.title)}: {escape(said)}",
                f"      {escape(command_of(each.cell))}",
            )


def show_claims(claims: Sequence[ClaimResult], with_study: bool = False) -> None:
    """Show the table of claims, and below it remarks on single claims."""
    if not claims:
        return
    columns: dict[str, Callable[[ClaimResult], str]] = {
        "study": lambda each: escape(each.study),
        "claim": lambda each: escape(each.claim.text),
        "source": lambda each: escape(each.claim.source),
        "paper": lambda each: short(each.claim.paper),
        "ours": lambda each: short(each.ours),
        "95 % interval": lambda each: " .. ".join(map(short, each.interval or ())) or "-",
        "bound": lambda each: short(each.bound),
        "mean gap": lambda each: percent(each.mean_gap),
        "verdict": lambda each: coloured(each.verdict),
    }
    if not with_study:
        del columns["study"]
    show("", table_of(claims, columns, left=("study", "claim", "source", "verdict")))
    show(f"[{DIM}]{LEGEND}[/]")
    for each in claims:
        for words in (*each.why, *([each.remark] if each.remark else [])):
            show(f"  {escape(each.claim.text)}: {escape(words)}")


def coloured(verdict: str) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/]"


def short(value: Any) -> str:
    """A number with four digits."""
    return (
        figure(value)
        if value is None or float(value).is_integer()
        else figure(float(f"{float(value):.4g}"))
    )
