"""Caps, cooling, users, failures and busy links of gpu_cluster, by numbers derived by hand."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError
from tests.problems.gpu_graphs import make


def test_caps_are_shares_of_the_power_at_full_work() -> None:
    spec = "gpu_cluster:nodes=2,tasks=30,types=2,gpus=2,clocks=2,cpus=no"
    instance = make(f"{spec},power_cap=0.8,node_cap=1")
    power_w = [instance.modes.power_w[instance.modes.req_pool == p].max() for p in (0, 1)]
    # Two H100 on node 0, one A100 on node 1; places are the cluster, a rack, two nodes. Caps are
    # whole watts; those of the share 1 are rounded up.
    full = [2 * power_w[0], power_w[1]]
    assert instance.limits.cap_place.tolist() == [0, 2, 3]
    assert instance.limits.cap_w.tolist() == [
        np.floor(0.8 * sum(full)), np.ceil(full[0]), np.ceil(full[1]),
    ]  # fmt: skip
    assert "power_cap" in instance.features


def test_a_cap_that_leaves_a_task_no_mode_is_refused_with_the_least_that_does() -> None:
    spec = "gpu_cluster:nodes=1,tasks=10,types=1,gpus=1,clocks=1,cpus=no,node_cap"
    # One H100: a cap fits exactly the tasks whose power is below its share of the highest one.
    with pytest.raises(ParameterError, match=r"node_cap is 0\.2, which leaves") as error:
        make(f"{spec}=0.2")
    enough = float(str(error.value).rsplit(" ", 1)[1])
    assert make(f"{spec}={min(1.0, enough + 0.002):g}").limits.cap_w[0] > 0
    with pytest.raises(ParameterError, match="leaves"):
        make(f"{spec}={enough - 0.01:g}")


def test_cooling_holds_its_share_of_the_full_power_for_ever() -> None:
    instance = make("gpu_cluster:nodes=2,tasks=30,types=2,gpus=2,clocks=2,cpus=no,cooling=0.5")
    cooling, modes = instance.cooling, instance.modes
    assert cooling is not None and "cooling" in instance.features
    assert [instance.places.names[q] for q in cooling.place.tolist()] == ["node-0", "node-1"]
    # Two H100 (55 W at rest) on node 0, one A100 (45 W) on node 1, half of their full power.
    steady_w = [
        count * 0.5 * float(modes.power_w[modes.req_pool == p].max())
        for p, count in ((0, 2), (1, 1))
    ]
    settles = cooling.ambient_c + cooling.c_per_w * np.array(steady_w)
    assert settles == pytest.approx([85.0, 85.0])
    assert cooling.start_c == pytest.approx(27.0 + cooling.c_per_w * [110.0, 45.0])


def test_cooling_that_devices_at_rest_exceed_is_refused() -> None:
    with pytest.raises(
        ParameterError, match=r"cooling is 0\.1, less than what devices draw at rest"
    ):
        make("gpu_cluster:nodes=4,tasks=60,types=2,cooling=0.1")


def test_tasks_have_their_users() -> None:
    tasks = make("gpu_cluster:nodes=4,tasks=100,users=3").tasks
    assert tasks.user is not None and tasks.user_names == ("u0", "u1", "u2") and tasks.names
    named = [name.split(".")[0] for name in tasks.names]
    assert named == [f"u{user}" for user in tasks.user.tolist()]


def test_devices_fail_as_often_as_was_published() -> None:
    spec = "gpu_cluster:nodes=2,tasks=20,profiles=[H100,K40c]"
    assert make(spec).pools.failures_per_s is None
    rates = make(f"{spec},failures=yes").pools.failures_per_s
    assert rates is not None
    # 246 failures of 16,384 H100 and 2 of 4,096 sockets in 54 days; a K40c fails four times as
    # often.
    h100 = 246 / (16_384 * 54 * 86_400)
    socket = 2 / (4_096 * 54 * 86_400)
    assert rates == pytest.approx([h100, socket, 4 * h100, socket], rel=2e-3)


def test_links_of_a_rack_are_busy_together_and_free_at_last() -> None:
    spec = "gpu_cluster:nodes=4,tasks=40,nodes_per_rack=2,load=0.5"
    assert make(spec).congestion is None
    instance = make(f"{spec},congestion=yes")
    found = instance.congestion
    assert found is not None and "congestion" in instance.features
    # Periods of 10 s in ticks of 0.01 s: those of the arrivals, 60 more, and the time after.
    last = int(instance.tasks.release.max())
    assert found.times.tolist() == list(range(0, (last // 1000 + 62) * 1000, 1000))
    factor = found.factor
    # Four pools in each of two racks.
    assert (factor[:4] == factor[0]).all() and (factor[4:] == factor[4]).all()
    assert (factor[0] != factor[4]).any()
    assert set(factor.ravel().tolist()) == {1.0, 2.0, 4.0} and (factor[:, -1] == 1.0).all()
    # The work and its arrivals are the same.
    assert instance.tasks.release.tolist() == make(spec).tasks.release.tolist()


def test_training_has_checkpoints_and_other_work_starts_again() -> None:
    """2 s are 200 ticks of 0.01 s."""
    made = make("gpu_cluster:nodes=2,tasks=40,types=2,failures=yes,checkpoint_s=2", 1)
    training = np.array(
        [made.modes.kind_names[kind].startswith("training") for kind in made.tasks.kind.tolist()]
    )
    assert made.preemptive and 0 < training.sum() < 40 and made.tasks.checkpoint is not None
    assert (made.tasks.checkpoint == np.where(training, 200.0, np.inf)).all()
    with pytest.raises(ParameterError, match="checkpoint_s is 0"):
        make("gpu_cluster:checkpoint_s=0")


@pytest.mark.parametrize("policy", ["heft", "path_milestones"])
def test_no_task_is_lost_to_failures(policy: str) -> None:
    """A device of each of the first two pools is gone from 5 s to 20 s, another 8 s to 30 s."""
    made = make("gpu_cluster:nodes=2,tasks=40,types=2,failures=yes,checkpoint_s=2", 1)
    spans = ((0, 500, 2000), (2, 500, 2000), (0, 800, 3000))
    faults = [
        ob.Fault(float(time), pool, sign)
        for pool, since, until in spans
        for time, sign in ((since, 1), (until, -1))
    ]
    done = ob.simulate(made, policy, faults=faults, bound=False)
    assert done.end == "complete" and done.verified and done.lost_j == 0.0
    calm = ob.simulate(made, policy, bound=False)
    assert calm.metrics["lost_energy_j"] == 0.0 < done.metrics["lost_energy_j"]
    assert done.schedule.num_segments > calm.schedule.num_segments == 40


def test_devices_take_time_and_energy_to_wake() -> None:
    """A device wakes for 20 s at twice its idle power."""
    made = make("gpu_cluster:nodes=2,tasks=10,types=2,sleeps=yes,wake_s=20", 1)
    pools = made.pools
    assert pools.wake_s is not None and pools.wake_j is not None and "waking" in made.features
    assert (pools.wake_s == 20).all() and (pools.wake_j == 20 * pools.idle_w).all()
    with pytest.raises(ParameterError, match="wake_s is 20"):
        make("gpu_cluster:wake_s=20")


def test_caps_and_cooling_count_devices_awake() -> None:
    """Policies that never let a device sleep have to find room."""
    spec = "gpu_cluster:nodes=2,tasks=12,types=2,sleeps=yes,wake_s=20,power_cap=0.6,cooling=0.7"
    made = make(spec, 1)
    done = ob.solve(made, "heft")
    assert done.status == "feasible" and "rest_energy_j" in done.metrics
