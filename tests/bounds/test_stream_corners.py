"""Bounds of streams at their edges: very short work, no energy at all, deadlines that change
nothing, foreign certificates.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.streams import stream_bound as stream
from optbench.bounds.streams.stream_bound import (
    path_bound,
    path_metrics,
    recheck_stream,
    slotted_bound,
    stream_bound,
)
from optbench.model.streams import with_stream
from tests.bounds.shops import shop
from tests.bounds.stream_farms import farm, priced


def test_of_half_a_second_of_work_a_device_more_saves_half_a_second_of_rest() -> None:
    # A tenth of a unit is a second of work for two devices at the high clock: 40 J per unit, and 1
    # W of rest over 0.5 s.
    found = path_bound(farm([0.001] * 100, [0] * 100, None))
    assert found is not None
    assert found.energy_j == pytest.approx(4.0, rel=1e-6)
    assert found.device_value_j["site"] == pytest.approx(0.5, rel=1e-4)


def test_where_nothing_draws_power_no_gap_is_left() -> None:
    m = ob.Model("free", time="seconds", horizon_s=100.0)
    m.tasks(np.ones(3), kind=m.kind(modes=[m.mode(m.pool("site"), 10.0)]))
    m.minimize(energy_j=1.0)
    instance = with_stream(m.build(), opens=0)
    found = path_metrics(
        instance, {"units_done": 3.0, "j_per_unit": 0.0, "sojourn_censored_s": 20.0}
    )
    assert {found[f"gap_{name}"] for name in ("own", "offered", "frontier")} == {0.0}
    assert found["floor_own_j_per_unit"] == pytest.approx(0.0, abs=1e-9)
    # Of nothing done there is nothing to say.
    assert (
        path_metrics(instance, {"units_done": 0.0, "j_per_unit": 0.0, "sojourn_censored_s": 20.0})
        == {}
    )


def test_the_gap_is_what_a_run_spends_above_its_floor() -> None:
    # 2,000 J of rest and 25 J for each of 15 units at least; a run that takes 80 s a task needs
    # 2,405 J.
    metrics = {"units_done": 15.0, "j_per_unit": 200.0, "sojourn_censored_s": 80.0}
    found = path_metrics(farm([5, 5, 5], [0, 0, 100], 1000.0), metrics)
    for name, energy_j in (("own", 2375.0), ("offered", 2375.0), ("frontier", 2405.0)):
        assert found[f"floor_{name}_j_per_unit"] == pytest.approx(energy_j / 15, rel=1e-6)
        assert found[f"gap_{name}"] == pytest.approx(1 - energy_j / 15 / 200, rel=1e-6)


def test_deadlines_are_part_of_the_certificate_unless_they_prove_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The programmes with and without deadlines are made to prove the same: the one with them is
    named.
    """
    instance = priced()
    tasks = replace(
        instance.tasks, deadline=np.array([9e12, math.inf]), deadline_hard=np.array([True, False])
    )
    least = stream._least
    known: list[Any] = []
    asked: list[Any] = []

    def same(*arguments: Any) -> Any:
        asked.append(arguments)
        known.append(least(*arguments) if not known else known[0])
        return known[-1]

    monkeypatch.setattr(stream, "_least", same)
    found = slotted_bound(replace(instance, tasks=tasks))
    assert found is not None and len(asked) == 2
    assert json.loads(found.certificate or "")["deadlines"] is True


def test_weights_count_in_the_limit_on_times() -> None:
    # Twice 3 x 80 s for tasks of weight 2: as with a mean of 80 s, 2,405 J; with twice that the low
    # clock is free, 2,375 J.
    instance = farm([5, 5, 5], [0, 0, 100], 1000.0)
    heavy = replace(instance, tasks=replace(instance.tasks, weight=np.full(3, 2.0)))
    for limit_s, energy_j in ((480.0, 2405.0), (960.0, 2375.0)):
        found = path_bound(heavy.with_limits(flow_time_s=limit_s))
        assert found is not None and found.energy_j == pytest.approx(energy_j, rel=1e-6)


def test_flow_time_is_running_time_at_least() -> None:
    # 5 units take 50 s at the high clock, of weight 3; one device, and nothing else.
    instance = farm([5], [0], None, count=1, minimize="flow_time_s")
    heavy = replace(instance, tasks=replace(instance.tasks, weight=np.array([3.0])))
    found = stream_bound(heavy)
    assert (
        found is not None and found.value == pytest.approx(150.0, rel=1e-6) and found.value <= 150.0
    )


@pytest.mark.parametrize(
    "data", [{}, {"deadlines": "yes"}, {"slot_s": -1.0}, {"slot_s": 1}, {"slot_s": math.inf}]
)
def test_foreign_fields_and_instances_without_a_stream_prove_nothing(data: dict[str, Any]) -> None:
    assert recheck_stream(shop([[(0, 3)]], [1]), data) is None
    if data:
        assert recheck_stream(farm([5], [0], 1000.0), data) is None


def test_a_mean_below_a_second_is_a_limit_like_any() -> None:
    # 15 units take 150 s of running time; 15 hundredths of that are 1.5 s for three tasks, 0.5 s
    # each.
    assert path_bound(farm([5, 5, 5], [0, 0, 100], 1000.0), sojourn_s=0.5) is None
    found = path_bound(farm([0.05] * 3, [0, 0, 100], 1000.0), sojourn_s=0.5)
    assert found is not None and found.energy_j == pytest.approx(2000 + 0.15 * 30, rel=1e-6)
