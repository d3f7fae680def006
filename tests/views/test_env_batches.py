"""Environments in lockstep: many at once are many one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import optbench as ob
from optbench.model.instance import Bools
from optbench.plugins.discovery import load_problem
from optbench.views.env import Batch, FleetEnv, Layout, SchedulingEnv, layout_of, play_batch
from optbench.views.env.layout import EnvError, Observation
from tests.reference.kernel_runs import play, whole_trace
from tests.reference.mixed_instances import mixed_instance
from tests.views.env_instances import two_tasks


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_many_in_lockstep_are_many_one_by_one(mode: AutoresetMode) -> None:
    problem = load_problem("gpu_dag:tasks=5,price=yes")
    fleet = FleetEnv(problem, 3, slots=4, autoreset_mode=mode)
    single = SyncVectorEnv([lambda: SchedulingEnv(problem, slots=4)] * 3, autoreset_mode=mode)
    rng = np.random.default_rng(0)
    (seen, info), (other, _) = fleet.reset(seed=5), single.reset(seed=5)
    for _ in range(60):
        assert all((seen[name] == other[name]).all() for name in seen)
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        seen, *values, info = fleet.step(actions)
        other, *others, told = single.step(actions)
        for value, right in zip(values, others, strict=True):
            assert value.tolist() == right.tolist()
        if mode is AutoresetMode.NEXT_STEP:
            assert (info["action_mask"] == told["action_mask"]).all() and (
                info["cost"] == told["cost"]
            ).all()
            assert objectives(info) == objectives(told)
        else:
            assert objectives(info.get("final_info", {})) == objectives(told.get("final_info", {}))


def objectives(info: dict[str, Any]) -> Any:
    """Per environment, of the episodes that have just ended."""
    return info["objective"].tolist() if "objective" in info else None


def test_without_autoreset_what_is_over_stays_over_until_it_is_reset() -> None:
    fleet = FleetEnv(two_tasks(), 2, slots=2, autoreset_mode=AutoresetMode.DISABLED)
    fleet.reset(seed=0)
    fleet.step(np.array([0, 2]))
    assert fleet.step(np.array([0, 0]))[2].tolist() == [True, False]
    assert fleet.step(np.array([0, 0]))[1].tolist()[0] == 0.0
    _, info = fleet.reset(options={"reset_mask": np.array([True, False])})
    assert info["time"][0] == 0.0 and info["time"][1] > 0.0


def test_a_cost_is_handed_out_once() -> None:
    """Both environments end 1 s late, the second one step after the first."""
    m = ob.Model("late")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=3)], deadline_s=2)
    m.minimize(makespan=1.0)
    fleet = FleetEnv(m.build(), 2, autoreset_mode=AutoresetMode.DISABLED)
    _, info = fleet.reset(seed=0)
    costs = []
    for actions in ([0, 7], [0, 0], [0, 0]):  # 7 is no action
        _, _, _, _, info = fleet.step(np.array(actions))
        costs.append(info["cost"].tolist())
    assert [row[0] > 0 for row in costs] == [True, False, False]
    assert [row[1] > 0 for row in costs] == [False, True, False]


def test_instances_of_different_sizes_step_together() -> None:
    instances = [mixed_instance(seed) for seed in range(16)]
    layout = layout_of(*instances)
    batch = Batch(layout, len(instances))
    for b, instance in enumerate(instances):
        batch.seat(b, instance)
    batch.open()
    while not batch.over.all():
        batch.step(batch.masks.argmax(axis=1))
    for b, instance in enumerate(instances):
        env = SchedulingEnv(instance, slots=layout.slots, modes=layout.modes, pools=layout.pools)
        alone = play(env, lambda _, legal: int(legal[0])).env.seat
        assert whole_trace(instance, alone.plant, alone.state) == whole_trace(
            instance, batch[b].plant, batch[b].state
        )


def test_a_network_decides_in_a_batch_as_it_does_one_by_one() -> None:
    import torch

    torch.set_num_threads(1)
    instances = [
        load_problem(f"gpu_dag:tasks={tasks}").instance(tasks) for tasks in (4, 6, 9, 12, 7)
    ]
    layout = layout_of(*instances, slots=6)
    generator = torch.Generator().manual_seed(7)
    # In doubles, so that sums in another order do not decide between two actions.
    first, second = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((layout.width, 16), (16, layout.actions))
    )

    def decide(seen: Observation, masks: Bools) -> Any:
        rows = torch.as_tensor(
            np.concatenate([part.reshape(len(masks), -1) for part in seen.values()], axis=1)
        ).double()
        scores = torch.tanh(rows @ first) @ second
        return scores.masked_fill(~torch.as_tensor(masks), -torch.inf).argmax(dim=1).numpy()

    together = play_batch(instances, decide, layout=layout)
    for instance, played in zip(instances, together, strict=True):
        (alone,) = play_batch([instance], decide, layout=layout)
        assert played.actions.tolist() == alone.actions.tolist()
        assert played.verdict is not None and played.verdict.feasible
        assert played.reward == pytest.approx(-played.verdict.objectives[0], rel=1e-9)


def test_a_batched_policy_is_told_what_it_did_wrong() -> None:
    with pytest.raises(
        EnvError, match=r"two tasks: action 1 is not allowed now; allowed are \[0, 2\]"
    ):
        play_batch([two_tasks()], lambda seen, masks: np.ones(len(masks)), layout=Layout(2, 1, 1))
    with pytest.raises(EnvError, match=r"shape \(\)"):
        play_batch([two_tasks()], lambda seen, masks: 0)


def test_seats_and_actions_that_are_not_there_are_refused() -> None:
    instance = mixed_instance(2)
    batch = Batch(layout_of(instance), 2)
    batch.seat(0, instance)
    with pytest.raises(EnvError, match="environment 1 has no instance"):
        batch.open()
    with pytest.raises(EnvError, match="no environment 7; they are 0 to 1"):
        batch.open(np.array([0, 7]))
    batch.open(np.array([0]))
    with pytest.raises(EnvError, match=r"shape \(1,\).*each of 2"):
        batch.step([0], np.array([0]))
    with pytest.raises(EnvError, match="environment 0 has no instance"):
        FleetEnv(instance, 3).step([0, 0, 0])
