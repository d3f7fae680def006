"""The precedence-fluid LP: modes become shares, devices become a flow of device-time; starts stay,
one per task.

Tasks that no row distinguishes form a group g of n_g. Columns: x_gk tasks of g in mode k; S_g sum
of their starts; T_g sum of their tardiness; C makespan; F_m value of metric m; V_kt time spent in
mode k during tariff period t; R_m the part of F_m paid for rest until completion. d, e are
durations and energies; h, q heads and tails; L latest ends; N_p devices of pool p.

    assign      Σ_k x_gk = n_g                         each task runs in one mode
    capacity    N_p (C − a − b) ≥ Σ n_kp d_gk x_gk     over groups with h ≥ a, q ≥ b: they run on p
                                                       within [a, C − b]
    start       S_j ≥ S_i + Σ_k (d_ik + l_ik) x_ik     l_ik: least transfer from mode k's pool to
                                                       any pool of j
    completion  n_g C ≥ S_g + Σ_k d_gk x_gk + n_g q_g  each task ends q before the makespan
    deadline    S_g + Σ_k d_gk x_gk ≤ n_g L_g          hard deadlines, horizon, makespan limits
    power       (cap − rest) C ≥ Σ w_gk d_gk x_gk      the cap integrated from 0 to C;
                                                       w_gk = power_k [primary of k below the place]
                                                       − rest of k's devices there
    energy      F ≥ rest H + Σ (e_gk − rest_k d_gk     H is C, or the fixed horizon; without edges
                + transfers) x_gk                      the least transfers are added as a constant
    flow        F ≥ Σ_g weight_g (S_g + Σ_k d_gk x_gk − n_g release_g)
    lateness    T_g ≥ S_g + Σ_k d_gk x_gk − n_g deadline_g
    tardiness   F ≥ Σ_g weight_g T_g                   a sum of maxima is at least the maximum of
                                                       the sums
    slots       ``fluid_tariffs``: cost and carbon

F_m also lies above the combinatorial floor (energy above 0) and below the instance's limit, C above
the combinatorial bound. Every row holds at the point of every feasible schedule (``fluid_point``)
because it is the statement written beside it with the sums over members taken. Coefficients that
are neither data nor products of integers are rounded outward.

C stays below a time by which some optimal schedule has ended, so what is bounded is the optimum,
not each schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.bounds.combinatorial.makespan import makespan_bounds
from optbench.bounds.combinatorial.metric_floors import low_sum, metric_floors, transfer_floor
from optbench.bounds.combinatorial.relaxation import Relaxation, relax
from optbench.bounds.fluid.fluid_tariffs import add_tariffs
from optbench.bounds.fluid.grouping import Groups, group_tasks, sending_costs
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.objective import MAKESPANS
from optbench.model.timegrid import widened
from optbench.model.windows import makespan_limit, time_horizon
from optbench.units import EXACT

# Limit on the total entries of the capacity rows: more thresholds on small instances, one per pool
# on large ones.
CAPACITY_ENTRIES = 300_000
MAX_THRESHOLDS = 8


@dataclass(eq=False)
class Fluid:
    """The LP and the meaning of its columns, as needed to write a schedule as a point."""

    relaxation: Relaxation
    groups: Groups
    columns: LpColumns
    rows: LpRows
    share: Ints
    start: Ints
    late: Ints
    makespan: int
    metric: dict[str, int]
    rest: dict[str, int]
    slot: Ints
    slot_begins: Floats
    sent_j: Floats
    sent_least_j: float = 0.0

    @property
    def instance(self) -> Instance:
        return self.relaxation.instance

    def program(self) -> LinearProgram:
        return assemble(self.columns, self.rows)


def fluid_model(instance: Instance, keep_edges: bool = True) -> Fluid:
    """Build the LP of the first level of the objective.

    Without ``keep_edges`` precedence is left to heads and tails, and all equal tasks are grouped:
    weaker and much smaller.
    """
    relaxation = relax(instance)
    makespan = max(value for value, _ in makespan_bounds(relaxation))
    fluid = _columns(relaxation, group_tasks(relaxation, keep_edges), makespan)
    _assign(fluid)
    _capacity(fluid)
    if keep_edges:
        fluid.sent_j = _starts(fluid)
    else:
        fluid.sent_least_j = low_sum(transfer_floor(instance).tolist())
    _completion(fluid, keep_edges)
    _power(fluid)
    _energy(fluid)
    _due(fluid)
    add_tariffs(fluid)
    return fluid


def down(value: Floats) -> Floats:
    """Return a slightly lower number, by a few units in the last place: the possible rounding error
    of a product or two.
    """
    return value - 4 * np.finfo(float).eps * np.abs(value)


def exact_or_down(ticks: Floats) -> Floats:
    """Return products and sums of whole numbers: exact in floats below 2^53, slightly lowered
    beyond.
    """
    return np.where(np.abs(ticks) < EXACT, ticks, down(ticks))


def _columns(relaxation: Relaxation, groups: Groups, makespan: float) -> Fluid:
    instance = relaxation.instance
    top = max(makespan, min(time_horizon(instance), makespan_limit(instance)))
    level = dict(instance.objective.levels[0])
    floors = metric_floors(relaxation, makespan)
    limits = {name: widened(limit) for name, limit in instance.limits.metric_max.items()}
    columns = LpColumns()
    share = columns.add(len(groups.pair), 0.0, groups.size[groups.of])
    start = columns.add(
        len(groups.size), exact_or_down(groups.size * groups.head), groups.size * top
    )
    cost = level.get("makespan", 0.0) + float(
        down(np.asarray(level.get("makespan_s", 0.0) * instance.tick_s))
    )
    end = int(columns.add(1, makespan, top, cost)[0])
    metric = {}
    for name in sorted((set(level) | set(limits)) - set(MAKESPANS)):
        if np.isfinite(floors[name]):
            upper = max(limits.get(name, np.inf), floors[name])
            # Energy has a row as strong as its floor, which also shows its parts.
            floor = 0.0 if name == "energy_j" else floors[name]
            metric[name] = int(columns.add(1, floor, upper, level.get(name, 0.0))[0])
    due = "tardiness_s" in metric
    late = columns.add(
        len(groups.size) if due else 0, 0.0, groups.size[: len(groups.size) if due else 0] * top
    )
    none = np.zeros(0, dtype=np.int64)
    return Fluid(
        relaxation,
        groups,
        columns,
        LpRows(),
        share,
        start,
        late,
        end,
        metric,
        {},
        none,
        np.zeros(0),
        np.zeros(len(share)),
    )


def _assign(fluid: Fluid) -> None:
    fluid.rows.add("assign", fluid.groups.size, (fluid.groups.of, fluid.share, 1.0), equal=True)


def _capacity(fluid: Fluid) -> None:
    instance, groups = fluid.instance, fluid.groups
    uses = mode_uses(instance)
    entries = max(1, int((uses[groups.mode] > 0).sum()))
    side = int(np.clip(np.sqrt(CAPACITY_ENTRIES / entries), 1, MAX_THRESHOLDS))
    head, tail = groups.head[groups.of], groups.tail[groups.of]
    for p in range(instance.num_pools):
        here = np.flatnonzero(uses[groups.mode, p] > 0)
        if len(here) == 0:
            continue
        time = exact_or_down(uses[groups.mode[here], p].astype(float) * groups.duration[here])
        seen: set[bytes] = set()
        for a in _levels(head[here], side):
            for b in _levels(tail[here], side):
                inside = (head[here] >= a) & (tail[here] >= b)
                if not inside.any() or inside.tobytes() in seen:
                    continue
                seen.add(inside.tobytes())
                # The least head and tail of the tasks inside are the tightest thresholds for them.
                a_in, b_in = head[here][inside].min(), tail[here][inside].min()
                count = float(instance.pools.count[p])
                right = float(exact_or_down(np.asarray(count * (a_in + b_in))))
                fluid.rows.add(
                    "capacity",
                    right,
                    (0, fluid.makespan, count),
                    (0, fluid.share[here[inside]], -time[inside]),
                    of=p,
                )


def _levels(values: Floats, number: int) -> Floats:
    """Return up to ``number`` of the distinct values, spread over their ranks, with the
    smallest.
    """
    distinct = np.unique(values)
    return distinct[np.unique(np.linspace(0, len(distinct) - 1, number).astype(np.int64))]


def _starts(fluid: Fluid) -> Floats:
    """Add start rows of the edges; return the transfer energy that each (group, mode)
    cannot avoid.
    """
    instance, groups, edges = fluid.instance, fluid.groups, fluid.instance.edges
    sent_j = np.zeros(len(fluid.share))
    if len(edges.source) == 0:
        return sent_j
    source, target = groups.group[edges.source], groups.group[edges.target]
    count = np.diff(groups.ptr)[source]
    row = np.repeat(np.arange(len(source)), count)
    entry = (
        groups.ptr[source][row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    )
    time = groups.duration[entry]
    heavy = edges.data_gb > 0
    if heavy.any() and instance.num_pools > 1:
        lag, energy = sending_costs(instance, groups, np.flatnonzero(heavy))
        at = heavy[row]
        time = time.copy()
        time[at] = exact_or_down(time[at] + lag)
        np.add.at(sent_j, entry[at], energy)
    edge = np.arange(len(source))
    fluid.rows.add(
        "start",
        np.zeros(len(source)),
        (edge, fluid.start[target], 1.0),
        (edge, fluid.start[source], -1.0),
        (row, fluid.share[entry], -time),
    )
    return sent_j


def _completion(fluid: Fluid, keep_edges: bool) -> None:
    """Add rows for ends before the makespan, where no start row implies them, and before the latest
    ends.
    """
    groups, edges = fluid.groups, fluid.instance.edges
    sink = np.ones(len(groups.size), dtype=bool)
    if keep_edges:
        sink[groups.group[edges.source]] = False
    _ends(fluid, "completion", np.flatnonzero(sink), groups.size * groups.tail, groups.size)
    due = np.flatnonzero(np.isfinite(groups.latest))
    _ends(fluid, "deadline", due, -groups.size * groups.latest, np.zeros(len(groups.size)))


def _ends(fluid: Fluid, family: str, which: Ints, right: Floats, makespans: Floats) -> None:
    """Add rows ``makespans · C − S_g − Σ d x ≥ right`` for these groups."""
    groups = fluid.groups
    position = np.full(len(groups.size), -1)
    position[which] = np.arange(len(which))
    entry = np.flatnonzero(position[groups.of] >= 0)
    row = np.arange(len(which))
    fluid.rows.add(
        family,
        exact_or_down(right[which]),
        (row, fluid.makespan, makespans[which]),
        (row, fluid.start[which], -1.0),
        (position[groups.of[entry]], fluid.share[entry], -groups.duration[entry]),
        of=which,
    )


def _power(fluid: Fluid) -> None:
    instance, groups = fluid.instance, fluid.groups
    uses, primary, rest = mode_uses(instance), instance.modes.primary, instance.pools.rest_w
    for place, cap in zip(
        instance.limits.cap_place.tolist(), instance.limits.cap_w.tolist(), strict=True
    ):
        below = instance.under[place]
        own = np.where((primary >= 0) & below[np.maximum(primary, 0)], instance.modes.power_w, 0.0)
        freed = uses[:, below] @ rest[below]
        base = float((rest * instance.pools.count)[below].sum())
        room = widened(cap) - base * (1 - 1e-13)
        power = (own - freed - 1e-14 * (own + freed))[groups.mode]
        fluid.rows.add(
            "power",
            0.0,
            (0, fluid.makespan, room),
            (0, fluid.share, -down(power * groups.duration)),
            of=place,
        )


def _energy(fluid: Fluid) -> None:
    if "energy_j" not in fluid.metric:
        return
    instance, groups, sent_j = fluid.instance, fluid.groups, fluid.sent_j
    replaced = instance.mode_rest_w[groups.mode] * groups.duration * instance.tick_s
    net = groups.energy_j - replaced + sent_j
    net = net - 1e-14 * (np.abs(groups.energy_j) + replaced + sent_j)
    rest_w = (
        float((instance.pools.rest_w * instance.pools.count).sum()) * instance.tick_s * (1 - 1e-13)
    )
    column, terms = fluid.metric["energy_j"], (0, fluid.share, -net)
    if instance.horizon is None:
        fluid.rows.add(
            "energy", fluid.sent_least_j, (0, column, 1.0), (0, fluid.makespan, -rest_w), terms
        )
    else:
        right = float(down(np.asarray(rest_w * instance.horizon + fluid.sent_least_j)))
        fluid.rows.add("energy", right, (0, column, 1.0), terms)


def _due(fluid: Fluid) -> None:
    """Add the rows of flow time and tardiness."""
    instance, groups = fluid.instance, fluid.groups
    weight = instance.tasks.weight[groups.member] * instance.tick_s
    if "flow_time_s" in fluid.metric:
        released = (
            weight * groups.size * np.asarray(instance.tasks.release, dtype=float)[groups.member]
        )
        right = -float(released.sum()) * (1 + 1e-13)
        fluid.rows.add(
            "flow",
            right,
            (0, fluid.metric["flow_time_s"], 1.0),
            (0, fluid.start, -down(weight)),
            (0, fluid.share, -down(weight[groups.of] * groups.duration)),
        )
    if "tardiness_s" in fluid.metric:
        soft = np.isfinite(instance.tasks.deadline) & ~instance.tasks.deadline_hard
        due = np.flatnonzero(soft[groups.member])
        position = np.full(len(groups.size), -1)
        position[due] = np.arange(len(due))
        entry = np.flatnonzero(position[groups.of] >= 0)
        row = np.arange(len(due))
        deadline = (groups.size * instance.tasks.deadline[groups.member])[due]
        fluid.rows.add(
            "lateness",
            -deadline - 4 * np.finfo(float).eps * np.abs(deadline),
            (row, fluid.late[due], 1.0),
            (row, fluid.start[due], -1.0),
            (position[groups.of[entry]], fluid.share[entry], -groups.duration[entry]),
            of=due,
        )
        fluid.rows.add(
            "tardiness",
            0.0,
            (0, fluid.metric["tardiness_s"], 1.0),
            (0, fluid.late[due], -down(weight[due])),
        )
