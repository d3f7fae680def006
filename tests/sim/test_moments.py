"""Policies in Python: what they see, what they may decide, and what the run says afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.plugins.python_policy import DecideFunction
from optbench.sim.moments import Decision, DecisionError, Moment, run_decisions
from tests.reference.kernel_runs import disagreements
from tests.reference.mixed_instances import mixed_instance


def first_option(moment: Moment) -> Decision:
    return int(moment.task[0]), int(moment.mode[0])


def anything(rng: np.random.Generator) -> Any:
    """Any option, or waiting where that is possible."""

    def decide(moment: Moment) -> Decision:
        if moment.can_wait and rng.random() < 0.2:
            return None
        k = int(rng.integers(moment.num_options))
        return int(moment.task[k]), int(moment.mode[k])

    return decide


def fast_and_slow() -> ob.Instance:
    """Two tasks, each 2 s for 100 J or 4 s for 60 J, on one device; b is released at 1."""
    m = ob.Model("fast and slow")
    gpu = m.pool("gpu", idle_w=5)
    modes = [m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=4, energy_j=60)]
    m.task("a", modes=modes)
    m.task("b", modes=modes, release_s=1)
    m.minimize(energy_j=1.0, makespan_s=30.0)
    return m.build()


@pytest.mark.parametrize("seed", range(16))
def test_whatever_python_decides_is_what_the_verifier_sees(seed: int) -> None:
    instance = mixed_instance(seed)
    trace = run_decisions(instance, anything(np.random.default_rng(seed)))
    if trace.schedule is not None:
        assert disagreements(instance, trace.state, trace.schedule) == []
        assert len(trace.decision_s) >= instance.num_tasks


def test_every_moment_has_an_option_and_says_what_it_is() -> None:
    seen = []

    def decide(moment: Moment) -> Decision:
        seen.append(
            (
                moment.now,
                moment.ready.tolist(),
                moment.task.tolist(),
                moment.mode.tolist(),
                moment.can_wait,
            )
        )
        assert moment.duration.tolist() == [2.0, 4.0] * (moment.num_options // 2)
        assert moment.energy_j.tolist() == [100.0, 60.0] * (moment.num_options // 2)
        assert moment.free.tolist() == [1] and len(moment.running) == 0
        return None if moment.now == 0 else (int(moment.ready[-1]), int(moment.mode[1]))

    trace = run_decisions(fast_and_slow(), decide)
    # At 0 only a is there, and b's release is still to come; at 1 both; after b, slow, at 5, a, and
    # nothing else will happen.
    assert seen == [
        (0.0, [0], [0, 0], [0, 1], True),
        (1.0, [0, 1], [0, 0, 1, 1], [0, 1, 0, 1], False),
        (5.0, [0], [0, 0], [0, 1], False),
    ]
    assert trace.schedule is not None and trace.schedule.start.tolist() == [5, 1]


@pytest.mark.parametrize(
    ("decision", "complaint"),
    [
        (None, "no event follows until it starts one of 4 options"),
        ((7, 0), "there is no task 7; those that have arrived are 0 to 1"),
        ((0, 9), "mode 9 is not of the kind of task a, whose modes are 0 to 1"),
        (3, r"a policy decided 3; a decision is a pair \(task, mode\), or None to wait"),
        (("a", "b"), r"decided \('a', 'b'\)"),
    ],
)
def test_decisions_that_cannot_be_are_refused(decision: Any, complaint: str) -> None:
    def decide(moment: Moment) -> Decision:
        return None if moment.now == 0 else decision

    with pytest.raises(DecisionError, match=complaint):
        run_decisions(fast_and_slow(), decide)


def test_a_task_that_is_not_ready_is_refused() -> None:
    with pytest.raises(DecisionError, match="there is no task 1; those that have arrived are 0 to"):
        run_decisions(fast_and_slow(), lambda moment: (1, 0))
    m = ob.Model("chain")
    gpu = m.pool("gpu")
    a = m.task("a", modes=[m.mode(gpu, time_s=2)])
    m.task("b", modes=[m.mode(gpu, time_s=2)], after=a)
    m.minimize(makespan=1.0)
    with pytest.raises(DecisionError, match="task b is not ready; 1 tasks are"):
        run_decisions(m.build(), lambda moment: (1, 0))


def test_a_mode_without_room_is_refused() -> None:
    """One of two devices is taken; the mode that needs both is no option, the other one is."""
    m = ob.Model("narrow")
    gpu = m.pool("gpu", count=2)
    m.task("a", modes=[m.mode(gpu, time_s=2)])
    m.task("b", modes=[m.mode(gpu, time_s=3), m.mode({gpu: 2}, time_s=2)])
    m.minimize(makespan_s=1.0)

    def decide(moment: Moment) -> Decision:
        return (0, 0) if 0 in moment.ready else (1, 2)

    with pytest.raises(DecisionError, match="task b cannot start in mode 2 now; 1 options can"):
        run_decisions(m.build(), decide)


@dataclass(frozen=True)
class Patient(ob.PythonPolicy):
    """Waits ``waits`` times before anything, then takes the first option; remembers how often
    within a run only.
    """

    waits: int = 1

    def decider(self, instance: ob.Instance, rng: np.random.Generator) -> Any:
        left = [self.waits]

        def decide(moment: Moment) -> Decision:
            if left[0] and moment.can_wait:
                left[0] -= 1
                return None
            return first_option(moment)

        return decide


def test_a_policy_is_a_solver_too() -> None:
    """At once: a 0–2, b 2–4: 200 + 120. A wait: both from 1 to 5, the device idles for 1 s: 5 + 200
    + 150.
    """
    assert [ob.solve(fast_and_slow(), Patient(waits)).objective for waits in (0, 1)] == [
        320.0,
        355.0,
    ]


def test_a_simulation_is_verified_and_bounded() -> None:
    done = ob.simulate(fast_and_slow(), first_option)
    assert (done.end, done.arrivals, done.completed, done.in_progress, done.queue_end) == (
        "complete",
        2,
        2,
        0,
        0,
    )
    assert (
        done.objective == 320.0
        and done.verified
        and done.metrics["energy_j"] == done.energy_j == 200.0
    )
    assert (
        isinstance(done.bound, float)
        and done.bound <= 320.0
        and done.gap == pytest.approx(1 - done.bound / 320.0)
    )
    # a from 0 to 2, b released at 1 from 2 to 4: 2 and 3 s in the system, 2 s each at work.
    assert done.latency_s["sojourn"]["mean"] == 2.5 and done.latency_s["service"] == {
        "mean": 2,
        "p50": 2,
        "p95": 2,
        "p99": 2,
    }
    assert (
        done.decisions == 2
        and done.decision_ms is not None
        and set(done.decision_ms) == {"p50", "p99"}
    )
    assert done.policy == "first_option" and done.j_per_unit == 100.0


@pytest.mark.parametrize("policy", ["fcfs", first_option])
def test_a_simulation_stops_at_its_horizon(policy: Any) -> None:
    """At 3 s: a done, b half way; 100 J and half of b's 100 J, and no idle device."""
    done = ob.simulate(fast_and_slow(), policy, horizon_s=3.0)
    assert (done.end, done.now_s, done.completed, done.in_progress, done.queue_end) == (
        "horizon",
        3.0,
        1,
        1,
        0,
    )
    assert (
        done.energy_j == pytest.approx(150.0)
        and done.objective is None
        and done.gap is None
        and done.verified
    )
    assert done.units_done == 1.0


def test_the_rest_of_a_cut_run_counts() -> None:
    """The only task ends at 2; another is released at 100: until 50 the device idles for 48 s at 5
    W.
    """
    m = ob.Model("idle", time="seconds")
    gpu = m.pool("gpu", idle_w=5)
    for release in (0, 100):
        m.task(modes=[m.mode(gpu, time_s=2, energy_j=100)], release_s=release)
    m.minimize(energy_j=1.0)
    done = ob.simulate(m.build(), "fcfs", horizon_s=50.0)
    assert done.energy_j == pytest.approx(100 + 48 * 5) and (done.arrivals, done.completed) == (
        1,
        1,
    )


def test_a_fault_costs_what_it_costs() -> None:
    """a is stopped at 1 and begins again at 2: 1 s at 50 W for nothing, 5 W of it idle anyway."""
    faults = (ob.Fault(1.0, 0, 1), ob.Fault(2.0, 0, -1))
    done = ob.simulate(fast_and_slow(), first_option, faults=faults)
    assert done.end == "complete" and done.lost_j == pytest.approx(45.0)
    assert done.metrics["makespan"] == 6.0 and done.energy_j == pytest.approx(200 + 2 * 5)


def test_a_run_that_can_never_end_says_so() -> None:
    done = ob.simulate(fast_and_slow(), "fcfs", faults=(ob.Fault(1.0, 0, 1),))
    assert done.end == "dead_end" and done.objective is None and done.completed == 0


def test_the_same_seed_gives_the_same_simulation() -> None:
    def decider(seed: int) -> Any:
        return DecideFunction(anything(np.random.default_rng(seed)))

    one, two = (ob.simulate("gpu_dag:tasks=20", decider(3), bound=False) for _ in range(2))
    for column in ("task", "mode", "start", "end"):
        assert getattr(one.schedule, column).tobytes() == getattr(two.schedule, column).tobytes()
    assert one.objective == two.objective


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ob.UnsupportedError, match="'cpsat' is an offline solver"):
        ob.simulate(fast_and_slow(), "cpsat")
    with pytest.raises(ob.ParameterError, match="horizon_s is -1"):
        ob.simulate(fast_and_slow(), "fcfs", horizon_s=-1)
    with pytest.raises(
        ob.ParameterError, match="depth: parameters can only be given with the name of a policy"
    ):
        ob.simulate(fast_and_slow(), first_option, params={"depth": 3})
    with pytest.raises(ob.ParameterError, match="seed is -1"):
        ob.simulate(fast_and_slow(), first_option, seed=-1)
