"""Modelled operators of two-layer networks on graphs, forward and backward, and their fusions.

With 4 bytes per value, an index of 8 bytes per arc, and widths a → b of a layer:

    dense        X W: 2 a b flop per node forward, and as much again for each gradient wanted
    gather       the rows of neighbours, written per arc       (not fused: one value per arc and
    scale        times a coefficient per arc                    column is written and read again)
    scatter      their sums per node
    epilogue     bias, activation and dropout

Layers are A (X W) in GCN and GAT, and (A X) W₁ + X W₂ in SAGE, as PyTorch Geometric has them. The
features need no gradient: the first layer's dense operator lacks that for its input. Where a layer
aggregates the features themselves, which never change, aggregation is done once before training.

Fusions of each layer: ``spmm`` (gather, scale, scatter as one sparse product that writes nothing
per arc), ``spmm_epilogue``, ``one_pass`` (bias, activation and dropout by one kernel), the other
order of aggregation and dense product, and for the first layer ``aggregated_before``: A X from
before the training, which needs no rows of other devices. GAT has ``attention``: scores, softmax
and weighted sum per node, scores being computed again backward.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from optbench.shapes.gnn_training.operator_costs import (
    FEATURES,
    Fusion,
    Operator,
    OperatorCost,
)

Network = Literal["gcn", "sage", "gat"]
VALUE, INDEX = 4.0, 8.0


@dataclass
class ModelledNetwork:
    """Operators in order, their fusions, and the bytes of the parameters."""

    operators: list[Operator] = field(default_factory=list)
    fusions: list[Fusion] = field(default_factory=list)
    parameter_bytes: float = 0.0

    def add(self, name: str, kind: str, inputs: tuple[int, ...], cost: OperatorCost) -> int:
        """Append an operator and return its index."""
        self.operators.append(Operator(name, kind, inputs, cost))
        return len(self.operators) - 1

    def fuse(self, name: str, replaced: tuple[int, ...], *costs: OperatorCost) -> None:
        """Note that operators can be replaced by one with the sum of these costs."""
        self.fusions.append(Fusion(name, tuple(sorted(replaced)), added(*costs)))


def added(*costs: OperatorCost) -> OperatorCost:
    """Return the cost of operators that follow each other in one kernel.

    It is a sum; kernels are launched as often as the operator with the most launches."""
    names = OperatorCost.__dataclass_fields__
    total = {name: sum(getattr(each, name) for each in costs) for name in names}
    return OperatorCost(**{**total, "launches": max(each.launches for each in costs)})


def modelled(network: Network, features: int, hidden: int, classes: int) -> ModelledNetwork:
    """Return the two layers features → hidden → classes, and the loss."""
    made, last = ModelledNetwork(), FEATURES
    layer = {"gcn": _gcn_layer, "sage": _sage_layer, "gat": _gat_layer}[network]
    for number, (a, b) in enumerate(((features, hidden), (hidden, classes)), start=1):
        last = layer(made, number, last, a, b)
    made.add("loss", "loss", (last,), pointwise(classes))
    return made


def dense(a: int, b: int, gradient: bool) -> OperatorCost:
    """X W, with the gradient of W and, where wanted, of X."""
    products = 3 if gradient else 2
    return OperatorCost(
        flop_per_node=2.0 * a * b * products,
        bytes_per_node=VALUE * (a + b) * products,
        kept_bytes_per_node=VALUE * a,
        launches=products,
    )


def pointwise(width: int) -> OperatorCost:
    """An operation on each value of a row, which keeps its result."""
    return OperatorCost(
        flop_per_node=4.0 * width,
        bytes_per_node=4 * VALUE * width,
        kept_bytes_per_node=VALUE * width,
    )


def in_epilogue(width: int) -> OperatorCost:
    """The same within the kernel that computes the row: nothing is read again forward."""
    return OperatorCost(
        flop_per_node=4.0 * width,
        bytes_per_node=2 * VALUE * width,
        kept_bytes_per_node=VALUE * width,
    )


def one_pass(width: int) -> OperatorCost:
    """Bias, activation and dropout by one kernel in each pass."""
    return replace(pointwise(width), launches=1)


def gather(width: int) -> OperatorCost:
    """Rows of neighbours, forward, and of their gradients, backward; both cross devices."""
    return OperatorCost(
        bytes_per_arc=2 * (2 * VALUE * width + INDEX), row_bytes=2 * VALUE * width, exchanges=2
    )


def scale(width: int) -> OperatorCost:
    return OperatorCost(flop_per_arc=2.0 * width, bytes_per_arc=4 * VALUE * width)


def scatter(width: int) -> OperatorCost:
    return OperatorCost(
        flop_per_arc=2.0 * width,
        bytes_per_arc=2 * (VALUE * width + INDEX),
        bytes_per_node=2 * VALUE * width,
    )


def spmm(width: int) -> OperatorCost:
    """A X without values per arc: rows are read, a sum is written, in both passes."""
    return OperatorCost(
        flop_per_arc=4.0 * width,
        bytes_per_arc=2 * (VALUE * width + INDEX + VALUE),
        bytes_per_node=2 * VALUE * width,
        row_bytes=2 * VALUE * width,
        exchanges=2,
    )


def _aggregate(made: ModelledNetwork, layer: int, source: int, width: int) -> tuple[int, ...]:
    first = made.add(f"gather{layer}", "gather", (source,), gather(width))
    second = made.add(f"scale{layer}", "scale", (first,), scale(width))
    return first, second, made.add(f"scatter{layer}", "scatter", (second,), scatter(width))


def _gcn_layer(made: ModelledNetwork, layer: int, source: int, a: int, b: int) -> int:
    """A (X W), bias, activation."""
    begins = source == FEATURES
    product = made.add(f"dense{layer}", "dense", (source,), dense(a, b, not begins))
    parts = _aggregate(made, layer, product, b)
    end = made.add(f"epilogue{layer}", "epilogue", (parts[-1],), pointwise(b))
    made.parameter_bytes += VALUE * (a + 1) * b
    made.fuse(f"spmm{layer}", parts, spmm(b))
    made.fuse(f"spmm_epilogue{layer}", (*parts, end), spmm(b), in_epilogue(b))
    made.fuse(f"one_pass{layer}", (end,), one_pass(b))
    if begins:
        made.fuse("aggregated_before", (product, *parts), dense(a, b, False))
    else:
        made.fuse(f"aggregated_first{layer}", (product, *parts), spmm(a), dense(a, b, True))
    return end


def _sage_layer(made: ModelledNetwork, layer: int, source: int, a: int, b: int) -> int:
    """(A X) W₁ + X W₂, bias, activation, where A takes means."""
    begins = source == FEATURES
    parts = _aggregate(made, layer, source, a)
    near = made.add(f"neighbours{layer}", "dense", (parts[-1],), dense(a, b, not begins))
    own = made.add(f"own{layer}", "dense", (source,), dense(a, b, not begins))
    total = made.add(f"add{layer}", "add", (near, own), pointwise(b))
    end = made.add(f"epilogue{layer}", "epilogue", (total,), pointwise(b))
    made.parameter_bytes += VALUE * (2 * a + 1) * b
    made.fuse(f"spmm{layer}", parts, spmm(a))
    made.fuse(f"one_product{layer}", (near, own, total), dense(2 * a, b, not begins))
    made.fuse(f"one_pass{layer}", (end,), one_pass(b))
    whole = (*parts, near, own, total)
    if begins:
        made.fuse("aggregated_before", whole, dense(2 * a, b, False))
    joined = (dense(a, 2 * b, not begins), spmm(b), in_epilogue(b))
    made.fuse(f"aggregated_last{layer}", whole, *joined)
    made.fuse(f"aggregated_last_epilogue{layer}", (*whole, end), *joined, in_epilogue(b))
    return end


def _gat_layer(made: ModelledNetwork, layer: int, source: int, a: int, b: int) -> int:
    """Rows of X W, weighted by the softmax of a score per arc."""
    begins = source == FEATURES
    product = made.add(f"dense{layer}", "dense", (source,), dense(a, b, not begins))
    halves = OperatorCost(
        flop_per_node=12.0 * b, bytes_per_node=4 * VALUE * b, kept_bytes_per_node=2 * VALUE
    )
    scores = made.add(f"scores{layer}", "scores", (product,), halves)
    on_arcs = OperatorCost(
        flop_per_arc=30.0,
        bytes_per_arc=2 * (8 * VALUE + 2 * INDEX),
        bytes_per_node=4 * VALUE,
        kept_bytes_per_arc=3 * VALUE,
        row_bytes=2 * VALUE,
        exchanges=2,
        launches=8,
    )
    weights = made.add(f"softmax{layer}", "softmax", (scores,), on_arcs)
    rows = made.add(f"gather{layer}", "gather", (product,), gather(b))
    kept = added(scale(b), OperatorCost(kept_bytes_per_arc=VALUE * b))
    scaled = made.add(f"scale{layer}", "scale", (rows, weights), kept)
    total = made.add(f"scatter{layer}", "scatter", (scaled,), scatter(b))
    end = made.add(f"epilogue{layer}", "epilogue", (total,), pointwise(b))
    made.parameter_bytes += VALUE * (a + 3) * b
    again = OperatorCost(
        flop_per_arc=60.0,
        bytes_per_node=8 * VALUE,
        bytes_per_arc=4 * VALUE,
        kept_bytes_per_node=2 * VALUE,
        row_bytes=2 * VALUE,
    )
    parts = (scores, weights, rows, scaled, total)
    made.fuse(f"one_pass{layer}", (end,), one_pass(b))
    made.fuse(f"attention{layer}", parts, halves, again, spmm(b))
    made.fuse(f"attention_epilogue{layer}", (*parts, end), halves, again, spmm(b), in_epilogue(b))
    return end
