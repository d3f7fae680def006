"""The exact programme of a placement table, which HiGHS solves.

With x_pd = 1 where part p is on device d, y_pqde the product x_pd x_qe for parts p < q that
exchange rows, and for pairs of devices d < e the rows z_de, and m_de = 1 where they exchange any:

    min  mean_w t_w + reduce
    one_p        Σ_d x_pd = 1
    from_pqd     Σ_e y_pqde = x_pd
    to_pqe       Σ_d y_pqde = x_qe
    rows_de      z_de ≥ Σ_{p<q} R_pq y_pqde + R_qp y_pqed
    back_de      z_de ≥ Σ_{p<q} R_qp y_pqde + R_pq y_pqed
    meet_pqde    m_de ≥ y_pqde + y_pqed
    window_wd    t_w ≥ Σ_p work_pdw x_pd + Σ_e row_s_de z_de + meeting_de m_de
    memory_d     Σ_p kept_p x_pd + received × (rows of the others to d) ≤ room_d
    equal_pd     x_pd' ≤ Σ_{q<p} x_qd         for devices d < d' that are alike in everything

Only x is binary. Seconds are divided by the step of the known placement. If that fits the memories,
it is also an upper limit of the objective: a placement that is not better is not looked for, and a
programme without a solution proves the known one (to the tolerance of HiGHS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    memory_excess_bytes,
    table_step_s,
)
from optbench.shapes.gnn_training.training_data import Floats, Ints

# What counts as closed, relative.
CLOSED = 1e-4
# What SciPy calls a programme without a solution.
INFEASIBLE = 2


@dataclass(frozen=True, eq=False)
class ProvenPlacement:
    """The best placement found, its step, the bound that HiGHS states for those that fit (infinite
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
    """Solve the programme from a known placement, within so many nodes of the search tree."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    programme = PlacementProgramme(table, known)
    rule: Any = LinearConstraint(*programme.rows())
    options: Any = {"time_limit": time_limit_s, "mip_rel_gap": CLOSED}
    if most_nodes is not None:
        options["node_limit"] = most_nodes
    found: Any = milp(
        programme.objective,
        constraints=rule,
        integrality=programme.integrality,
        bounds=Bounds(0, programme.upper),
        options=options,
    )
    step, unit = table_step_s(table, known), programme.unit
    bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    excess = float(memory_excess_bytes(table, known).sum())
    if excess == 0:
        bound = 1.0 if found.status == INFEASIBLE else min(1.0, bound)
    elif found.status == INFEASIBLE:
        bound = np.inf
    bound_s = table.reduce_s + bound * unit
    if found.x is None:
        return ProvenPlacement(known, step, bound_s, excess)
    device = programme.placement(found.x)
    fits = not memory_excess_bytes(table, device).any()
    if fits and (excess > 0 or table_step_s(table, device) < step):
        return ProvenPlacement(device, table_step_s(table, device), bound_s)
    return ProvenPlacement(known, step, bound_s, excess)


class PlacementProgramme:
    """Variables in the order x, y, z, m, t, and rows as triplets."""

    def __init__(self, table: PlacementTable, known: Ints) -> None:
        self.table, self.costs = table, costs_of(table)
        self.parts, self.devices = table.num_parts, table.num_devices
        self.windows = table.num_windows
        self.unit = table_step_s(table, known) - table.reduce_s
        self.is_limited = not memory_excess_bytes(table, known).any()
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
        if self.is_limited:
            self._row(np.arange(self.first_t, self.size), 1.0 / self.windows, -np.inf, 1.0)
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
