"""Small clusters with alike pools, whose pools and tasks can be listed in any order."""

from __future__ import annotations

import numpy as np

import optbench as ob
from optbench.model.instance import Instance

# Types of devices: seconds per unit and joules per unit at two clocks, idle watts, memory.
TYPES = {
    "fast": ((1.0, 300.0, 1.0), (1.5, 200.0, 0.6), 40.0, 80.0),
    "slow": ((3.0, 150.0, 1.0), (4.5, 120.0, 0.6), 15.0, 24.0),
    "old": ((5.0, 400.0, 1.0), (7.0, 380.0, 0.6), 30.0, 12.0),
}
POOLS = (("fast", 2), ("slow", 3), ("fast", 1), ("old", 2))
NUM_TASKS = 14


def small_cluster(
    pools: tuple[tuple[str, int], ...] = POOLS,
    order: tuple[int, ...] = (),
    tasks: tuple[int, ...] = (),
) -> Instance:
    """Build the cluster of these pools, listed in this order, with all links alike, and a layered
    task graph whose tasks are listed in the order given.
    """
    m = ob.Model("small", tick_s=0.01)
    made = {}
    for p in order or range(len(pools)):
        name, count = pools[p]
        *_, idle, memory = TYPES[name]
        made[p] = m.pool(f"{name}-{p:03}", count=count, idle_w=idle, memory_gb=memory)
    for k, a in enumerate(made.values()):
        for b in list(made.values())[k + 1 :]:
            m.link(a, b, bandwidth_gbit_s=100, latency_ms=1)
    kinds = [
        m.kind(
            modes=[
                m.mode({made[p]: 1}, time_s=time * stretch, energy_j=joules, clock=clock)
                for p in made
                for time, joules, clock in TYPES[pools[p][0]][:2]
            ]
        )
        for stretch in (1.0, 0.4)
    ]
    rng = np.random.default_rng(5)
    units, weights = rng.uniform(5, 20, NUM_TASKS), rng.uniform(1, 3, NUM_TASKS)
    before = {i: sorted({int(x) for x in rng.integers(0, i, 2)}) for i in range(4, NUM_TASKS)}
    data = rng.uniform(0.5, 3, (NUM_TASKS, NUM_TASKS))
    listed = tasks or tuple(range(NUM_TASKS))
    handles = {
        i: m.task(
            f"t{i}", units=float(units[i]), kind=kinds[i % 2],
            memory_gb=20.0 if i % 5 == 0 else 4.0,
            deadline_s=60.0 + 5 * i if i % 3 == 0 else None, weight=float(weights[i]),
        )
        for i in listed
    }  # fmt: skip
    for i, sources in before.items():
        for j in sources:
            m.precede(handles[j], handles[i], data_gb=float(data[i, j]))
    m.minimize(energy_j=1.0, makespan_s=150.0, tardiness_s=50.0)
    return m.build()
