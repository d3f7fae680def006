"""The cost of one kernel in place of several operators.

Only what enters or leaves the kernel is moved. Forward, that is

    Σ rows that it gathers from the other ends of arcs, per arc
    + Σ other values that it takes from outside + Σ results that are used outside
    + Σ constants (indices, coefficients) that it reads, each once

and backward the same for the gradients, where there are any, with the values that it kept. A kernel
that keeps no value per arc computes those again: its forward operations and bytes count once more.
Products read and write as they do alone, without what stays inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from optbench.gnn.operators.operator_graph import Growth, OperatorGraph, TracedOperator
from optbench.shapes.gnn_training.operator_costs import FEATURES, OperatorCost


def fused_cost(
    graph: OperatorGraph, members: Collection[int], factor: float = 1.0, keeps_arcs: bool = True
) -> OperatorCost:
    """Return the cost of one kernel for these operators, on rows that are wider by a factor."""
    parts = [graph.traced[k] for k in sorted(members)]
    flop, kept = _sum(each.flop for each in parts), _sum(each.kept for each in parts)
    again = not keeps_arcs and kept.arc > 0
    if again:
        flop = flop + _sum(each.forward_flop for each in parts)
    if not keeps_arcs:
        kept = Growth(kept.node, 0.0)
    flop, kept = flop.times(factor), kept.times(factor)
    if any(each.kind == "dense" for each in parts):
        moved = _moved_by_products(graph, members)
    else:
        moved = _moved(graph, members, factor, again) + _read_again(parts, kept)
    return OperatorCost(
        *(flop.node, flop.arc, moved.node, moved.arc, kept.node, kept.arc),
        row_bytes=factor * sum(each.operator.cost.row_bytes for each in parts),
        exchanges=max(each.operator.cost.exchanges for each in parts),
        launches=_launches(parts, again),
    )


def added_costs(*costs: OperatorCost) -> OperatorCost:
    """The cost of kernels that run one after the other."""
    names = OperatorCost.__dataclass_fields__
    return OperatorCost(**{name: sum(getattr(each, name) for each in costs) for name in names})


def without_rows(cost: OperatorCost) -> OperatorCost:
    """The same cost where no rows of other devices are needed."""
    return replace(cost, row_bytes=0.0, exchanges=0)


def _moved(graph: OperatorGraph, members: Collection[int], factor: float, again: bool) -> Growth:
    """Bytes that enter and leave a kernel without products."""
    parts = [graph.traced[k] for k in members]
    constants = {name: size for each in parts for name, size in each.constants.items()}
    fixed, values = _sum(constants.values()), Growth()
    outside: set[int] = set()
    for k in members:
        each = graph.traced[k]
        if each.is_remote:
            values = values + each.output
        else:
            outside |= {i for i in each.inputs if i not in members}
        if any(use not in members for use in graph.consumers(k)):
            values = values + each.output
    for i in outside:
        features = Growth(graph.feature_bytes)
        values = values + (features if i == FEATURES else graph.traced[i].output)
    passes = 1 + any(each.has_gradient for each in parts) + again
    return (values.times(factor) + fixed).times(float(passes))


def _read_again(parts: list[TracedOperator], kept: Growth) -> Growth:
    """What was kept is read backward."""
    return kept if any(each.has_gradient for each in parts) else Growth()


def _moved_by_products(graph: OperatorGraph, members: Collection[int]) -> Growth:
    """Bytes of the operators without the results, and their gradients, that stay inside."""
    moved = _sum(graph.traced[k].moved for k in members)
    for k in members:
        uses = graph.consumers(k)
        inside = sum(use in members for use in uses)
        passes = 2 if graph.traced[k].has_gradient else 1
        hidden = inside + (0 < inside == len(uses))
        moved = moved + graph.traced[k].output.times(-float(passes * hidden))
    return moved.positive()


def _launches(parts: list[TracedOperator], again: bool) -> int:
    """Products are launched as they are; all else is one kernel in each pass."""
    products = [each.operator.cost.launches for each in parts if each.kind == "dense"]
    return max(products, default=1 + any(each.has_gradient for each in parts) + again)


def _sum(values: Iterable[Growth]) -> Growth:
    total = Growth()
    for each in values:
        total = total + each
    return total
