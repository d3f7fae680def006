"""Run index routers: the Python side of ``kernel.sites.routes``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites import routes as kernel
from optbench.sim.kernel.sites.routes import Routes, run_routes
from optbench.sim.kernel.state import NONE, State, last_moment, new_state
from optbench.sim.rules import Trace
from optbench.sim.sites.sites import ModeGrid, steering_of, trace_of

# The number of changes of running work for which a run has room.
MOVES_PER_TASK = 8
# A callback that receives the state so far and changes the parameters of the router in place.
Update = Callable[[float, State, Routes], None]


def routes_of(
    grid: ModeGrid,
    *,
    rates: tuple[float, float, float] = (1.0, 0.0, 0.0),
    load: float = 0.0,
    late: float = 0.0,
    time_w: Any = 0.0,
    device_w: Any = 0.0,
    thresholds: Sequence[float] = (),
    allowed: Any = True,
    queues: bool = False,
    whole: bool = False,
    budget_s: float | None = None,
    gain: float = 0.0,
    hold_s: float = 0.0,
    margin: float = 0.0,
    reserve: float = 0.0,
) -> Routes:
    """Return parameters for the kernel, which has the formulas; one number stands for all levels,
    kinds, pools or modes.

    ``rates`` weigh joules, dollars and grams, the last two at the tariffs of the instance,
    ``time_w`` is μ in watts by kind, ``device_w`` in watts by (level, pool), ``allowed`` by (level,
    mode).
    """
    instance = grid.instance
    levels, kinds, pools = len(thresholds) + 1, len(instance.modes.kind_names), instance.num_pools
    table = levels * kinds * pools * (grid.widest + 1)
    weight = [
        *rates,
        load,
        late,
        math.inf if budget_s is None else budget_s,
        0.0 if budget_s is None else gain,
    ]

    def flat(values: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.ascontiguousarray(np.broadcast_to(values, shape), dtype=dtype).ravel().copy()

    return Routes(
        option=np.array([levels, kinds, queues, whole, 0], dtype=np.int64),
        weight=np.array([*weight, hold_s, margin, reserve], dtype=np.float64),
        memory=np.array([0.0, -1.0, 0.0]),
        threshold=np.array([*thresholds, math.inf]),
        allowed=flat(allowed, (levels, instance.num_modes), np.int64),
        device_w=flat(device_w, (levels, pools), np.float64),
        time_w=flat(time_w, (kinds,), np.float64),
        mean_units=np.zeros(kinds),
        num_seen=np.zeros(kinds),
        cost=np.zeros(table),
        choice=np.full(table, NONE, dtype=np.int64),
        level=np.full(pools, NONE, dtype=np.int64),
        later_cost=np.full(kinds, math.inf),
        later_at=np.full(kinds, math.inf),
        coming=np.zeros(kernel.MOST_COMING, dtype=np.int64),
        coming_at=np.zeros(kernel.MOST_COMING),
        coming_to=np.zeros(kernel.MOST_COMING, dtype=np.int64),
    )


def play_routes(
    grid: ModeGrid,
    routes: Routes,
    faults: Sequence[Fault] = (),
    until: float = math.inf,
    *,
    how: int = 0,
    low_clock: Ints | None = None,
    update: Update | None = None,
    every: float = math.inf,
) -> Trace:
    """Run an index router from time 0. ``how`` are bits of ``kernel.sites.moves``: what may change
    while it runs, at a power cap down to the columns ``low_clock`` by (kind, pool).

    ``update`` is called every ``every`` ticks, and once early, after a tenth of that.
    """
    instance = grid.instance
    plant = plant_of(instance, faults)
    moves = MOVES_PER_TASK * instance.num_tasks if how and instance.preemptive else 0
    state = new_state(plant, moves)
    steering = steering_of(grid, short_first=True, low_clock=low_clock, how=how, moves=moves)
    rows = addresses(plant), addresses(state), addresses(steering), addresses(routes)
    last = last_moment(instance, until)
    if update is None:
        run_routes(*rows, last, True)
        return trace_of(instance, plant, state)
    end = last if math.isfinite(last) else float(np.max(instance.tasks.release, initial=0.0))
    moments: Floats = np.concatenate(
        ([0.1 * every], np.arange(1, math.ceil(end / every)) * every, [last])
    )
    for k, moment in enumerate(moments.tolist()):
        run_routes(*rows, moment, k == 0)
        update(moment, state, routes)
    return trace_of(instance, plant, state)
