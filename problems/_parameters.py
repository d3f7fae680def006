"""Checks of parameters that the problem families share."""

from __future__ import annotations

from optbench.errors import ParameterError


def require(ok: bool, family: str, name: str, value: object, allowed: str) -> None:
    """Raise a ParameterError that names the parameter, its value and what is allowed."""
    if not ok:
        raise ParameterError(f"problem {family!r}: {name} is {value!r}; it must be {allowed}")


def require_range(family: str, low: int, high: int) -> None:
    """Check the range from which durations are drawn: 1 <= low <= high."""
    require(low >= 1, family, "low", low, "at least 1")
    require(high >= low, family, "high", high, f"at least low, which is {low}")
