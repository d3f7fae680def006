"""Where the gap comes from: the parts of each explained schedule as bars, its dearest decisions, and certified prices."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from optbench.bounds.anatomy import Anatomy
from optbench.bounds.explain import PART_WORDS, Explanation, mode_words
from optbench.bounds.marginal import MarginalValue
from optbench.html import colours, svg
from optbench.html.axis_scale import amount, plain
from optbench.model.result import Result

WIDTH, LEFT, BAR, WORDS = 1200.0, 150.0, 440.0, 760.0
ROW, ROW_BOTH, THICK, THIN = 28.0, 42.0, 12.0, 8.0
# Parts below this share of the objective are rounding and not drawn.
NOTHING = 1e-7


def section(results: Sequence[Result], explained: Sequence[Explanation | None]) -> str:
    """One figure per explained result; empty when nothing was."""
    figures = [_figure(result, why) for result, why in zip(results, explained, strict=False) if why is not None]
    if not figures:
        return ""
    return f'<section class="gaps"><div class="head"><h2>Where the gap comes from</h2></div>{"".join(figures)}</section>'


def _figure(result: Result, why: Explanation) -> str:
    found = why.objective
    label = why.instance.objective.label
    words = f"<b>{escape(result.solver)}</b> · {escape(label)} is <b>{plain(found.excess)}</b> above the certified bound"
    words += f" {plain(found.bound)} ({escape(found.source)})"
    if why.unavoidable > NOTHING * abs(found.objective):
        words += f", of which {plain(why.unavoidable)} is in every schedule"
    return (
        f'<figure><figcaption>{words}</figcaption><div class="scroll">{_bars(why)}</div>{_legend(why)}'
        f'<div class="scroll">{_decisions(why)}</div><div class="scroll">{_values(why)}</div></figure>'
    )


def _shown(why: Explanation) -> list[str]:
    """Parts that are more than rounding in the objective or in the energy."""
    both = [a for a in (why.objective, why.energy) if a is not None]
    return [name for name in PART_WORDS if any(abs(a.parts[name]) > NOTHING * max(1.0, abs(a.objective)) for a in both)]


def _bars(why: Explanation) -> str:
    names = _shown(why)
    if not names:
        return ""
    parts = []
    step = ROW if why.energy is None else ROW_BOTH
    for row, name in enumerate(names):
        y = row * step + 6
        colour = colours.colour(colours.POOLS, list(PART_WORDS).index(name))
        parts.append(svg.text(LEFT - 12, y + 13, name, class_="pool"))
        parts.append(_bar(why.objective, name, y, THICK, colour, ""))
        if why.energy is not None:
            parts.append(_bar(why.energy, name, y + THICK + 5, THIN, colour, "J"))
        parts.append(svg.text(WORDS, y + 13, PART_WORDS[name], class_="part-words"))
    height = len(names) * step + 6
    return svg.tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH:g} {svg.num(height)}", class_="chart", role="img",
                   aria_label="parts of the gap")


def _bar(found: Anatomy, name: str, y: float, thickness: float, colour: str, unit: str) -> str:
    """A bar as long as the part's share of the excess, and the part in numbers."""
    value = found.parts[name] if abs(found.parts[name]) > NOTHING * max(1.0, abs(found.objective)) else 0.0
    share = max(0.0, value / found.excess) if found.excess > 0 else 0.0
    width = max(1.0, BAR * min(1.0, share))
    bar = svg.tag("rect", x=LEFT, y=y, width=width, height=thickness, rx=2.0, fill=colour, class_="energy-part" if unit else None)
    shown = f"{amount(value, unit) if unit else plain(value)}  ·  {100 * share:.3g} %"
    return bar + svg.text(LEFT + width + 8, y + thickness - (2 if unit else 1), shown, class_="tick-left")


def _legend(why: Explanation) -> str:
    if why.energy is None:
        return ""
    words = f"thin bars: the energy alone, {amount(why.energy.excess, 'J')} above the least that is certified"
    return f'<p class="note">{escape(words)} ({amount(why.energy.bound, "J")})</p>'


def _decisions(why: Explanation) -> str:
    if not why.objective.decisions:
        return ""
    heads = ("dearest decisions", "runs on", "at the programme's prices", "clock", "count", "placement", "waiting", "together")
    rows = []
    for d in why.objective.decisions:
        instead = "the same" if d.instead == d.mode else mode_words(why.instance, d.instead)
        costs = [plain(v) if v > NOTHING * d.total else "-" for v in (d.clock, d.count, d.placement, d.waiting, d.total)]
        rows.append(_row(why.instance.tasks.name(d.task), (mode_words(why.instance, d.mode), instead), costs))
    return _table(heads, 3, rows)


def _values(why: Explanation) -> str:
    if not why.marginal_values:
        return ""
    heads = ("one more", "proof", "no schedule is below", "price", "saves at most")
    rows = [
        _row(_name(v), (v.how,), [plain(v.floor), plain(v.price), plain(why.saves_at_most(v))]) for v in why.marginal_values
    ]
    return _table(heads, 2, rows)


def _name(value: MarginalValue) -> str:
    return f"{value.resource}, +{value.amount:g} {value.unit}".strip()


def _table(heads: Sequence[str], words: int, rows: Sequence[str]) -> str:
    head = "".join(f'<th{" class=words" if 0 < k < words else ""}>{escape(name)}</th>' for k, name in enumerate(heads))
    return f'<table class="prices"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _row(name: str, words: Sequence[str], numbers: Sequence[str]) -> str:
    cells = [f'<td class="words">{escape(text)}</td>' for text in words] + [f"<td>{escape(text)}</td>" for text in numbers]
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'
