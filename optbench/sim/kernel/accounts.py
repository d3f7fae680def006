"""Energy, lateness, cost and carbon as they accrue, for rewards and for ranking. The verifier
computes the value of a schedule.

The sums are those of ``model.metrics``: a segment's energy is data, spread evenly over its length
where tariffs vary; devices that are not busy draw their resting power; a transfer draws at the
sender when the producer ends.
"""

from __future__ import annotations

from optbench.compiling.compiled import njit
from optbench.model.objective import METRICS
from optbench.sim.kernel.plant import HORIZON, PERIODS, POOLS, SENDS, TICK_S, Plant
from optbench.sim.kernel.spans import duration
from optbench.sim.kernel.state import (
    BUSY_J,
    CARBON,
    COST,
    FLOW,
    NONE,
    NOW,
    OVERDUE,
    REST_J,
    REST_W,
    TARDY,
    TRANSFER_J,
    State,
)  # fmt: skip
from optbench.units import J_PER_KWH

NUM_METRICS = len(METRICS)


@njit(cache=True)
def accrue(plant: Plant, state: State, t: float) -> None:
    """Advance the accounts to time t: devices that are not busy draw power, which is paid up to a
    fixed horizon.
    """
    total, horizon = state.total, plant.scalar[HORIZON]
    since, until = min(total[NOW], horizon), min(t, horizon)
    total[REST_J] += total[REST_W] * (until - since) * plant.scalar[TICK_S]
    if plant.size[PERIODS] > 0:
        rest_at_a_price(plant, state, since, until)
    total[NOW] = t


@njit(cache=True)
def rest_at_a_price(plant: Plant, state: State, since: float, t: float) -> None:
    """Add cost and carbon of resting devices over [since, t]."""
    before, after = period_of(plant, since), period_of(plant, t)
    for pool in range(plant.size[POOLS]):
        resting_w = plant.pool_rest_w[pool] * (state.free[pool] + state.gone[pool])
        if resting_w > 0:
            rest_of_pool(plant, state, pool, resting_w, before, since, after, t)


@njit(cache=True)
def rest_of_pool(
    plant: Plant,
    state: State,
    pool: int,
    watts: float,
    before: int,
    since: float,
    after: int,
    t: float,
) -> None:
    """Add cost and carbon of a constant power over [since, t], which lie in the periods ``before``
    and ``after``.
    """
    kwh = watts * plant.scalar[TICK_S] / J_PER_KWH
    first, last = pool * plant.size[PERIODS] + before, pool * plant.size[PERIODS] + after
    into, out = since - plant.period[before], t - plant.period[after]
    cost = (
        plant.price_before[last]
        + out * plant.price[last]
        - plant.price_before[first]
        - into * plant.price[first]
    )
    carbon = (
        plant.carbon_before[last]
        + out * plant.carbon[last]
        - plant.carbon_before[first]
        - into * plant.carbon[first]
    )
    state.total[COST] += kwh * cost
    state.total[CARBON] += kwh * carbon


@njit(cache=True)
def rest_after_all(plant: Plant, state: State, mode: int, since: float, t: float) -> None:
    """Count devices that were busy with discarded work as resting, since no schedule shows that
    work.
    """
    since, t = min(since, plant.scalar[HORIZON]), min(t, plant.scalar[HORIZON])
    state.total[REST_J] += plant.mode_rest_w[mode] * (t - since) * plant.scalar[TICK_S]
    if plant.size[PERIODS] > 0:
        before, after = period_of(plant, since), period_of(plant, t)
        for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
            pool = plant.req_pool[r]
            rest_of_pool(
                plant,
                state,
                pool,
                plant.pool_rest_w[pool] * plant.req_count[r],
                before,
                since,
                after,
                t,
            )


@njit(cache=True)
def period_of(plant: Plant, t: float) -> int:
    """Return the tariff period at time t; a change counts from its own instant on."""
    low, high = 0, plant.size[PERIODS]
    while high - low > 1:
        middle = (low + high) >> 1
        if plant.period[middle] <= t:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def charge(
    plant: Plant, state: State, pool: int, energy_j: float, begin: float, end: float
) -> None:
    """Add cost and carbon of energy drawn evenly over [begin, end] (in an instant where that is
    empty).
    """
    if pool < 0:
        return
    kwh, before, periods = energy_j / J_PER_KWH, period_of(plant, begin), plant.size[PERIODS]
    first = pool * periods + before
    price, carbon = plant.price[first], plant.carbon[first]
    if end > begin:
        after = period_of(plant, end)
        if after > before:
            last, out = pool * periods + after, end - plant.period[after]
            into, length = begin - plant.period[before], end - begin
            price = (
                plant.price_before[last]
                + out * plant.price[last]
                - plant.price_before[first]
                - into * price
            ) / length
            carbon = (
                plant.carbon_before[last]
                + out * plant.carbon[last]
                - plant.carbon_before[first]
                - into * carbon
            ) / length
    state.total[COST] += kwh * price
    state.total[CARBON] += kwh * carbon


@njit(cache=True)
def start_accounts(plant: Plant, state: State, task: int, mode: int, end: float) -> None:
    """Charge a task's run in a mode when it begins: all of its energy, or that of its remaining
    part.
    """
    if state.last_part[task] != NONE:
        run_accounts(plant, state, task, mode, state.start[task], end, 1.0)
        return
    energy_j = plant.units[task] * plant.energy_j[mode]
    state.total[BUSY_J] += energy_j
    if plant.size[PERIODS] > 0:
        charge(plant, state, plant.primary[mode], energy_j, state.start[task], end)
    if plant.size[SENDS] > 0:
        send_accounts(plant, state, task, mode, 1.0)


@njit(cache=True)
def run_accounts(
    plant: Plant, state: State, task: int, mode: int, begin: float, end: float, sign: float
) -> None:
    """Add (1) or cancel (-1) the energy of a segment: its share of the task's."""
    energy_j = (
        sign * plant.units[task] * plant.energy_j[mode] * share_of(plant, task, mode, end - begin)
    )
    state.total[BUSY_J] += energy_j
    if plant.size[PERIODS] > 0:
        charge(plant, state, plant.primary[mode], energy_j, begin, end)


@njit(cache=True)
def share_of(plant: Plant, task: int, mode: int, length: float) -> float:
    """Return the share of a task in ``length`` ticks; 1 where the task takes no time."""
    whole = duration(plant, task, mode)
    return length / whole if whole > 0.0 else 1.0


@njit(cache=True)
def send_accounts(plant: Plant, state: State, task: int, mode: int, sign: float) -> float:
    """Add (1) or cancel (-1) the transfers of a task's data to the pool of its first segment;
    return their energy.
    """
    receiver, pools, sent_j = plant.primary[mode], plant.size[POOLS], 0.0
    if receiver < 0:
        return 0.0
    for e in range(plant.pred_ptr[task], plant.pred_ptr[task + 1]):
        source = plant.pred[e]
        sender = plant.primary[state.mode[source]]
        if plant.pred_gb[e] > 0 and sender >= 0 and sender != receiver:
            energy_j = plant.pred_gb[e] * plant.j_per_gb[sender * pools + receiver]
            sent_j += energy_j
            if plant.size[PERIODS] > 0:
                charge(plant, state, sender, sign * energy_j, state.end[source], state.end[source])
    state.total[TRANSFER_J] += sign * sent_j
    return sent_j


@njit(cache=True)
def metrics_by(
    plant: Plant, state: State, end: float
) -> tuple[float, float, float, float, float, float, float]:
    """Return the accounts in the order of METRICS, with ``end`` for the makespan."""
    total = state.total
    energy_j = total[BUSY_J] + total[TRANSFER_J] + total[REST_J]
    return (
        end,
        end * plant.scalar[TICK_S],
        energy_j,
        total[FLOW],
        total[TARDY],
        total[COST],
        total[CARBON],
    )


@njit(cache=True)
def finish_accounts(plant: Plant, state: State, task: int) -> None:
    """Add flow time and lateness of a task that ends now."""
    end, step = state.end[task], plant.scalar[TICK_S]
    state.total[FLOW] += plant.weight[task] * (end - plant.release[task]) * step
    late = end - plant.deadline[task]
    if late > 0.0:
        if plant.soft[task]:
            state.total[TARDY] += plant.weight[task] * late * step
        else:
            state.total[OVERDUE] += late * step
