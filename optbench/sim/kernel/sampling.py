"""Randomised list rules: draw the numbers of a rule, run it, keep the best. Later samples are drawn
around good ones.

A *fresh* sample gives task i the key Σ_f w_f · feature_fi + noise, with weights w around those of
the best fresh sample so far. A *near* sample takes the start times of the current schedule for keys
and disturbs some of them by σ (σ and their number are drawn): single tasks, or paths along
successors. Most tasks keep their modes. Its keys are refined by a run backwards in time: tasks by
latest end first, on reversed edges; what starts last there has the largest key in the run forwards
that counts. How modes are chosen is drawn for every sample: time against energy and lateness, costs
of modes and pools, looking ahead, patience.

A sample is the dispatcher's schedule of one rule from time 0 to the end; no schedule is changed or
repaired. It becomes the current one when it is no worse. Schedules that miss hard deadlines or
limits rank behind those that do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import NUM_METRICS, accrue, metrics_by
from optbench.sim.kernel.dispatch import (
    CUTOFF,
    END_WEIGHT,
    ENERGY_WEIGHT,
    LATE_WEIGHT,
    LOOKAHEAD,
    PATIENCE,
    READY_WEIGHT,
    Rule,
    make,
    rule_at,
)  # fmt: skip
from optbench.sim.kernel.plant import HORIZON, MODES, POOLS, TASKS, TICK_S, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.state import (
    MAKESPAN,
    NONE,
    NUM_DONE,
    State,
    state_at,
)  # fmt: skip

# Entries of ``tally``: samples made, how often the best improved, features; whether tasks have a
# choice of modes, whether the objective has energy in it, whether there are deadlines.
SAMPLES, BESTS, FEATURES, HAS_CHOICE, HAS_ENERGY, HAS_DEADLINES = range(6)
# Entries of ``value``: excess and objective of the best and of the current sample, objective of the
# best fresh one; mean duration; objective per unit of time where nothing but the makespan counts,
# else 0; share of near samples that are refined.
TOP_EXCESS, TOP, EXCESS, CURRENT, FRESH_TOP, MEAN_LENGTH, PER_TIME, REFINED = range(8)

# Chosen on job shops and flexible job shops other than those of docs/results/random_rules.md.
FIRST_FRESH, SHARE_FRESH, FRESH_CUTOFF, BACK_CUTOFF = 50, 0.05, 1.1, 1.2
LEAST_SIGMA, SIGMA_RANGE, SHARE_RANGE = -0.75, 2.75, 4.0
PATHS, PATH_END, REDRAWN, LET_GO, ALL_LET_GO = 0.5, 0.1, 0.5, 0.2, 0.5
LENGTH_COST, MODE_NOISE, LOAD_COST, POOL_NOISE = 3.0, 1.0, 1.0, 0.3
WEIGHT_RANGE = 4.0


class RuleSearch(NamedTuple):
    """The state of a search. ``home`` is the queue of a task that may choose, ``single`` whether
    every mode takes one pool and no cap joins them; ``load`` is relative work per pool;
    ``start``, ``end`` and ``mode`` are those of the current sample.
    """

    word: Ints
    tally: Ints
    value: Floats
    objective: Floats
    limit: Floats
    feature: Floats
    centre: Floats
    drawn: Floats
    home: Ints
    single: Ints
    load: Floats
    joule: Floats
    start: Floats
    end: Floats
    mode: Ints


search_at = table_at(RuleSearch)


@njit(cache=True)
def uniform(search: RuleSearch) -> float:
    """Return a pseudo-random number in [0, 1): splitmix64."""
    search.word[0] += -7046029254386353131
    z = np.uint64(search.word[0])
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) / 9007199254740992.0


@njit(cache=True)
def roughly_normal(search: RuleSearch) -> float:
    """Return a roughly normal number of variance 1: the sum of three uniform numbers."""
    return 2.0 * (uniform(search) + uniform(search) + uniform(search) - 1.5)


@njit(cache=True)
def below(search: RuleSearch, n: int) -> int:
    """Return a whole number from 0 to n - 1."""
    return int(uniform(search) * n)


@njit(cache=True)
def samples(
    plant_row: Ints,
    back_row: Ints,
    state_row: Ints,
    rule_row: Ints,
    flip_row: Ints,
    search_row: Ints,
    best_row: Ints,
    count: int,
) -> int:
    """Make ``count`` samples and copy the rule of the best to ``best``; return how often it
    improved.

    ``back`` is the plant with its edges reversed, ``flip`` a rule for it.
    """
    plant, back, state, search = (
        plant_at(plant_row),
        plant_at(back_row),
        state_at(state_row),
        search_at(search_row),
    )
    rule, flip, best = rule_at(rule_row), rule_at(flip_row), rule_at(best_row)
    before = search.tally[BESTS]
    for _ in range(count):
        sample(plant, back, state, rule, flip, search, best)
    return int(search.tally[BESTS] - before)


@njit(cache=True)
def sample(
    plant: Plant, back: Plant, state: State, rule: Rule, flip: Rule, search: RuleSearch, best: Rule
) -> None:
    """Draw a rule, run it, and keep it if it is no worse."""
    tally, value, n = search.tally, search.value, plant.size[TASKS]
    fresh = (
        tally[SAMPLES] < FIRST_FRESH or value[CURRENT] == math.inf or uniform(search) < SHARE_FRESH
    )
    tally[SAMPLES] += 1
    draw_choice(plant, rule, search)
    if fresh:
        draw_fresh(plant, rule, search)
    else:
        draw_near(plant, rule, search)
        if uniform(search) < value[REFINED] and not refine(back, state, rule, flip, search):
            return
    rule.weight[CUTOFF] = cutoff(search, FRESH_CUTOFF * value[TOP] if fresh else value[CURRENT])
    if not make(plant, state, rule, math.inf) or state.tally[NUM_DONE] < n:
        return
    excess, worth = worth_of(plant, state, search)
    if fresh and excess == 0.0 and worth < value[FRESH_TOP]:
        value[FRESH_TOP] = worth
        for f in range(tally[FEATURES]):
            search.centre[f] = search.drawn[f]
    if excess < value[EXCESS] or (excess == value[EXCESS] and worth <= value[CURRENT]):
        value[EXCESS], value[CURRENT] = excess, worth
        for task in range(n):
            search.start[task], search.end[task], search.mode[task] = (
                state.start[task],
                state.end[task],
                state.mode[task],
            )
    if excess < value[TOP_EXCESS] or (excess == value[TOP_EXCESS] and worth < value[TOP]):
        value[TOP_EXCESS], value[TOP] = excess, worth
        tally[BESTS] += 1
        copy_rule(plant, rule, best)


@njit(cache=True)
def copy_rule(plant: Plant, rule: Rule, to: Rule) -> None:
    """Copy every number that is drawn."""
    for task in range(plant.size[TASKS]):
        to.base[task], to.fixed[task], to.home[task] = (
            rule.base[task],
            rule.fixed[task],
            rule.home[task],
        )
    for mode in range(plant.size[MODES]):
        to.mode_cost[mode] = rule.mode_cost[mode]
    for pool in range(plant.size[POOLS]):
        to.pool_cost[pool] = rule.pool_cost[pool]
    for entry in (READY_WEIGHT, END_WEIGHT, LATE_WEIGHT, ENERGY_WEIGHT, PATIENCE):
        to.weight[entry] = rule.weight[entry]
    to.option[LOOKAHEAD] = rule.option[LOOKAHEAD]


@njit(cache=True)
def cutoff(search: RuleSearch, worth: float) -> float:
    """Return the time by which everything must have ended for an objective no worse than this; inf
    where time alone does not decide.
    """
    if search.value[PER_TIME] == 0.0 or search.value[TOP_EXCESS] > 0.0:
        return math.inf
    return worth / search.value[PER_TIME] * (1.0 + 1e-12)


@njit(cache=True)
def draw_choice(plant: Plant, rule: Rule, search: RuleSearch) -> None:
    """Draw how modes are chosen where there is a choice, and whether devices wait."""
    tally, weight, length = search.tally, rule.weight, search.value[MEAN_LENGTH]
    rule.option[LOOKAHEAD] = 1 if uniform(search) < 0.5 else 0
    weight[PATIENCE] = uniform(search)
    if not tally[HAS_CHOICE]:
        return
    slow, noise = LENGTH_COST * uniform(search) ** 2, MODE_NOISE * uniform(search) ** 2
    for mode in range(plant.size[MODES]):
        rule.mode_cost[mode] = (
            plant.time_s[mode] / plant.scalar[TICK_S] * (slow + noise * roughly_normal(search))
        )
    crowded, noise = LOAD_COST * uniform(search) ** 2, POOL_NOISE * uniform(search) ** 2
    for pool in range(plant.size[POOLS]):
        rule.pool_cost[pool] = crowded * search.load[pool] + noise * roughly_normal(search)
    weight[ENERGY_WEIGHT] = weight[LATE_WEIGHT] = 0.0
    if tally[HAS_ENERGY] and uniform(search) < 0.8:
        weight[ENERGY_WEIGHT] = (
            length / search.joule[0] * math.exp(WEIGHT_RANGE * (2.0 * uniform(search) - 1.0))
        )
    if tally[HAS_DEADLINES] and uniform(search) < 0.5:
        weight[LATE_WEIGHT] = math.exp(WEIGHT_RANGE * uniform(search))


@njit(cache=True)
def draw_fresh(plant: Plant, rule: Rule, search: RuleSearch) -> None:
    """Draw keys from weighted features."""
    n, features = plant.size[TASKS], search.tally[FEATURES]
    spread = 1.0 if search.tally[SAMPLES] < 10 or uniform(search) < 0.3 else 0.3
    for f in range(features):
        search.drawn[f] = search.centre[f] + spread * roughly_normal(search)
    noise = 0.5 * uniform(search) ** 3
    for task in range(n):
        key = noise * roughly_normal(search)
        for f in range(features):
            key += search.drawn[f] * search.feature[f * n + task]
        rule.base[task], rule.fixed[task], rule.home[task] = key, NONE, search.home[task]
    if uniform(search) < 0.5:
        rule.weight[PATIENCE] = 0.0


@njit(cache=True)
def draw_near(plant: Plant, rule: Rule, search: RuleSearch) -> None:
    """Disturb keys and modes of the current sample."""
    n = plant.size[TASKS]
    sigma = search.value[MEAN_LENGTH] * math.exp(LEAST_SIGMA + SIGMA_RANGE * uniform(search))
    share = math.exp(-SHARE_RANGE * uniform(search))
    for task in range(n):
        rule.base[task] = search.start[task]
    if uniform(search) < PATHS:
        for _ in range(1 + int(3.0 * share)):
            disturb_path(plant, rule, search, 2.0 * sigma * roughly_normal(search))
    else:
        for task in range(n):
            if uniform(search) < share:
                rule.base[task] += sigma * roughly_normal(search)
    if search.tally[HAS_CHOICE]:
        redraw = uniform(search) < REDRAWN
        let_go = LET_GO * uniform(search) ** 2
        if uniform(search) < ALL_LET_GO:
            let_go, redraw = 1.0, False
        for task in range(n):
            if uniform(search) >= let_go:
                fix_mode(plant, rule, search, task, search.mode[task])
            elif redraw:
                fix_mode(plant, rule, search, task, faster_of_two(plant, search, task))
            else:
                rule.fixed[task], rule.home[task] = NONE, search.home[task]


@njit(cache=True)
def disturb_path(plant: Plant, rule: Rule, search: RuleSearch, shift: float) -> None:
    """Shift the keys along a random path of successors."""
    task = below(search, plant.size[TASKS])
    while True:
        rule.base[task] += shift
        first, many = plant.succ_ptr[task], plant.succ_ptr[task + 1] - plant.succ_ptr[task]
        if many == 0 or uniform(search) < PATH_END:
            return
        task = plant.succ[first + below(search, many)]


@njit(cache=True)
def faster_of_two(plant: Plant, search: RuleSearch, task: int) -> int:
    """Return the faster of two random modes that fit; the current one where neither fits."""
    kind, best = plant.kind[task], NONE
    first, many = plant.kind_ptr[kind], plant.kind_ptr[kind + 1] - plant.kind_ptr[kind]
    for _ in range(2):
        mode = first + below(search, many)
        if plant.memory_gb[task] <= plant.mode_memory_gb[mode] and (
            best == NONE or plant.time_s[mode] < plant.time_s[best]
        ):
            best = mode
    return int(best) if best != NONE else int(search.mode[task])


@njit(cache=True)
def fix_mode(plant: Plant, rule: Rule, search: RuleSearch, task: int, mode: int) -> None:
    """Fix the mode of a task, which joins the queue of its pool if no other pool or cap
    affects it.
    """
    rule.fixed[task] = mode
    rule.home[task] = plant.primary[mode] if search.single[0] else plant.size[POOLS]


@njit(cache=True)
def refine(back: Plant, state: State, rule: Rule, flip: Rule, search: RuleSearch) -> bool:
    """Run the keys backwards in time and replace them; False when that fails."""
    n = back.size[TASKS]
    for task in range(n):
        flip.base[task] = -rule.base[task] - (search.end[task] - search.start[task])
        mode = rule.fixed[task] if rule.fixed[task] != NONE else search.mode[task]
        fix_mode(back, flip, search, task, mode)
    flip.weight[PATIENCE], flip.option[LOOKAHEAD] = rule.weight[PATIENCE], rule.option[LOOKAHEAD]
    flip.weight[CUTOFF] = cutoff(search, BACK_CUTOFF * search.value[CURRENT])
    if not make(back, state, flip, math.inf) or state.tally[NUM_DONE] < n:
        return False
    for task in range(n):
        rule.base[task] = state.total[MAKESPAN] - state.end[task]
    return True


@njit(cache=True)
def worth_of(plant: Plant, state: State, search: RuleSearch) -> tuple[float, float]:
    """Return the violation of hard deadlines, the horizon and limits, and the objective."""
    excess, end = 0.0, state.total[MAKESPAN]
    if plant.scalar[HORIZON] < math.inf:
        late = end - plant.scalar[HORIZON]
        excess += max(0.0, late)
        accrue(plant, state, plant.scalar[HORIZON])
    if search.tally[HAS_DEADLINES]:
        for task in range(plant.size[TASKS]):
            late = state.end[task] - plant.deadline[task]
            if not plant.soft[task] and late > 0.0:
                excess += late
    excess /= search.value[MEAN_LENGTH]
    values = metrics_by(plant, state, end)
    worth = 0.0
    for m in range(NUM_METRICS):
        if search.objective[m] > 0.0:
            worth += search.objective[m] * values[m]
        if values[m] > search.limit[m]:
            excess += (values[m] - search.limit[m]) / max(1.0, search.limit[m])
    return excess, worth
