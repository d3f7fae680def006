"""Power caps and cooling of gpu_cluster, as shares of the full power of a place, which its devices
draw while each of them works in its hungriest mode.

Cooling that carries off a share s of the full power F of a node for ever keeps it at its limit:

    c_per_w = (limit - ambient) / (s F)        start = ambient + c_per_w · power at rest

More power is possible for some time, with this time constant. A share that leaves some task without
a mode is refused with the least one that does not. With rest_q the power of place q while nothing
runs, a mode of pool p fits while

    rest_q + power − rest_p · devices ≤ cap_q         for every capped place q at or above p
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optbench.errors import ParameterError
from optbench.model.cooling import Cooling
from optbench.model.instance import Bools, Floats, Instance, Ints, Limits
from optbench.model.sleeping import kept_awake

# Air at the inlet of a node: the upper end of what ASHRAE TC 9.9 recommends (18 to 27 °C).
AMBIENT_C = 27.0
# The temperature that a node is kept below, and the time constant of its heat sinks (modelled:
# boards of data centres slow down between 80 and 95 °C, and reach their temperature in minutes).
LIMIT_C, TIME_CONSTANT_S = 85.0, 60.0


@dataclass(frozen=True, eq=False)
class PlacePower:
    """Watts of each place: of its resting devices, and while all work in their hungriest modes."""

    rest_w: Floats
    full_w: Floats
    mode_added_w: Floats  # by a mode to every place at or above its pool

    @classmethod
    def of(cls, instance: Instance) -> PlacePower:
        modes, pools = instance.modes, instance.pools
        highest_w = pools.rest_w.copy()
        np.maximum.at(highest_w, modes.req_pool, modes.power_w / modes.req_count)
        return cls(
            np.asarray(instance.under @ (pools.rest_w * pools.count), dtype=float),
            np.asarray(instance.under @ (highest_w * pools.count), dtype=float),
            modes.power_w - pools.rest_w[modes.req_pool] * modes.req_count,
        )


def with_power_caps(
    instance: Instance, cluster_share: float | None, node_share: float | None, num_nodes: int
) -> Instance:
    """Add a cap of the cluster and one of each node, in whole watts; nodes are the last places."""
    power = PlacePower.of(kept_awake(instance))
    places, caps_w = np.zeros(0, dtype=np.int64), np.zeros(0)
    nodes = np.arange(num_nodes) + len(instance.places.names) - num_nodes
    for name, share, where in (
        ("power_cap", cluster_share, np.zeros(1, dtype=np.int64)),
        ("node_cap", node_share, nodes),
    ):
        if share is not None:
            # The share 1 is rounded up, so that it never binds.
            whole = np.ceil if share == 1 else np.floor
            places = np.concatenate((places, where))
            caps_w = np.concatenate((caps_w, whole(share * power.full_w[where])))
            _refuse_without_modes(instance, power, places, caps_w, name, share)
    return replace(instance, limits=Limits(places, caps_w)) if len(places) else instance


def with_cooling(instance: Instance, share: float, num_nodes: int) -> Instance:
    """Cool each node so that it can do this share of its full power for ever."""
    power = PlacePower.of(kept_awake(instance))
    nodes = np.arange(num_nodes) + len(instance.places.names) - num_nodes
    steady_w = share * power.full_w[nodes]
    _refuse_without_modes(instance, power, nodes, steady_w, "cooling", share)
    c_per_w = (LIMIT_C - AMBIENT_C) / steady_w
    every = np.ones(num_nodes)
    cooling = Cooling(
        place=nodes,
        ambient_c=AMBIENT_C * every,
        c_per_w=c_per_w,
        time_constant_s=TIME_CONSTANT_S * every,
        limit_c=LIMIT_C * every,
        start_c=AMBIENT_C + c_per_w * power.rest_w[nodes],
    )
    return replace(instance, cooling=cooling)


def _refuse_without_modes(
    instance: Instance, power: PlacePower, places: Ints, caps_w: Floats, name: str, share: float
) -> None:
    modes = instance.modes
    fits = np.ones(instance.num_modes, dtype=bool)
    least = np.zeros(instance.num_modes)  # the least share with which a mode fits
    for place, cap_w in zip(places.tolist(), caps_w.tolist(), strict=True):
        here = instance.under[place][modes.req_pool]
        need_w = power.rest_w[place] + power.mode_added_w
        fits &= ~here | (need_w <= cap_w)
        least = np.where(here, np.maximum(least, (need_w + 1) / power.full_w[place]), least)
    rows = tasks_without_mode(instance, fits)
    resting = power.rest_w[places] > caps_w
    if resting.any():
        enough = math.ceil(1e3 * float((power.rest_w / power.full_w)[places].max())) / 1e3
        raise ParameterError(
            f"problem 'gpu_cluster': {name} is {share!r}, less than what devices draw at rest; it "
            f"must be at least {enough:g}, or let devices sleep"
        )
    if len(rows):
        each = [least[modes.kind == instance.tasks.kind[i]].min() for i in rows.tolist()]
        enough = min(1.0, math.ceil(1e3 * max(each)) / 1e3)
        raise ParameterError(
            f"problem 'gpu_cluster': {name} is {share!r}, which leaves "
            f"{instance.tasks.name(rows[0])!r} no mode; it must be at least about {enough:g}"
        )


def tasks_without_mode(instance: Instance, allowed: Bools) -> Ints:
    """Tasks that fit none of the allowed modes, by kind and memory."""
    room_gb = np.full(len(instance.modes.kind_names), -np.inf)
    np.maximum.at(room_gb, instance.modes.kind[allowed], instance.mode_memory_gb[allowed])
    return np.flatnonzero(instance.tasks.memory_gb > room_gb[instance.tasks.kind])
