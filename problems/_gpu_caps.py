"""Power caps of gpu_dag, as shares of the cluster's full power; infeasible caps are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optbench.errors import ParameterError
from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.instance import Floats, Instance, Limits


def with_caps(
    instance: Instance, cluster_share: float | None, node_share: float | None
) -> Instance:
    """Add a cap of the cluster (whole watts) and one of each node (mW).

    Nodes are all places but the first."""
    full = full_power_w(instance)
    free = np.ones(instance.num_modes, dtype=bool)
    place, cap = [], []
    if node_share is not None:
        nodes = range(1, len(instance.places.names))
        caps = [_share(node_share, full[q], 1e3) for q in nodes]
        worst = np.zeros(instance.num_modes)
        for q, cap_w in zip(nodes, caps, strict=True):
            need = resting_power_w(instance, q) + net_power_w(instance, q)
            free &= need <= cap_w
            worst = np.maximum(worst, need / full[q])
        _refuse(
            "node_cap",
            node_share,
            _least(instance, worst, free),
            f"of the {full[1:].min():.0f} W or more of each node",
        )
        place, cap = list(nodes), caps
    if cluster_share is not None:
        limit = _share(cluster_share, full[0], 1.0)
        need = np.where(free, resting_power_w(instance, 0) + net_power_w(instance, 0), np.inf)
        within = free & (need <= limit)
        _refuse(
            "power_cap",
            cluster_share,
            _least(instance, (need + 1) / full[0], within),
            f"of {full[0]:.0f} W",
        )
        place, cap = [0, *place], [limit, *cap]
    if not place:
        return instance
    return replace(
        instance, limits=Limits(np.asarray(place, dtype=np.int64), np.asarray(cap, dtype=float))
    )


def full_power_w(instance: Instance) -> Floats:
    """Per place, the power while every device works in its mode of highest power."""
    modes, pools = instance.modes, instance.pools
    mode = np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr))
    devices = np.bincount(mode, weights=modes.req_count, minlength=instance.num_modes)
    highest = pools.rest_w.copy()
    np.maximum.at(highest, modes.req_pool, (modes.power_w / devices)[mode])
    return np.asarray(instance.under @ (highest * pools.count), dtype=float)


def _share(share: float, full_w: float, per_watt: float) -> float:
    """A share of a power, rounded down; the share 1 is rounded up, so that it never binds."""
    rounded = math.ceil if share == 1 else math.floor
    return float(rounded(share * full_w * per_watt)) / per_watt


def _least(
    instance: Instance, share: Floats, within: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> float | None:
    """None if each task has a mode within the caps, else the least share at which each has one."""
    tasks, memory_gb, kind_ptr = instance.tasks, instance.mode_memory_gb, instance.modes.kind_ptr
    least = None
    for kind, need_gb in sorted(
        set(zip(tasks.kind.tolist(), tasks.memory_gb.tolist(), strict=True))
    ):
        rows = np.arange(kind_ptr[kind], kind_ptr[kind + 1])
        rows = rows[memory_gb[rows] >= need_gb]
        if not within[rows].any():
            least = max(least or 0.0, float(share[rows].min()))
    return least


def _refuse(name: str, given: float, least: float | None, of: str) -> None:
    if least is None:
        return
    need = f"some task needs at least {min(1.0, math.ceil(1e3 * least) / 1e3):g} {of}"
    if math.isinf(least):
        need = "some task has no mode left by the other cap"
    raise ParameterError(f"problem 'gpu_dag': {name} is {given!r}, but {need}")
