"""Arriving work that is drained: every solver takes it or refuses it, exact solvers agree, bounds
stay below, nothing is lost.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import METHODS, lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.combinatorial.merging import SMALL, merge_pools
from optbench.bounds.explain import explain
from optbench.bounds.fluid.fluid_bound import fluid_bound
from optbench.model.instance import Instance
from optbench.model.metrics import metrics_of
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.streams import Outages, with_stream
from optbench.model.task_progress import progress
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem, load_solver, names
from optbench.plugins.policy import Policy
from optbench.plugins.protocol import Run
from optbench.plugins.solvers._cpsat_search import reach_limits
from optbench.plugins.solvers._first_schedules import first_schedules
from tests.reference.brute_force import brute_force

THREE = "only=[us-west,eu-central,us-east],shrink=0.06,max_gpus=2,days=0.02,drain=yes"
TICKS = f"geo_dc:jobs=5,tick_s=300,{THREE}"
NANOSECONDS = f"geo_dc:jobs=9,{THREE}"
SCHEDULERS = [name for name in names("solver") if name not in ("cpsat", "highs")]


def made(spec: str, seed: int = 0) -> Instance:
    made: Instance = load_problem(spec).instance(seed)
    return made


def two_clocks(seed: int) -> Instance:
    """Three jobs, three sites of one or two devices, two clocks each, coarse ticks: small enough to
    try everything.
    """
    instance = made(f"geo_dc:jobs=3,tick_s=1800,{THREE}".replace("max_gpus=2", "max_gpus=1"), seed)
    modes = instance.modes
    keep = np.flatnonzero((modes.clock == 1.0) | (modes.clock == 0.5))
    thin = replace(
        modes,
        kind_ptr=np.array([0, len(keep)]),
        req_ptr=np.arange(len(keep) + 1),
        req_pool=modes.req_pool[keep],
        req_count=modes.req_count[keep],
        **{
            name: getattr(modes, name)[keep]
            for name in ("time_per_unit_s", "energy_per_unit_j", "power_w", "clock")
        },
    )
    assert instance.stream is not None
    # Ways of one to three ticks, and one that is missing, so that they matter at this coarse a
    # tick.
    ways: Any = 1800.0 * np.random.default_rng(seed).integers(0, 4, instance.stream.latency_s.shape)
    ways[:, seed % 3] = np.inf
    return replace(instance, modes=thin, stream=replace(instance.stream, latency_s=ways))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sojourn_s", [None, 5400.0])
def test_brute_force_both_programmes_and_bounds_agree_on_small_sites(
    seed: int, sojourn_s: float | None
) -> None:
    instance = two_clocks(seed)
    if sojourn_s is not None:
        instance = instance.with_limits(flow_time_s=3 * sojourn_s)
    best = brute_force(instance)
    for spec in ("cpsat", "highs:form=time_indexed", "highs:form=disjunctive"):
        result = ob.solve(instance, spec, time_limit_s=60)
        assert result.objective == (
            None if best is None else pytest.approx(best.objective, rel=1e-9)
        ), spec
        assert result.status == ("infeasible" if best is None else "optimal")
    for method in METHODS:
        for bound in lower_bounds(instance, method=method):
            assert best is None or bound.value <= best.objective * (1 + 1e-9), bound


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_other_solver_drains_it_or_refuses_it(name: str) -> None:
    """None is better than the bound; a refusal names what is not supported."""
    _, solver = load_solver(name)
    for spec in (TICKS, NANOSECONDS, f"{NANOSECONDS},outage=[largest@10m+30m]"):
        instance = made(spec)
        if not instance.features <= set(solver.supports) or solver.refuse(instance):
            with pytest.raises(ob.OptbenchError, match=f"solver '{name}' cannot run 'geo_dc-"):
                ob.solve(instance, name)
            continue
        result = ob.solve(
            instance,
            name,
            time_limit_s=20 if isinstance(solver, Policy) else 2,
            work_limit=50,
            bound=False,
        )
        assert result.status == "feasible", (name, spec, result.violations, result.message)
        assert result.metrics["completed"] == instance.num_tasks
        assert isinstance(result.objective, float)
        bounds = [bound.value for bound in lower_bounds(instance, time_limit_s=2)]
        assert max(bounds, default=0.0) <= result.objective


def test_tens_of_jobs_at_three_sites_are_solved_to_optimality_under_a_sojourn_limit() -> None:
    free = ob.solve(made(f"geo_dc:jobs=10,tick_s=600,{THREE}"), "cpsat", time_limit_s=60)
    assert free.status == "optimal" and isinstance(free.objective, float)
    mean_s = free.metrics["sojourn_mean_s"]
    tight = ob.solve(
        made(f"geo_dc:jobs=10,tick_s=600,{THREE},sojourn_s={0.9 * mean_s:.0f}"),
        "cpsat",
        time_limit_s=60,
    )
    assert tight.metrics["sojourn_mean_s"] <= 0.9 * mean_s + 1 and isinstance(
        tight.objective, float
    )
    assert tight.objective >= free.objective


@pytest.mark.parametrize("sojourn_s", [4300, 4648, 5281])
def test_exact_solvers_begin_within_a_limit_that_rules_miss(sojourn_s: int) -> None:
    """Rules that look at energy alone take 6,000 s a job; a price on the limit brings them under
    it, and costs energy.
    """
    spec = f"geo_dc:jobs=12,tick_s=300,{THREE}"
    free, limited = made(spec), made(f"{spec},sojourn_s={sojourn_s}")
    (least,), found = first_schedules(free), first_schedules(limited)
    assert not verify(limited, least).feasible and found
    values = [verify(limited, schedule).objective for schedule in found]
    assert values == sorted(values, reverse=True) and values[-1] > verify(free, least).objective  # type: ignore[operator, type-var]


def test_cpsat_reaches_a_limit_without_a_first_schedule() -> None:
    """It minimises what is limited until the limit holds, proves nothing by that, and leaves the
    rest to the search.
    """
    limited = made(f"geo_dc:jobs=6,tick_s=600,{THREE},sojourn_s=4000")
    run = Run(limited, time_limit_s=60)
    reach_limits(limited, run, 60, 1.0)
    assert run.best is not None and verify(limited, run.best).feasible and not run.bounds
    hopeless = limited.with_limits(flow_time_s=6.0)
    run = Run(hopeless, time_limit_s=60)
    reach_limits(hopeless, run, 0.5, 1.0)
    assert run.best is None and not run.proven_infeasible
    assert ob.solve(hopeless, "cpsat", time_limit_s=60).status == "infeasible"


@pytest.mark.parametrize("name", ["default_policy", "ucb1", "joint_nf"])
@pytest.mark.parametrize("outage", ["largest@5m+1h", "us-east@20m+10h"])
def test_a_site_that_fails_mid_run_loses_no_job(name: str, outage: str) -> None:
    """Its work goes on afterwards; only devices that are there are ever busy; nothing is done
    twice.
    """
    instance = made(f"geo_dc:jobs=12,{THREE},outage=[{outage}]")
    result = ob.solve(instance, name, bound=False)
    schedule = result.schedule
    assert schedule is not None and result.status == "feasible"
    assert result.metrics["completed"] == result.metrics["arrivals"] == 12
    assert np.bincount(schedule.task).max() > 1, "the outage interrupted something"
    assert progress(instance, schedule).complete.all()
    assert progress(instance, schedule).share == pytest.approx(np.ones(12), rel=1e-9)
    assert instance.stream is not None
    begin, end = instance.stream.outages.time
    pool = instance.modes.primary[schedule.mode]
    here = (
        (pool == instance.stream.outages.pool[0]) & (schedule.end > begin) & (schedule.start < end)
    )
    assert not here.any()


def test_longer_ways_never_lower_the_optimum() -> None:
    instance = made(TICKS)
    assert instance.stream is not None
    farther = replace(instance.stream, latency_s=instance.stream.latency_s + 1200.0)
    near, far = (
        ob.solve(i.with_limits(flow_time_s=5 * 4500.0), "cpsat")
        for i in (instance, replace(instance, stream=farther))
    )
    assert near.status == far.status == "optimal"
    assert near.objective < far.objective  # type: ignore[operator]


def test_merged_pools_keep_the_nearest_way_and_every_outage() -> None:
    """Twelve sites that are alike but for where they are become one: a schedule is worth the same
    there.
    """
    m = ob.Model("alike", time="seconds", preemptive=True)
    pools = [m.pool(f"p{k}", 2, idle_w=5) for k in range(12)]
    m.tasks(
        np.full(SMALL // 12 + 1, 2.0),
        kind=m.kind(modes=[m.mode(pool, time_s=1, energy_j=7) for pool in pools]),
    )
    m.minimize(energy_j=1.0, flow_time_s=1.0)
    ways = np.array([np.arange(12.0), np.full(12, np.inf)])
    ways[1, 7] = 3.0
    away = Outages(np.array([1, 2]), np.array([4, 4]), np.array([2, -2]), np.array([True, True]))
    instance = with_stream(
        m.build(),
        ingress=np.arange(SMALL // 12 + 1) % 2,
        latency_s=ways,
        outages=away,
        ingress_names=("near", "far"),
    )
    merged = merge_pools(instance).instance
    assert merged.num_pools == 1 and merged.stream is not None
    assert merged.stream.latency_s.tolist() == [[0.0], [3.0]]
    assert merged.stream.outages.pool.tolist() == [0, 0]


def test_the_way_to_a_pool_without_a_way_is_no_mode() -> None:
    instance = two_clocks(0)
    assert set(instance.modes.primary[instance.pairs.mode].tolist()) == {1, 2}
    assert not instance.fits(0, 0) and instance.fits(0, int(instance.pairs.mode[0]))
    assert (instance.pairs.ready == instance.tasks.release[instance.pairs.task] + instance.access(
        instance.pairs.task, instance.modes.primary[instance.pairs.mode])).all()  # fmt: skip


def test_work_that_is_left_undone_is_counted_at_the_horizon() -> None:
    """Censored sojourn: a policy that does nothing has the longest of all, and no J per unit to
    show.
    """
    instance = made("geo_dc:days=0.02,jobs=8")
    nothing = Schedule(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
    assert [str(v) for v in verify(instance, nothing).violations] == [
        "assignment: no unit of work is done before the horizon: there is no energy per unit"
    ]
    found = metrics_of(instance, nothing)
    assert found["completed"] == 0 and found["queue_end"] == 8 and found["j_per_unit"] == math.inf
    expected = float((0.02 * 86_400 - instance.tasks.release * instance.tick_s).mean())
    assert found["sojourn_censored_s"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", ["energy_j", "makespan_s", "flow_time_s"])
def test_what_takes_all_work_to_be_done_says_nothing_of_an_open_instance(metric: str) -> None:
    """Doing one job of eight takes less energy and time than any bound on all of them; even of
    another objective.
    """
    instance = made("geo_dc:days=0.02,jobs=8").with_objective(Objective.weighted({metric: 1.0}))
    assert combinatorial_bounds(instance) == [] and fluid_bound(instance) is None
    schedule = ob.solve(made("geo_dc:days=0.02,jobs=8"), "joint_nf", bound=False).schedule
    assert schedule is not None
    with pytest.raises(
        ob.OptbenchError, match=r"'geo_dc-8-0' may leave work undone.*require all work completed"
    ):
        explain(instance, schedule)
