"""Choosing by sets of alike modes gives the schedule of choosing among all modes, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.classes import class_view
from optbench.model.instance import Instance
from optbench.sim.kernel.dispatch import PRESSED, Rule, run
from optbench.sim.kernel.plant import SET_KINDS, Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import TROUBLE, new_state
from optbench.sim.rules import list_rule


def cluster(seed: int) -> Instance:
    """Two or three types of nodes, each a pool of one to three devices and perhaps a CPU that some
    modes need besides; equal times are frequent.
    """
    rng = np.random.default_rng(seed)
    m = ob.Model(f"cluster {seed}", time="seconds")
    types, clocks = int(rng.integers(2, 4)), (0.5, 1.0)
    with_cpus, with_data = rng.random() < 0.3, rng.random() < 0.7
    least = rng.integers(1, 3, types)
    nodes = [
        (kind, m.pool(f"p{kind}-{k}", count=int(least[kind] + rng.integers(0, 2)),
                      idle_w=5.0 * kind, memory_gb=8.0 * (1 + kind % 2)))
        for k in range(int(rng.integers(2, 4))) for kind in range(types)
    ]  # fmt: skip
    cpus = [m.pool(f"c{k}", count=2, idle_w=1.0) for k in range(len(nodes))] if with_cpus else []
    if with_data:
        pools = [pool for _, pool in nodes] + cpus
        for k, pool in enumerate(pools):
            # Pools of one rack are nearer; the last of three pools cannot send.
            near = [other for j, other in enumerate(pools) if j != k and j % 2 == k % 2]
            far = [other for j, other in enumerate(pools) if j % 2 != k % 2]
            if k < 2 or rng.random() < 0.9:
                m.link(pool, near, bandwidth_gbit_s=8.0, both=False)
                m.link(pool, far, bandwidth_gbit_s=2.0, latency_ms=500, both=False)
    kinds = []
    for _ in range(int(rng.integers(1, 4))):
        time_s = rng.integers(2, 9, types)
        kinds.append(m.kind(modes=[
            m.mode({pool: n} | ({cpus[k]: 1} if with_cpus else {}),
                   time_s=float(time_s[kind]) / n / clock,
                   energy_j=float(40 * n * clock * (1 + kind)), clock=clock)
            for k, (kind, pool) in enumerate(nodes)
            for n in range(1, least[kind] + 1) for clock in clocks
        ]))  # fmt: skip
    tasks: list[Any] = []
    for _ in range(int(rng.integers(15, 40))):
        before = [t for t in tasks[-6:] if rng.random() < 0.25]
        tasks.append(m.task(
            units=float(rng.integers(1, 4)), kind=kinds[int(rng.integers(len(kinds)))],
            after=[] if with_data else before,
            data_gb={t: float(rng.integers(0, 4)) for t in before} if with_data else None,
            release_s=float(rng.integers(0, 10)), memory_gb=float(rng.choice([0.0, 8.0])),
            deadline_s=float(rng.integers(20, 60)), hard=False,
        ))  # fmt: skip
    if rng.random() < 0.3:
        m.limit(power_w=60.0 * len(nodes))
    m.minimize(energy_j=1.0, makespan_s=10.0, tardiness_s=5.0)
    return m.build()


def drawn_rule(instance: Instance, rng: np.random.Generator) -> Rule:
    """A rule whose costs are equal for alike modes; weights are often zero, so that scores tie."""
    view, n = class_view(instance), instance.num_tasks

    def some(*values: float) -> float:
        return float(rng.choice(values))

    prices: dict[str, Any] = {}
    if rng.random() < 0.5:
        prices = {
            "end_price": rng.choice([0.0, 2.0], n),
            "due": rng.integers(5, 60, n).astype(float),
            "late_price": rng.choice([0.0, 10.0], n),
        }
        if rng.random() < 0.5:
            prices["set_cost"] = np.concatenate(
                [
                    rng.integers(0, 9, view.kind_ptr[q + 1] - view.kind_ptr[q])
                    for q in instance.tasks.kind
                ]
            )
    by_class = rng.choice([0.0, 1.0, 7.0], view.num_classes)
    return list_rule(
        instance,
        base=rng.integers(0, 5, n).astype(float),
        ready_weight=some(0.0, 1.0),
        end_weight=some(0.0, 1e-9, 1.0, 20.0),
        late_weight=some(0.0, 3.0),
        energy_weight=some(0.0, 1.0),
        patience=some(0.0, 0.5, 1.0),
        load=some(math.inf, 0.5),
        allowed=np.where(rng.random(view.num_sets) < 0.1, PRESSED, 3)[view.mode_set],
        depth=int(some(2, 100)),
        strict=rng.random() < 0.2,
        lookahead=rng.random() < 0.7,
        mode_cost=rng.choice([0.0, 3.0], view.num_sets)[view.mode_set],
        pool_cost=by_class[view.pool_class],
        **prices,
    )


def drawn_faults(instance: Instance, rng: np.random.Generator) -> list[Fault]:
    if rng.random() < 0.6:
        return []
    pools = rng.choice(instance.num_pools, 2, replace=False)
    return [
        Fault(float(time), int(pool), devices)
        for pool in pools
        for time, devices in ((rng.integers(3, 20), 1), (30, -1))
    ]


def played(instance: Instance, rule: Rule, faults: list[Fault], by_set: bool) -> tuple[Any, ...]:
    plant = plant_of(instance, faults)
    if not by_set:
        plant.size[SET_KINDS] = 0
    state = new_state(plant)
    run(addresses(plant), addresses(state), addresses(rule), math.inf)
    assert not state.tally[TROUBLE]
    return (
        bool(state.by_set.any()),
        state.mode.tolist(),
        state.start.tolist(),
        state.end.tolist(),
        state.status.tolist(),
        state.total.tolist(),
    )


@pytest.mark.parametrize("part", range(4))
def test_sets_give_the_schedule_of_all_modes(part: int) -> None:
    chosen_by_set = 0
    for seed in range(60 * part, 60 * part + 60):
        instance, rng = cluster(seed), np.random.default_rng(seed)
        for _ in range(6):
            rule, faults = drawn_rule(instance, rng), drawn_faults(instance, rng)
            with_sets = played(instance, rule, faults, by_set=True)
            without = played(instance, rule, faults, by_set=False)
            chosen_by_set += with_sets[0]
            assert not without[0]
            assert with_sets[1:] == without[1:], seed
    assert chosen_by_set > 200


def test_a_rule_that_treats_alike_modes_differently_chooses_among_all() -> None:
    """Two alike pools; the price of the second makes the first the only choice at 0 and 2."""
    m = ob.Model("alike")
    pools = [m.pool("a"), m.pool("b")]
    kind = m.kind(modes=[m.mode(pool, time_s=2) for pool in pools])
    for _ in range(2):
        m.task(units=1.0, kind=kind)
    m.minimize(makespan=1.0)
    instance = m.build()
    for costs, pair, starts in (
        ([0.0, 5.0], None, [0, 2]),
        ([5.0, 5.0], None, [0, 0]),
        ([0.0, 0.0], [0.0, 5.0, 0.0, 5.0], [0, 2]),
    ):
        rule = list_rule(
            instance, end_weight=1.0, lookahead=True, pool_cost=np.array(costs), pair_cost=pair
        )
        out = played(instance, rule, [], by_set=True)
        assert sorted(out[2]) == starts
        assert out[0] == (costs == [5.0, 5.0] and pair is None)
