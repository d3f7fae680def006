"""One random instance, solved by brute force, by every exact solver, and bounded by every source:
what disagrees.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from optbench.api import solve
from optbench.bounds.auto import METHODS, lower_bounds
from optbench.errors import UnsupportedError
from optbench.model.instance import Instance
from optbench.model.result import Bound, Result
from optbench.plugins.discovery import load_solver
from optbench.plugins.protocol import check_supported
from tests.reference.brute_force import Optimum, brute_force
from tests.reference.random_instances import feature_names, in_fine_ticks, tiny_instance

TIME_LIMIT_S = 60.0
# Relative difference of an objective from the optimum that passes as none.
SAME = 1e-6
# Distance of a solver's bound from its optimum (relative, absolute below 1) that still counts as
# proven: HiGHS gives away a slack for its floating-point duals.
PROVEN = 1e-4
# A bound may exceed the optimum by the rounding of its own last digits.
EXACT = 1e-9


@dataclass
class Outcome:
    """What one seed amounted to. ``seconds`` is by source; ``wrong`` says each disagreement."""

    seed: int
    features: frozenset[str]
    optimum: float | None
    num_feasible: int
    seconds: dict[str, float] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


def compare(
    seed: int,
    solvers: Sequence[str],
    variants: Sequence[str] = (),
    fine: Sequence[str] = (),
    make: Callable[[int], Instance] = tiny_instance,
) -> Outcome:
    """Compare on the instance of a seed. Variants may refuse an instance; ``fine`` ones solve it in
    finer ticks too.
    """
    instance = make(seed)
    began = time.perf_counter()
    best = brute_force(instance)
    outcome = Outcome(
        seed,
        feature_names(instance),
        None if best is None else best.objective,
        0 if best is None else best.num_feasible,
    )
    outcome.seconds["brute force"] = time.perf_counter() - began
    for spec in solvers:
        _solve(outcome, instance, spec, best)
    for spec in variants:
        if _takes(spec, instance):
            _solve(outcome, instance, spec, best)
    _bound(outcome, instance, best)
    both = in_fine_ticks(instance) if fine else None
    if both is not None:
        coarse_ticks, fine_ticks = both
        best = brute_force(coarse_ticks)
        for spec in fine:
            if _takes(spec, fine_ticks):
                _solve(outcome, fine_ticks, spec, best, ", fine ticks")
        _bound(outcome, fine_ticks, best, ", fine ticks")
    return outcome


def _takes(spec: str, instance: Instance) -> bool:
    """Whether the solver takes the instance: not every formulation expresses every feature."""
    name, solver = load_solver(spec)
    try:
        check_supported(solver, name, instance)
    except UnsupportedError:
        return False
    return True


def _solve(
    outcome: Outcome, instance: Instance, spec: str, best: Optimum | None, note: str = ""
) -> None:
    began = time.perf_counter()
    result = solve(instance, spec, time_limit_s=TIME_LIMIT_S, bound=False)
    outcome.seconds[spec + note] = time.perf_counter() - began
    outcome.wrong += [
        f"seed {outcome.seed}, {spec}{note}: {what}" for what in _disagreements(result, best)
    ]
    outcome.sources |= {bound.source for bound in result.bounds}


def _disagreements(result: Result, best: Optimum | None) -> list[str]:
    if best is None:
        return (
            []
            if result.status == "infeasible"
            else [f"{result.status} {result.objective}, but no decision is feasible"]
        )
    value, bound = result.objective, result.bound
    if not (isinstance(value, float) and isinstance(bound, float)):
        return [
            (
                f"{result.status} (objective {value}, bound {bound}, {result.violations}); the "
                f"optimum is {best.objective}"
            )
        ]
    wrong = []
    if not math.isclose(value, best.objective, rel_tol=SAME, abs_tol=EXACT):
        wrong.append(f"objective {value!r}, the optimum is {best.objective!r}")
    if bound < value - PROVEN * max(1.0, abs(value)):
        wrong.append(f"not proven: {result.status}, bound {bound!r} of objective {value!r}")
    return wrong + _too_high(result.bounds, best)


def _bound(outcome: Outcome, instance: Instance, best: Optimum | None, note: str = "") -> None:
    """Every bounding method; an infeasible instance may have any bound."""
    began = time.perf_counter()
    for method in METHODS:
        bounds = lower_bounds(instance, method=method, time_limit_s=TIME_LIMIT_S)
        outcome.sources |= {bound.source for bound in bounds}
        if best is not None:
            outcome.wrong += [
                f"seed {outcome.seed}, method {method}{note}: {what}"
                for what in _too_high(bounds, best)
            ]
    outcome.seconds["bounds" + note] = time.perf_counter() - began


def _too_high(bounds: Sequence[Bound], best: Optimum) -> list[str]:
    top = best.objective + EXACT * max(1.0, abs(best.objective))
    return [
        f"bound {b.value!r} from {b.source} exceeds the optimum {best.objective!r}"
        for b in bounds
        if b.value > top
    ]
