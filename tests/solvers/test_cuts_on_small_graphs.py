"""Degenerate and infeasible task graphs by the exact solvers, whose models have cuts on them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.time_cuts import time_cuts
from optbench.views.milp import Disjunctive

SOLVERS = (
    "cpsat",
    "cpsat:cuts=no",
    "highs",
    "highs:form=disjunctive,first=no",
    "highs:form=disjunctive,first=no,cuts=no",
)
# Seconds of a task on so many devices.
TWO_MODES = ((1, 3.0), (2, 2.0))


def graph(
    middle: Sequence[Sequence[tuple[int, float]]],
    ends: bool = True,
    devices: int = 2,
    deadline_s: float | None = None,
) -> Instance:
    """Tasks side by side on one pool; with ``ends`` between a first and a last task of 1 s."""
    m = ob.Model("graph")
    gpu = m.pool("gpu", count=devices)
    before = [m.task("first", modes=[m.mode(gpu, time_s=1)])] if ends else []
    tasks = [
        m.task(
            f"middle {at}",
            modes=[m.mode({gpu: count}, time_s=seconds) for count, seconds in modes],
            after=before,
        )
        for at, modes in enumerate(middle)
    ]
    if ends:
        m.task("last", modes=[m.mode(gpu, time_s=1)], after=tasks, deadline_s=deadline_s, hard=True)
    m.minimize(makespan_s=1.0)
    return m.build()


CASES: dict[str, tuple[Instance, float | None]] = {
    # Two on one device each, 3 s, then one on both, 2 s; 9 device-seconds need more than 4 s.
    "no edges": (graph([TWO_MODES] * 3, ends=False), 5.0),
    "one task": (graph([TWO_MODES], ends=False), 2.0),
    "one mode": (graph([[(1, 3.0)]], ends=False, devices=1), 3.0),
    "a chain": (graph([TWO_MODES]), 4.0),
    "between two tasks": (graph([TWO_MODES] * 3), 7.0),
    "a deadline that just holds": (graph([TWO_MODES] * 3, deadline_s=7.0), 7.0),
    "a deadline that just fails": (graph([TWO_MODES] * 3, deadline_s=6.0), None),
    # The other two run side by side on one device each.
    "one without time": (graph([TWO_MODES, TWO_MODES, [(2, 0.0)]]), 5.0),
    "maybe without time": (graph([TWO_MODES, TWO_MODES, [(1, 1.0), (2, 0.0)]]), 5.0),
    "all without time": (graph([[(1, 0.0), (2, 0.0)]] * 3), 2.0),
    # 12 device-seconds on three devices take 4 s: one on each device.
    "three devices": (graph([[(1, 4.0), (2, 2.0)]] * 3, devices=3), 6.0),
    # Two modes on two of three devices exclude each other; a mode on one runs beside them.
    "two of three devices": (graph([[(2, 2.0)], [(2, 2.0)], [(1, 3.0)]], devices=3), 6.0),
    "more devices than work": (graph([TWO_MODES] * 3, devices=8), 4.0),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("case", CASES)
def test_degenerate_graphs_are_proven(case: str, solver: str) -> None:
    instance, optimum = CASES[case]
    result = ob.solve(instance, solver, time_limit_s=20.0, bound=False)
    if optimum is None:
        assert result.status == "infeasible"
    else:
        assert (result.status, result.objective) == ("optimal", optimum)


def test_the_cases_have_cuts_and_implied_rows() -> None:
    """Without this, the cases would test plain models."""
    with_cuts = {case for case, (instance, _) in CASES.items() if time_cuts(instance)}
    assert with_cuts >= {"no edges", "between two tasks", "a deadline that just fails"}
    assert not with_cuts & {"one task", "one mode", "a chain", "more devices than work"}
    names = {row.name for row in Disjunctive(CASES["between two tasks"][0]).arrays.rows}
    assert names >= {"between", "exclude", "one_way"}
    plain = Disjunctive(CASES["between two tasks"][0], cuts=False).arrays
    assert not {row.name for row in plain.rows} & {"between", "exclude", "one_way", "hold"}
