"""In the kernel no device sleeps by itself where waking takes time: its accounts are the verifier's
of a schedule without rows, and caps and cooling count every device awake.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.model.features import provisioned
from optbench.model.instance import Instance
from optbench.model.sleeping import with_sleep
from optbench.sim.rules import list_rule, run_rule
from tests.reference.kernel_runs import disagreements
from tests.reference.mixed_instances import mixed_instance
from tests.sim.event_runs import run


def waking(seed: int) -> Instance:
    """The mixed instance, with devices of some pools that draw less asleep and take their time."""
    made, rng = mixed_instance(seed), np.random.default_rng([seed, 9])
    some = rng.random(made.num_pools) < 0.7
    pools = replace(
        made.pools,
        gated=made.pools.gated | some,
        sleep_w=np.where(some, 0.2 * made.pools.idle_w, made.pools.sleep_w),
        wake_s=np.where(some, float(np.median(made.pairs.duration)) * made.tick_s, 0.0),
        wake_j=np.where(some, 10.0, 0.0),
    )
    return replace(made, pools=pools)


@pytest.mark.parametrize("seed", range(16))
def test_kernel_and_verifier_agree(seed: int) -> None:
    instance = waking(seed)
    state, schedule = run(instance, seed)
    if schedule is not None:
        assert disagreements(instance, state, schedule) == []


@pytest.mark.parametrize("seed", range(16))
def test_sleep_never_costs_energy_and_breaks_nothing(seed: int) -> None:
    instance = waking(seed)
    schedule = run_rule(instance, list_rule(instance, end_weight=1.0)).schedule
    if schedule is None:
        return
    awake, slept = (
        ob.verify(instance, schedule),
        ob.verify(instance, with_sleep(instance, schedule)),
    )
    names = [{each.constraint for each in verdict.violations} for verdict in (slept, awake)]
    assert names[0] <= names[1] and "power_cap" not in names[1]
    assert slept.metrics["energy_j"] <= awake.metrics["energy_j"]


def test_there_are_such_pools() -> None:
    assert sum(bool(provisioned(waking(seed).pools).any()) for seed in range(16)) > 8
