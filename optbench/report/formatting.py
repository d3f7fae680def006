"""Percentages, intervals and times as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from optbench.evaluate.stats import Estimate
from optbench.html.quantities import plain
from optbench.model.measures import Value
from optbench.model.result import OPTIMAL_GAP
from optbench.run.best_known import levels_of

NONE = "–"


def percent(value: float | None) -> str:
    """One decimal, below 1 % two digits: ``0 %``, ``0.0042 %``, ``1.4 %``, ``32.9 %``."""
    return NONE if value is None else f"{_hundred(value)} %"


def _hundred(value: float) -> str:
    share = 100 * value
    if abs(value) <= OPTIMAL_GAP:
        return "0"
    size = abs(share)
    text = f"{size:,.0f}" if size >= 99.95 else f"{size:.1f}" if size >= 1 else f"{size:.2g}"
    return f"−{text}" if share < 0 else text


def interval(estimate: Estimate | None) -> str:
    """``0 to 2.6 %``; nothing where the spread is unknown."""
    if estimate is None or not estimate.known:
        return ""
    return f"{_hundred(estimate.low)} to {_hundred(estimate.high)} %"


def with_interval(estimate: Estimate | None) -> str:
    """``1.4 % (0 to 2.6 %)``."""
    return _written(estimate, _hundred, " %", " %")


def figures(estimate: Estimate | None) -> str:
    """A mean of any unit, four digits: ``9.071 (9.05 to 9.09)``."""
    return _written(estimate, four_digits)


def points(estimate: Estimate | None) -> str:
    """A difference of percentages: ``20.6 points (11.6 to 31.5)``."""
    return _written(estimate, _hundred, " points")


def _written(
    estimate: Estimate | None, write: Callable[[float], str], unit: str = "", end_unit: str = ""
) -> str:
    """A value with its unit, followed by its interval where that is known."""
    if estimate is None:
        return NONE
    ends = f" ({write(estimate.low)} to {write(estimate.high)}{end_unit})" if estimate.known else ""
    return f"{write(estimate.value)}{unit}{ends}"


def four_digits(value: float) -> str:
    return plain(float(f"{value:.4g}"))


def number(value: Value | None) -> str:
    """An objective or a bound; the levels of a lexicographic one are separated by commas."""
    return NONE if value is None else ", ".join(plain(each) for each in levels_of(value))


def infeasible_words(claim: Mapping[str, Any]) -> str:
    """Source, proof and argument of a claim of infeasibility."""
    argument = f": {claim['argument']}" if claim.get("argument") else ""
    return f"{claim['source']} ({claim['proof']}){argument}"


def seconds(value: float | None) -> str:
    if value is None:
        return NONE
    if value < 1:
        return f"{1000 * value:.0f} ms" if value >= 0.01 else f"{1000 * value:.2g} ms"
    return f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"


def counted(count: int, what: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def unbroken(words: str) -> str:
    """Text as HTML in which no percentage is broken over two lines."""
    return escape(words).replace(" %", "&nbsp;%")


def listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
