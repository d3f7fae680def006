"""``assert_gap``: the one thing a test of a result should say."""

from __future__ import annotations

from optbench.model.result import Result


def assert_gap(result: Result, at_most: float) -> None:
    """The result is verified, bounded, and within ``at_most`` of its bound at every level of the objective."""
    assert result.verified, f"{result.solver} on {result.instance}: no verified schedule ({result.status}); {result.violations}"
    assert result.gap is not None, f"{result.solver} on {result.instance}: no bound"
    gaps = result.gap if isinstance(result.gap, tuple) else (result.gap,)
    assert max(gaps) <= at_most, f"{result.solver} on {result.instance}: gap {result.gap}, at most {at_most} was asked for"
