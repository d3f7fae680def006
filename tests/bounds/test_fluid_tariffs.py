"""Pieces of the tariff rows: the lower hull, the room of a period, and what both are rounded to."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid.fluid_bound import fluid_bound
from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.fluid.fluid_tariffs import _lower_hull


def priced(horizon_s: float | None = 4 * 3600.0, idle_w: float = 0.0, tasks: int = 1) -> ob.Model:
    """Tasks of one kWh and one hour, two ticks, on two devices; each hour is dearer than
    the last.
    """
    m = ob.Model("priced", tick_s=1800, horizon_s=horizon_s)
    gpu = m.pool("gpu", count=2, idle_w=idle_w)
    for _ in range(tasks):
        m.task(modes=[m.mode(gpu, time_s=3600, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=(0.1, 0.2, 0.3, 0.4))
    m.minimize(cost_usd=1.0)
    return m


def rows_of(fluid: Fluid, family: str) -> list[tuple[dict[int, float], float]]:
    """Coefficients by column, and right-hand sides."""
    lp = fluid.program()
    found = []
    for r in range(lp.num_rows):
        if lp.family[r] == family:
            here = slice(lp.row_ptr[r], lp.row_ptr[r + 1])
            terms = zip(lp.column[here].tolist(), lp.value[here].tolist(), strict=True)
            found.append((dict(terms), float(lp.right[r])))
    return found


def test_the_lower_hull_leaves_out_what_lies_on_or_above_it() -> None:
    # (1, 3) lies above the line from (0, 0) to (2, 2), (4, 6) on the one from (2, 2) to (6, 10).
    x, y = np.array([0.0, 1.0, 2.0, 4.0, 6.0]), np.array([0.0, 3.0, 2.0, 6.0, 10.0])
    assert _lower_hull(x, y) == [0, 2, 4]
    # A valley: both flanks stay. A hill: only its ends.
    assert _lower_hull(np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])) == [0, 1, 2]
    assert _lower_hull(np.array([10.0, 11.0, 14.0]), np.array([0.0, 9.0, 8.0])) == [0, 2]
    assert _lower_hull(np.array([10.0, 12.0, 14.0]), np.array([5.0, 5.5, 7.0])) == [0, 1, 2]


def test_the_room_of_a_period_is_rounded_to_more_and_not_by_much() -> None:
    fluid = fluid_model(priced().build())
    rows = rows_of(fluid, "room")
    # Two devices, two ticks an hour: 4, of one device each.
    assert [terms for terms, _ in rows] == [{int(slot): -1.0} for slot in fluid.slot]
    assert all(-4.000001 <= right < -4 for _, right in rows)


def test_a_cost_is_at_least_its_rest_and_its_work_and_nothing_besides() -> None:
    fluid = fluid_model(priced().build())
    ((terms, right),) = rows_of(fluid, "cost_usd")
    assert right == 0
    # 1 kW is 1.8e6 J a tick, at 0.1 to 0.4 USD; nothing of it is left for the share.
    work = [terms[int(slot)] for slot in fluid.slot]
    assert work == pytest.approx([-0.18e6, -0.36e6, -0.54e6, -0.72e6])
    assert terms[fluid.metric["cost_usd"]] == 3.6e6 and terms[fluid.rest["cost_usd"]] == -1.0


def test_rest_until_completion_is_the_hull_of_its_integral() -> None:
    # Three tasks of two ticks on two devices take 3 ticks or more. Rest of 1,000 W is 1.8e6 J a
    # tick: at 0.1 USD for two ticks, 0.2 for two, 0.3 for two and then 0.4. Until 3 that is
    # 0.36e6 + 0.36e6, until 4 0.36e6 more, until 6 1.08e6 more, and then 0.72e6 a tick. Dearer and
    # dearer is convex: a line for each of the last three prices.
    fluid = fluid_model(priced(horizon_s=None, idle_w=500, tasks=3).build())
    rows = rows_of(fluid, "rest")
    assert len(rows) == 3
    last = float(np.concatenate(fluid.columns.upper)[fluid.makespan])
    size = 3.6e6 + 0.72e6 * (last - 8) + 0.72e6 * last
    for ticks, expected in ((3, 0.72e6), (4, 1.08e6), (6, 2.16e6), (7, 2.88e6)):
        highest = max(right - terms[fluid.makespan] * ticks for terms, right in rows)
        # The corners are lowered by 10 · 10^-13 of the rest until the last makespan and of that at
        # the dearest price, the lines by 1 · 10^-13 more.
        assert expected - highest == pytest.approx(11e-13 * size, rel=0.01)


def test_work_and_rest_are_bounded_together() -> None:
    # One kWh at 0.1 USD, and the other device rests for that hour: 0.5 kWh.
    proof = fluid_bound(priced(horizon_s=None, idle_w=500).build())
    assert proof is not None and proof.bound.value == pytest.approx(0.15)
