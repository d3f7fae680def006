"""The linear programme over a stream: time averages of any schedule, per slot of time.

Time is cut at b_0 < ... < b_S, where b_0 is when the first task is there. x_cks is how many units
of class c (``stream_traffic``) mode k processes in slot s, q_cs the units that are available and
undone at its end. With A_cs the units that arrive in slot s, n_kq the devices of pool q in mode k,
t_k and e_k time and energy per unit, r_q the resting power, ρ_qs the rate at which energy counts
(1, a price, an intensity) and C_qs the devices:

    min   Σ ρ_qs (e_k − Σ_q r_q n_kq t_k) x_cks           (+ weight · flow time, makespan)
          + Σ_q r_q count_q ∫ρ_q
    s.t.  q_cs = q_c,s−1 + A_cs − Σ_k x_cks,   q ≥ 0      no work is done before it arrives
          Σ_ck n_kq t_k x_cks ≤ C_qs (b_s+1 − b_s)        devices
          Σ_ck (w_k − Σ_q r_q n_kq) t_k x_cks             below a place with a power cap
          ≤ (cap − Σ_q r_q count_q) (b_s+1 − b_s)
          Σ_cks t_k x_cks                                 mean time in the system at most τ
          ≤ N τ − Σ_j min(a_j, H − release_j)
          q_cs ≤ Σ_s'≤s A_cs' − (units of c due by b_s+1) hard deadlines, where all must be done
          Σ_cks x_cks ≥ U                                 units; or all of them

With a_j the ingress latency: the segments of one task do not overlap, so that it is in the system
for at least its ingress latency and running time, and a task cut at the horizon H for min(a_j, H −
release) and the time it ran: every schedule gives a point of this LP. With one slot it is the path
bound. Where all work must be completed, the end is a variable: slot s is used for z_s of its
seconds, no slot without all of the one before, rest is paid for them, and the last has no end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble
from optbench.bounds.streams.stream_rates import ROUNDING, Rates, rates_of, waste_may_pay
from optbench.bounds.streams.stream_slots import Slots, devices_in
from optbench.bounds.streams.stream_traffic import Traffic
from optbench.bounds.streams.stream_waiting import add_waiting
from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.timegrid import widened
from optbench.units import SUM_MARGIN

# Work per schedule is at least this share of what is offered; schedules with less are bounded
# separately (``per_unit``).
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class Demand:
    """Requirements on a schedule: units (None: no demand of an open instance, everything where all
    work must be completed), mean time, and whether soft deadlines are ``due``.
    """

    units: float | None = None
    sojourn_s: float | None = None
    due: bool = False


@dataclass(frozen=True, eq=False)
class StreamProgram:
    """The LP with the meaning of its columns: class, mode and slot of each x; ``constant`` is added
    to its value.

    ``used`` are the columns of the seconds used of each slot, None where time is fixed. ``few``
    units are a small part of what is offered and of what the devices can process, each at its
    ``cheapest``. ``unbounded_waste``: schedules may be better than the LP, by running on after
    tasks are complete.
    """

    lp: LinearProgram
    constant: float
    cls: Ints
    mode: Ints
    slot: Ints
    slots: Slots
    classes: int
    offered: float
    few: float
    cheapest: float
    used: Ints | None
    unbounded_waste: bool


@dataclass(frozen=True, eq=False)
class _Builder:
    instance: Instance
    work: Traffic
    slots: Slots
    rates: Rates
    demand: Demand

    def build(self) -> StreamProgram:
        columns, rows = LpColumns(), LpRows()
        cls, mode, slot = self._choices()
        instance, work = self.instance, self.work
        come = self._come()
        high = work.units * (1 + SUM_MARGIN)
        cost = self.rates.of_modes(mode, slot)
        x = columns.add(len(cls), 0.0, high[cls], cost)
        self._backlog(columns, rows, x, cls, slot, come)
        used = None if self.slots.fixed else self._used(columns, rows)
        self._devices(rows, x, mode, slot, used)
        self._watts(rows, x, mode, slot, used)
        self._times(columns, rows, x, cls, mode, slot)
        offered = float(work.units.sum())
        if instance.is_open and self.demand.units is not None:
            rows.add("units", self.demand.units * (1 - SUM_MARGIN), (0, x, 1.0), of=0)
        lp = assemble(columns, rows)
        few = LEAST_SHARE * min(offered, self._processable(mode))
        return StreamProgram(
            lp,
            self._constant(),
            cls,
            mode,
            slot,
            self.slots,
            work.num_classes,
            offered,
            few,
            float(cost.min(initial=np.inf)),
            used,
            waste_may_pay(instance, self.rates, *self._every()),
        )

    def _choices(self) -> tuple[Ints, Ints, Ints]:
        """Return class, mode and slot of each x: modes that no other of the same pool dominates,
        slots in which work has arrived.
        """
        first = np.full(self.work.num_classes, self.slots.count)
        slot = self._slot_of(self.work.there_s[self.work.here])
        np.minimum.at(first, self.work.of[self.work.here], slot)
        parts = []
        for c in range(self.work.num_classes):
            modes = np.flatnonzero(self.work.allowed[c])
            if not len(self.instance.limits.cap_w):
                modes = undominated(self.instance, modes, self._times_count())
            s = np.arange(first[c], self.slots.count)
            parts.append(
                np.stack(
                    [
                        np.full(len(modes) * len(s), c),
                        np.repeat(modes, len(s)),
                        np.tile(s, len(modes)),
                    ]
                )
            )
        cls, mode, at = np.concatenate(parts, axis=1)
        return cls, mode, at

    def _every(self) -> tuple[Ints, Ints]:
        """Return every mode that some task may use, dominated or not, with every slot."""
        modes = np.flatnonzero(self.work.allowed.any(axis=0))
        return np.repeat(modes, self.slots.count), np.tile(np.arange(self.slots.count), len(modes))

    def _processable(self, mode: Ints) -> float:
        """Estimate how many units the devices can process, each pool in its best mode."""
        data, total = self.instance.modes, 0.0
        span = float(self.slots.edges[-1] - self.slots.edges[0])
        for pool in np.unique(data.primary[mode]).tolist():
            k = np.unique(mode[data.primary[mode] == pool])
            need = data.devices[k] * data.time_per_unit_s[k]
            best = float(need.min()) if pool >= 0 else 0.0
            total += float(self.instance.pools.count[pool]) * span / best if best > 0 else np.inf
        return total

    def _times_count(self) -> bool:
        """Whether running times count beside energy and devices."""
        wanted = self.instance.objective.metrics | set(self.instance.limits.metric_max)
        return self.demand.sojourn_s is not None or "flow_time_s" in wanted

    def _slot_of(self, time_s: Floats) -> Ints:
        at = np.searchsorted(self.slots.edges, time_s, side="right") - 1
        return np.clip(at, 0, self.slots.count - 1)

    def _come(self) -> Floats:
        """Return the units that arrive, per class and slot."""
        here, count = self.work.here, self.slots.count
        slot = self._slot_of(self.work.there_s[here])
        cell = self.work.of[here] * count + slot
        units = np.bincount(
            cell, weights=self.instance.tasks.units[here], minlength=self.work.num_classes * count
        )
        return np.asarray(units.reshape(self.work.num_classes, count), dtype=float)

    def _due(self) -> Floats:
        """Return the units that are due by the end of each slot, per class."""
        tasks, count = self.instance.tasks, self.slots.count
        out = np.zeros((self.work.num_classes, count))
        hard = (
            (tasks.deadline_hard | self.demand.due) & np.isfinite(tasks.deadline) & self.work.here
        )
        latest = tasks.deadline[hard] * self.instance.tick_s
        slot = np.searchsorted(self.slots.edges[1:], latest, side="left")
        inside = slot < count
        np.add.at(out, (self.work.of[hard][inside], slot[inside]), tasks.units[hard][inside])
        return np.asarray(np.cumsum(out, axis=1), dtype=float)

    def _backlog(
        self, columns: LpColumns, rows: LpRows, x: Ints, cls: Ints, slot: Ints, come: Floats
    ) -> None:
        """Add rows: no work before it arrives; due work is done in time; where all work must be
        completed, everything is done in the end.
        """
        classes, count = come.shape
        total = np.cumsum(come, axis=1) * (1 + SUM_MARGIN)
        upper = total.copy()
        if not self.instance.is_open or self.demand.due:
            upper = np.minimum(upper, total - self._due() + 3 * SUM_MARGIN * total)
        if not self.instance.is_open:
            upper[:, -1] = 3 * SUM_MARGIN * total[:, -1]
        q = columns.add(classes * count, 0.0, upper.ravel()).reshape(classes, count)
        here = np.arange(classes * count).reshape(classes, count)
        rows.add(
            "backlog", (come * (1 + SUM_MARGIN)).ravel(),
            (here, q, 1.0), (here[:, 1:], q[:, :-1], -1.0), (here[cls, slot], x, 1.0), equal=True,
        )  # fmt: skip

    def _devices(self, rows: LpRows, x: Ints, mode: Ints, slot: Ints, used: Ints | None) -> None:
        """Add rows: no more device time than available; where the end is variable, in the seconds
        that are used.
        """
        instance, slots = self.instance, self.slots
        pools, count = instance.num_pools, slots.count
        uses = mode_uses(instance)[mode]
        entry, pool = np.nonzero(uses)
        need = uses[entry, pool] * instance.modes.time_per_unit_s[mode[entry]] * (1 - ROUNDING)
        row = np.arange(pools * count).reshape(pools, count)
        terms: list[tuple[Any, Any, Any]] = [(row[pool, slot[entry]], x[entry], -need)]
        devices = devices_in(instance, slots)
        right = -(devices * slots.slip[None, :]).ravel()
        if used is None:
            right = -(devices * (slots.width + slots.slip)[None, :] * (1 + SUM_MARGIN)).ravel()
        else:
            terms.append((row, np.broadcast_to(used, (pools, count)), devices))
        rows.add("devices", right, *terms)

    def _watts(self, rows: LpRows, x: Ints, mode: Ints, slot: Ints, used: Ints | None) -> None:
        """Add rows: running work below a place draws no more on average over a slot than its cap
        leaves beside the rest.
        """
        instance, slots, limits = self.instance, self.slots, self.instance.limits
        time, s = instance.modes.time_per_unit_s[mode], np.arange(slots.count)
        for number, (place, cap) in enumerate(
            zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True)
        ):
            net = net_power_w(instance, place)
            left = (widened(cap) - resting_power_w(instance, place) * (1 - ROUNDING)) * (
                1 + SUM_MARGIN
            )
            if left < 0 or net.min(initial=0.0) < 0:
                # A whole tick of a mode that draws less than rest saves more than its units do.
                continue
            draw = (slot, x, -(net[mode] * time - ROUNDING * np.abs(net[mode]) * time))
            which = np.full(slots.count, number)
            if used is None:
                rows.add("watts", -left * (slots.width + slots.slip), draw, of=which)
            else:
                rows.add("watts", -left * slots.slip, draw, (s, used, left), of=which)

    def _used(self, columns: LpColumns, rows: LpRows) -> Ints:
        """Add the seconds of each slot that are used: all of them before the least makespan, none
        before all of the slot before.
        """
        slots = self.slots
        least = float((self.work.there_s + self.work.shortest_s).max(initial=0.0)) * (
            1 - SUM_MARGIN
        )
        low = np.clip(least - slots.edges[:-1], 0.0, slots.width)
        z = columns.add(slots.count, low, slots.width, self.rates.resting_low + self._second())
        if slots.count > 2:
            s = np.arange(slots.count - 2)
            ratio = np.nextafter(slots.width[1:-1] / slots.width[:-2], np.inf)
            rows.add("order", np.zeros(len(s)), (s, z[:-2], ratio), (s, z[1:-1], -1.0))
        return z

    def _second(self) -> float:
        """Return the cost of a second of makespan by itself."""
        level = dict(self.instance.objective.levels[0])
        return level.get("makespan_s", 0.0) + level.get("makespan", 0.0) / self.instance.tick_s

    def _times(
        self, columns: LpColumns, rows: LpRows, x: Ints, cls: Ints, mode: Ints, slot: Ints
    ) -> None:
        """Add times in the system beyond the ingress latency: their costs and limits."""
        instance, work = self.instance, self.work
        asked = []
        if self.demand.sojourn_s is not None:
            limit = int(work.here.sum()) * self.demand.sojourn_s * (1 + SUM_MARGIN)
            asked.append(("sojourn", False, limit - self._ingress_times(np.ones(len(work.of)))))
        weight = instance.tasks.weight
        limit_s = instance.limits.metric_max.get("flow_time_s", np.inf)
        if np.isfinite(limit_s):
            asked.append(
                ("flow_time", True, limit_s * (1 + SUM_MARGIN) - self._ingress_times(weight))
            )
        flow = dict(instance.objective.levels[0]).get("flow_time_s", 0.0)
        if not asked and not flow:
            return
        time = instance.modes.time_per_unit_s[mode]
        spent: list[list[tuple[Ints, Ints, Floats]]] = [[(x, cls, time)]]
        if self.slots.count > 1:
            there = self._slot_of(work.there_s[work.here])
            wait = add_waiting(
                columns,
                rows,
                instance,
                work,
                self.slots.edges,
                there,
                x,
                cls * self.slots.count + slot,
            )
            # Undone units fall evenly only if a task runs to its end in one mode.
            half = 0.0 if instance.preemptive or instance.is_open else 0.5
            spent.append([(x, cls, half * time), (wait.column, wait.of, wait.per_unit)])
        total = columns.add(1, 0.0, np.inf, flow) if flow else None
        for parts in spent:
            plain = [(0, column, -value) for column, _, value in parts]
            heavy = [
                (0, column, -np.nextafter(value * work.weight[of], 0.0))
                for column, of, value in parts
            ]
            for name, weighted, limit in asked:
                rows.add(name, -limit, *(heavy if weighted else plain), of=0)
            if total is not None:
                rows.add("flow", 0.0, (0, total, 1.0), *heavy, of=0)

    def _ingress_times(self, weight: Floats) -> float:
        """Return Σ weight · min(ingress latency, time left until the horizon): the certain part of
        the times in the system.
        """
        ingress = self.work.ingress_s
        if self.instance.is_open and self.instance.horizon is not None:
            left = (
                self.instance.horizon - np.asarray(self.instance.tasks.release, dtype=float)
            ) * self.instance.tick_s
            ingress = np.minimum(ingress, left)
        return float((weight * ingress)[self.work.here].sum()) * (1 - SUM_MARGIN)

    def _constant(self) -> float:
        """Return rest that is paid in any case and the certain times, less what whole ticks can
        hide.
        """
        level = dict(self.instance.objective.levels[0])
        flow = level.get("flow_time_s", 0.0)
        found = self.rates.rest_constant
        if flow:
            found += flow * self._ingress_times(self.instance.tasks.weight)
        if not self.slots.fixed:
            found += self._second() * float(self.slots.edges[0]) * (1 - SUM_MARGIN)
        return found - self.rates.hidden


def undominated(instance: Instance, modes: Ints, times: bool) -> Ints:
    """Return modes without those that another on the same pool alone dominates in energy above
    rest, device time and, if asked, time.
    """
    single = np.diff(instance.modes.req_ptr)[modes] == 1
    keep = np.ones(len(modes), dtype=bool)
    data = instance.modes
    replaced = instance.mode_rest_w * data.time_per_unit_s
    above, doubt = data.energy_per_unit_j - replaced, ROUNDING * (data.energy_per_unit_j + replaced)
    for pool in np.unique(data.primary[modes[single]]).tolist():
        rows = np.flatnonzero(single & (data.primary[modes] == pool))
        k = modes[rows]
        better = above[k][:, None] + doubt[k][:, None] < above[k] - doubt[k]
        for value in (data.devices * data.time_per_unit_s, data.time_per_unit_s)[: 1 + times]:
            better &= value[k][:, None] <= value[k]
        keep[rows] = ~better.any(axis=0)
    return modes[keep]


def stream_program(
    instance: Instance, work: Traffic, slots: Slots, demand: Demand
) -> StreamProgram:
    """Build the LP of the first level of the objective."""
    rates = rates_of(instance, slots.edges, slots.fixed)
    return _Builder(instance, work, slots, rates, demand).build()
