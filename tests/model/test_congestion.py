"""Busy links: transfers by hand, declarations, what is refused, files, and who leaves them out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.errors import ModelError, UnsupportedError
from optbench.model.congestion import Congestion
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.validate import validate
from optbench.model.windows import longest_lags, time_horizon, windows
from optbench.views.milp.choose import formulate


def sent(times: Any = (0, 10), **factors: Any) -> Instance:
    """2 GB from a to b at 1.5 s per GB and a latency of 1 s: 4 s; the sender takes 3 s, the
    receiver 2 s.
    """
    m = ob.Model("sent")
    node = m.place("node")
    a, b, _ = m.pool("a", at=node), m.pool("b"), m.pool("c", at=m.place("board", inside=node))
    m.link(a, b, bandwidth_gbit_s=8 / 1.5, latency_ms=1000.0, energy_j_per_gb=5.0)
    first = m.task(modes=[m.mode(a, time_s=3)])
    m.task(modes=[m.mode(b, time_s=2)], data_gb={first: 2.0})
    m.minimize(makespan=1.0)
    if factors:
        where: dict[str, Any] = {"a": a, "b": b, "node": node}
        m.congestion(times, {where[name]: given for name, given in factors.items()})
    return m.build()


def violated(instance: Instance, starts: list[int]) -> list[str]:
    found = ob.verify(instance, Schedule.of(instance, [0, 1], starts))
    return [violation.constraint for violation in found.violations]


def test_the_larger_factor_of_both_ends_counts_when_the_producer_ends() -> None:
    """3 s of sending and 1 s of latency: 4 s freely, 7 s at twice, 10 s at thrice as long; 4.6 s at
    1.2 are 5 ticks.
    """
    assert violated(sent(), [0, 7]) == []
    for factors, lag in (
        ({"a": [2.0, 9.0]}, 7),
        ({"a": [2.0, 1.0], "b": [3.0, 1.0]}, 10),
        ({"b": [1.2, 1.0]}, 5),
    ):
        made = sent(**factors)
        assert violated(made, [0, 3 + lag]) == []
        assert violated(made, [0, 2 + lag]) == ["transfer"]
    # The sender ends at 10, when the first period is over: 9 · 3 + 1 = 28 s.
    late = sent(a=[2.0, 9.0])
    assert violated(late, [7, 38]) == [] and violated(late, [7, 37]) == ["transfer"]


def test_energy_stays_as_it_is() -> None:
    made = sent(a=3.0)
    found = ob.verify(made, Schedule.of(made, [0, 1], [0, 13])).metrics
    assert found["transfer_energy_j"] == 10.0


def test_places_stand_for_their_pools_and_the_larger_declaration_holds() -> None:
    m = ob.Model("places")
    site = m.place("site")
    x, y = m.pool("x", at=site), m.pool("y", at=m.place("node", inside=site))
    z = m.pool("z")
    m.task(modes=[m.mode(z, time_s=1)])
    m.minimize(makespan=1.0)
    m.congestion([0, 5], {site: [2.0, 1.0]})
    m.congestion([0, 3], {y: [1.5, 4.0]})
    busy = m.build().congestion
    assert busy is not None and x.idx == 0
    assert busy.times.tolist() == [0, 3, 5]
    assert busy.factor.tolist() == [[2.0, 2.0, 1.0], [2.0, 4.0, 4.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("times", "factors", "message"),
    [
        ((0, 10), {"a": [1.0, 0.5]}, "congestion of pool 'a' in period 1: factor is 0.5; it must"),
        ((1, 10), {"a": 2.0}, "times_s is [1.0, 10.0]; it must start at 0 and rise strictly"),
        ((0, 10), {"a": [1.0, 2.0, 3.0]}, "3 factors of 'a' and 2 times do not fit together"),
        ((0, 0.5), {"a": 2.0}, "congestion times must be whole ticks of 1 s"),
        ((0, 10), {"a": [1.0, float("inf")]}, "factor is inf; it must be at least 1"),
    ],
)
def test_bad_values_are_refused(times: Any, factors: Any, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        sent(times, **factors)


def test_shapes_are_checked() -> None:
    for times, factor, message in (
        ([0, 3], np.ones((2, 2)), "has shape (2, 2); it must be (3, 2)"),
        ([0, 0], np.ones((3, 2)), "must start at 0 and rise strictly"),
        ([0, 2**53], np.ones((3, 2)), "they must be at most 2^52 ticks"),
    ):
        bad = replace(sent(), congestion=Congestion(np.array(times), factor))
        with pytest.raises(ModelError, match=re.escape(message)):
            validate(bad)


def test_files_hold_it_and_hashes_count_it(tmp_path: Path) -> None:
    made, path = sent(a=[1.1, 2.0]), tmp_path / "sent.json"
    ob.write_instance(made, path)
    back = ob.read_instance(path)
    assert isinstance(back, Instance) and back.hash == made.hash != sent().hash
    assert back.congestion is not None and back.congestion.factor[0].tolist() == [1.1, 2.0]
    ob.write_instance(sent(), path)
    assert "congestion" not in path.read_text()


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_exact_solvers_refuse_it_by_name(solver: str) -> None:
    with pytest.raises(UnsupportedError, match="congestion"):
        ob.solve(sent(a=2.0), solver, time_limit_s=1)
    with pytest.raises(UnsupportedError, match="expresses congestion"):
        formulate(sent(a=2.0))


def test_windows_and_bounds_take_links_as_free() -> None:
    """3 + 4 + 2 s freely; every transfer takes at most 9 · 3 + 1 = 28 s."""
    made = sent(a=[2.0, 9.0])
    assert windows(made).critical_path == 9.0
    assert longest_lags(made).tolist() == [28.0]
    assert time_horizon(made) == 3 + 28 + 2
    assert max(bound.value for bound in lower_bounds(made, "auto", 2.0)) == 9.0
    assert ob.verify(made, Schedule.of(made, [0, 1], [0, 10])).objective == 12.0


def test_what_is_known_by_a_time() -> None:
    busy = sent(a=[2.0, 9.0]).congestion
    assert busy is not None
    assert busy.known(9.0).factor[0].tolist() == [2.0]
    assert busy.known(10.0).factor[0].tolist() == [2.0, 9.0]
