"""Classes of alike pools and sets of alike modes: by hand, and against their definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.model.classes import ClassView, alike_pools, class_view, make_class_view
from optbench.model.instance import Instance
from tests.bounds.test_merging import splittable


def two_types() -> Instance:
    """Nodes a, b of one type with 2 and 3 devices, node c of another; two clocks, one or two
    devices.
    """
    m = ob.Model("two types")
    pools = [m.pool(name, count=n, idle_w=10.0) for name, n in (("a", 2), ("c", 2), ("b", 3))]
    kind = m.kind(
        modes=[
            m.mode({pool: n}, time_s=(4 + (k == 1)) / n, energy_j=100 * clock * n, clock=clock)
            for n in (1, 2)
            for k, pool in enumerate(pools)
            for clock in (0.5, 1.0)
        ]
    )
    other = m.kind(modes=[m.mode(pools[1], time_s=1, energy_j=5)])
    m.task(units=1.0, kind=kind)
    m.task(units=1.0, kind=other)
    m.minimize(energy_j=1.0)
    return m.build()


def test_the_sets_of_two_types() -> None:
    """Modes are numbered: one device, pool by pool, both clocks; then two devices. Pools 0 and 2
    are alike, so that modes 0 and 4, 1 and 5, 6 and 10, 7 and 11 are.
    """
    view = class_view(two_types())
    assert view.pool_class.tolist() == [0, 1, 0]
    assert view.num_classes == 2
    assert view.mode_set.tolist() == [0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 4, 5, 8]
    assert view.kind_ptr.tolist() == [0, 8, 9]
    members = np.split(view.member, view.member_ptr[1:-1])
    assert [each.tolist() for each in members] == [
        [0, 4], [1, 5], [2], [3], [6, 10], [7, 11], [8], [9], [12],
    ]  # fmt: skip
    assert view.first_mode.tolist() == [0, 1, 2, 3, 6, 7, 8, 9, 12]
    assert view.kind.tolist() == [0] * 8 + [1]
    assert view.primary_class.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 1]
    assert view.devices.tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 1]
    assert view.clock[:2].tolist() == [0.5, 1.0] and np.isnan(view.clock[8])
    assert view.time_per_unit_s.tolist() == [4, 4, 5, 5, 2, 2, 2.5, 2.5, 1]
    assert view.energy_per_unit_j.tolist() == [50, 100, 50, 100, 100, 200, 100, 200, 5]


def test_sets_that_use_the_same_pools_share_their_list() -> None:
    """Both clocks on one device of pools 0 and 2, on one of pool 1, on two of each; the second kind
    uses one device of pool 1 as the first does.
    """
    lists = class_view(two_types()).pool_lists
    assert lists.of_set.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 1]
    assert lists.ptr.tolist() == [0, 2, 3, 5, 6]
    assert lists.pool.tolist() == [0, 2, 1, 0, 2, 1]
    assert lists.devices.tolist() == [1, 1, 1, 2, 2, 2]
    assert lists.width.tolist() == [1, 1, 1, 1]


def by_definition(instance: Instance, view: ClassView) -> list[int]:
    """Compare all modes of a kind with each other."""
    modes, out = instance.modes, []
    number: dict[tuple[object, ...], int] = {}
    for k in range(instance.num_modes):
        needs = range(modes.req_ptr[k], modes.req_ptr[k + 1])
        key = (
            modes.kind[k],
            modes.time_per_unit_s[k],
            modes.energy_per_unit_j[k],
            modes.power_w[k],
            str(modes.clock[k]),
            tuple((view.pool_class[modes.req_pool[r]], modes.req_count[r]) for r in needs),
        )
        out.append(number.setdefault(key, len(number)))
    return out


def test_sets_are_as_defined() -> None:
    shared = 0
    for seed, _, devices in splittable(lag=1.0):
        view = make_class_view(devices)
        assert view.mode_set.tolist() == by_definition(devices, view), seed
        assert (np.diff(view.kind) >= 0).all()
        lists, modes = view.pool_lists, devices.modes
        for s in range(view.num_sets):
            use = [
                (int(modes.req_pool[r]), int(modes.req_count[r]))
                for k in view.member[view.member_ptr[s] : view.member_ptr[s + 1]]
                for r in range(modes.req_ptr[k], modes.req_ptr[k + 1])
            ]
            row = slice(lists.ptr[lists.of_set[s]], lists.ptr[lists.of_set[s] + 1])
            assert list(zip(lists.pool[row], lists.devices[row], strict=True)) == use
        shared += view.num_sets < devices.num_modes
    assert shared > 20


@pytest.mark.parametrize("change", ["memory_gb", "sleep_w"])
def test_pools_that_differ_are_of_different_classes(change: str) -> None:
    instance = two_types()
    pools = replace(instance.pools, gated=np.array([True, True, True]))
    assert alike_pools(replace(instance, pools=pools)).tolist() == [0, 1, 0]
    values = np.array([1.0, 1.0, 2.0])
    if change == "sleep_w":
        other = replace(pools, sleep_w=values)
    else:
        other = replace(pools, memory_gb=values)
    assert alike_pools(replace(instance, pools=other)).tolist() == [0, 1, 2]


def test_a_view_is_shared_by_instances_of_the_same_pools_and_modes() -> None:
    instance = two_types()
    view = class_view(instance)
    assert class_view(instance.with_limits(energy_j=1e9)) is view
    later = replace(instance, tasks=replace(instance.tasks, units=np.array([2.0, 2.0])))
    assert class_view(later) is view
    pools = replace(instance.pools, count=np.array([2, 2, 2]))
    assert class_view(replace(instance, pools=pools)) is not view
