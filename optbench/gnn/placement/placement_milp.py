"""The exact programme of a placement table, which HiGHS solves for sets of devices.

With x_pd = 1 where part p is on device d, y_pqde the product x_pd x_qe for parts p < q that
exchange rows, and for pairs of devices d < e the rows z_de, and m_de = 1 where they exchange any:

    min  mean_w t_w
    one_p        Σ_d x_pd = 1
    from_pqd     Σ_e y_pqde = x_pd
    to_pqe       Σ_d y_pqde = x_qe
    rows_de      z_de ≥ Σ_{p<q} R_pq y_pqde + R_qp y_pqed
    back_de      z_de ≥ Σ_{p<q} R_qp y_pqde + R_pq y_pqed
    meet_pqde    m_de ≥ y_pqde + y_pqed
    window_wd    t_w ≥ Σ_p work_pdw x_pd + Σ_e row_s_de z_de + meeting_de m_de
    memory_d     Σ_p kept_p x_pd + received × (rows of the others to d) ≤ room_d
    equal_pd     x_pd' ≤ Σ_{q<p} x_qd         for devices d < d' that are alike in everything

Only x is binary. Seconds are divided by those of the known placement. What is added up in the end
depends on the devices in use: for every set S of devices there is one programme on S alone, whose
optimum + reduce_S is a lower bound for placements that use exactly S. It has an upper limit where a
placement that fits the memories is known: one that is not better, with reduce_S, is not looked for,
and a programme without a solution proves the known one (to the tolerance of HiGHS). A set is left
out where the bound of ``StepBounds``, or that of a programme of more devices, with reduce_S, is not
below the best step. The stated bound is the least of all sets.

With more than ``MOST_DEVICES`` devices there are two programmes: for all of them, and for those of
the known placement. The bound then is the least, over numbers of devices, of the bound of the
first programme and the reduce of so many devices with the best of all links.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.gnn.placement.fewer_devices import (
    ROUNDING,
    StepBounds,
    device_sets,
    least_step_s,
    restricted,
)
from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_planner import placement_key
from optbench.gnn.placement.placement_table import PlacementTable, mean_load_s
from optbench.shapes.gnn_training.training_data import Floats, Ints

# What counts as closed, relative.
CLOSED = 1e-4
# The most devices of which every set is looked at.
MOST_DEVICES = 6
# What SciPy calls a programme without a solution.
INFEASIBLE = 2


@dataclass(frozen=True, eq=False)
class ProvenPlacement:
    """The best placement found, its step, the bound that HiGHS proves for those that fit (infinite
    where none does), and by how much the placement exceeds the memories.
    """

    device: Ints
    step_s: float
    bound_s: float
    excess_bytes: float = 0.0

    @property
    def is_closed(self) -> bool:
        """Whether the placement fits and the bound proves it."""
        return self.excess_bytes == 0 and self.step_s - self.bound_s <= 2 * CLOSED * self.step_s


def solve_placement(
    table: PlacementTable, known: Ints, time_limit_s: float, most_nodes: int | None = None
) -> ProvenPlacement:
    """Solve the programmes from a known placement, each within so many nodes of its search tree."""
    return _SetsOfDevices(table, known, time_limit_s, most_nodes).solve()


class _SetsOfDevices:
    """The sets whose programmes are solved, with bounds of their longest loads, and the best."""

    def __init__(
        self, table: PlacementTable, known: Ints, time_limit_s: float, most_nodes: int | None
    ) -> None:
        self.table, self.most_nodes = table, most_nodes
        self.until, self.unit_s = time.monotonic() + time_limit_s, mean_load_s(table, known) or 1.0
        self.best, self.key = known, placement_key(table, known)
        self.bounds, self.is_whole = StepBounds(table), table.num_devices <= MOST_DEVICES
        everything = np.arange(table.num_devices)
        sets = device_sets(table) if self.is_whole else (everything, np.unique(known))
        self.load_s = {tuple(each.tolist()): self.bounds.load_s(each) for each in sets}

    def solve(self) -> ProvenPlacement:
        for device in range(self.table.num_devices):
            self._offer(np.full(self.table.num_parts, device, dtype=np.int64))
        # What is left of the time after the first round is for those that it did not close.
        for _ in range(1 if self.most_nodes is not None else 2):
            left = sorted((each for each in self.load_s if len(each) > 1), key=self.bound_s)
            while left:
                left = [each for each in left if not self._is_proven(each)]
                rest_s = self.until - time.monotonic()
                if not left or rest_s <= 0:
                    break
                self._solve(left[0], rest_s / len(left))
                left = left[1:]
        excess, step = self.key
        if self.is_whole:
            bound = min(self.bound_s(each) for each in self.load_s)
        else:
            bound = least_step_s(self.bounds, self.load_s[tuple(range(self.table.num_devices))])
        return ProvenPlacement(self.best, step, min(bound, step) if excess == 0 else bound, excess)

    def bound_s(self, devices: tuple[int, ...]) -> float:
        """A bound of the step of placements that use exactly these devices."""
        if len(devices) == 1:
            alone = np.full(self.table.num_parts, devices[0], dtype=np.int64)
            excess, step = placement_key(self.table, alone)
            return step if excess == 0 else np.inf
        more = (load for each, load in self.load_s.items() if set(devices) <= set(each))
        return max(more) + self.table.reduce_of(np.array(devices)) * (1 - ROUNDING)

    def _is_proven(self, devices: tuple[int, ...]) -> bool:
        excess, step = self.key
        bound = self.bound_s(devices)
        return bound == np.inf or (excess == 0 and bound >= (1 - CLOSED) * step)

    def _offer(self, device: Ints) -> None:
        key = placement_key(self.table, device)
        if key < self.key and (key[0] == 0 or self.key[0] > 0):
            self.best, self.key = device, key

    def _solve(self, devices: tuple[int, ...], time_limit_s: float) -> None:
        """Solve the programme of a set, and keep what it finds and proves."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        chosen = np.array(devices)
        excess, step = self.key
        most = (step - self.table.reduce_of(chosen)) / self.unit_s if excess == 0 else np.inf
        programme = PlacementProgramme(restricted(self.table, chosen), self.unit_s, most)
        rule: Any = LinearConstraint(*programme.rows())
        # What it took to write the programme is over.
        limit_s = max(0.0, min(time_limit_s, self.until - time.monotonic()))
        options: Any = {"time_limit": limit_s, "mip_rel_gap": CLOSED}
        if self.most_nodes is not None:
            options["node_limit"] = self.most_nodes
        found: Any = milp(
            programme.objective,
            constraints=rule,
            integrality=programme.integrality,
            bounds=Bounds(0, programme.upper),
            options=options,
        )
        bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
        # Without a limit a programme without a solution has no placement that fits.
        proven = most if found.status == INFEASIBLE else min(most, bound)
        self.load_s[devices] = max(self.load_s[devices], proven * self.unit_s)
        if found.x is not None:
            self._offer(chosen[programme.placement(found.x)])


class PlacementProgramme:
    """Variables in the order x, y, z, m, t, and rows as triplets."""

    def __init__(self, table: PlacementTable, unit_s: float, most: float = np.inf) -> None:
        """``unit_s`` are the seconds of the objective's 1, and ``most`` is its upper limit."""
        self.table, self.costs = table, costs_of(table)
        self.parts, self.devices = table.num_parts, table.num_devices
        self.windows = table.num_windows
        self.unit, self.most = unit_s, most
        both = np.triu(table.rows + table.rows.T, 1) > 0
        self.pairs: list[tuple[int, int]] = [(int(p), int(q)) for p, q in np.argwhere(both)]
        self.links = [(d, e) for d in range(self.devices) for e in range(d + 1, self.devices)]
        self.first_y = self.parts * self.devices
        self.first_z = self.first_y + len(self.pairs) * self.devices**2
        self.first_m = self.first_z + len(self.links)
        self.first_t = self.first_m + len(self.links)
        self.size = self.first_t + self.windows
        self.objective = np.zeros(self.size)
        self.objective[self.first_t :] = 1.0 / self.windows
        self.integrality = np.zeros(self.size, dtype=np.int64)
        self.integrality[: self.first_y] = 1
        self.upper = np.full(self.size, np.inf)
        self.upper[: self.first_z] = 1.0
        self.upper[self.first_m : self.first_t] = 1.0
        # Rows are counted in those of the whole, so that no number is large.
        self.all_rows = max(1.0, float(table.rows.sum()))
        self._at: list[Ints] = []
        self._column: list[Ints] = []
        self._value: list[Floats] = []
        self._lower: list[float] = []
        self._upper: list[float] = []

    def placement(self, values: Floats) -> Ints:
        """The device of every part in a solution."""
        found: Ints = values[: self.first_y].reshape(self.parts, self.devices).argmax(axis=1)
        return found

    def rows(self) -> tuple[Any, Floats, Floats]:
        """Return the matrix of all rows with their limits."""
        from scipy.sparse import csr_matrix

        for p in range(self.parts):
            self._row([self._x(p, d) for d in range(self.devices)], 1.0, 1.0, 1.0)
        self._products()
        self._exchanges()
        self._loads()
        self._memory()
        self._alike()
        if np.isfinite(self.most):
            self._row(np.arange(self.first_t, self.size), 1.0 / self.windows, -np.inf, self.most)
        at, column = np.concatenate(self._at), np.concatenate(self._column)
        shape = (len(self._lower), self.size)
        matrix = csr_matrix((np.concatenate(self._value), (at, column)), shape=shape)
        return matrix, np.array(self._lower), np.array(self._upper)

    def _x(self, p: int, d: int) -> int:
        return p * self.devices + d

    def _y(self, pair: int, d: int, e: int) -> int:
        return self.first_y + (pair * self.devices + d) * self.devices + e

    def _row(self, columns: Any, values: Any, lower: float, upper: float) -> None:
        columns = np.asarray(columns, dtype=np.int64)
        self._at.append(np.full(len(columns), len(self._lower)))
        self._column.append(columns)
        self._value.append(np.broadcast_to(np.asarray(values, dtype=float), columns.shape))
        self._lower.append(lower)
        self._upper.append(upper)

    def _products(self) -> None:
        both, minus = range(self.devices), [1.0] * self.devices + [-1.0]
        for k, (p, q) in enumerate(self.pairs):
            for d in both:
                self._row([*(self._y(k, d, e) for e in both), self._x(p, d)], minus, 0.0, 0.0)
                self._row([*(self._y(k, e, d) for e in both), self._x(q, d)], minus, 0.0, 0.0)

    def _exchanges(self) -> None:
        ahead = np.array([self.table.rows[p, q] for p, q in self.pairs]) / self.all_rows
        back = np.array([self.table.rows[q, p] for p, q in self.pairs]) / self.all_rows
        for k, (d, e) in enumerate(self.links):
            there = [self._y(j, d, e) for j in range(len(self.pairs))]
            here = [self._y(j, e, d) for j in range(len(self.pairs))]
            columns = [self.first_z + k, *there, *here]
            self._row(columns, [1.0, *-ahead, *-back], 0.0, np.inf)
            self._row(columns, [1.0, *-back, *-ahead], 0.0, np.inf)
            for one, other in zip(there, here, strict=True):
                self._row([self.first_m + k, one, other], [1.0, -1.0, -1.0], 0.0, np.inf)

    def _loads(self) -> None:
        for d in range(self.devices):
            near = [k for k, link in enumerate(self.links) if d in link]
            others = [sum(self.links[k]) - d for k in near]
            talk = np.array([self.costs.row[d, e] * self.all_rows for e in others])
            meeting = np.array([self.costs.meeting[d, e] for e in others])
            columns = [self._x(p, d) for p in range(self.parts)]
            columns += [self.first_z + k for k in near] + [self.first_m + k for k in near]
            for w in range(self.windows):
                values = np.concatenate([self.costs.work[:, d, w], talk, meeting]) / self.unit
                self._row([*columns, self.first_t + w], [*-values, 1.0], 0.0, np.inf)

    def _memory(self) -> None:
        for d in np.flatnonzero(np.isfinite(self.costs.room)).tolist():
            columns, values = [self._x(p, d) for p in range(self.parts)], [*self.costs.kept]
            for k, (p, q) in enumerate(self.pairs):
                for e in range(self.devices):
                    if e != d:
                        columns += [self._y(k, d, e), self._y(k, e, d)]
                        received = self.costs.received
                        values += [
                            received * self.costs.rows[q, p],
                            received * self.costs.rows[p, q],
                        ]
            size = max(1.0, abs(float(self.costs.room[d])))
            self._row(columns, np.array(values) / size, -np.inf, float(self.costs.room[d]) / size)

    def _alike(self) -> None:
        for d, e in self.links:
            # A chain of neighbours is enough, as being alike is transitive.
            between = any(self._are_alike(d, c) and self._are_alike(c, e) for c in range(d + 1, e))
            if between or not self._are_alike(d, e):
                continue
            for p in range(self.parts):
                columns = [*(self._x(q, d) for q in range(p)), self._x(p, e)]
                self._row(columns, [-1.0] * p + [1.0], -np.inf, 0.0)

    def _are_alike(self, d: int, e: int) -> bool:
        """Whether exchanging two devices changes nothing."""
        order = np.arange(self.devices)
        order[[d, e]] = order[[e, d]]
        costs, swap = self.costs, np.ix_(order, order)
        return (
            np.array_equal(costs.work[:, d], costs.work[:, e])
            and np.array_equal(costs.row[swap], costs.row)
            and np.array_equal(costs.meeting[swap], costs.meeting)
            and bool(costs.room[d] == costs.room[e])
        )
