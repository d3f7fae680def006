"""Legal fusions and reorderings of an operator graph, by the dependencies between its operators.

    spmm, attention   operators that values per arc connect, with all that lies on paths between
                      them: one kernel that writes nothing per arc. It is an ``spmm`` where it is
                      A X for the one value X that it takes from outside; else ``attention`` where
                      it sums several times, and ``aggregate`` where it does once
    ..._epilogue      the same with the operations on single values that follow it alone
    chain             operations on single values that follow each other
    one_product       the sum of two products: rows and weights side by side, X₁W₁ + X₂W₂
    aggregated_first  (A X) W for A (X W), where A is linear and W has no offset
    aggregated_last   A (X W) for (A X) W
    aggregated_before A X once before the training, where X are the features

That a part of the graph is X ↦ A X, or linear, is tried on values (``TriedAlgebra``), and a
reordering is legal only where nothing else uses what it leaves out. A set whose merging would make
operators wait for each other in a circle is no candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optbench.gnn.operators.fused_costs import added_costs, fused_cost, without_rows
from optbench.gnn.operators.operator_graph import OperatorGraph
from optbench.shapes.gnn_training.operator_costs import (
    FEATURES,
    Fusion,
    OperatorCost,
    has_cycle,
)

POINTWISE = ("pointwise", "scale")


@dataclass(frozen=True)
class Region:
    """Operators around values per arc: what they take from outside, and what leaves them."""

    members: frozenset[int]
    inputs: frozenset[int]
    outputs: tuple[int, ...]
    kind: str


def fusion_candidates(graph: OperatorGraph) -> tuple[Fusion, ...]:
    """Return all candidates, each set of operators under each cost once."""
    found: dict[tuple[frozenset[int], OperatorCost], str] = {}
    taken: set[str] = set()
    for name, members, cost in _all(graph):
        key = (frozenset(members), cost)
        if key not in found and not has_cycle(graph.operators, [sorted(members)]):
            found[key] = name if name not in taken else f"{name}_{len(found)}"
            taken.add(found[key])
    return tuple(Fusion(name, tuple(sorted(key[0])), key[1]) for key, name in found.items())


def _all(graph: OperatorGraph) -> Iterator[tuple[str, set[int], OperatorCost]]:
    for number, region in enumerate(arc_regions(graph), start=1):
        members = set(region.members)
        cost = fused_cost(graph, members, keeps_arcs=False)
        yield f"{region.kind}{number}", members, cost
        if len(region.outputs) == 1:
            tail = _followers(graph, region.outputs[0])
            if tail:
                whole = members | set(tail)
                cost = fused_cost(graph, whole, keeps_arcs=False)
                yield f"{region.kind}_epilogue{number}", whole, cost
            if region.kind == "spmm":
                yield from _reordered(graph, region, number)
    yield from _chains(graph)
    yield from _one_products(graph)


def arc_regions(graph: OperatorGraph) -> list[Region]:
    """The regions that values per arc connect, in the order of their first operators."""
    group = list(range(len(graph.traced)))

    def root(k: int) -> int:
        while group[k] != k:
            k = group[k]
        return k

    for k, each in enumerate(graph.traced):
        for i in each.inputs:
            if i != FEATURES and graph.traced[i].output.arc > 0:
                group[max(root(k), root(i))] = min(root(k), root(i))
    sets: dict[int, set[int]] = {}
    for k in range(len(group)):
        sets.setdefault(root(k), set()).add(k)
    kinds = {k: each.kind for k, each in enumerate(graph.traced)}
    found = []
    for members in sets.values():
        closed = _convex(graph, members)
        if {"gather", "scatter"} <= {kinds[k] for k in closed} and len(closed) > 1:
            found.append(_region(graph, frozenset(closed)))
    return found


def _region(graph: OperatorGraph, members: frozenset[int]) -> Region:
    inputs = frozenset(i for k in members for i in graph.traced[k].inputs if i not in members)
    outputs = tuple(k for k in sorted(members) if any(c not in members for c in graph.consumers(k)))
    kind = "aggregate"
    if sum(graph.traced[k].kind == "scatter" for k in members) > 1:
        kind = "attention"
    elif len(inputs) == len(outputs) == 1:
        (first,), (last,) = inputs, outputs
        kind = "spmm" if graph.algebra.aggregates(first, last) else kind
    return Region(members, inputs, outputs, kind)


def _convex(graph: OperatorGraph, members: set[int]) -> set[int]:
    """The operators and all on paths between them."""
    below = set(members)
    for k, each in enumerate(graph.traced):
        if below.intersection(each.inputs):
            below.add(k)
    above = set(members)
    for k in reversed(range(len(graph.traced))):
        if above.intersection(graph.consumers(k)):
            above.add(k)
    return below & above


def _followers(graph: OperatorGraph, last: int) -> list[int]:
    """Operations on single values that alone use the result before them, one after the other."""
    tail: list[int] = []
    while True:
        uses = graph.consumers(last)
        if len(uses) != 1 or graph.traced[uses[0]].kind not in POINTWISE:
            return tail
        last = uses[0]
        tail.append(last)


def _chains(graph: OperatorGraph) -> Iterator[tuple[str, set[int], OperatorCost]]:
    """Maximal chains; their first operator follows no chain that has it already."""
    within: set[int] = set()
    for k, each in enumerate(graph.traced):
        if each.kind in POINTWISE and k not in within:
            chain = {k, *_followers(graph, k)}
            within |= chain
            if len(chain) > 1:
                yield f"chain_{each.operator.name}", chain, fused_cost(graph, chain)


def _one_products(graph: OperatorGraph) -> Iterator[tuple[str, set[int], OperatorCost]]:
    """Two products whose only use is their sum."""
    for k, each in enumerate(graph.traced):
        products = [i for i in each.inputs if i != FEATURES and graph.traced[i].kind == "dense"]
        alone = all(graph.consumers(i) == [k] for i in products)
        pair = len(each.inputs) == len(products) == 2
        if pair and alone and graph.algebra.adds(k):
            members = {k, *products}
            yield f"one_product_{each.operator.name}", members, fused_cost(graph, members)


def _reordered(
    graph: OperatorGraph, region: Region, number: int
) -> Iterator[tuple[str, set[int], OperatorCost]]:
    """The other order of a linear aggregation and the product before or after it."""
    (source,) = region.inputs
    members = set(region.members)
    if source != FEATURES and graph.traced[source].kind == "dense":
        yield from _product_before(graph, members, source, number)
    chain = [region.outputs[0]]
    while graph.consumers(chain[-1]) and len(graph.consumers(chain[-1])) == 1:
        (following,) = graph.consumers(chain[-1])
        alike = graph.traced[following].kind == "pointwise"
        if not alike or not graph.algebra.aggregates(source, following):
            break
        chain.append(following)
    members |= set(chain)
    if not graph.traced[chain[-1]].changes:
        # Features that are aggregated once: nothing of this is left in a step.
        yield f"aggregated_before{number}", members, OperatorCost(launches=0)
    uses = graph.consumers(chain[-1])
    if len(uses) == 1 and graph.traced[uses[0]].kind == "dense":
        (product,) = uses
        inputs, wide = graph.row_width(chain[-1]), graph.row_width(product)
        if graph.traced[product].inputs == (chain[-1],):
            after = fused_cost(graph, members, wide / inputs, keeps_arcs=False)
            if not graph.traced[chain[-1]].has_gradient:
                after = added_costs(after, after)  # X W has a gradient, where X has none
            cost = added_costs(fused_cost(graph, {product}), after)
            yield f"aggregated_last{number}", members | {product}, cost


def _product_before(
    graph: OperatorGraph, members: set[int], product: int, number: int
) -> Iterator[tuple[str, set[int], OperatorCost]]:
    """A (X W) as (A X) W: with the aggregation of X before the training if X are the features."""
    each = graph.traced[product]
    alone = all(use in members for use in graph.consumers(product))
    if not alone or len(each.inputs) != 1 or not graph.algebra.is_linear(product):
        return
    before, after = each.inputs[0], graph.row_width(product)
    own = fused_cost(graph, {product})
    whole = members | {product}
    if before == FEATURES or not graph.traced[before].changes:
        yield f"aggregated_before{number}", whole, without_rows(own)
    else:
        wider = fused_cost(graph, members, graph.row_width(before) / after, keeps_arcs=False)
        # The product keeps A X, which is no longer what an operator before it keeps.
        own = replace(
            own, kept_bytes_per_node=max(own.kept_bytes_per_node, graph.row_width(before))
        )
        yield f"aggregated_first{number}", whole, added_costs(wider, own)
