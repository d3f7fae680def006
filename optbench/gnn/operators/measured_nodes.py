"""One training step of an exported graph, node by node: what its kernels do at one size.

Each node of the graph runs forward on the values of the nodes before it, then backward alone, by
automatic differentiation with respect to those inputs that depend on parameters. What a node keeps
for the backward pass is what automatic differentiation saves, without parameters and constants and
with the features; storages are counted where they are first saved. Sums of gradients of a value
with several uses are not counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch.export.graph_signature import InputKind
from torch.fx.node import Node, map_arg
from torch.utils._pytree import tree_flatten, tree_map

from optbench.gnn.operators.exported_model import ExportedModel, GraphSize
from optbench.gnn.operators.kernel_recorder import (
    ATEN,
    FILLS,
    KernelRecorder,
    KernelTotals,
    extent_bytes,
    storage_of,
)

# What a value depends on: nothing that changes in training, the features, or parameters (also
# random numbers).
State = Literal["constant", "features", "varying"]
RANK: dict[State, int] = {"constant": 0, "features": 1, "varying": 2}
# Operators that take of their second input the shape or the type alone.
SHAPED = {ATEN.expand_as, ATEN.view_as, ATEN.reshape_as, ATEN.type_as}
End = Literal["source", "target", "none"]


@dataclass
class MeasuredNode:
    """What one node does; ``given`` are the nodes whose values it uses."""

    node: Node
    state: State
    given: list[Node]
    forward: KernelTotals = field(default_factory=KernelTotals)
    backward: KernelTotals = field(default_factory=KernelTotals)
    kept_bytes: float = 0.0
    output_bytes: float = 0.0
    has_gradient: bool = False
    # Of a node that gathers rows of nodes: by which ends of the arcs, and the bytes of all rows.
    gathers_by: End = "none"
    scatters_by: End = "none"
    gathered_bytes: float = 0.0

    @property
    def launches(self) -> int:
        return self.forward.launches + self.backward.launches


class MeasuredStep:
    """Runs the exported graph at one size; ``nodes`` are those that compute something."""

    def __init__(self, model: ExportedModel, size: GraphSize) -> None:
        self.size = size
        self.nodes: dict[Node, MeasuredNode] = {}
        self._value: dict[Node, Any] = {}
        self._state: dict[Node, State] = {}
        # Values and states of what an in-place operator overwrites, before that.
        self._before: dict[Node, dict[Node, tuple[Any, State]]] = {}
        self._is_parameter: set[Node] = set()
        self._fixed: set[int] = set()  # storages that are not counted as kept
        self._constants: dict[int, str] = {}  # storages that never change, by name
        self._kept: list[torch.Tensor] = []
        self._kept_storages: set[int] = set()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            self._place_inputs(model)
            for node in model.program.graph.nodes:
                self._step(model, node)

    def _place_inputs(self, model: ExportedModel) -> None:
        program, given = model.program, list(model.inputs(self.size))
        self.features, self.arcs = given[0], given[1]
        by_name = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        for spec in program.graph_signature.input_specs:
            node = by_name[spec.arg.name]
            state: State = "constant"
            if spec.kind == InputKind.USER_INPUT:
                value = given.pop(0)
                state = "features" if value is self.features else "constant"
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                value = program.state_dict.get(spec.target, program.constants.get(spec.target))
            else:
                value = program.constants[spec.target]
            if spec.kind == InputKind.PARAMETER:
                self._is_parameter.add(node)
            if isinstance(value, torch.Tensor) and state == "constant":
                self._fixed.add(storage_of(value))
                if spec.kind != InputKind.PARAMETER:
                    self._constants[storage_of(value)] = node.name
            self._value[node], self._state[node] = value, state

    def _step(self, model: ExportedModel, node: Node) -> None:
        if node.op == "get_attr":
            found = operator.attrgetter(str(node.target))(model.program.graph_module)
            self._value[node], self._state[node] = found, "constant"
        if node.op != "call_function":
            return
        given = _inputs_used(node)
        state = _strongest(self._state[each] for each in given)
        if self._is_parameter.intersection(given) or is_random(node):
            state = "varying"
        made = MeasuredNode(node, state, given)
        self._state[node], self.nodes[node] = state, made
        self._run(made)

    def _run(self, made: MeasuredNode) -> None:
        """Run a node forward and backward."""
        node, leaves = made.node, list[torch.Tensor]()
        changed = _changed_inputs(node)

        def placed(each: Node) -> Any:
            value = self._value[each]
            if not isinstance(value, torch.Tensor):
                return value
            value = value.detach()
            wants = each in self._is_parameter or self._has_gradient(each)
            if wants and value.is_floating_point():
                leaves.append(value.requires_grad_(True))
                value = leaves[-1]
            return value.clone() if each in changed else value

        args, kwargs = map_arg(node.args, placed), map_arg(node.kwargs, placed)
        forward = KernelRecorder(self._constants)
        with torch.autograd.graph.saved_tensors_hooks(self._pack(made), lambda held: held), forward:
            result = function_of(node)(*args, **kwargs)
        made.forward = forward.totals
        outputs = [each for each in tree_flatten(result)[0] if isinstance(each, torch.Tensor)]
        made.output_bytes = float(sum(map(extent_bytes, outputs)))
        self._run_backward(made, [each for each in outputs if each.requires_grad], leaves)
        self._keep_result(made, result, changed)
        self._note_ends(made)

    def _run_backward(
        self, made: MeasuredNode, outputs: list[torch.Tensor], leaves: list[torch.Tensor]
    ) -> None:
        made.has_gradient = bool(outputs)
        if outputs and leaves:
            ones = [torch.ones_like(each) for each in outputs]
            with KernelRecorder(self._constants) as backward:
                torch.autograd.grad(outputs, leaves, ones, allow_unused=True)
            made.backward = backward.totals

    def _keep_result(self, made: MeasuredNode, result: Any, changed: set[Node]) -> None:
        for each in tree_flatten(result)[0]:
            if isinstance(each, torch.Tensor) and made.state == "constant":
                self._constants.setdefault(storage_of(each), made.node.name)
                self._fixed.add(storage_of(each))
        held = tree_map(lambda each: each.detach() if _is_tensor(each) else each, result)
        self._value[made.node] = held
        self._before[made.node] = {each: (self._value[each], self._state[each]) for each in changed}
        for each in changed if _is_tensor(held) else ():
            self._value[each], self._state[each] = held, made.state

    def _pack(self, made: MeasuredNode) -> Callable[[torch.Tensor], torch.Tensor]:
        def pack(tensor: torch.Tensor) -> torch.Tensor:
            where = storage_of(tensor)
            if where not in self._fixed and where not in self._kept_storages:
                self._kept_storages.add(where)
                self._kept.append(tensor)  # its memory is not given to another tensor
                made.kept_bytes += extent_bytes(tensor)
            return tensor

        return pack

    def _has_gradient(self, node: Node) -> bool:
        return node in self.nodes and self.nodes[node].has_gradient

    def _note_ends(self, made: MeasuredNode) -> None:
        """Whether rows are gathered and scattered by sources or by targets of arcs."""
        for source, index in made.forward.gathered:
            if source.is_floating_point() and index.dtype != torch.bool:
                made.gathers_by = self._end_of(index, "source")
                made.gathered_bytes = extent_bytes(source)
        for index in made.forward.scattered:
            made.scatters_by = self._end_of(index, "target")

    def _end_of(self, index: torch.Tensor, otherwise: End) -> End:
        """The end of the arcs that an index, along any of its dimensions, begins or ends with."""
        count = self.size.arcs
        ends: Iterable[End] = ("source", "target")
        for name, row in zip(ends, self.arcs, strict=True):
            for d in range(index.ndim):
                rows = index.movedim(d, -1).reshape(-1, index.shape[d])[0]
                if torch.equal(rows[:count], row) or torch.equal(rows[-count:], row):
                    return name
        return otherwise

    def input_states(self) -> list[tuple[Node, State]]:
        """The inputs of the graph, parameters among them, and whether they are the features."""
        return [(node, state) for node, state in self._state.items() if node.op == "placeholder"]

    def overwritten(self, node: Node) -> list[Node]:
        """What an in-place operator overwrites."""
        return list(self._before[node])

    def inputs_before(self, node: Node) -> dict[Node, tuple[Any, State]]:
        """Values and states of what a node uses, before it overwrites any."""
        found = {each: (self._value[each], self._state[each]) for each in _inputs_used(node)}
        return found | self._before[node]

    def value_of(self, node: Node) -> Any:
        return self._value[node]


def function_of(node: Node) -> Callable[..., Any]:
    """The function of a node."""
    assert callable(node.target)
    return node.target


def _strongest(states: Iterable[State]) -> State:
    """What a value depends on that is computed from others."""
    strongest: State = "constant"
    for each in states:
        if RANK[each] > RANK[strongest]:
            strongest = each
    return strongest


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _packet(node: Node) -> Any:
    return getattr(node.target, "overloadpacket", None)


def _inputs_used(node: Node) -> list[Node]:
    """Inputs of which a node uses the values."""
    packet = _packet(node)
    if packet in FILLS or packet is ATEN.sym_size:
        return []
    inputs = list(node.all_input_nodes)
    if packet in SHAPED:
        return [each for each in inputs if each is node.args[0]]
    return inputs


def is_random(node: Node) -> bool:
    tags = getattr(node.target, "tags", ())
    if _packet(node) is ATEN.dropout:
        return bool(node.args[2] and node.args[1] != 0)
    return any(each is torch.Tag.nondeterministic_seeded for each in tags)


def _changed_inputs(node: Node) -> set[Node]:
    """Inputs that an in-place operator overwrites."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return set()
    pairs = zip(schema.arguments, node.args, strict=False)
    return {
        value
        for argument, value in pairs
        if argument.alias_info is not None and argument.alias_info.is_write
        if isinstance(value, Node)
    }
