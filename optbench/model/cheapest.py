"""The schedule in which every task has its cheapest mode, and its length."""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Instance
from optbench.model.metrics import requirements
from optbench.model.schedule import Schedule
from optbench.model.windows import windows


def cheapest_schedule(instance: Instance) -> Schedule | None:
    """Tasks run in their cheapest modes as devices are free; caps, deadlines and busy links do not
    count.
    """
    pairs, edges, n = instance.pairs, instance.edges, instance.num_tasks
    if (np.diff(pairs.ptr) == 0).any():
        return None
    net = pairs.energy_j - instance.mode_rest_w[pairs.mode] * pairs.duration * instance.tick_s
    rows = [
        a + int(np.lexsort((pairs.duration[a:b], net[a:b]))[0])
        for a, b in zip(pairs.ptr[:-1], pairs.ptr[1:], strict=True)
    ]
    mode, length = pairs.mode[rows], pairs.duration[rows].astype(float)
    segment, pool, count = requirements(instance, mode)
    sender, receiver = (
        instance.modes.primary[mode[edges.source]],
        instance.modes.primary[mode[edges.target]],
    )
    lag = np.asarray(instance.lag(sender, receiver, edges.data_gb), dtype=float)
    if not np.isfinite(lag).all():
        return None
    known = windows(instance)
    urgency = known.shortest + known.tail
    ready_at = pairs.ready[rows]
    waiting = np.bincount(edges.target, minlength=n)
    after: list[list[int]] = [[] for _ in range(n)]
    for e, source in enumerate(edges.source.tolist()):
        after[source].append(e)
    free = [np.zeros(int(devices)) for devices in instance.pools.count]
    start, open_tasks = np.zeros(n), {i for i in range(n) if waiting[i] == 0}
    while open_tasks:
        i = max(open_tasks, key=lambda task: (urgency[task], -task))
        open_tasks.remove(i)
        needs = [(int(pool[r]), int(count[r])) for r in np.flatnonzero(segment == i)]
        start[i] = max([ready_at[i], *(np.partition(free[p], k - 1)[k - 1] for p, k in needs)])
        for p, k in needs:
            free[p][np.argsort(free[p], kind="stable")[:k]] = start[i] + length[i]
        for e in after[i]:
            j = int(edges.target[e])
            ready_at[j] = max(ready_at[j], start[i] + length[i] + lag[e])
            waiting[j] -= 1
            if waiting[j] == 0:
                open_tasks.add(j)
    return Schedule.of(instance, mode, start)
