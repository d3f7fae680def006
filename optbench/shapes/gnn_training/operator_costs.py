"""The operator graph of a model: what each operator costs in a training step, and its fusions.

Costs are those of the forward and the backward pass together, per node of the graph and per
*arc*, an edge in one direction. On a device of rate F (flop/s, at clock c) and bandwidth B (byte/s)
an operator over n nodes and a arcs takes (roofline)

    max( (flop_per_node n + flop_per_arc a) / (c F),  (bytes_per_node n + bytes_per_arc a) / B )
    + launches × launch_s

An operator with ``row_bytes`` > 0 needs rows of nodes on other devices: each of ``exchanges``
messages (one per pass) together carry that many bytes per row.

A *fusion* replaces a set of operators by one of other costs: a real fusion, or a reordering such as
A(XW) for (AX)W. Its set must be convex: no path of the graph leaves it and comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from graphlib import CycleError, TopologicalSorter

from optbench.errors import ModelError

# An input that is no operator: the features of the nodes.
FEATURES = -1


@dataclass(frozen=True)
class OperatorCost:
    """The costs of one operator in one training step; all are at least 0."""

    flop_per_node: float = 0.0
    flop_per_arc: float = 0.0
    bytes_per_node: float = 0.0
    bytes_per_arc: float = 0.0
    kept_bytes_per_node: float = 0.0
    kept_bytes_per_arc: float = 0.0
    row_bytes: float = 0.0
    exchanges: int = 0
    launches: int = 2

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not value >= 0:
                raise ModelError(f"{each.name} is {value}; it must be at least 0")


@dataclass(frozen=True)
class Operator:
    """One operator; ``inputs`` are indices of earlier operators, or -1 for the features."""

    name: str
    kind: str
    inputs: tuple[int, ...]
    cost: OperatorCost


@dataclass(frozen=True)
class Fusion:
    """Operators that one kernel, or another order, can replace."""

    name: str
    replaces: tuple[int, ...]
    cost: OperatorCost


def check_operators(operators: Sequence[Operator]) -> None:
    """Refuse inputs that do not come before."""
    for k, each in enumerate(operators):
        for i in each.inputs:
            if not FEATURES <= i < k:
                raise ModelError(
                    f"operator {each.name!r} ({k}) has input {i}; inputs are operators before it, "
                    "or -1 for the features"
                )


def check_fusions(operators: Sequence[Operator], fusions: Sequence[Fusion]) -> None:
    """Refuse fusions of operators that do not exist, and sets that are not convex."""
    for fusion in fusions:
        members = fusion.replaces
        wrong = [i for i in members if not 0 <= i < len(operators)]
        if wrong or not members or len(set(members)) < len(members):
            raise ModelError(
                f"fusion {fusion.name!r} replaces {list(members)}; it must name different "
                f"operators from 0 to {len(operators) - 1}"
            )
        if has_cycle(operators, [members]):
            raise ModelError(
                f"fusion {fusion.name!r}: a path of the operator graph leaves it and comes back; "
                "include the operators between"
            )


def has_cycle(operators: Sequence[Operator], groups: Iterable[Iterable[int]]) -> bool:
    """Whether operators that are merged by groups wait for each other in a circle."""
    group = list(range(len(operators)))
    for members in groups:
        members = list(members)
        for i in members:
            group[i] = members[0]
    waits: dict[int, set[int]] = {g: set() for g in group}
    for k, each in enumerate(operators):
        waits[group[k]] |= {group[i] for i in each.inputs if i >= 0 and group[i] != group[k]}
    try:
        tuple(TopologicalSorter(waits).static_order())
    except CycleError:
        return True
    return False


def costs_of_plan(
    operators: Sequence[Operator], fusions: Sequence[Fusion], chosen: Iterable[int]
) -> list[OperatorCost]:
    """Return the costs that are left: chosen fusions, and operators that none of them replaces."""
    plan = [fusions[k] for k in chosen]
    gone = {i for each in plan for i in each.replaces}
    alone = [each.cost for k, each in enumerate(operators) if k not in gone]
    return [*alone, *(each.cost for each in plan)]
