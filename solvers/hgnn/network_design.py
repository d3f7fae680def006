"""What solving, training and checkpoints have to know of a network that fills in a list rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .answers import Answers
from .seen_arrays import SeenArrays

if TYPE_CHECKING:
    from torch import nn

Weights = Mapping[str, NDArray[np.float32]]


class AnsweringNetwork(Protocol):
    """Anything that gives the numbers of the list rule for what is seen."""

    def answers(self, seen: SeenArrays) -> Answers: ...


@dataclass(frozen=True)
class NetworkDesign:
    """A kind of network with its settings; derived classes define the four methods."""

    solver: ClassVar[str]
    # The word in the header of its checkpoints.
    file_format: ClassVar[str]
    settings_type: ClassVar[type]
    # What the weights of its first layers belong to; a file of other columns is refused.
    columns: ClassVar[Mapping[str, tuple[str, ...]]]
    # The fields of ``Answers`` that it gives, and those of ``StreamReadouts`` that are trained.
    answered: ClassVar[tuple[str, ...]]
    streamed: ClassVar[tuple[str, ...]]

    settings: Any

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight."""
        raise NotImplementedError

    def module(self) -> nn.Module:
        """Return a torch module with new weights, whose answers are ``AnswerTensors``."""
        raise NotImplementedError

    def tensors(self, seen: SeenArrays) -> Any:
        """Return the input of the module."""
        raise NotImplementedError

    def forward_pass(self, weights: Weights) -> AnsweringNetwork:
        """Return the network in numpy."""
        raise NotImplementedError
