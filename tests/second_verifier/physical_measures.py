"""Metrics of what an instance may say beyond work and energy ("Metrics" in docs/formats.md)."""

from __future__ import annotations

from fractions import Fraction

from tests.second_verifier.heat import peaks
from tests.second_verifier.problem import Problem, Segment


def physical_metrics(problem: Problem, segments: list[Segment]) -> dict[str, Fraction | None]:
    """Each only where the instance says so."""
    found: dict[str, Fraction | None] = {}
    warm = [peak for _, peak in peaks(problem, segments)]
    if warm:
        found["peak_temperature_c"] = Fraction(max(warm))
    return found
