"""What a mode needs, how long work and ways take and when everything must have ended, restated from
the maths (see ``brute_force``).
"""

from __future__ import annotations

import math

from optbench.model.instance import Instance


def task_modes(instance: Instance, task: int) -> list[int]:
    modes, kind = instance.modes, int(instance.tasks.kind[task])
    choices = range(int(modes.kind_ptr[kind]), int(modes.kind_ptr[kind + 1]))
    need = float(instance.tasks.memory_gb[task])
    return [
        k
        for k in choices
        if all(float(instance.pools.memory_gb[p]) >= need for p, _ in requirements(instance, k))
    ]


def requirements(instance: Instance, mode: int) -> list[tuple[int, int]]:
    """(pool, devices) of a mode, the primary pool first."""
    modes = instance.modes
    rows = range(int(modes.req_ptr[mode]), int(modes.req_ptr[mode + 1]))
    return [(int(modes.req_pool[row]), int(modes.req_count[row])) for row in rows]


def primary(instance: Instance, mode: int) -> int:
    needs = requirements(instance, mode)
    return needs[0][0] if needs else -1


def duration(instance: Instance, task: int, mode: int) -> int:
    return whole_ticks(
        float(instance.tasks.units[task])
        * (float(instance.modes.time_per_unit_s[mode]) / instance.tick_s)
    )


def whole_ticks(value: float) -> int:
    nearest = round(value)
    return nearest if abs(value - nearest) <= min(8 * math.ulp(value), 0.25) else math.ceil(value)


def lag(instance: Instance, a: int, b: int, data_gb: float) -> float:
    """Ticks for the data from pool a to pool b; inf without a link."""
    if a == b or a < 0 or b < 0 or data_gb <= 0:
        return 0
    seconds = float(instance.links.latency_s[a, b]) + data_gb * float(instance.links.s_per_gb[a, b])
    return whole_ticks(seconds / instance.tick_s) if math.isfinite(seconds) else math.inf


def end_of_time(instance: Instance) -> int:
    """T of the module's docstring."""
    n, edges, pools = len(instance.tasks.kind), instance.edges, range(len(instance.pools.names))
    if instance.horizon is not None:
        return math.floor(instance.horizon)
    last = int(max(instance.tasks.release, default=0))
    if instance.stream is not None:
        last += int(
            max(
                (
                    wait
                    for g in range(n)
                    for p in pools
                    if math.isfinite(wait := way_in(instance, g, p))
                ),
                default=0,
            )
        )
    if instance.tariffs is not None:
        last = max(last, math.ceil(float(instance.tariffs.times[-1])))
    work = sum(
        max((duration(instance, i, k) for k in task_modes(instance, i)), default=0)
        for i in range(n)
    )
    moves = sum(
        max(
            (
                x
                for a in pools
                for b in pools
                if math.isfinite(x := lag(instance, a, b, float(data)))
            ),
            default=0,
        )
        for data in edges.data_gb
    )
    return last + work + int(moves)


def way_in(instance: Instance, task: int, pool: int) -> float:
    """Ticks from where a task comes in to a pool, inf where there is no way."""
    if instance.stream is None or pool < 0:
        return 0.0
    seconds = float(instance.stream.latency_s[instance.stream.ingress[task], pool])
    return math.inf if math.isinf(seconds) else whole_ticks(seconds / instance.tick_s)
