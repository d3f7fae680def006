"""Classes of alike pools and sets of alike modes: hundreds of nodes seen as a few types.

Pools are *alike* when they have the same memory, resting power and tariffs, lie below the same
capped places, and are used alike: the same kinds, times, energies, powers and clocks, by modes of
as many devices. Links, ingress latencies and the numbers of devices are those of a place and not
of a class.

Modes of a kind are alike when they differ only in which pools of the same classes they use: time,
energy, power, clock and numbers of devices are equal. They form a *set*; sets are numbered by their
first modes, so that those of a kind are consecutive. On 128 nodes of 12 types with five clocks a
kind has 60 sets per number of devices, where it has 640 modes.

A view is computed once for the pools and modes that instances share (``class_view``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from optbench.model.instance import Floats, Instance, Ints, Modes
from optbench.model.sleeping import kept_awake, wake_energy_j, wake_ticks


@dataclass(frozen=True, eq=False)
class PoolLists:
    """The pools that the modes of a set use, in the order of the modes; sets share equal lists.

    List l has ``ptr[l + 1] - ptr[l]`` entries: each mode of a set in turn has ``width[l]`` entries,
    the first of them its primary pool.
    """

    of_set: Ints
    width: Ints
    ptr: Ints
    pool: Ints
    devices: Ints


@dataclass(frozen=True, eq=False)
class ClassView:
    """The class of each pool and the set of each mode, numbered by their first pools and modes.

    The sets of kind q are ``kind_ptr[q]`` to ``kind_ptr[q + 1]``, the modes of set s are
    ``member[member_ptr[s]:member_ptr[s + 1]]`` in their order. The other columns have an entry per
    set: its kind, the class of its primary pool (-1 where it needs none), the devices of that pool,
    the clock, and per unit of work the time and the energy.
    """

    modes: Modes
    pool_class: Ints
    mode_set: Ints
    kind_ptr: Ints
    member_ptr: Ints
    member: Ints
    kind: Ints
    primary_class: Ints
    devices: Ints
    clock: Floats
    time_per_unit_s: Floats
    energy_per_unit_j: Floats

    @property
    def num_classes(self) -> int:
        return int(self.pool_class.max(initial=-1)) + 1

    @property
    def num_sets(self) -> int:
        return len(self.kind)

    @property
    def first_mode(self) -> Ints:
        """The first mode of each set, by which it is represented."""
        return self.member[self.member_ptr[:-1]]

    @cached_property
    def pool_lists(self) -> PoolLists:
        """The pools of each set, listed once for all sets that use the same ones alike."""
        modes, size = self.modes, np.diff(self.modes.req_ptr)[self.member]
        ptr = np.concatenate(([0], np.cumsum(size)))
        row = np.arange(ptr[-1]) + np.repeat(modes.req_ptr[:-1][self.member] - ptr[:-1], size)
        pool, devices = modes.req_pool[row], modes.req_count[row]
        number: dict[tuple[bytes, bytes], int] = {}
        of_set = np.empty(self.num_sets, dtype=np.int64)
        kept: list[int] = []
        cut = ptr[self.member_ptr].tolist()
        for s, (a, b) in enumerate(pairwise(cut)):
            key = (pool[a:b].tobytes(), devices[a:b].tobytes())
            of_set[s] = number.setdefault(key, len(number))
            if of_set[s] == len(kept):
                kept.append(s)
        first = np.asarray(kept, dtype=np.int64)
        entries = [np.arange(cut[s], cut[s + 1]) for s in kept]
        chosen = np.concatenate(entries) if entries else np.zeros(0, dtype=np.int64)
        return PoolLists(
            of_set,
            size[self.member_ptr[first]],
            np.concatenate(([0], np.cumsum([len(each) for each in entries]))).astype(np.int64),
            pool[chosen],
            devices[chosen],
        )


# What a view was computed from besides the modes, and the view.
_VIEWS: WeakKeyDictionary[Modes, tuple[tuple[object, ...], ClassView]] = WeakKeyDictionary()


def class_view(instance: Instance) -> ClassView:
    """Return the classes and sets of an instance; those of the same pools and modes share them."""
    source = (instance.pools, instance.places, instance.limits.cap_place, instance.tariffs)
    known = _VIEWS.get(instance.modes)
    if known is not None and all(a is b for a, b in zip(known[0], source, strict=True)):
        return known[1]
    view = make_class_view(instance)
    _VIEWS[instance.modes] = source, view
    return view


def make_class_view(instance: Instance) -> ClassView:
    """Compute the classes of alike pools and the sets of alike modes."""
    modes = instance.modes
    physics = equal_rows(mode_physics(modes), _devices_of_all_pools(modes))
    pool_class = _classes(instance, physics)
    mode_set = _sets(modes, physics, pool_class)
    sets = int(mode_set.max(initial=-1)) + 1
    member = np.argsort(mode_set, kind="stable")
    member_ptr = np.concatenate(([0], np.cumsum(np.bincount(mode_set, minlength=sets))))
    first = member[member_ptr[:-1]]
    kind = modes.kind[first]
    return ClassView(
        modes=modes,
        pool_class=pool_class,
        mode_set=mode_set,
        kind_ptr=np.searchsorted(kind, np.arange(len(modes.kind_ptr))).astype(np.int64),
        member_ptr=member_ptr.astype(np.int64),
        member=member,
        kind=kind,
        primary_class=np.append(pool_class, -1)[modes.primary[first]],
        devices=modes.devices[first],
        clock=modes.clock[first],
        time_per_unit_s=modes.time_per_unit_s[first],
        energy_per_unit_j=modes.energy_per_unit_j[first],
    )


def alike_pools(instance: Instance) -> Ints:
    """Return the class of each pool, numbered by their first pools."""
    return class_view(instance).pool_class.copy()


def _classes(instance: Instance, physics: Ints) -> Ints:
    """Return the class of each pool; ``physics`` numbers modes by all but their pools."""
    pools, tariffs = instance.pools, instance.tariffs
    capped = instance.under[instance.limits.cap_place]
    uses = _usage_by_pool(instance.modes, physics, instance.num_pools)
    number: dict[tuple[object, ...], int] = {}
    out = np.empty(instance.num_pools, dtype=np.int64)
    rest_w, memory_gb = pools.rest_w.tolist(), pools.memory_gb.tolist()
    idle_w = kept_awake(instance).pools.rest_w
    columns = (idle_w, wake_ticks(instance), wake_energy_j(pools))
    waking = list(zip(*(column.tolist() for column in columns), strict=True))
    for p in range(instance.num_pools):
        rates = (
            b""
            if tariffs is None
            else tariffs.price_usd_per_kwh[p].tobytes() + tariffs.carbon_g_per_kwh[p].tobytes()
        )
        key = (memory_gb[p], rest_w[p], waking[p], rates, capped[:, p].tobytes(), uses[p])
        out[p] = number.setdefault(key, len(number))
    return out


def _usage_by_pool(modes: Modes, physics: Ints, num_pools: int) -> list[bytes]:
    """Return how modes use each pool, as bytes to compare: a set of (physics of the mode, devices
    of this pool).
    """
    row = np.repeat(physics, np.diff(modes.req_ptr))
    most = int(modes.req_count.max(initial=0)) + 1
    width = (int(physics.max(initial=0)) + 1) * most
    table = np.unique(modes.req_pool * width + row * most + modes.req_count)
    cut = np.searchsorted(table, np.arange(num_pools + 1) * width).tolist()
    return [(table[cut[p] : cut[p + 1]] - p * width).tobytes() for p in range(num_pools)]


def _sets(modes: Modes, physics: Ints, pool_class: Ints) -> Ints:
    """Return the set of each mode: equal physics, and equal classes and devices one by one."""
    size, key = np.diff(modes.req_ptr), physics
    most = int(modes.req_count.max(initial=0)) + 1
    for k in range(int(size.max(initial=0))):
        has = np.flatnonzero(size > k)
        row = modes.req_ptr[:-1][has] + k
        need = np.zeros(len(size), dtype=np.int64)
        need[has] = 1 + pool_class[modes.req_pool[row]] * most + modes.req_count[row]
        key = equal_rows(key, need)
    return numbered_by_first(key)


def mode_physics(modes: Modes) -> Ints:
    """Number modes that are equal but for the pools that they use."""
    return equal_rows(
        modes.kind,
        modes.time_per_unit_s,
        modes.energy_per_unit_j,
        modes.power_w,
        np.where(np.isnan(modes.clock), -1.0, modes.clock),
    )


def numbered_by_first(key: Ints) -> Ints:
    """Number equal keys in the order in which they come first."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[which.reshape(-1)], dtype=np.int64)


def equal_rows(*columns: Floats | Ints) -> Ints:
    """Number rows of equal values."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, which = np.unique(column, return_inverse=True)
        values = int(which.max(initial=0)) + 1
        key = np.unique(key * values + which.reshape(-1), return_inverse=True)[1].reshape(-1)
    return key


def _devices_of_all_pools(modes: Modes) -> Ints:
    """Return the devices of each mode, of whatever pools."""
    size = np.diff(modes.req_ptr)
    row = np.repeat(np.arange(len(size)), size)
    return np.bincount(row, weights=modes.req_count, minlength=len(size)).astype(np.int64)
