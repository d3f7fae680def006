"""Dominated modes: another mode of the same task needs no more of any resource.

Mode q dominates mode r of the same task if it has r's primary pool, no more devices of any pool, no
longer duration, no more energy net of the idle energy of its devices (where energy counts), and
δ_q ≤ δ_r, 0 ≤ δ_r at every power cap, with δ the power that a mode adds at the place of the cap. In
any feasible schedule r can then be replaced by q at the same start. The task ends no later, so that
edges, deadlines, horizon and regular metrics hold; it sends over the same links; and it draws no
more under any cap while it runs, nor afterwards, when r would still have run. Of modes that
dominate each other the first remains.

No mode is removed where costs or carbon count (an earlier end may meet a higher rate), in
preemptive instances, and in instances too large for the models that would profit.
"""

from __future__ import annotations

import numpy as np

from optbench.model.caps import net_power_w
from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.metrics import mode_uses

# Rows of pairs, and entries of modes times pools, up to which modes are compared.
MAX_ROWS, MAX_USES = 200_000, 5_000_000
# Metrics that a dominating mode cannot increase.
REGULAR = frozenset({"makespan", "makespan_s", "energy_j", "flow_time_s", "tardiness_s"})


def dominating_rows(instance: Instance) -> Ints:
    """For each row of ``instance.pairs`` the row that dominates it, or the row itself."""
    pairs = instance.pairs
    out = np.arange(len(pairs.task))
    wanted = instance.objective.metrics | set(instance.limits.metric_max)
    if (
        instance.preemptive
        or not wanted <= REGULAR
        or len(out) > MAX_ROWS
        or instance.num_modes * instance.num_pools > MAX_USES
    ):
        return out
    uses, added_w = mode_uses(instance).astype(float), _added_w(instance)
    net_j = pairs.energy_j - instance.tick_s * pairs.duration * instance.mode_rest_w[pairs.mode]
    if "energy_j" not in wanted:
        net_j = np.zeros_like(net_j)
    primary = instance.modes.primary[pairs.mode]
    for task in range(instance.num_tasks):
        here = np.arange(pairs.ptr[task], pairs.ptr[task + 1])
        for pool in np.unique(primary[here]).tolist():
            rows = here[primary[here] == pool]
            mode = pairs.mode[rows]
            costs = np.column_stack(
                (pairs.duration[rows].astype(float), net_j[rows], uses[mode], added_w[mode])
            )
            better = _dominates(costs) & (added_w[mode] >= 0).all(axis=1)
            undominated = ~better.any(axis=0)
            for k in np.flatnonzero(~undominated).tolist():
                out[rows[k]] = rows[np.flatnonzero(better[:, k] & undominated)[0]]
    return out


def _dominates(costs: Floats) -> Bools:
    """``[q, r]``: q is at most r in every column, and less in one or listed before it."""
    no_more = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    index = np.arange(len(costs))
    return np.asarray(no_more & (~no_more.T | (index[:, None] < index[None, :])), dtype=bool)


def _added_w(instance: Instance) -> Floats:
    """The power that each mode adds at each capped place."""
    columns = [net_power_w(instance, place) for place in instance.limits.cap_place.tolist()]
    return np.column_stack(columns) if columns else np.zeros((instance.num_modes, 0))
