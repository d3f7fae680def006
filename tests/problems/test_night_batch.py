"""The night of the quickstart."""

from __future__ import annotations

import pytest

import optbench as ob
from optbench.errors import ParameterError
from optbench.plugins.discovery import load_problem


def test_two_exact_solvers_agree_on_the_night_as_declared() -> None:
    found = [
        ob.solve("night_batch:hours=3", solver, time_limit_s=60) for solver in ("cpsat", "highs")
    ]
    assert [result.status for result in found] == ["optimal", "optimal"]
    first, second = (result.objective for result in found)
    assert isinstance(first, float) and first == pytest.approx(second, rel=1e-6)


def test_hours_are_a_hard_limit_that_energy_blind_rules_break() -> None:
    # In the optimum everything ends at 7,800 s; fcfs takes 9,600 s.
    assert ob.solve("night_batch:hours=2.5", "cpsat", time_limit_s=60).metrics["makespan_s"] == 7800
    late = ob.solve("night_batch:hours=2.5", "fcfs")
    assert late.objective is None and "makespan_s" in late.violations[0]


def test_other_seeds_are_other_nights() -> None:
    problem = load_problem("night_batch")
    assert len({problem.instance(seed).hash for seed in range(5)}) == 5


@pytest.mark.parametrize("setting", ["a100=0", "power_w=-1", "hours=0"])
def test_nothing_is_no_cluster(setting: str) -> None:
    with pytest.raises(ParameterError, match=f"{setting.partition('=')[0]} is"):
        load_problem(f"night_batch:{setting}")
