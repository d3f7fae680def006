"""Lower bounds by name: what ``optbench bound``, ``ob.bound`` and solvers ask for."""

from __future__ import annotations

import time

from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.bounds.fluid_bound import fluid_bound
from optbench.errors import UnknownNameError
from optbench.model.instance import Instance
from optbench.model.result import Bound

METHODS = {
    "auto": "combinatorial bounds, then the fluid programme with what is left of the time",
    "combinatorial": "critical paths, pool loads, cheapest choices, destructive bounds",
    "fluid": "the precedence-fluid linear programme, proved again in exact arithmetic",
}


def lower_bounds(instance: Instance, method: str = "auto", time_limit_s: float = 10.0) -> list[Bound]:
    """Certified bounds on the first level of the objective, best first; empty when nothing finite can be said."""
    if method not in METHODS:
        raise UnknownNameError("bounding method", method, METHODS)
    began = time.perf_counter()
    found: list[Bound] = []
    if method in ("auto", "combinatorial"):
        # Destructive bounds pay most in their first seconds, so that the programme is left its share.
        share = time_limit_s if method == "combinatorial" else time_limit_s / 2
        found = combinatorial_bounds(instance, share)
    if method in ("auto", "fluid"):
        proof = fluid_bound(instance, max(0.1, time_limit_s - (time.perf_counter() - began)))
        found += [proof.bound] if proof is not None else []
    return sorted(found, key=lambda bound: -bound.value)
