"""Many environments in lockstep: one compiled call takes one action in each and advances to the
next moment of decision.

The reward is minus the increase of the objective's level that counts, so that the rewards of a
complete episode sum to minus its value. The cost is the increase of

    overdue seconds of hard deadlines / span + Σ excess over a metric's limit / limit
      + time beyond the horizon / horizon + tasks that can never start any more

which is 0 at the end exactly where deadlines, limits and horizon hold and every task has ended.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import NUM_METRICS, metrics_by
from optbench.sim.kernel.events import advance, begin, close_accounts
from optbench.sim.kernel.moments import (
    LISTED,
    DecisionTable,
    any_option,
    decisions_at,
    list_fresh,
    start_and_remove,
)
from optbench.sim.kernel.observe import COSTS, MODES, SPAN, WORTH, View, observe, view_at
from optbench.sim.kernel.plant import HORIZON, TASKS, TICK_S, Plant, plant_at
from optbench.sim.kernel.state import (
    NOW,
    NUM_DONE,
    OVERDUE,
    State,
    state_at,
)  # fmt: skip

# Columns of the results.
REWARD, COST_STEP, STATUS, ILLEGAL, TIME = range(5)
# Values of STATUS. Where there is no decision from the start, the first action ends the episode,
# whatever it is.
ALIVE, FINISHED, DEAD_END, STILLBORN = range(4)


@njit(cache=True)
def open_all(
    plants: Ints,
    states: Ints,
    decision_rows: Ints,
    views: Ints,
    chosen: Ints,
    obs: Floats,
    mask: Ints,
    out: Floats,
) -> None:
    """Begin the chosen environments: time 0, then the first moment of decision."""
    for b in chosen:
        plant, state = plant_at(plants[b]), state_at(states[b])
        decisions, view = decisions_at(decision_rows[b]), view_at(views[b])
        begin(plant, state)
        decisions.held[LISTED] = 0
        view.book[WORTH], view.book[COSTS] = 0.0, 0.0
        found = next_decision(plant, state, decisions)
        observe(plant, state, decisions, view, obs[b], mask[b])
        out[b, :] = 0.0
        out[b, TIME] = state.total[NOW]
        if not found:
            out[b, STATUS] = STILLBORN
            mask[b, mask.shape[1] - 1] = True


@njit(cache=True)
def step_all(
    plants: Ints,
    states: Ints,
    decision_rows: Ints,
    views: Ints,
    chosen: Ints,
    actions: Ints,
    obs: Floats,
    mask: Ints,
    out: Floats,
) -> None:
    """Take one action in each of the chosen environments; those that are over are unchanged."""
    for b in chosen:
        out[b, REWARD], out[b, COST_STEP], out[b, ILLEGAL] = 0.0, 0.0, 0.0
        if out[b, STATUS] == ALIVE or out[b, STATUS] == STILLBORN:
            plant, state = plant_at(plants[b]), state_at(states[b])
            decisions, view = decisions_at(decision_rows[b]), view_at(views[b])
            step_one(plant, state, decisions, view, actions[b], obs[b], mask[b], out[b])


@njit(cache=True)
def step_one(
    plant: Plant,
    state: State,
    decisions: DecisionTable,
    view: View,
    action: int,
    obs: Floats,
    mask: Ints,
    out: Floats,
) -> None:
    """Take a legal action and advance to the next moment of decision."""
    found = False
    if out[STATUS] == ALIVE:
        if not 0 <= action < len(mask) or not mask[action]:
            out[ILLEGAL] = 1.0
            return
        if action == len(mask) - 1:
            advance(plant, state)
        else:
            task = view.slot[action // view.shape[MODES]]
            start_and_remove(
                plant,
                state,
                decisions,
                task,
                plant.kind_ptr[plant.kind[task]] + action % view.shape[MODES],
            )
        found = next_decision(plant, state, decisions)
    unfinished = 0.0
    if found:
        out[STATUS] = ALIVE
    elif state.tally[NUM_DONE] == plant.size[TASKS]:
        out[STATUS] = FINISHED
        close_accounts(plant, state)
    else:
        out[STATUS] = DEAD_END
        unfinished = plant.size[TASKS] - state.tally[NUM_DONE]
    worth, costs = worth_of(plant, state, view), costs_of(plant, state, view) + unfinished
    out[REWARD], out[COST_STEP], out[TIME] = (
        view.book[WORTH] - worth,
        costs - view.book[COSTS],
        state.total[NOW],
    )
    view.book[WORTH], view.book[COSTS] = worth, costs
    observe(plant, state, decisions, view, obs, mask)
    if not found:
        # Every action is legal in an episode that is over, so that a distribution over them exists.
        mask[len(mask) - 1] = True


@njit(cache=True)
def next_decision(plant: Plant, state: State, decisions: DecisionTable) -> bool:
    """Advance until some ready task can start; False when there are no more events."""
    while True:
        list_fresh(plant, state, decisions)
        if any_option(plant, state, decisions):
            return True
        if not advance(plant, state):
            return False


@njit(cache=True)
def worth_of(plant: Plant, state: State, view: View) -> float:
    """Return the objective so far; the makespan counts as time passes, lateness and flow when a
    task ends, work when it begins.
    """
    out, metrics = 0.0, metrics_by(plant, state, state.total[NOW])
    for m in range(NUM_METRICS):
        if view.worth[m] != 0.0:
            out += view.worth[m] * metrics[m]
    return out


@njit(cache=True)
def costs_of(plant: Plant, state: State, view: View) -> float:
    """Return the total violation of constraints of the whole schedule so far."""
    out = state.total[OVERDUE] / (view.scale[SPAN] * plant.scalar[TICK_S])
    horizon = plant.scalar[HORIZON]
    metrics = metrics_by(plant, state, state.total[NOW])
    for m in range(NUM_METRICS):
        limit = view.limit[m]
        if limit < math.inf:
            out += max(0.0, metrics[m] - limit) / (limit if limit > 0 else 1.0)
    if horizon < math.inf:
        out += max(0.0, state.total[NOW] - horizon) / horizon
    return out
