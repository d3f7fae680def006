"""A model's code as a graph of PyTorch's operators: torch.export with dynamic numbers of nodes and
edges, and the loss of node classification behind it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from optbench.errors import ModelError

# Exceptions of code that cannot run or cannot be exported.
CODE_ERRORS = (
    *(RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError),
    *(ArithmeticError, ImportError),
)

# The name of the user's module within the exported one.
MODEL = "model"


@dataclass(frozen=True)
class GraphSize:
    """Nodes and arcs of a graph."""

    nodes: int
    arcs: int


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """The exported graph, whose inputs are features, arcs (2, e) and labels."""

    program: ExportedProgram
    num_features: int
    num_classes: int
    parameter_bytes: float

    def inputs(self, size: GraphSize) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return inputs_of(size, self.num_features, self.num_classes)


class _WithLoss(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.model(x, edge_index), label)


def inputs_of(
    size: GraphSize, num_features: int, num_classes: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random features, different arcs without self-loops, and labels; always the same ones."""
    made = torch.Generator().manual_seed(size.nodes * 1000 + size.arcs)
    x = torch.randn(size.nodes, num_features, generator=made)
    pair = torch.randperm(size.nodes * (size.nodes - 1), generator=made)[: size.arcs]
    source, skip = pair // (size.nodes - 1), pair % (size.nodes - 1)
    arcs = torch.stack([source, skip + (skip >= source)])
    return x, arcs, torch.randint(0, num_classes, (size.nodes,), generator=made)


def exported(model: Any, num_features: int, name: str = "model") -> ExportedModel:
    """Export a module whose ``forward(x, edge_index)`` returns a row of scores for each node."""
    if not isinstance(model, torch.nn.Module):
        raise ModelError(f"{name} is a {type(model).__name__}; it must be a torch.nn.Module")
    # What layers remember of a graph that they have seen must not become a constant.
    size, tried, model = GraphSize(12, 40), deepcopy(model).train(), deepcopy(model).train()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classes = _classes(tried, inputs_of(size, num_features, 2), name)
        nodes, arcs = Dim("nodes", min=2), Dim("arcs", min=2)
        shapes = ({0: nodes}, {1: arcs}, {0: nodes})
        given = inputs_of(size, num_features, classes)
        with failing(name, "torch.export cannot follow its code"), _quiet():
            program = torch.export.export(
                _WithLoss(model), given, dynamic_shapes=shapes, strict=False
            )
    trained = [each for each in model.parameters() if each.requires_grad]
    held = float(sum(each.numel() * each.element_size() for each in trained))
    return ExportedModel(program, num_features, classes, held)


def _classes(model: torch.nn.Module, given: tuple[torch.Tensor, ...], name: str) -> int:
    """The width of the scores."""
    with failing(name, f"forward(x, edge_index) fails for x of shape {tuple(given[0].shape)}"):
        scores = model(*given[:2])
    fits = isinstance(scores, torch.Tensor) and scores.ndim == 2 and scores.is_floating_point()
    if not fits or len(scores) != len(given[0]):
        shape = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise ModelError(
            f"{name}: forward(x, edge_index) returns {shape} for {len(given[0])} nodes; it must "
            "return a row of scores for each node"
        )
    return int(scores.shape[1])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what the exporter logs on its way to an exception, which is shown."""
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def failing(name: str, what: str) -> Iterator[None]:
    """Turn exceptions of the model's code into an error that names the model."""
    try:
        yield
    except CODE_ERRORS as error:
        first = (str(error).strip() or "no message").splitlines()[0]
        raise ModelError(f"{name}: {what}: {type(error).__name__}: {first[:300]}") from error
