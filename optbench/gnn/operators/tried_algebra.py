"""Laws that parts of a model obey, tried on random values of a small graph in double precision.

    linear      f(2 X + Y) = 2 f(X) + f(Y)
    aggregates  linear, and f(X M) = f(X) M for every square matrix M: f(X) is A X for an A that
                does not depend on X, so that f and a product with weights can change places
    adds        f(X, Y) = X + Y

Random values obey a law that does not hold with probability 0. Parts that draw random numbers obey
none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node, map_arg

from optbench.gnn.operators.measured_nodes import MeasuredStep, function_of, is_random
from optbench.shapes.gnn_training.operator_costs import FEATURES

RELATIVE, ABSOLUTE = 1e-6, 1e-7


class TriedAlgebra:
    """Tries laws of operators, which are given by their indices, on the values of a step."""

    def __init__(self, step: MeasuredStep, nodes: tuple[Node, ...]) -> None:
        self._step, self._nodes = step, nodes
        self._features = next(node for node, state in step.input_states() if state == "features")

    def is_linear(self, index: int) -> bool:
        """Whether an operator is linear in the only input that changes in training."""
        node = self._nodes[index]
        given = self._step.inputs_before(node)
        varying = [each for each, (_, state) in given.items() if state != "constant"]
        return len(varying) == 1 and self._obeys(varying[0], node, multiplied=False)

    def aggregates(self, first: int, last: int) -> bool:
        """Whether the part from the result of one operator to that of another is A X."""
        start = self._features if first == FEATURES else self._nodes[first]
        return self._obeys(start, self._nodes[last], multiplied=True)

    def adds(self, index: int) -> bool:
        """Whether an operator is the sum of its two inputs."""
        node = self._nodes[index]
        given = self._step.inputs_before(node)
        both = [each for each, (_, state) in given.items() if state != "constant"]
        if len(both) != 2 or is_random(node):
            return False
        one, two = (self._random(each, number) for number, each in enumerate(both))
        if one is None or two is None:
            return False
        total = self._result({both[0]: one, both[1]: two}, node)
        return _equal(total, one + two)

    def _obeys(self, start: Node, end: Node, multiplied: bool) -> bool:
        one, two = self._random(start, 1), self._random(start, 2)
        if one is None or two is None:
            return False
        results = [self._result({start: each}, end) for each in (one, two, 2 * one + two)]
        if any(each is None for each in results):
            return False
        linear = _equal(results[2], 2 * results[0] + results[1])
        if not linear or not multiplied:
            return linear
        width = one.shape[-1]
        matrix = torch.randn(width, width, generator=_generator(3), dtype=torch.float64)
        same = results[0].shape[-1] == width
        return same and _equal(self._result({start: one @ matrix}, end), results[0] @ matrix)

    def _random(self, node: Node, seed: int) -> torch.Tensor | None:
        """Random values in the shape of a node's, or None where it holds no floats."""
        held = self._step.value_of(node)
        if not isinstance(held, torch.Tensor) or not held.is_floating_point() or not held.ndim:
            return None
        return torch.randn(held.shape, generator=_generator(seed), dtype=torch.float64)

    def _result(self, given: dict[Node, torch.Tensor], end: Node) -> Any:
        """The value of a node where others have these; None where it is random or no tensor."""
        changed: dict[Node, Any] = dict(given)
        for node in self._step.nodes:
            if node in given or not changed.keys() & self._step.inputs_before(node).keys():
                continue
            if is_random(node):
                return None
            changed[node] = self._applied(node, changed)
            for each in self._step.overwritten(node):
                changed[each] = changed[node]
            if node is end:
                break
        found = changed.get(end)
        return found if isinstance(found, torch.Tensor) else None

    def _applied(self, node: Node, changed: dict[Node, Any]) -> Any:
        """The result of a node, in double precision, where other nodes have changed values."""
        before = self._step.inputs_before(node)

        def placed(each: Node) -> Any:
            held = before[each][0] if each in before else self._step.value_of(each)
            held = changed.get(each, held)
            if not isinstance(held, torch.Tensor):
                return held
            held = held.detach().clone()
            return held.double() if held.is_floating_point() else held

        args, kwargs = map_arg(node.args, placed), map_arg(node.kwargs, placed)
        return function_of(node)(*args, **kwargs)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or one.shape != other.shape:
        return False
    return torch.allclose(one, other.to(one.dtype), rtol=RELATIVE, atol=ABSOLUTE)
