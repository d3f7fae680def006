"""The environment is the kernel is the verifier, step by step."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import optbench as ob
from optbench.model.objective import METRICS, Objective
from optbench.plugins.discovery import load_problem
from optbench.sim.kernel.observe import TASK_FEATURES
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.state import NUM_READY
from optbench.views.env import Layout, SchedulingEnv
from optbench.views.env.layout import EnvError, Observation
from tests.reference.kernel_runs import (
    at_random,
    by_keys,
    disagreements,
    driven,
    play,
    totals,
    whole_trace,
    why_not_dead,
)
from tests.reference.mixed_instances import mixed_instance, permuted
from tests.views.env_instances import two_tasks


@pytest.mark.parametrize("seed", range(24))
def test_environment_kernel_and_verifier_agree(seed: int) -> None:
    instance = mixed_instance(seed)
    env = SchedulingEnv(instance, slots=3 if seed % 3 == 0 else instance.num_tasks)
    episode = play(env, at_random(np.random.default_rng(seed)))
    plant, state = driven(instance, episode.decisions)
    assert whole_trace(instance, plant, state) == whole_trace(
        instance, env.seat.plant, env.seat.state
    )
    if episode.schedule is None:
        assert why_not_dead(instance, plant, state) == []
        return
    assert totals(state) == pytest.approx(totals(env.seat.state), rel=1e-9, abs=1e-12)
    assert disagreements(instance, env.seat.state, episode.schedule) == []
    if episode.objective is not None:
        first = episode.objective[0] if isinstance(episode.objective, tuple) else episode.objective
        assert episode.reward == pytest.approx(-float(str(first)), rel=1e-9)
    assert (episode.cost <= 1e-9) == (episode.objective is not None)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    instance = mixed_instance(seed)
    one, two = (
        play(SchedulingEnv(instance), at_random(np.random.default_rng(seed))) for _ in range(2)
    )
    assert one.decisions == two.decisions and one.observations == two.observations
    seats = one.env.seat, two.env.seat
    assert whole_trace(instance, seats[0].plant, seats[0].state) == whole_trace(
        instance, seats[1].plant, seats[1].state
    )
    assert seats[0].state.total.tobytes() == seats[1].state.total.tobytes()


@pytest.mark.parametrize("seed", range(16))
def test_permuting_the_tasks_permutes_the_trace(seed: int) -> None:
    instance, rng = mixed_instance(seed), np.random.default_rng(seed)
    order, n = rng.permutation(instance.num_tasks), instance.num_tasks
    keys = rng.random((n, int(np.diff(instance.modes.kind_ptr).max())))
    one = play(SchedulingEnv(instance, slots=n), by_keys(keys)).env.seat
    two = play(SchedulingEnv(permuted(instance, order), slots=n), by_keys(keys[order])).env.seat
    for column in ("status", "mode", "start", "end"):
        assert getattr(one.state, column)[order].tolist() == getattr(two.state, column).tolist()


def test_rewards_are_the_objective_step_by_step() -> None:
    """a at 0, the end of a at 2 with b at once: 7 · 5 s, 250 J, and the device is never idle."""
    env = SchedulingEnv(two_tasks(), slots=2)
    env.reset(seed=0)
    # a is the only option at 0: its 100 J are booked, and time goes on to its end at 2: 7 · 2.
    _, reward, over, cut, info = env.step(0)
    assert (reward, over, cut, info["time"]) == (-114.0, False, False, 2.0)
    _, reward, over, cut, info = env.step(0)
    assert (reward, over, cut) == (-171.0, True, False)
    assert info["objective"] == 285.0 and info["verdict"].feasible and info["cost"] == 0.0


def test_waiting_lets_the_next_event_happen() -> None:
    env = SchedulingEnv(two_tasks(), slots=2)
    _, info = env.reset(seed=0)
    # Slots by mode, then waiting: only a is there, and something will happen, b's release at 1.
    assert info["action_mask"].tolist() == [True, False, True]
    _, reward, _, _, info = env.step(env.layout.wait)
    assert info["time"] == 1.0 and reward == -17.0  # one second at 10 W and at 7 per second
    # Nothing is left to happen by itself: one of the two must be taken.
    assert info["action_mask"].tolist() == [True, True, False]


def test_what_is_not_allowed_changes_nothing() -> None:
    env = SchedulingEnv(two_tasks(), slots=2)
    seen, _ = env.reset(seed=0)
    again, reward, over, cut, info = env.step(1)
    assert info["illegal"] and (reward, over, cut, info["cost"]) == (0.0, False, False, 0.0)
    assert all((seen[name] == again[name]).all() for name in seen)
    assert not env.step(0)[4]["illegal"]


def test_what_is_not_allowed_raises_where_it_is_asked_to() -> None:
    env = SchedulingEnv(two_tasks(), slots=2, illegal="error")
    env.reset(seed=0)
    with pytest.raises(EnvError, match=r"action 1 is not allowed now; allowed are \[0, 2\]"):
        env.step(1)


def test_an_episode_of_nothing_but_mistakes_is_truncated() -> None:
    env = SchedulingEnv(two_tasks(), slots=2, max_steps=3)
    env.reset(seed=0)
    assert [env.step(1)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_costs_are_what_constraints_are_broken_by() -> None:
    """One device, 2 s each: the second ends at 4, one second after its deadline, with 200 J of the
    160 J allowed.
    """
    m = ob.Model("late")
    gpu = m.pool("gpu")
    for _ in range(2):
        m.task(modes=[m.mode(gpu, time_s=2, energy_j=100)], deadline_s=3)
    m.limit(energy_j=160)
    m.minimize(makespan_s=1.0)
    env = SchedulingEnv(m.build(), slots=2)
    env.reset(seed=0)
    assert env.step(0)[4]["cost"] == 0.0
    # The span is 4 s, the load of the one device.
    _, _, over, _, info = env.step(0)
    assert over and info["cost"] == pytest.approx(1 / 4 + 40 / 160)
    assert not info["verdict"].feasible and info["objective"] is None


def test_a_dead_end_terminates() -> None:
    """Both devices vanish for ever before the task can start."""
    env = SchedulingEnv(two_tasks(), slots=2, faults=(Fault(0.0, 0, 1),))
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [False, False, True]
    _, reward, over, _, info = env.step(2)
    assert over and info["verdict"] is None and info["schedule"] is None and info["cost"] == 2.0
    assert reward == -(10.0 + 7.0) * 1.0  # the second until b's release, the last event


@pytest.mark.parametrize(
    "spec", ["gpu_dag:tasks=6", "jobshop:jobs=3,machines=3", "rcpsp:activities=6,complexity=1"]
)
def test_gymnasium_finds_nothing_to_say(spec: str) -> None:
    made = EnvSpec(
        "optbench/Scheduling-v0",
        "optbench.views.env:SchedulingEnv",
        kwargs={"source": load_problem(spec)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(made).unwrapped)


def test_observations_stay_in_their_space() -> None:
    for seed in range(8, 24):
        env = SchedulingEnv(mixed_instance(seed), slots=4)
        choose = at_random(np.random.default_rng(seed))
        seen, info = env.reset(seed=0)
        over = False
        while not over:
            assert env.observation_space.contains(seen)
            seen, _, over, _, info = env.step(choose(env, np.flatnonzero(info["action_mask"])))


def test_observations_say_what_they_are() -> None:
    seen, _ = SchedulingEnv(two_tasks(), slots=2).reset(seed=0)
    row = dict(zip(TASK_FEATURES, seen["tasks"][0].tolist(), strict=True))
    # a: 2 s, which is the mean of what is there at 0: b arrives later. Nothing follows a.
    assert (row["present"], row["startable"], row["left"], row["tail"]) == (1.0, 1.0, 1.0, 0.0)
    assert row["shortest"] == 1.0
    assert not seen["tasks"][1].any()


def test_an_order_of_objectives_rewards_the_level_that_is_asked_for() -> None:
    instance = two_tasks().with_objective(Objective.in_order("makespan_s", "energy_j"))
    rewards = [
        play(SchedulingEnv(instance, level=level), lambda _, legal: int(legal[0])).reward
        for level in (0, 1)
    ]
    assert rewards == [-5.0, -250.0]
    with pytest.raises(EnvError, match=r"level is 2; .* levels 0 to 1"):
        SchedulingEnv(instance, level=2).reset()


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_can_be_the_reward(metric: str) -> None:
    for seed in (0, 5, 6, 13):
        instance = mixed_instance(seed)
        instance = replace(
            instance.with_objective(Objective.weighted({metric: 1.0})),
            limits=replace(instance.limits, metric_max={}),
        )
        episode = play(SchedulingEnv(instance), at_random(np.random.default_rng(seed)))
        if episode.schedule is not None:
            right = ob.verify(instance, episode.schedule).metrics[metric]
            assert episode.reward == pytest.approx(-right, rel=1e-9, abs=1e-12)


def test_a_problem_makes_a_new_instance_per_reset() -> None:
    env = ob.environment("gpu_dag:tasks=5")
    names = []
    for seed in (3, None, None, 3):
        env.reset(seed=seed)
        names.append(env.instance.name)
    assert names[0] == names[3] == "gpu_dag-5x6-3" and len(set(names)) == 3


def test_an_instance_that_does_not_fit_is_refused() -> None:
    env = SchedulingEnv(two_tasks(), modes=30)
    with pytest.raises(EnvError, match="has 3 pools, there is room for 1; make it with pools=3"):
        env.reset(options={"instance": load_problem("gpu_dag:tasks=4").instance(0)})
    with pytest.raises(EnvError, match="slots is 0"):
        Layout(0, 1, 1)
    with pytest.raises(EnvError, match="illegal is 'maybe'"):
        SchedulingEnv(two_tasks(), illegal="maybe")


def test_steps_out_of_turn_are_refused() -> None:
    env = SchedulingEnv(two_tasks())
    with pytest.raises(EnvError, match="before reset"):
        env.step(0)
    play(env, lambda _, legal: int(legal[0]))
    with pytest.raises(EnvError, match="the episode is over"):
        env.step(0)


@pytest.mark.parametrize(
    "twin_of",
    [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_goes_its_own_way(twin_of: Callable[[SchedulingEnv], SchedulingEnv]) -> None:
    """For a search over actions: the copy and the original step alike, and neither moves
    the other.
    """
    env = SchedulingEnv(mixed_instance(5))
    env.reset(seed=0)
    first = int(env.action_masks().argmax())
    twin = twin_of(env)
    seen, *one, _ = env.step(first)
    assert twin.seat.state.tally[NUM_READY] != env.seat.state.tally[NUM_READY]
    again, *two, _ = twin.step(first)
    assert one == two and all((seen[name] == again[name]).all() for name in seen)
    assert twin.seat.state.total.tobytes() == env.seat.state.total.tobytes()


class Counting(SchedulingEnv):
    """Sees nothing but how many tasks are ready."""

    def __init__(self, source: ob.Instance) -> None:
        super().__init__(source)
        self.observation_space = gymnasium.spaces.Dict(
            {"ready": gymnasium.spaces.Box(0, 9, (1,), np.float32)}
        )  # type: ignore[assignment]

    def observation(self) -> Observation:
        return {"ready": np.array([self.seat.state.tally[NUM_READY]], dtype=np.float32)}


def test_another_observation_is_a_subclass() -> None:
    env = Counting(two_tasks())
    seen, _ = env.reset(seed=0)
    assert seen["ready"].tolist() == [1.0] and env.observation_space.contains(seen)
    assert env.step(env.layout.wait)[0]["ready"].tolist() == [2.0]


def test_what_may_stay_undone_has_no_environment_of_this_kind() -> None:
    with pytest.raises(
        EnvError,
        match=r"geo_dc-1-0' may leave work undone at its horizon.*require all work completed",
    ):
        SchedulingEnv(load_problem("geo_dc:days=0.01,jobs=1")).reset(seed=0)
