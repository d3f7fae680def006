"""The hierarchical graph network, as solving, training and checkpoints see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .answer_noise import SPREADS
from .forward_pass import ForwardPass
from .network_design import NetworkDesign, Weights
from .network_settings import NetworkSettings
from .network_shapes import network_shapes
from .seen_arrays import (
    CLASS_COLUMNS,
    PAIR_COLUMNS,
    SET_COLUMNS,
    TASK_COLUMNS,
    WHOLE_COLUMNS,
    SeenArrays,
)
from .stream_readouts import SHAPES

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class HierarchicalDesign(NetworkDesign):
    """The network of ``encoder`` and ``forward_pass``."""

    solver: ClassVar[str] = "hgnn"
    file_format: ClassVar[str] = "optbench-hgnn-1"
    settings_type: ClassVar[type] = NetworkSettings
    columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "task": TASK_COLUMNS,
        "class": CLASS_COLUMNS,
        "pair": PAIR_COLUMNS,
        "set": SET_COLUMNS,
        "whole": WHOLE_COLUMNS,
    }
    answered: ClassVar[tuple[str, ...]] = tuple(SPREADS)
    streamed: ClassVar[tuple[str, ...]] = tuple(SHAPES)

    settings: NetworkSettings

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return network_shapes(self.settings)

    def module(self) -> nn.Module:
        from .encoder import HierarchicalNetwork

        return HierarchicalNetwork(self.settings)

    def tensors(self, seen: SeenArrays) -> Any:
        from .encoder import tensors_of

        return tensors_of(seen, self.settings)

    def forward_pass(self, weights: Weights) -> ForwardPass:
        return ForwardPass(weights, self.settings)
