"""Percentages, intervals and times as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from optbench.evaluate.stats import Estimate
from optbench.html import quantities
from optbench.html.quantities import hundredths, plain
from optbench.model.measures import Value
from optbench.run.best_known import levels_of

NONE = "–"


def percent(value: float | None) -> str:
    """A gap or a share; a dash where there is none."""
    return NONE if value is None else quantities.percent(value)


def interval(estimate: Estimate | None) -> str:
    """``0 to 2.6 %``; nothing where the spread is unknown."""
    if estimate is None or not estimate.known:
        return ""
    return f"{hundredths(estimate.low)} to {hundredths(estimate.high)} %"


def with_interval(estimate: Estimate | None) -> str:
    """``1.4 % (0 to 2.6 %)``."""
    return _written(estimate, hundredths, " %", " %")


def figures(estimate: Estimate | None) -> str:
    """A mean of any unit, four digits: ``9.071 (9.05 to 9.09)``."""
    return _written(estimate, four_digits)


def points(estimate: Estimate | None) -> str:
    """A difference of percentages: ``20.6 points (11.6 to 31.5)``."""
    return _written(estimate, hundredths, " points")


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
    """A duration; a dash where there is none."""
    return NONE if value is None else quantities.duration(value)


def counted(count: int, what: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def unbroken(words: str) -> str:
    """Text as HTML in which no percentage is broken over two lines."""
    return escape(words).replace(" %", "&nbsp;%")


def listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
