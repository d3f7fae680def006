"""The horizon a front is drawn of."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.fronts.resting_power import declare
from optbench.model.cheapest import cheapest_schedule
from optbench.model.instance import Instance
from optbench.model.verify import verify


def chain(
    horizon_s: float | None = None, deadline_s: float | None = None, prices: bool = False
) -> Instance:
    """Two tasks one after the other and one beside them; cheapest modes of 20, 20 and 50 s on two
    devices.
    """
    m = ob.Model("chain", horizon_s=horizon_s)
    gpu = m.pool("gpu", count=2, idle_w=5, sleep_w=1)
    modes = [m.mode(gpu, 10, 900), m.mode(gpu, 20, 600)]
    first = m.task("a", modes=modes)
    m.task("b", modes=modes, after=first)
    m.task("c", modes=[m.mode(gpu, 50, 500)], deadline_s=deadline_s)
    if prices:
        m.tariff(price_usd_per_kwh=[0.1, 0.2], every_s=60)
    m.minimize(energy_j=1.0)
    return m.build()


def test_by_default_every_task_has_time_for_its_cheapest_mode() -> None:
    declared = declare(chain(), {"makespan_s", "energy_j"}, None, asleep=False)
    assert (declared.horizon_s, declared.horizon_from, declared.rest_energy) == (
        50,
        "cheapest_modes",
        "idle",
    )


def test_what_is_given_comes_first_then_the_instance() -> None:
    assert declare(chain(horizon_s=200), {"energy_j"}, 90.0, asleep=False).horizon_s == 90
    assert (
        declare(chain(horizon_s=200), {"energy_j"}, None, asleep=False).horizon_from == "instance"
    )
    assert declare(chain(horizon_s=200), {"energy_j"}, "completion", asleep=False).horizon_s is None


def test_without_energy_no_horizon_is_needed() -> None:
    assert (
        declare(chain(), {"makespan_s", "flow_time_s"}, None, asleep=False).horizon_from == "none"
    )


@pytest.mark.parametrize(("late", "metric"), [(True, "energy_j"), (False, "cost_usd")])
def test_where_that_schedule_does_not_do_it_is_the_longest_that_makes_sense(
    late: bool, metric: str
) -> None:
    instance = chain(deadline_s=45 if late else None, prices=not late)
    declared = declare(instance, {"makespan_s", metric}, None, asleep=False)
    assert (
        declared.horizon_from == "longest"
        and declared.horizon_s is not None
        and declared.horizon_s >= 90
    )


def test_asleep_rests_at_sleeping_power() -> None:
    declared = declare(chain(), {"energy_j"}, None, asleep=True)
    assert declared.rest_energy == "asleep" and declared.instance.pools.rest_w.tolist() == [1.0]


@pytest.mark.parametrize(
    "spec",
    ["gpu_dag:tasks=30,transfers=false,deadlines=none", "gpu_dag:tasks=30,deadlines=none", "rcpsp"],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_schedule_of_cheapest_modes_is_feasible(spec: str, seed: int) -> None:
    from optbench.api import load_target

    instance = load_target(spec, seed)
    schedule = cheapest_schedule(instance)
    assert schedule is not None
    assert verify(instance, schedule).feasible
    pairs = instance.pairs
    net = pairs.energy_j - instance.tick_s * pairs.duration * instance.mode_rest_w[pairs.mode]
    chosen = np.array(
        [
            net[(pairs.task == i) & (pairs.mode == k)][0]
            for i, k in enumerate(schedule.mode.tolist())
        ]
    )
    assert chosen.tolist() == [net[pairs.task == i].min() for i in range(instance.num_tasks)]
