"""The section on the sources of a gap: parts, most expensive decisions, certified marginal
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from optbench.bounds.anatomy import Anatomy
from optbench.bounds.explain import PART_WORDS, Explanation, mode_words
from optbench.html import colours, svg
from optbench.html.axes import Axis
from optbench.html.bar_rows import Bar, bar_row, text_y
from optbench.html.page import figure, note, section, text_table
from optbench.html.quantities import amount, plain
from optbench.model.result import Result

LEFT, BAR, WORDS = 150.0, 440.0, 760.0
ROW, ROW_BOTH, THICK, THIN = 28.0, 42.0, 12.0, 8.0
# Parts below this share of the objective are rounding and not drawn.
NOTHING = 1e-7


def gap_section(results: Sequence[Result], explained: Sequence[Explanation | None]) -> str:
    """One figure per explained result; empty where none is explained."""
    pairs = zip(results, explained, strict=False)
    figures = [_figure(result, why) for result, why in pairs if why is not None]
    return section("Where the gap comes from", *figures)


def _figure(result: Result, why: Explanation) -> str:
    found = why.objective
    label = why.instance.objective.label
    words = (
        f"<b>{escape(result.solver)}</b> · {escape(label)} is <b>{plain(found.excess)}</b> "
        "above the certified bound"
    )
    words += f" {plain(found.bound)} ({escape(found.source)})"
    if why.unavoidable > NOTHING * abs(found.objective):
        words += f", of which {plain(why.unavoidable)} is in every schedule"
    below = _legend(why) + _decisions(why) + _values(why)
    without_bars = f"<figure><figcaption>{words}</figcaption>{below}</figure>"
    return figure(words, _bars(why), below) or without_bars


def _part(found: Anatomy, name: str) -> float:
    """A part of the excess; 0 where it is no more than rounding."""
    value = found.parts[name]
    return value if abs(value) > NOTHING * max(1.0, abs(found.objective)) else 0.0


def _bars(why: Explanation) -> str:
    both = [found for found in (why.objective, why.energy) if found is not None]
    names = [name for name in PART_WORDS if any(_part(found, name) for found in both)]
    if not names:
        return ""
    axis, step, parts = Axis(LEFT, BAR, 0.0, 1.0), ROW if why.energy is None else ROW_BOTH, []
    for k, name in enumerate(names):
        bars = [_bar(why.objective, name, THICK, 0.0, "")]
        if why.energy is not None:
            bars.append(_bar(why.energy, name, THIN, THICK + 5, "J"))
        parts.append(bar_row(name, bars, axis, k * step + 6))
        parts.append(
            svg.text(WORDS, k * step + 6 + text_y(bars), PART_WORDS[name], class_="part-words")
        )
    return svg.chart(parts, len(names) * step + 6, "parts of the gap")


def _bar(found: Anatomy, name: str, thickness: float, below: float, unit: str) -> Bar:
    """A bar as long as the part's share of the excess, and the part in numbers."""
    value = _part(found, name)
    share = max(0.0, value / found.excess) if found.excess > 0 else 0.0
    colour = colours.colour(colours.POOLS, list(PART_WORDS).index(name))
    shown = f"{amount(value, unit) if unit else plain(value)}  ·  {100 * share:.3g} %"
    return Bar(0.0, share, colour, shown, (), thickness, below, "energy-part" if unit else None)


def _legend(why: Explanation) -> str:
    if why.energy is None:
        return ""
    words = (
        f"thin bars: the energy alone, {amount(why.energy.excess, 'J')} above the least that "
        "is certified"
    )
    return note(f"{words} ({amount(why.energy.bound, 'J')})")


def _decisions(why: Explanation) -> str:
    if not why.objective.decisions:
        return ""
    heads = ["most expensive decisions", "runs on", "best at the bound's prices"]
    heads += ["clock", "count", "placement", "waiting", "together"]
    rows = []
    for d in why.objective.decisions:
        mode = mode_words(why.instance, d.mode)
        instead = "the same" if d.instead == d.mode else mode_words(why.instance, d.instead)
        costs = (d.clock, d.count, d.placement, d.waiting, d.total)
        shown = [plain(v) if v > NOTHING * d.total else "-" for v in costs]
        rows.append((why.instance.tasks.name(d.task), mode, instead, *shown))
    return text_table(heads, rows, "prices", words=range(3))


def _values(why: Explanation) -> str:
    if not why.marginal_values:
        return ""
    heads = ("one more", "proof", "no schedule is below", "price", "saves at most")
    rows = []
    for v in why.marginal_values:
        name = f"{v.resource}, +{v.amount:g} {v.unit}".strip()
        rows.append((name, v.how, plain(v.floor), plain(v.price), plain(why.saves_at_most(v))))
    return text_table(heads, rows, "prices", words=range(2))
