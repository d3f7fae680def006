"""The section on the sources of a gap: parts, most expensive decisions, certified marginal values."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from optbench.bounds.anatomy import Anatomy
from optbench.bounds.explain import PART_WORDS, Explanation, mode_words
from optbench.bounds.marginal import MarginalValue
from optbench.html import colours, svg
from optbench.html.axes import Axis
from optbench.html.bar_rows import Bar, bar_row, text_y
from optbench.html.page import figure, note, row, section, table
from optbench.html.quantities import amount, plain
from optbench.model.result import Result

LEFT, BAR, WORDS = 150.0, 440.0, 760.0
ROW, ROW_BOTH, THICK, THIN = 28.0, 42.0, 12.0, 8.0
# Parts below this share of the objective are rounding and not drawn.
NOTHING = 1e-7


def gap_section(results: Sequence[Result], explained: Sequence[Explanation | None]) -> str:
    """One figure per explained result; empty where none is explained."""
    figures = [_figure(result, why) for result, why in zip(results, explained, strict=False) if why is not None]
    return section("Where the gap comes from", *figures)


def _figure(result: Result, why: Explanation) -> str:
    found = why.objective
    label = why.instance.objective.label
    words = f"<b>{escape(result.solver)}</b> · {escape(label)} is <b>{plain(found.excess)}</b> above the certified bound"
    words += f" {plain(found.bound)} ({escape(found.source)})"
    if why.unavoidable > NOTHING * abs(found.objective):
        words += f", of which {plain(why.unavoidable)} is in every schedule"
    tables = (_legend(why), _decisions(why), _values(why))
    return figure(words, _bars(why), *tables) or f"<figure><figcaption>{words}</figcaption>{''.join(tables)}</figure>"


def _shown(why: Explanation) -> list[str]:
    """Parts that are more than rounding in the objective or in the energy."""
    both = [a for a in (why.objective, why.energy) if a is not None]
    return [name for name in PART_WORDS if any(abs(a.parts[name]) > NOTHING * max(1.0, abs(a.objective)) for a in both)]


def _bars(why: Explanation) -> str:
    names = _shown(why)
    if not names:
        return ""
    axis, step, parts = Axis(LEFT, BAR, 0.0, 1.0), ROW if why.energy is None else ROW_BOTH, []
    for k, name in enumerate(names):
        bars = [_bar(why.objective, name, THICK, 0.0, "")]
        if why.energy is not None:
            bars.append(_bar(why.energy, name, THIN, THICK + 5, "J"))
        parts.append(bar_row(name, bars, axis, k * step + 6))
        parts.append(svg.text(WORDS, k * step + 6 + text_y(bars), PART_WORDS[name], class_="part-words"))
    return svg.chart(parts, len(names) * step + 6, "parts of the gap")


def _bar(found: Anatomy, name: str, thickness: float, below: float, unit: str) -> Bar:
    """A bar as long as the part's share of the excess, and the part in numbers."""
    value = found.parts[name] if abs(found.parts[name]) > NOTHING * max(1.0, abs(found.objective)) else 0.0
    share = max(0.0, value / found.excess) if found.excess > 0 else 0.0
    colour = colours.colour(colours.POOLS, list(PART_WORDS).index(name))
    shown = f"{amount(value, unit) if unit else plain(value)}  ·  {100 * share:.3g} %"
    return Bar(0.0, share, colour, shown, (), thickness, below, "energy-part" if unit else None)


def _legend(why: Explanation) -> str:
    if why.energy is None:
        return ""
    words = f"thin bars: the energy alone, {amount(why.energy.excess, 'J')} above the least that is certified"
    return note(f"{words} ({amount(why.energy.bound, 'J')})")


def _decisions(why: Explanation) -> str:
    if not why.objective.decisions:
        return ""
    heads = ["most expensive decisions", "runs on", "best at the bound's prices"]
    heads += ["clock", "count", "placement", "waiting", "together"]
    rows = []
    for d in why.objective.decisions:
        instead = "the same" if d.instead == d.mode else mode_words(why.instance, d.instead)
        costs = [plain(v) if v > NOTHING * d.total else "-" for v in (d.clock, d.count, d.placement, d.waiting, d.total)]
        rows.append(_row(why.instance.tasks.name(d.task), [mode_words(why.instance, d.mode), instead, *costs], range(1, 3)))
    return table(heads, rows, "prices", words=range(3))


def _values(why: Explanation) -> str:
    if not why.marginal_values:
        return ""
    heads = ("one more", "proof", "no schedule is below", "price", "saves at most")
    rows = [
        _row(_name(v), [v.how, plain(v.floor), plain(v.price), plain(why.saves_at_most(v))], (1,))
        for v in why.marginal_values
    ]
    return table(heads, rows, "prices", words=range(2))


def _name(value: MarginalValue) -> str:
    return f"{value.resource}, +{value.amount:g} {value.unit}".strip()


def _row(name: str, cells: Sequence[str], words: Sequence[int]) -> str:
    return row(escape(name), [escape(cell) for cell in cells], words)
