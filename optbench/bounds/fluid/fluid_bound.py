"""The fluid bound: an LP whose duals are verified in exact arithmetic, so that floating-point
errors cannot invalidate it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.merging import merge_pools
from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.fluid.fluid_units import solve_program
from optbench.bounds.fluid.pricing import solve_by_pricing
from optbench.bounds.lp.certificates import FLUID, certificate_text, dual_fields, read_duals
from optbench.bounds.lp.exact_check import (
    Certificate,
    certificate,
    proven_bound,
    repriced,
    round_down,
)
from optbench.bounds.lp.linear_program import LinearProgram, LpSolution
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.objective import MAKESPANS
from optbench.model.result import Bound
from optbench.model.windows import windows

# Numbers of (task, mode) pairs from which the LP is solved by pricing, first without edges, and
# beyond which with them only where that is expected to take at most this share of the time.
LARGE, HUGE, EDGES_SHARE = 20_000, 250_000, 0.5
# Pairs for which the LP with edges takes about a second: seconds grow by this power of the number.
PAIRS_OF_A_SECOND, GROWTH = 40_000, 1.3
# With more (task, mode) pairs even that takes minutes; and the number that is built and solved in a
# second.
MAX_PAIRS, PAIRS_PER_S = 1_000_000, 50_000
# Share of the time for the LP without edges where the one with them follows.
FIRST_SHARE = 0.3
# Families of rows whose duals price device-time, by pool.
PRICED = ("capacity", "room")
# Above the tolerance of HiGHS; a bound may lose this share where the floor is only slightly above
# the rows.
GIVEN_WAY = 2e-7
# Duals that prove less than the columns' own lower bounds, by this share, come from an interrupted
# solve.
INTERRUPTED = 1e-9


@dataclass(frozen=True, eq=False)
class FluidProof:
    """A bound with the duals that prove it; the LP is built from the instance and not stored.

    ``proven`` is what the duals prove before it is rounded, or raised to whole ticks.
    ``pool_price`` is the price of device-time per pool, of a large LP without edges.
    """

    bound: Bound
    proven: Fraction
    certificate: Certificate
    keep_edges: bool
    timings_s: dict[str, float]
    pool_price: Floats | None = None


def fluid_bound(instance: Instance, time_limit_s: float = 10.0) -> FluidProof | None:
    """Return a bound on the first level, or None when HiGHS found no duals in time, or work may be
    left undone.
    """
    instance = merge_pools(instance).instance
    size = len(instance.pairs.task)
    if size > min(MAX_PAIRS, PAIRS_PER_S * time_limit_s) or not is_bounded(instance):
        return None
    began = time.perf_counter()
    best: FluidProof | None = None
    with_edges = size <= HUGE or seconds_with_edges(size) <= EDGES_SHARE * time_limit_s
    for keep_edges in [False] * (size > LARGE) + [True] * with_edges:
        left = time_limit_s - (time.perf_counter() - began)
        if best is not None and left < 0.5 * time_limit_s:
            break
        first_of_two = not keep_edges and with_edges
        known = best.pool_price if best is not None else None
        proof = solve_fluid(
            instance, FIRST_SHARE * left if first_of_two else left, keep_edges, known
        )
        if proof is not None and (best is None or proof.bound.value > best.bound.value):
            best = proof
    return best


def seconds_with_edges(pairs: int) -> float:
    """Return about how long the LP with edges of so many (task, mode) pairs takes."""
    return float((pairs / PAIRS_OF_A_SECOND) ** GROWTH)


def is_bounded(instance: Instance) -> bool:
    """Whether the rows of the fluid LP hold of every schedule of the instance, and are finite."""
    if instance.is_open or instance.num_tasks == 0 or instance.preemptive:
        return False
    return bool(np.isfinite(windows(instance).critical_path))


def solve_fluid(
    instance: Instance, time_limit_s: float, keep_edges: bool, known: Floats | None = None
) -> FluidProof | None:
    """Solve and prove the LP with or without its edges; None when nothing was proved in time."""
    began = time.perf_counter()
    fluid = fluid_model(instance, keep_edges)
    program = fluid.program()
    built = time.perf_counter()
    dual = solution_of(fluid, program, time_limit_s - (built - began), known).dual
    solved = time.perf_counter()
    if dual is None:
        return None
    proof = proof_of(fluid, program, dual, keep_edges)
    timings = {
        "build": built - began,
        "solve": solved - built,
        "prove": time.perf_counter() - solved,
    }
    return None if proof is None else replace(proof, timings_s=timings)


def proof_of(
    fluid: Fluid, program: LinearProgram, dual: Floats, keep_edges: bool
) -> FluidProof | None:
    """Return what these duals prove in rationals; None when they prove less than the columns' lower
    bounds alone, because the solve was interrupted.
    """
    proof = repriced(program, certificate(program, dual), choices(program))
    proven = proven_bound(program, proof)
    trivial = float(program.cost @ program.lower)
    if proven is None or proven < trivial - INTERRUPTED * abs(trivial):
        return None
    bound = _bound(fluid, program, proof, proven, keep_edges)
    large = not keep_edges and len(fluid.instance.pairs.task) > LARGE
    return FluidProof(
        bound, proven, proof, keep_edges, {}, pool_prices(fluid, program, dual) if large else None
    )


def pool_prices(fluid: Fluid, program: LinearProgram, dual: Floats) -> Floats:
    """Return the price of device-time per pool: the duals of its capacity rows."""
    price = np.zeros(fluid.instance.num_pools)
    at = np.isin(np.asarray(program.family), PRICED)
    np.add.at(price, program.of[at], dual[at])
    return price


def solution_of(
    fluid: Fluid,
    program: LinearProgram,
    time_limit_s: float,
    known: Floats | None = None,
    rough: bool = False,
) -> LpSolution:
    """Return primal and duals from HiGHS: of the whole LP, or by pricing where that is many times
    faster. Floors of metrics are given way to rows, whose duals explain the value. A ``rough``
    solution is that of one round over two columns per task.
    """
    program = _with_rows_for_floors(fluid, program)
    if rough:
        found = solve_by_pricing(fluid, program, time_limit_s, known, most_rounds=1, rough=True)
        return found or LpSolution("not begun", 0.0, np.zeros(program.num_columns), None)
    if len(fluid.share) > LARGE:
        began = time.perf_counter()
        priced = solve_by_pricing(fluid, program, time_limit_s, known)
        if priced is not None:
            return priced
        time_limit_s -= time.perf_counter() - began
    return solve_program(fluid, program, time_limit_s)


def _with_rows_for_floors(fluid: Fluid, program: LinearProgram) -> LinearProgram:
    """Return the LP to solve: floors of metrics are replaced by equivalent rows, whose duals
    explain the value.
    """
    lower = program.lower.copy()
    floors = [fluid.makespan, *fluid.metric.values()]
    lower[floors] -= GIVEN_WAY * np.maximum(1.0, np.abs(lower[floors]))
    return replace(program, lower=lower)


def choices(program: LinearProgram) -> Ints:
    """Return the rows that give each task one mode."""
    return np.flatnonzero(np.asarray(program.family) == "assign")


def recheck_fluid(instance: Instance, data: Mapping[str, Any]) -> Bound | None:
    """Return what the duals of a certificate prove for this instance, with its LP built again; None
    when they prove nothing.
    """
    instance, keep_edges = merge_pools(instance).instance, data.get("keep_edges") is True
    if not is_bounded(instance):
        return None
    fluid = fluid_model(instance, keep_edges)
    program = fluid.program()
    duals = read_duals(data, program)
    proven = proven_bound(program, duals)
    return None if proven is None else _bound(fluid, program, duals, proven, keep_edges)


def _bound(
    fluid: Fluid, program: LinearProgram, duals: Certificate, proven: Fraction, keep_edges: bool
) -> Bound:
    source = "fluid_lp" if keep_edges else "fluid_lp:no_edges"
    text = certificate_text(FLUID, keep_edges=keep_edges, **dual_fields(program, duals))
    return Bound(value_of(fluid, program, proven), source, "exact-lp", certificate=text)


def value_of(fluid: Fluid, program: LinearProgram, proven: Fraction) -> float:
    """Return the proven value as a float that is no larger; a makespan in ticks is rounded up to a
    whole one.
    """
    level = fluid.instance.objective.levels[0]
    if len(level) == 1 and level[0][0] in MAKESPANS:
        ticks = math.ceil(proven / Fraction(float(program.cost[fluid.makespan])))
        return level[0][1] * (
            ticks * (fluid.instance.tick_s if level[0][0] == "makespan_s" else 1.0)
        )
    return round_down(proven)
