"""Plans of sweeps: clocks, counts, rounds in a shuffled order, and how long they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.errors import OptbenchError
from optbench.hardware.calibration.cpu_target import CpuTarget
from optbench.hardware.calibration.sweep_plan import SweepPlan, SweepSettings, plan_sweep
from tests.hardware.calibration.made_up_cpus import MadeUpCpus


@pytest.fixture
def target(tmp_path: Path) -> CpuTarget:
    """Two packages with the clocks 800, 1200, 1600, 2000 MHz."""
    found = MadeUpCpus(tmp_path, packages=2)
    return CpuTarget(found.tree.root, found.cpus)


def planned(target: CpuTarget, **settings: Any) -> SweepPlan:
    return plan_sweep(target, SweepSettings("./load {device}", **settings))


def test_clocks_in_mhz_and_as_fractions(target: CpuTarget) -> None:
    plan = planned(target, clocks=(0.4, 0.598, 1600.0, 2000.0))
    # 0.598 of 2000 MHz is 1196 MHz, 0.3 % below 1200.
    assert plan.clocks_mhz == (800, 1200, 1600, 2000)
    assert plan.fractions(target) == [0.4, 0.6, 0.8, 1.0]
    assert planned(target).clocks_mhz == (800, 1200, 1600, 2000)


def test_counts_double_up_to_all_devices(target: CpuTarget) -> None:
    assert planned(target).counts == (1, 2)
    assert planned(target, counts=(1,)).counts == (1,)


def test_a_round_has_every_point_once_in_an_order_of_its_own(target: CpuTarget) -> None:
    plan = planned(target)
    first, second = plan.order(1), plan.order(2)
    assert len(first) == 8 and set(first) == set(second) == set(plan.points)
    assert first != second and planned(target).order(1) == first
    assert planned(target, seed=1).order(1) != first


def test_how_long_it_takes(target: CpuTarget) -> None:
    """Without a window: 1 + 1.4 · 8 = 12.2 s of work and 0.5 s of start, 8 runs in a round."""
    plan = planned(target)
    assert plan.load_s() == pytest.approx(12.2) and plan.load_s(1) == pytest.approx(24.4)
    assert plan.duration_s(2) == pytest.approx(10 + 16 * 12.7)
    # With a window of 1 s: 1 + 1 + 11.2 s; a run of 2 s would have no four windows.
    averaged = SweepPlan(plan.settings, plan.clocks_mhz, plan.counts, 1.0)
    assert averaged.load_s() == pytest.approx(13.2)
    short = SweepPlan(planned(target, measure_s=2.0).settings, (), (1,), 1.0)
    assert (short.measure_s, short.idle_s) == (4.5, 10.0)
    assert plan.run_limit_s == 600.0
    assert planned(target, measure_s=600.0).run_limit_s == pytest.approx(4 * 841)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"clocks": (800.0, 2000.0)}, r"2 clocks \(800, 2000 MHz\); a fit of three"),
        ({"clocks": (1000.0, 1200.0, 1600.0, 2000.0)}, "clock 1000 is 1000 MHz.*more than 2 % off"),
        ({"span": (0.41, 0.59)}, "no supported clock lies between 820 and 1180 MHz"),
        ({"counts": (2,)}, "counts are 2; 1 must be among them"),
        ({"counts": (1, 3)}, "counts are 1, 3, but 2 devices are given"),
        ({"rounds": (3, 2)}, "rounds are 3 to 2"),
    ],
)
def test_a_plan_that_cannot_be_fitted(
    target: CpuTarget, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(OptbenchError, match=said):
        planned(target, **settings)


def test_one_clock_needs_two_runs_and_takes_one_device(tmp_path: Path) -> None:
    found = MadeUpCpus(tmp_path, clocks=False, packages=2)
    fixed = CpuTarget(found.tree.root, found.cpus)
    assert planned(fixed).points[0].clock_mhz is None and planned(fixed).counts == (1,)
    for settings, said in (
        ({"rounds": (1, 1)}, "rounds are 1; at the one clock"),
        ({"counts": (1, 2)}, "several devices need a sweep of clocks"),
        ({"clocks": (0.5, 1.0)}, "no clock can be set"),
    ):
        with pytest.raises(OptbenchError, match=said):
            planned(fixed, **settings)
