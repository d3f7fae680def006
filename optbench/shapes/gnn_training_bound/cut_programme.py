"""The exact cut as a mixed-integer programme, for HiGHS and CP-SAT.

With x_vp = 1 where node v is in part p and d_e = 1 where edge e is cut:

    min  Σ d_e
    one_v        Σ_p x_vp = 1
    room_p       Σ_v x_vp ≤ M
    cut_e,p      d_e ≥ x_up − x_vp                       e = (u, v); for p alone of two parts
    cut_e        d_e ≥ x_vp − x_up                       two parts: the other direction
    order_v,p    x_vp ≤ Σ_{u before v} x_u,p−1           parts are numbered by their first node
    tree_t       Σ_e min(l_te, b_t) d_e ≥ b_t            rows of ``tree_packing``
    bound        Σ d_e ≥ L                               L proved by ``cut_bound``

Nodes are ordered by degree, the largest first, so that the p-th of them is in one of the first p
parts: one decision of each set that differs by the names of parts is left. Of two parts only x_v1
is a column. Devices, clocks and fusions stay at the identity; limits of memory and of the step are
left out, so that an instance where they can bind has no formulation, nor has a large graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.errors import DisagreementError, UnsupportedError
from optbench.model.verify import Verdict
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.operator_costs import costs_of_plan
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.gnn_training_bound.cut_bound import fixed_work_bound
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem, cut_problem
from optbench.shapes.gnn_training_bound.first_partition import first_partition
from optbench.shapes.gnn_training_bound.spreading_lp import TreeRow, spreading_rows
from optbench.shapes.milp.exact_point import Point, broken
from optbench.shapes.milp.program import Milp, milp
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# Larger programmes are refused: none of them was closed.
MOST_COLUMNS = 20_000
# Rows of trees from rounds of the spreading LP, where there are few edges: no clock ends it.
TREE_ROUNDS, MOST_TREE_EDGES = 12, 2_000
# Nodes with rows of order; those of later nodes are long and cut little off.
ORDERED_NODES = 40


@dataclass
class ProgrammeRows:
    """Rows that are being collected: name, sides and entries by column."""

    names: list[str] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)

    def add(self, name: str, lower: float, upper: float, terms: dict[int, float]) -> None:
        at = len(self.names)
        self.names.append(name)
        self.lower.append(lower)
        self.upper.append(upper)
        self.entries += [(at, column, value) for column, value in terms.items()]


@dataclass(frozen=True)
class CutFormulation:
    """Points are x (by node, then part) and then d; of two parts, x_v1 alone.

    ``start`` is the plan from which exact solvers start."""

    data: GnnTraining
    program: Milp
    order: Ints
    start: TrainingPlan

    @property
    def width(self) -> int:
        return columns_of_node(self.data.num_parts)

    def encode(self, decision: TrainingPlan) -> Point:
        """Return the point of a partition, its parts numbered by their first node in the order."""
        graph, k = self.data.graph, self.data.num_parts
        part = decision.part[self.order]
        _, first = np.unique(part, return_index=True)
        number = np.full(k, -1)
        number[part[np.sort(first)]] = np.arange(len(first))
        named = number[decision.part]
        inside = (named[:, None] == np.arange(k)).astype(int)
        inside = inside[:, 1:] if k == 2 else inside
        cut = (named[graph.tail] != named[graph.head]).astype(int)
        return tuple(Fraction(v) for v in [*inside.ravel().tolist(), *cut.tolist()])

    def decode(self, point: Point) -> TrainingPlan:
        n = self.data.graph.num_nodes
        values = np.array([round(v) for v in point[: n * self.width]]).reshape(n, self.width)
        part = values[:, 0] if self.data.num_parts == 2 else values.argmax(axis=1)
        return TrainingPlan(part.astype(np.int64))

    def check_decoded(self, instance: ShapedInstance, point: Point, verdict: Verdict) -> None:
        """Stop where the verifier refuses the plan of a point, or counts more cut edges."""
        if not verdict.feasible:
            first = verdict.violations[0]
            raise DisagreementError(
                f"{instance.name}: the formulation allows a plan that verify refuses: "
                f"{first.message} (constraint {first.constraint!r})"
            )
        value = self.program.objective_at(point)
        if Fraction(verdict.objectives[0]) > value:
            raise DisagreementError(
                f"{instance.name}: the formulation has {float(value)} cut edges for a plan of "
                f"which verify counts {verdict.objectives[0]}"
            )

    def check_accepted(
        self, instance: ShapedInstance, decision: TrainingPlan, verdict: Verdict
    ) -> None:
        """Stop where the formulation forbids a plan that the verifier accepts."""
        point = self.encode(decision)
        wrong = broken(self.program, point)
        if wrong:
            raise DisagreementError(
                f"{instance.name}: verify accepts a plan that the formulation forbids: "
                f"{wrong[0].what} (constraint {wrong[0].constraint!r})"
            )
        value = self.program.objective_at(point)
        if Fraction(verdict.objectives[0]) != value:
            raise DisagreementError(
                f"{instance.name}: verify counts {verdict.objectives[0]} cut edges, the "
                f"formulation {float(value)}"
            )


def columns_of_node(num_parts: int) -> int:
    """The columns x of a node."""
    return 1 if num_parts == 2 else num_parts


def cut_formulation(instance: ShapedInstance) -> CutFormulation:
    """Return the formulation of an instance that minimises the cut."""
    data: GnnTraining = instance.data
    _refuse(instance.name, data)
    problem = cut_problem(data)
    order = np.argsort(-problem.degrees, kind="stable")
    few = problem.num_edges <= MOST_TREE_EDGES
    trees = spreading_rows(problem, TREE_ROUNDS) if few else []
    start = TrainingPlan(first_partition(problem))
    bound = fixed_work_bound(data, CutGraph(data.graph, start.part, data.num_parts).cut_edges)
    program = cut_program(instance.name, problem, order, trees, bound)
    return CutFormulation(data, program, order, start)


def _refuse(name: str, data: GnnTraining) -> None:
    """Refuse what the formulation cannot say."""
    where = f"{name!r} has no formulation"
    if data.minimize != "cut":
        raise UnsupportedError(f"{where}: it minimises the {data.minimize}; only the cut has one")
    if data.step_limit_s is not None:
        raise UnsupportedError(f"{where}: step_limit_s is {data.step_limit_s}; leave it out")
    width = columns_of_node(data.num_parts)
    columns = data.graph.num_nodes * width + data.graph.num_edges
    if columns > MOST_COLUMNS:
        raise UnsupportedError(
            f"{where}: {columns:,} columns, more than {MOST_COLUMNS:,}; use -s mis_spectral"
        )
    needed = _most_memory_gb(data)
    for device in data.devices:
        if device.memory_gb is not None and device.memory_gb < needed:
            raise UnsupportedError(
                f"{where}: {device.name} has {device.memory_gb:g} GB, and the whole graph may need "
                f"{needed:.6g} GB; use a solver that checks memory"
            )


def _most_memory_gb(data: GnnTraining) -> float:
    """Memory of one device that keeps all nodes and arcs, and a copy of every arc's row."""
    costs = costs_of_plan(data.operators, data.fusions, [])
    arcs = 2.0 * data.graph.num_edges
    node = sum(each.kept_bytes_per_node for each in costs) * float(data.graph.sizes.sum())
    arc = sum(each.kept_bytes_per_arc + each.row_bytes / 2 for each in costs) * arcs
    return (node + arc + data.parameter_bytes) / 1e9


def cut_program(
    name: str, problem: CutProblem, order: Ints, trees: list[TreeRow], bound: int
) -> Milp:
    """Return the programme; see the head of this module."""
    n, m, k = problem.num_nodes, problem.num_edges, problem.num_parts
    width = columns_of_node(k)
    rows = ProgrammeRows()
    upper = np.ones(n * width + m)
    if k == 2:
        upper[order[0]] = 0.0
        _add_two_parts(rows, problem)
    else:
        for place, v in enumerate(order[:k].tolist()):
            upper[v * k + place + 1 : (v + 1) * k] = 0.0
        _add_parts(rows, problem)
        _add_order(rows, order.tolist(), k)
    for t, tree in enumerate(trees):
        terms = {n * width + e: float(load) for e, load in zip(tree.edges, tree.loads)}
        rows.add(f"tree_{t}", float(tree.side), np.inf, terms)
    if bound > 0:
        rows.add("bound", float(bound), np.inf, {n * width + e: 1.0 for e in range(m)})
    columns = _column_names(problem)
    cost = np.concatenate([np.zeros(n * width), np.ones(m)])
    triplets: Any = list(zip(*rows.entries)) or ([], [], [])
    sides = rows.lower, rows.upper
    zero, whole = np.zeros(len(cost)), np.ones(len(cost), bool)
    return milp(name, "min", columns, cost, zero, upper, whole, rows.names, *sides, triplets)


def _column_names(problem: CutProblem) -> list[str]:
    parts = [1] if problem.num_parts == 2 else range(problem.num_parts)
    names = [f"x_{v}_{p}" for v in range(problem.num_nodes) for p in parts]
    return names + [f"d_{u}_{v}" for u, v in zip(problem.tail, problem.head)]


def _add_two_parts(rows: ProgrammeRows, problem: CutProblem) -> None:
    n, most = problem.num_nodes, problem.max_part
    rows.add("room", float(n - most), float(most), dict.fromkeys(range(n), 1.0))
    for e, (u, v) in enumerate(zip(problem.tail.tolist(), problem.head.tolist())):
        rows.add(f"cut_{e}", 0.0, np.inf, {n + e: 1.0, u: -1.0, v: 1.0})
        rows.add(f"cut_{e}_back", 0.0, np.inf, {n + e: 1.0, u: 1.0, v: -1.0})


def _add_parts(rows: ProgrammeRows, problem: CutProblem) -> None:
    n, k, most = problem.num_nodes, problem.num_parts, problem.max_part
    for v in range(n):
        rows.add(f"one_{v}", 1.0, 1.0, {v * k + p: 1.0 for p in range(k)})
    for p in range(k):
        rows.add(f"room_{p}", 0.0, float(most), {v * k + p: 1.0 for v in range(n)})
    for e, (u, v) in enumerate(zip(problem.tail.tolist(), problem.head.tolist())):
        for p in range(k):
            terms = {n * k + e: 1.0, u * k + p: -1.0, v * k + p: 1.0}
            rows.add(f"cut_{e}_{p}", 0.0, np.inf, terms)


def _add_order(rows: ProgrammeRows, order: list[int], k: int) -> None:
    """Part p begins after part p − 1."""
    for place, v in enumerate(order[:ORDERED_NODES]):
        for p in range(1, min(place + 1, k)):
            before = {u * k + p - 1: 1.0 for u in order[:place]}
            rows.add(f"order_{v}_{p}", 0.0, np.inf, {**before, v * k + p: -1.0})
