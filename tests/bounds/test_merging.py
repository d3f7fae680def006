"""Individual devices merged for bounding: the pools they came from come back, and no bound exceeds
the optimum.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial import merging
from optbench.bounds.combinatorial.merging import merge_classes, merge_pools
from optbench.model.classes import alike_pools
from optbench.model.instance import Instance, Links, Modes, Pools
from optbench.model.schedule import Schedule
from optbench.model.streams import outages_in_seconds, with_stream
from optbench.model.validate import validate
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem
from tests.bounds.test_fluid import schedules
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import decisions, tiny_instance


def split(instance: Instance, lag: float) -> Instance:
    """Every device a pool of its own, every choice of devices a mode, and links with this latency
    among those of one pool.
    """
    old, modes = instance.pools, instance.modes
    of = np.repeat(np.arange(instance.num_pools), old.count)
    names = tuple(f"d{k}" for k in range(len(of)))
    pools = Pools(
        names,
        old.place[of],
        np.ones(len(of), dtype=np.int64),
        old.idle_w[of],
        old.sleep_w[of],
        old.gated[of],
        old.memory_gb[of],
    )
    rows: list[tuple[int, tuple[int, ...]]] = []
    for k in range(instance.num_modes):
        needs = [
            (int(modes.req_pool[r]), int(modes.req_count[r]))
            for r in range(modes.req_ptr[k], modes.req_ptr[k + 1])
        ]
        choices = (combinations(np.flatnonzero(of == p).tolist(), n) for p, n in needs)
        rows += [(k, tuple(d for part in chosen for d in part)) for chosen in product(*choices)]
    which = np.asarray([k for k, _ in rows])
    table = Modes(
        modes.kind_names,
        np.searchsorted(modes.kind[which], np.arange(len(modes.kind_ptr))).astype(np.int64),
        modes.time_per_unit_s[which],
        modes.energy_per_unit_j[which],
        modes.power_w[which],
        modes.clock[which],
        np.concatenate(([0], np.cumsum([len(chosen) for _, chosen in rows]))).astype(np.int64),
        np.asarray([d for _, chosen in rows for d in chosen], dtype=np.int64),
        np.ones(sum(len(chosen) for _, chosen in rows), dtype=np.int64),
    )
    siblings = (of[:, None] == of[None, :]) & ~np.eye(len(of), dtype=bool)
    parts = [
        np.where(siblings, lag, part[np.ix_(of, of)])
        for part in (instance.links.latency_s, instance.links.s_per_gb, instance.links.j_per_gb)
    ]
    tariffs = instance.tariffs
    if tariffs is not None:
        tariffs = replace(
            tariffs,
            price_usd_per_kwh=tariffs.price_usd_per_kwh[of],
            carbon_g_per_kwh=tariffs.carbon_g_per_kwh[of],
        )
    return validate(
        replace(instance, pools=pools, modes=table, links=Links(*parts), tariffs=tariffs)
    )


def splittable(lag: float, most: int = 40) -> list[tuple[int, Instance, Instance]]:
    """Tiny instances with pools of several devices, and the same device by device, small enough for
    brute force.
    """
    out = []
    for seed in range(1000):
        instance = tiny_instance(seed)
        if instance.pools.count.max() > 1:
            devices = split(instance, lag)
            if decisions(devices) <= 200_000:
                out.append((seed, instance, devices))
        if len(out) == most:
            break
    return out


def test_the_pools_come_back() -> None:
    """Where a device's siblings are linked for nothing, the merged instance is as good as the one
    of pools.
    """
    for seed, instance, devices in splittable(lag=0.0, most=25):
        of = np.repeat(np.arange(instance.num_pools), instance.pools.count)
        found = merge_classes(devices, of)
        assert found.instance.pools.count.tolist() == instance.pools.count.tolist()
        assert found.instance.num_modes <= instance.num_modes
        # Two equal pools are one class too; a class never spans pools that differ.
        classes = alike_pools(devices)
        assert all(len(set(classes[of == p].tolist())) == 1 for p in range(instance.num_pools)), (
            seed
        )
        one, other = brute_force(validate(found.instance)), brute_force(instance)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.objective == pytest.approx(other.objective, rel=1e-12), seed


def test_a_merged_optimum_and_its_bounds_never_exceed_the_optimum() -> None:
    fewer = 0
    for seed, _, devices in splittable(lag=1.0):
        optimum, found = brute_force(devices), merge_classes(devices, alike_pools(devices))
        if optimum is None:
            continue
        fewer += found.instance.num_pools < devices.num_pools
        slack = 1e-9 * max(1.0, abs(optimum.objective))
        relaxed = brute_force(validate(found.instance))
        assert relaxed is not None and relaxed.objective <= optimum.objective + slack, seed
        for bound in lower_bounds(found.instance, time_limit_s=0.3):
            assert bound.value <= optimum.objective + slack, (seed, bound)
    assert fewer > 10


def test_schedules_are_feasible_in_the_merged_instance_and_cost_no_more() -> None:
    checked = 0
    for seed, _, devices in splittable(lag=1.0):
        found = merge_classes(devices, alike_pools(devices))
        for schedule in schedules(devices, np.random.default_rng(seed)):
            before, after = verify(devices, schedule), verify(found.instance, found.image(schedule))
            assert after.feasible, (seed, after.violations)
            assert after.objectives[0] <= before.objectives[0] * (1 + 1e-12) + 1e-12
            checked += found.instance.num_pools < devices.num_pools
    assert checked > 20


def test_pools_that_differ_are_not_merged() -> None:
    m = ob.Model()
    pools = [
        m.pool(f"p{k}", idle_w=10.0 * (k == 1), memory_gb=16.0 if k == 2 else 8.0) for k in range(5)
    ]
    m.task(modes=[m.mode(pool, time_s=2 + (k == 3)) for k, pool in enumerate(pools)])
    m.minimize(makespan=1.0)
    # 0 and 4 are alike; 1 rests at 10 W, 2 has more memory, 3 is slower.
    assert alike_pools(m.build()).tolist() == [0, 1, 2, 3, 0]


def test_small_instances_are_bounded_as_they_are() -> None:
    instance = load_problem("gpu_dag:tasks=10,pooled=no").instance(0)
    assert merge_pools(instance).instance is instance


def test_an_explanation_of_devices_has_the_objective_of_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merging, "SMALL", 0)
    instance = load_problem("gpu_dag:tasks=12,pooled=no,gpus=8,types=2,gang=1").instance(0)
    result = ob.solve(instance, "cpsat", time_limit_s=2.0)
    assert result.schedule is not None
    found = ob.explain(instance, result.schedule)
    assert found.instance.num_pools == 2 < instance.num_pools
    assert found.objective.objective == result.objective
    assert sum(found.objective.exact.values()) == found.objective.exact_excess


def test_what_is_merged_is_left_as_it_is_when_merged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # Four single devices become one pool of four, which is then like the other pool of four: one
    # pool of eight.
    monkeypatch.setattr(merging, "SMALL", 0)
    m = ob.Model()
    single = [m.pool(f"s{k}", idle_w=10) for k in range(4)]
    four = m.pool("four", 4, idle_w=10)
    alone = [m.mode(pool, time_s=4, energy_j=100) for pool in (*single, four)]
    pairs = [dict.fromkeys(chosen, 1) for chosen in combinations(single, 2)] + [{four: 2}]
    m.task(modes=[*alone, *(m.mode(pair, time_s=2, energy_j=120) for pair in pairs)])
    m.minimize(energy_j=1.0)
    instance = m.build()
    found = merge_pools(instance)
    assert found.instance.pools.count.tolist() == [8] and found.instance.num_modes == 2
    assert merge_pools(found.instance).instance is found.instance
    # Alone 100 J and seven devices at rest for 4 s, 380 J; as a pair 120 J and six of them for 2 s,
    # 240 J.
    assert ob.explain(instance, Schedule.of(instance, [0], [0])).objective.parts[
        "count"
    ] == pytest.approx(140)


def three_sites() -> Instance:
    """Pools of 2, 1 and 3 devices: 5, 2 and 3 s from the north; 4 s to the first from the south."""
    m = ob.Model(preemptive=True)
    pools = [m.pool(name, count) for name, count in (("a", 2), ("b", 1), ("c", 3))]
    m.tasks(np.ones(2), kind=m.kind(modes=[m.mode(pool, 1.0) for pool in pools]))
    m.minimize(energy_j=1.0)
    built = m.build()
    ways = [[5.0, 2.0, 3.0], [4.0, np.inf, np.inf]]
    outages = outages_in_seconds(built, [1.0, 2.0], [2, 2], [1, -1])
    return with_stream(
        built,
        ingress=[0, 1],
        latency_s=ways,
        sent_to=[2, 0],
        outages=outages,
        ingress_names=("north", "south"),
    )


def test_the_way_to_a_class_is_that_to_its_nearest_pool() -> None:
    found = merge_classes(three_sites(), np.array([0, 1, 0])).instance
    assert found.pools.count.tolist() == [5, 1]
    assert found.pools.names == ("a and 1 alike", "b")
    assert found.stream is not None
    assert found.stream.latency_s.tolist() == [[3.0, 2.0], [4.0, np.inf]]
    assert found.stream.outages.pool.tolist() == [0, 0]
    assert found.stream.sent_to.tolist() == [-1, -1]


def test_between_classes_the_least_of_any_linked_pair_counts() -> None:
    # Pools 0 and 2 are one class. From it to pool 1: 4 s and 1 s per GB of the first, 3 s and 2 s
    # per GB of the third; back only from pool 1 to pool 0, 7 s. Pool 3 is linked to nothing.
    far = np.inf
    latency = np.array([[0, 4, far, far], [7, 0, far, far], [far, 3, 0, far], [far, far, far, 0]])
    per_gb = np.array([[0, 1.0, 9, 9], [5, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0]])
    found = merging._merged_links(Links(latency, per_gb, 10 * per_gb), np.array([0, 1, 0, 2]))
    assert found.latency_s.tolist() == [[0, 3, far], [7, 0, far], [far, far, 0]]
    assert found.s_per_gb.tolist() == [[0, 1, 0], [5, 0, 0], [0, 0, 0]]
    assert found.j_per_gb.tolist() == [[0, 10, 0], [50, 0, 0], [0, 0, 0]]
