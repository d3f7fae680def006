"""From the nodes of an exported graph to operators with costs per node and per arc.

A quantity q of a node (operations, bytes) is affine in the numbers of nodes n and arcs a of the
graph:

    q(n, a) = q₀ + q₁ n + q₂ a

which three sizes determine; a fourth one must agree, and what grows faster (a dense adjacency
matrix) is refused. The constant part q₀, such as the gradient of weights, is left out: operators
of the shape have costs of nodes and arcs alone.

What depends neither on features nor on parameters, such as degrees, is computed once before the
training and is no operator. Views launch no kernel and are none either. A node that overwrites new
zeros includes their making. Rows of other devices are needed where rows of nodes are gathered by
that end of the arcs by which sums are not scattered: once forward and, where the rows depend on
parameters, once backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch.fx.node import Node

from optbench.errors import ModelError
from optbench.gnn.operators.exported_model import MODEL, ExportedModel, GraphSize, exported
from optbench.gnn.operators.kernel_recorder import Constant
from optbench.gnn.operators.measured_nodes import MeasuredNode, MeasuredStep
from optbench.gnn.operators.tried_algebra import TriedAlgebra
from optbench.shapes.gnn_training.operator_costs import FEATURES, Operator, OperatorCost
from optbench.shapes.gnn_training.training_data import Floats

SIZES = (GraphSize(12, 40), GraphSize(20, 40), GraphSize(12, 64), GraphSize(17, 57))
QUANTITIES = ("flop", "moved", "kept", "output", "forward_flop", "gathered")
# Relative deviation of the fourth size that rounding explains.
AFFINE_WITHIN = 1e-6


@dataclass(frozen=True)
class Growth:
    """A quantity per node and per arc."""

    node: float = 0.0
    arc: float = 0.0

    def __add__(self, other: Growth) -> Growth:
        return Growth(self.node + other.node, self.arc + other.arc)

    def times(self, factor: float) -> Growth:
        return Growth(self.node * factor, self.arc * factor)

    def positive(self) -> Growth:
        return Growth(max(self.node, 0.0), max(self.arc, 0.0))


@dataclass(frozen=True)
class TracedOperator:
    """An operator with what fusions depend on.

    ``output`` is the size of its result, ``changes`` whether that depends on parameters,
    ``constants`` are the indices and coefficients that it reads, ``is_remote`` says that it gathers
    rows of other devices. ``module`` is the path of the module whose code calls it, and ``calls``
    the operator of PyTorch.
    """

    operator: Operator
    flop: Growth
    forward_flop: Growth
    moved: Growth
    kept: Growth
    output: Growth
    constants: Mapping[Constant, Growth]
    is_remote: bool
    has_gradient: bool
    changes: bool
    module: str
    calls: str

    @property
    def kind(self) -> str:
        return self.operator.kind

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.operator.inputs


@dataclass(frozen=True, eq=False)
class OperatorGraph:
    """The operators of a model in order, the bytes of a row of features, and of its parameters.

    ``algebra`` tries laws such as linearity on the values of a small graph.
    """

    traced: tuple[TracedOperator, ...]
    feature_bytes: float
    parameter_bytes: float
    num_classes: int
    algebra: TriedAlgebra

    @property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(each.operator for each in self.traced)

    def row_width(self, index: int) -> float:
        """Bytes of a node's row of an operator's result, or of the features."""
        return self.feature_bytes if index == FEATURES else self.traced[index].output.node

    def consumers(self, index: int) -> list[int]:
        return [k for k, each in enumerate(self.traced) if index in each.inputs]


def operator_graph(model: Any, num_features: int, name: str = "model") -> OperatorGraph:
    """Return the operators of a module's training step on graphs of any size."""
    program = exported(model, num_features, name)
    steps = [MeasuredStep(program, size) for size in SIZES]
    return _Assembly(program, steps, name).graph()


class _Assembly:
    def __init__(self, model: ExportedModel, steps: list[MeasuredStep], name: str) -> None:
        self._model, self._steps, self._name = model, steps, name
        self._base = steps[0]
        ends = {each.scatters_by for each in self._base.nodes.values()} - {"none"}
        # Arcs belong to the device of the end at which sums are made.
        self._own_end = "source" if ends == {"source"} else "target"

    def graph(self) -> OperatorGraph:
        traced: list[TracedOperator] = []
        nodes: list[Node] = []
        # The operators, or the features, on which the value of each node depends.
        origin: dict[Node, tuple[int, ...]] = {
            node: (FEATURES,) if state == "features" else ()
            for node, state in self._base.input_states()
        }
        for node, measured in self._base.nodes.items():
            inputs = {i for each in measured.given for i in origin.get(each, ())}
            if measured.state == "constant":
                origin[node] = ()
            elif measured.launches == 0:
                origin[node] = tuple(sorted(inputs))
            else:
                traced.append(self._traced(measured, tuple(sorted(inputs))))
                nodes.append(node)
                origin[node] = (len(traced) - 1,)
        if not traced or FEATURES not in {i for each in traced for i in each.inputs}:
            raise ModelError(f"{self._name}: its scores do not depend on the features of nodes")
        last = traced[-1]
        traced[-1] = _renamed(last, "loss", "loss")
        row = 4.0 * self._model.num_features
        held = self._model.parameter_bytes
        algebra = TriedAlgebra(self._base, tuple(nodes))
        return OperatorGraph(tuple(traced), row, held, self._model.num_classes, algebra)

    def _traced(self, measured: MeasuredNode, inputs: tuple[int, ...]) -> TracedOperator:
        at = [step.nodes[measured.node] for step in self._steps]
        if len({each.launches for each in at}) > 1:
            raise ModelError(
                f"{self._name}: operator {measured.node.name!r} launches another number of kernels "
                "for another size of the graph"
            )
        fitted = self._fitted(measured.node.name, np.array([_quantities(each) for each in at]))
        grown = dict(zip(QUANTITIES, fitted, strict=True))
        grown, launches = self._with_zeros(measured, grown)
        flop, moved, kept = grown["flop"], grown["moved"], grown["kept"]
        of_nodes = grown["gathered"].node > 0 and grown["gathered"].arc == 0
        is_remote = of_nodes and measured.gathers_by not in ("none", self._own_end)
        passes = 2 if measured.backward.launches else 1
        row_bytes = grown["gathered"].node * passes if is_remote else 0.0
        cost = OperatorCost(
            *(flop.node, flop.arc, moved.node, moved.arc, kept.node, kept.arc, row_bytes),
            exchanges=passes if is_remote else 0,
            launches=launches,
        )
        kind = _kind(measured, grown["output"])
        return TracedOperator(
            Operator(measured.node.name, kind, inputs, cost),
            *(flop, grown["forward_flop"], moved, kept, grown["output"]),
            constants=self._constants(at),
            is_remote=is_remote,
            has_gradient=measured.has_gradient,
            changes=measured.state == "varying",
            module=_module_of(measured.node),
            calls=str(measured.node.target),
        )

    def _with_zeros(
        self, measured: MeasuredNode, grown: dict[str, Growth]
    ) -> tuple[dict[str, Growth], int]:
        """Add the making of constants that the node overwrites."""
        launches = measured.launches
        for node in self._base.overwritten(measured.node):
            filled = self._base.nodes.get(node)
            if filled is not None and filled.state == "constant":
                at = [step.nodes[node] for step in self._steps]
                extra = self._fitted(node.name, np.array([_quantities(each) for each in at]))
                added = dict(zip(QUANTITIES, extra, strict=True))
                grown = grown | {name: grown[name] + added[name] for name in ("flop", "moved")}
                launches += filled.launches
        return grown, launches

    def _constants(self, at: list[MeasuredNode]) -> dict[Constant, Growth]:
        """How the constants grow that the node reads forward."""
        names = list(at[0].forward.constants)
        values = np.array([[each.forward.constants[name] for name in names] for each in at])
        sizes = self._fitted(at[0].node.name, values.reshape(len(at), len(names)))
        return dict(zip(names, sizes, strict=True))

    def _fitted(self, name: str, values: Floats) -> list[Growth]:
        """Solve for the growth of each column by the first sizes, and check it at the last."""
        rows = np.array([[1.0, each.nodes, each.arcs] for each in SIZES])
        found = np.linalg.solve(rows[:-1], values[:-1])
        off = np.abs(rows[-1] @ found - values[-1])
        for k in np.flatnonzero(off > AFFINE_WITHIN * (1 + np.abs(values[-1]))).tolist():
            raise ModelError(
                f"{self._name}: operator {name!r} costs {values[-1, k]:g} operations or bytes for "
                f"{SIZES[-1].nodes} nodes and {SIZES[-1].arcs} arcs, where growth in proportion "
                f"gives {rows[-1] @ found[:, k]:g}; only models whose cost grows in proportion to "
                "nodes and arcs can be cut into parts"
            )
        exact = np.round(found, 6) + 0.0
        return [Growth(float(each[1]), float(each[2])).positive() for each in exact.T]


def _module_of(node: Node) -> str:
    """The path, in the user's module, of the innermost module around a node."""
    around = list(node.meta.get("nn_module_stack", {}).values())
    inside = around[-1][0] if around else ""
    return str(inside).removeprefix(MODEL).removeprefix(".")


def _quantities(each: MeasuredNode) -> list[float]:
    ahead, back = each.forward, each.backward
    return [
        ahead.flops + back.flops,
        ahead.moved_bytes + back.moved_bytes,
        each.kept_bytes,
        each.output_bytes,
        ahead.flops,
        each.gathered_bytes,
    ]


def _kind(measured: MeasuredNode, output: Growth) -> str:
    if measured.forward.has_product:
        return "dense"
    if measured.forward.gathered and output.arc:
        return "gather"
    if measured.forward.scattered:
        return "scatter"
    return "scale" if output.arc else "pointwise"


def _renamed(each: TracedOperator, name: str, kind: str) -> TracedOperator:
    return replace(each, operator=replace(each.operator, name=name, kind=kind))
