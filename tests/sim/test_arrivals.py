"""What has arrived is all that rules and policies in Python are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

import optbench as ob
from optbench.errors import PluginCrashError
from optbench.model.streams import outages_in_seconds, with_stream
from optbench.plugins.discovery import load_solver
from optbench.rules import Moment, Rule, RulePolicy, list_rule
from optbench.sim.arrivals import TaskArrivals, arrival_times
from optbench.sim.moments import run_decisions
from tests.reference.mixed_instances import mixed_instance


def unsorted() -> ob.Instance:
    """b waits for a, which is released at 5; c is released at 2, d at 0."""
    m = ob.Model("unsorted")
    gpu = m.pool("gpu")
    modes = [m.mode(gpu, time_s=3, energy_j=10)]
    a = m.task("a", units=1.0, modes=modes, release_s=5)
    m.task("b", units=2.0, modes=modes, after=a, release_s=1)
    m.task("c", units=3.0, modes=modes, release_s=2)
    m.task("d", units=4.0, modes=modes)
    m.minimize(makespan=1.0)
    return m.build()


def test_a_task_arrives_with_the_last_of_those_before_it() -> None:
    instance = unsorted()
    assert arrival_times(instance).tolist() == [5, 5, 2, 0]
    arrivals = TaskArrivals.of(instance)
    assert arrivals.order is not None and arrivals.order.tolist() == [3, 2, 0, 1]
    names = [arrivals.known(now).tasks.names for now in (-1, 0, 4.9, 5)]
    assert names == [(), ("d",), ("d", "c"), ("d", "c", "a", "b")]
    whole = arrivals.known(5)
    assert whole.edges.source.tolist() == [2] and whole.edges.target.tolist() == [3]
    assert len(arrivals.known(2).edges.source) == 0


def test_outages_that_nobody_announced_and_the_spec_of_the_problem_are_hidden() -> None:
    m = ob.Model("outages", tick_s=1.0, preemptive=True)
    gpu = m.pool("gpu", count=2)
    m.task("a", modes=[m.mode(gpu, time_s=3)])
    m.minimize(makespan=1.0)
    built = m.build()
    outages = outages_in_seconds(built, [1, 4, 6, 8], 0, [1, -1, 1, -1], [False, False, True, True])
    instance = replace(with_stream(built, outages=outages), problem="night:seed=3")
    for now, seen in ((0, [6, 8]), (1, [1, 6, 8]), (4, [1, 4, 6, 8])):
        known = TaskArrivals.of(instance).known(now)
        assert known.stream is not None and known.stream.outages.time.tolist() == seen
        assert known.problem is None


def test_a_moment_has_the_rows_that_have_arrived_in_the_order_of_arrival() -> None:
    seen = []

    def decide(moment: Moment) -> Any:
        known = moment.instance
        seen.append((moment.now, known.tasks.names, moment.ready.tolist()))
        columns = (moment.status, moment.start, moment.end, moment.remaining, moment.running_mode)
        assert {len(column) for column in columns} == {known.num_tasks} == {moment.num_tasks}
        assert moment.remaining[moment.ready].tolist() == known.tasks.units[moment.ready].tolist()
        return int(moment.ready[-1]), 0

    trace = run_decisions(unsorted(), decide)
    # d runs from 0 for 4 units · 3 s = 12 s; then the last that became ready: a, b behind it.
    assert seen[0] == (0.0, ("d",), [0])
    assert seen[1] == (12.0, ("d", "c", "a", "b"), [1, 2])
    assert trace.schedule is not None
    ends = {int(t): int(e) for t, e in zip(trace.schedule.task, trace.schedule.end, strict=True)}
    assert ends == {3: 12, 0: 15, 1: 21, 2: 30}


def test_reading_beyond_what_has_arrived_is_explained() -> None:
    class Reader(ob.PythonPolicy):
        def decide(self, moment: Moment) -> Any:
            return (0, 0) if moment.instance.tasks.units[3] > 0 else None

    with pytest.raises(PluginCrashError, match=r"test_arrivals.py:\d+.*end with the tasks that ha"):
        ob.simulate(unsorted(), Reader())


def test_a_decider_is_given_the_instance_of_time_0_and_a_reference_the_whole() -> None:
    given = []

    class Noting(ob.PythonPolicy):
        def decider(self, instance: ob.Instance, rng: Any) -> Any:
            given.append(instance.tasks.names)
            return lambda moment: (int(moment.task[0]), int(moment.mode[0]))

    class Knowing(Noting):
        clairvoyant: ClassVar[bool] = True

    for policy in (Noting(), Knowing()):
        assert ob.simulate(unsorted(), policy).verified
    assert given == [("d",), ("a", "b", "c", "d")]


@pytest.mark.parametrize("name", ["fcfs", "sjf_backfill", "fixed_dvfs:load=0.3"])
@pytest.mark.parametrize("seed", range(12))
def test_numbers_that_go_task_by_task_give_the_same_run_in_one_call(name: str, seed: int) -> None:
    policy = load_solver(name)[1]
    assert isinstance(policy, RulePolicy) and policy.job_by_job
    again = type("Again", (type(policy),), {"job_by_job": False})(**vars(policy))
    instance = mixed_instance(seed)
    assert again.kernels(instance) >= {"rules"}
    one, other = (p.play(instance, np.random.default_rng(0)) for p in (policy, again))
    assert (one.state.start == other.state.start).all() and (one.state.end == other.state.end).all()
    assert (one.state.mode == other.state.mode).all()


class NearMean(RulePolicy):
    """Tasks near 1.3 times the mean size first: every arrival changes every key."""

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        return list_rule(instance, base=distance(instance), ready_weight=0.01, end_weight=1.0)


def distance(instance: ob.Instance) -> Any:
    return np.abs(instance.tasks.units - 1.3 * instance.tasks.units.mean())


def arriving(seed: int) -> ob.Instance:
    """Tasks on two pools, more than there is room for, in no order of arrival."""
    rng = np.random.default_rng(seed)
    m = ob.Model(f"arriving {seed}", tick_s=1.0)
    pools = [m.pool(name, count=1 + k) for k, name in enumerate(("x", "y"))]
    for units in rng.uniform(5.0, 30.0, 25):
        modes = [m.mode(pool, time_s=1.0 + 0.3 * k) for k, pool in enumerate(pools)]
        m.task(units=float(units), modes=modes, release_s=int(rng.integers(0, 120)))
    m.minimize(makespan=1.0)
    return m.build()


@pytest.mark.parametrize("seed", range(8))
def test_new_numbers_count_from_their_arrival_on(seed: int) -> None:
    """The same rule decided in Python, which computes every key again at every moment."""
    instance = arriving(seed)

    def decide(moment: Moment) -> Any:
        known = moment.instance
        key = distance(known)[moment.task] + 0.01 * known.tasks.release[moment.task]
        k = np.lexsort((moment.duration, key))[0]
        return int(moment.task[k]), int(moment.mode[k])

    by_rule = NearMean().play(instance, np.random.default_rng(0))
    in_python = run_decisions(instance, decide)
    assert (by_rule.state.start == in_python.state.start).all()
    assert (by_rule.state.mode == in_python.state.mode).all()
    whole = type("Whole", (NearMean,), {"clairvoyant": True})()
    foreseen = whole.play(instance, np.random.default_rng(0))
    assert seed or (foreseen.state.start != by_rule.state.start).any()


def test_each_call_draws_the_same_numbers_and_sees_one_more_task() -> None:
    calls = []

    class Drawn(RulePolicy):
        def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
            calls.append((instance.tasks.names or (), rng.random(instance.num_tasks).tolist()))
            return list_rule(instance, base=calls[-1][1], end_weight=1.0)

    assert ob.solve(unsorted(), Drawn(), time_limit_s=5).verified
    assert [len(names) for names, _ in calls] == [1, 2, 4]
    assert all(drawn == calls[-1][1][: len(drawn)] for _, drawn in calls)


def test_a_run_that_is_cut_off_calls_no_rule_for_later_arrivals() -> None:
    counts = []

    class Counted(RulePolicy):
        def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
            counts.append(instance.num_tasks)
            return list_rule(instance, end_weight=1.0)

    done = ob.simulate(unsorted(), Counted(), horizon_s=3, bound=False)
    assert done.end == "horizon" and done.now_s == 3 and counts == [1, 2]
