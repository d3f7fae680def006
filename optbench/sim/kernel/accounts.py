"""Energy, lateness, cost and carbon as they accrue, for rewards and for ranking; what a schedule is worth, the verifier says.

The sums are those of ``model.metrics``: a segment's energy is data, spread evenly over its length where tariffs vary; devices
that are not busy draw their resting power; a transfer draws at the sender when the producer ends.
"""

from __future__ import annotations

from optbench.model.instance import Floats
from optbench.sim.compiled import njit
from optbench.sim.kernel.plant import PERIODS, POOLS, SENDS, STEP_S, Plant
from optbench.sim.kernel.state import (
    BUSY_J,
    CARBON,
    COST,
    FLOW,
    NOW,
    REST_J,
    REST_W,
    TARDY,
    TRANSFER_J,
    State,
)  # fmt: skip

J_PER_KWH = 3.6e6


@njit(cache=True)
def accrue(plant: Plant, state: State, t: float) -> None:
    """Let time pass until t: devices that are not busy draw power."""
    total = state.total
    total[REST_J] += total[REST_W] * (t - total[NOW]) * plant.scalar[STEP_S]
    if plant.size[PERIODS] > 0:
        rest_at_a_price(plant, state, total[NOW], t)
    total[NOW] = t


@njit(cache=True)
def rest_at_a_price(plant: Plant, state: State, since: float, t: float) -> None:
    """Cost and carbon of resting devices over [since, t]."""
    for pool in range(plant.size[POOLS]):
        resting_w = plant.pool_rest_w[pool] * (state.free[pool] + state.gone[pool])
        if resting_w > 0:
            kwh = resting_w * plant.scalar[STEP_S] / J_PER_KWH
            state.total[COST] += kwh * (integral(plant, plant.price, pool, t) - integral(plant, plant.price, pool, since))
            state.total[CARBON] += kwh * (integral(plant, plant.carbon, pool, t) - integral(plant, plant.carbon, pool, since))


@njit(cache=True)
def integral(plant: Plant, rates: Floats, pool: int, t: float) -> float:
    """∫ of a pool's rate over [0, t]."""
    periods, out = plant.size[PERIODS], 0.0
    for q in range(periods):
        begin = plant.period[q]
        if begin >= t:
            break
        end = plant.period[q + 1] if q + 1 < periods else t
        out += (min(end, t) - begin) * rates[pool * periods + q]
    return out


@njit(cache=True)
def rate_at(plant: Plant, rates: Floats, pool: int, t: float) -> float:
    """A pool's rate at time t; a change counts from its own instant on."""
    periods = plant.size[PERIODS]
    q = 0
    while q + 1 < periods and plant.period[q + 1] <= t:
        q += 1
    return float(rates[pool * periods + q])


@njit(cache=True)
def charge(plant: Plant, state: State, pool: int, energy_j: float, begin: float, end: float) -> None:
    """Cost and carbon of energy drawn evenly over [begin, end] (in an instant where that is empty)."""
    if pool < 0:
        return
    kwh = energy_j / J_PER_KWH
    for rates, entry in ((plant.price, COST), (plant.carbon, CARBON)):
        if end > begin:
            mean = (integral(plant, rates, pool, end) - integral(plant, rates, pool, begin)) / (end - begin)
        else:
            mean = rate_at(plant, rates, pool, begin)
        state.total[entry] += kwh * mean


@njit(cache=True)
def start_accounts(plant: Plant, state: State, task: int, mode: int, end: float) -> None:
    """A task's run in a mode is paid for when it begins."""
    run_accounts(plant, state, mode, state.remaining[task], state.start[task], end, 1.0)
    if plant.size[SENDS] > 0 and state.remaining[task] == plant.units[task]:
        send_accounts(plant, state, task, mode, 1.0)


@njit(cache=True)
def run_accounts(plant: Plant, state: State, mode: int, units: float, begin: float, end: float, sign: float) -> None:
    """Book (1) or cancel (-1) the energy of a segment."""
    energy_j = sign * units * plant.energy_j[mode]
    state.total[BUSY_J] += energy_j
    if plant.size[PERIODS] > 0:
        charge(plant, state, plant.primary[mode], energy_j, begin, end)


@njit(cache=True)
def send_accounts(plant: Plant, state: State, task: int, mode: int, sign: float) -> float:
    """Book (1) or cancel (-1) the transfers of a task's data to the pool of its first segment; returns their energy."""
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
def finish_accounts(plant: Plant, state: State, task: int) -> None:
    """Flow time and tardiness of a task that ends now."""
    end, step = state.end[task], plant.scalar[STEP_S]
    state.total[FLOW] += plant.weight[task] * (end - plant.release[task]) * step
    if plant.soft[task]:
        state.total[TARDY] += plant.weight[task] * max(0.0, end - plant.deadline[task]) * step
