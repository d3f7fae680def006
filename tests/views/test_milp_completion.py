"""Rows that say when everything has ended: written out, and with columns for their sums."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

import optbench as ob
from optbench.api import solve
from optbench.errors import UnsupportedError
from optbench.model.instance import Instance
from optbench.plugins.protocol import Run
from optbench.plugins.solvers.highs import Highs
from optbench.views.milp import BuildStoppedError, MilpArrays, TimeIndexed, completion, formulate
from optbench.views.milp.choose import time_indexed_size
from optbench.views.milp.completion import first_tick, last_tasks, outlast_coefficients
from optbench.views.milp.frame import frame
from optbench.views.milp.time_indexed import start_windows

from .milp_cases import tiny


def optimum(arrays: MilpArrays, whole: bool) -> float:
    """Of the formulation, or of its linear relaxation."""
    ptr, col, value = arrays.matrix
    rows = csr_array((value, col, ptr), shape=(arrays.num_rows, arrays.num_columns))
    limits: Any = LinearConstraint(rows, arrays.row_lower, arrays.row_upper)
    bounds = np.stack((arrays.lower, arrays.upper))
    integral = arrays.integer.astype(int) if whole else np.zeros(arrays.num_columns)
    found = milp(arrays.cost, integrality=integral, bounds=tuple(bounds), constraints=limits)  # type: ignore[arg-type]
    return float(found.fun) + arrays.constant if found.success else float("inf")


def priced(ticks: int) -> Instance:
    """Three tasks on three devices that rest at 3 W until completion, at two prices."""
    m = ob.Model("priced", tick_s=1.0)
    gpu = m.pool("gpu", 3, idle_w=3.0)
    for length in (ticks / 3, ticks / 2, ticks):
        m.task(modes=[m.mode(gpu, length, 5.0)])
    m.tariff(price_usd_per_kwh=[1.0, 2.0], times_s=[0, ticks])
    m.minimize(cost_usd=1.0)
    return m.build()


@pytest.mark.parametrize("seed", range(8))
def test_sums_in_columns_have_the_same_relaxation(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance, values = tiny(seed, varying=True), []
    for most in (10**9, -1):
        monkeypatch.setattr(completion, "MAX_OUTLAST", most)
        arrays = TimeIndexed(instance).arrays
        assert (arrays.block("running") is not None) == (most < 0)
        values.append([optimum(arrays, whole) for whole in (False, True)])
    assert values[0] == pytest.approx(values[1], rel=1e-7)


def test_a_schedule_is_a_point_of_the_rows_with_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MAX_OUTLAST", -1)
    instance = priced(6)
    best = solve(instance, "cpsat", time_limit_s=10)
    form = TimeIndexed(instance)
    assert best.schedule is not None and form.arrays.block("running") is not None
    point = form.point_of(best.schedule)
    assert point is not None and form.arrays.worst_violation(point)[0] <= 1e-9
    assert form.arrays.objective(point) == pytest.approx(best.objective)


@pytest.mark.parametrize("seed", range(8))
def test_coefficients_are_counted_before_they_are_built(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = tiny(seed, varying=True)
    base = frame(instance)
    counted = outlast_coefficients(base, *start_windows(base))
    x = TimeIndexed(instance).starts
    mine = np.isin(instance.pairs.task[x.pair], last_tasks(instance))
    ticks = len(last_tasks(instance)) * (base.end - first_tick(base))
    # One coefficient per start and tick until its end, and one for z_t in every row.
    assert counted[0] == np.maximum(0, x.end[mine] - first_tick(base)).sum() + ticks
    monkeypatch.setattr(completion, "MAX_OUTLAST", -1)
    arrays = TimeIndexed(instance).arrays
    built = sum(len(rows.col) for rows in arrays.rows if rows.name in ("outlast", "running"))
    assert built <= counted[1]


def test_no_formulation_is_larger_than_its_estimate() -> None:
    """Three tasks of up to 2,000 ticks made millions of coefficients, of which the estimate knew
    nothing.
    """
    for instance in (priced(2000), *(tiny(s, varying=True, limited=True) for s in range(8))):
        arrays = TimeIndexed(instance).arrays
        assert arrays.num_nonzeros <= time_indexed_size(frame(instance)).nonzeros + 50
    assert TimeIndexed(priced(2000)).arrays.num_nonzeros < 400_000


def test_what_is_too_large_is_refused_with_the_remedy() -> None:
    with pytest.raises(UnsupportedError, match="Use -s cpsat, or a longer tick_s"):
        formulate(priced(200_000), "time_indexed")


@pytest.mark.parametrize("form", ["time_indexed", "disjunctive"])
def test_building_ends_with_the_time(form: str) -> None:
    """The clock is looked at between the blocks: none is built once there is no time left."""
    instance, looks = tiny(0), iter([False, True])
    formulation, _ = formulate(instance, form, should_stop=lambda: next(looks))
    with pytest.raises(BuildStoppedError, match="stopped while it was being built"):
        _ = formulation.arrays


def test_highs_without_time_keeps_its_first_schedule() -> None:
    instance = tiny(0)
    run = Run(instance, time_limit_s=0.0, warm_start=solve(instance, "heft").schedule)
    best = Highs().solve(instance, run)
    assert best is not None and run.termination == "time_limit"
    assert run.message is not None and "longer time limit" in run.message


@pytest.mark.parametrize("most", [0, 10**6])
def test_many_coefficients_skip_what_looks_at_no_clock(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    highs = import_module("optbench.plugins.solvers.highs")
    monkeypatch.setattr(highs, "MOST_JUMP_NONZEROS", most)
    formulation, _ = formulate(tiny(0), "time_indexed")
    arrays = formulation.arrays
    session = highs.Session(Run(tiny(0)), formulation, arrays, np.arange(arrays.num_columns))
    _, jumps = session._prepared().getOptionValue("mip_heuristic_run_feasibility_jump")
    assert jumps == (most > 0)
