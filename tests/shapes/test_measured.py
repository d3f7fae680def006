"""Measured metrics stand apart: readings, provenance and intervals, no part of any gap."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar

import pytest

import optbench as ob
from optbench.errors import ModelError, ParameterError, PluginError, UnsupportedError
from optbench.shapes import Measurements, MeasuringMachine, Metric
from optbench.shapes.protocol.measurements import difference, student
from tests.sample_files.jobs_shape import JobData, Jobs, Order, ShortestFirst


class Watched(Jobs):
    """Jobs of which a clock takes the time."""

    name = "watched_jobs"
    metrics: ClassVar = {**Jobs.metrics, "clock_s": Metric("s", "by the clock", measured=True)}

    def measure(self, data: Any, decision: Any, machine: MeasuringMachine) -> Measurements:
        readings = tuple(1.0 + 0.1 * k for k in range(machine.repeats))
        return Measurements({"clock_s": readings}, {"tool": "a table of numbers"})


@pytest.fixture(scope="module")
def instance() -> Any:
    return Watched().instance("two", JobData([2.0, 1.0]))


def test_readings_with_provenance(instance: Any) -> None:
    found = ob.measure(instance, Order([1, 0]), repeats=3)
    assert found.readings == {"clock_s": (1.0, 1.1, 1.2)}
    assert found.mean("clock_s") == pytest.approx(1.1)
    assert found.provenance["tool"] == "a table of numbers" and found.provenance["repeats"] == 3
    # Mean 1.1, variance 0.01, t(2) = 4.303: 4.303 √(0.01 / 3) = 0.2484.
    low, high = found.interval("clock_s") or (0.0, 0.0)
    assert (low, high) == pytest.approx((1.1 - 0.24843, 1.1 + 0.24843), abs=1e-4)
    assert ob.measure(instance, Order([1, 0]), repeats=1).interval("clock_s") is None


def test_no_part_of_verdict_and_gap(instance: Any) -> None:
    result: Any = ob.solve(instance, ShortestFirst())
    assert "clock_s" not in result.metrics and result.measured is None and result.gap is None
    assert "measured" not in json.loads(json.dumps(_document(result)))


def _document(result: Any) -> Any:
    from optbench.model.files.result_json import result_to_dict

    return result_to_dict(result)


def changed(**members: Any) -> Any:
    return type("Changed", (Watched,), members)().instance("two", JobData([2.0, 1.0]))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"minimize": "clock_s"}, "metric 'clock_s' is measured; an objective must be computed"),
        ({"measure": lambda *_: None}, "measure returned NoneType; it must return Measurements"),
        ({"measure": lambda *_: Measurements({})}, r"readings of \[\], not of \['clock_s'\]"),
        ({"measure": lambda *_: Measurements({"clock_s": ()})}, r"returned \(\) for 'clock_s'"),
        (
            {"measure": lambda *_: Measurements({"clock_s": (math.nan,)})},
            r"returned \(nan,\) for 'clock_s'; it must be finite numbers",
        ),
    ],
)
def test_mistakes_are_named(members: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        ob.measure(changed(**members), Order([0, 1]))


def test_verify_may_not_compute_what_is_measured() -> None:
    def verify(self: Any, data: Any, decision: Any) -> Any:
        found = Jobs.verify(self, data, decision)
        found.metrics["clock_s"] = 1.0
        return found

    with pytest.raises(PluginError, match="verify computes 'clock_s', which is measured"):
        ob.verify(changed(verify=verify), Order([0, 1]))


def test_one_name_computed_and_measured() -> None:
    metrics = {"flow_h": Metric("h", "sum of the ends", also_measured=True)}

    def measure(self: Any, data: Any, decision: Any, machine: MeasuringMachine) -> Measurements:
        return Measurements({"flow_h": (5.0,) * machine.repeats})

    shape: Any = type("Timed", (Jobs,), {"metrics": metrics, "measure": measure})
    instance = shape().instance("two", JobData([2.0, 1.0]))
    # The job of 1 h ends at 1, that of 2 h at 3: computed 4, whatever a watch says.
    assert ob.verify(instance, Order([1, 0])).objectives == (4.0,)
    assert ob.measure(instance, Order([1, 0]), repeats=2).readings == {"flow_h": (5.0, 5.0)}
    assert Metric("h", "", measured=True).has_readings and not Metric("h", "").has_readings


def test_what_cannot_be_measured(instance: Any) -> None:
    with pytest.raises(ParameterError, match="the decision is not feasible: once"):
        ob.measure(instance, Order([0]))
    with pytest.raises(ParameterError, match="repeats is 0; it must be a whole number from 1 on"):
        ob.measure(instance, Order([0, 1]), repeats=0)
    with pytest.raises(UnsupportedError, match="a job_order has no measured metrics"):
        ob.measure(Jobs().instance("two", JobData([2.0, 1.0])), Order([0, 1]))
    shop = ob.load_problem("jobshop:jobs=2,machines=2").instance(0)
    best: Any = ob.solve(shop, "fcfs").schedule
    with pytest.raises(UnsupportedError, match="a schedule has no measured metrics"):
        ob.measure(shop, best)


def test_measurements_are_compared_by_intervals() -> None:
    slow, fast = Measurements({"s": (5.0, 5.1, 5.2)}), Measurements({"s": (1.0, 1.1, 1.2)})
    near, once = Measurements({"s": (4.9, 5.2, 5.3)}), Measurements({"s": (1.0,)})
    assert fast.compared(slow, "s") == "lower" and slow.compared(fast, "s") == "higher"
    assert near.compared(slow, "s") == "undecided" == once.compared(slow, "s")
    # Equal variances 0.01 of three each: f = 4, t = 2.776, half = 2.776 √(0.02 / 3) = 0.22666.
    assert difference((5.0, 5.1, 5.2), (1.0, 1.1, 1.2)) == pytest.approx(
        (3.77334, 4.22666), abs=1e-4
    )
    assert difference((2.0, 2.0), (1.0, 1.0)) == (1.0, 1.0)
    assert student(1.9) == 12.706 and student(30) == 2.042 == student(1e9)
    with pytest.raises(ModelError, match="'w' was not measured; known: s"):
        slow.mean("w")
