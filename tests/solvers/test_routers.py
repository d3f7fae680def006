"""The competitors as plug-ins: what they refuse, what they promise on small streams."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.policy import Policy

ROUTERS = (
    "greedy",
    "least_loaded",
    "threshold_index",
    "drift_penalty",
    "cost_route",
    "carbon_route",
    "cheap_hours",
    "lp_guided",
    "cap_by_site",
    "cap_by_job",
)


def stream(spec: str = "geo_dc:days=0.1,shrink=0.2", seed: int = 500) -> Instance:
    made: Instance = load_problem(spec).instance(seed)
    return made


def metric(instance: Instance, solver: str, name: str) -> float:
    """Of the verified schedule that it plays."""
    made = load_solver(solver)[1]
    assert isinstance(made, Policy)
    schedule = made.play(instance, np.random.default_rng(0)).schedule
    assert schedule is not None
    verdict = verify(instance, schedule)
    assert verdict.violations == ()
    return float(verdict.metrics[name])


@pytest.mark.parametrize("solver", ROUTERS)
def test_every_router_plays_an_open_stream_the_same_twice(solver: str) -> None:
    instance = stream()
    assert metric(instance, solver, "energy_j") == metric(instance, solver, "energy_j")


@pytest.mark.parametrize("solver", [name for name in ROUTERS if not name.startswith("cap")])
def test_a_site_that_fails_loses_no_job(solver: str) -> None:
    instance = stream("geo_dc:days=0.05,shrink=0.2,drain=yes,outage=largest@20m+30m")
    assert metric(instance, solver, "completed") == instance.num_tasks


@pytest.mark.parametrize(
    ("solver", "parameters", "complaint"),
    [
        ("greedy", {"gpus": "0"}, "gpus is 0"),
        ("least_loaded", {"gpus": "-1"}, "gpus is -1"),
        ("threshold_index", {"calm": "0.9", "busy": "0.5"}, "0.9 and 0.5"),
        ("threshold_index", {"time_w": "-1"}, "time_w is -1"),
        ("drift_penalty", {"latency_budget_s": "0"}, "latency_budget_s is 0"),
        ("cost_route", {"carbon_usd_per_kg": "-2"}, "carbon_usd_per_kg is -2"),
        ("carbon_route", {"time_w": "-3"}, "time_w is -3"),
        ("cheap_hours", {"hold_h": "-4"}, "hold_h is -4"),
        ("cap_by_job", {"floor": "-0.5"}, "floor is -0.5"),
        ("cap_by_job", {"floor": "1.5"}, "floor is 1.5; it must be at most 1"),
        ("cap_by_site", {"floor": "2"}, "floor is 2.0; it must be at most 1"),
        ("lp_guided", {"price_share": "-1"}, "price_share is -1"),
    ],
)
def test_bad_parameters_are_named(solver: str, parameters: dict[str, str], complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        load_solver(solver, parameters)


def test_a_cap_is_kept_by_the_two_that_keep_one() -> None:
    """Half of what greedy draws at its peak; the verifier checks every moment."""
    instance = stream()
    peak = metric(instance, "greedy", "peak_power_w")
    rest = float((instance.pools.rest_w * instance.pools.count).sum())
    cap = rest + 0.5 * (peak - rest)
    limited = stream(f"geo_dc:days=0.1,shrink=0.2,cap_w={cap!r}")
    for solver in ("cap_by_site", "cap_by_job"):
        assert metric(limited, solver, "peak_power_w") <= cap * (1 + 1e-9)
    with pytest.raises(UnsupportedError, match="power caps"):
        ob.solve(limited, "greedy")


@pytest.mark.parametrize("solver", ["drift_penalty", "lp_guided"])
def test_a_latency_budget_is_met(solver: str) -> None:
    """Jobs of 50,000 units take an hour on one GPU and some minutes on eight; the first come before
    anything is known.
    """
    instance = stream("geo_dc:days=0.5,shrink=0.2,rate=0.004")
    loose, tight = (
        ob.solve(instance, f"{solver}:latency_budget_s={budget}") for budget in (3000, 1200)
    )
    assert tight.metrics["sojourn_censored_s"] <= 1200 * 1.05
    assert loose.metrics["sojourn_censored_s"] <= 3000 * 1.05
    assert loose.metrics["j_per_unit"] < tight.metrics["j_per_unit"]


def test_greedy_is_near_the_least_energy() -> None:
    """The gap to the fluid bound at its own work; what is left is the ramp at the beginning and the
    end of a short day.
    """
    solution = ob.solve(stream("geo_dc:days=0.5,shrink=0.2,rate=0.004"), "greedy")
    assert solution.metrics["gap_offered"] < 0.06


def test_the_price_of_carbon_moves_work_to_clean_sites() -> None:
    instance = stream("geo_dc:days=0.1,drain=yes,minimize=carbon")
    assert metric(instance, "carbon_route", "carbon_g") < metric(
        instance, "least_loaded", "carbon_g"
    )


def test_lp_guided_searches_what_is_small_and_drained() -> None:
    """Few tasks: its search finds at least what the router finds."""
    instance = stream("geo_dc:days=0.002,shrink=0.05,drain=yes,max_gpus=2")
    assert instance.num_tasks > 5
    searched = ob.solve(instance, "lp_guided", work_limit=0.5)
    assert searched.verified
    assert searched.metrics["energy_j"] <= metric(instance, "greedy", "energy_j") * (1 + 1e-9)
