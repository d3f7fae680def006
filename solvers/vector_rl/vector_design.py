"""The perceptron on a vector of fixed length, as solving, training and checkpoints see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..hgnn.answers import WHOLE_ANSWERS, Answers, plain_answers
from ..hgnn.learning_settings import ListRuleTraining
from ..hgnn.network_design import NetworkDesign, Weights
from ..hgnn.seen_arrays import CLASS_COLUMNS, TASK_COLUMNS, WHOLE_COLUMNS, SeenArrays
from .feature_vector import feature_vector, vector_length

if TYPE_CHECKING:
    from torch import nn

LAYERS = 3


@dataclass(frozen=True)
class VectorSettings:
    """Width of the two hidden layers, and rows for classes of devices."""

    hidden: int = 128
    slots: int = 16


@dataclass(frozen=True, eq=False)
class VectorPass:
    """The perceptron in numpy; tasks and sets have the answers of no network."""

    weights: Weights
    settings: VectorSettings

    def answers(self, seen: SeenArrays) -> Answers:
        """Return the answers of the perceptron."""
        made = feature_vector(seen, self.settings.slots)
        x = made.values
        for k in range(LAYERS):
            x = self.weights[f"layers.{k}.weight"] @ x + self.weights[f"layers.{k}.bias"]
            x = np.maximum(x, 0.0) if k < LAYERS - 1 else x
        out = np.append(x, 0.0).astype(float)
        plain = plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        whole, prices = out[:WHOLE_ANSWERS], out[WHOLE_ANSWERS:]
        return Answers(whole, prices[made.row], plain.task, plain.task_factor, plain.set_factor)


@dataclass(frozen=True)
class VectorDesign(NetworkDesign):
    """Noise and read-outs for streams are those of the whole and of classes only."""

    solver: ClassVar[str] = "vector_rl"
    file_format: ClassVar[str] = "optbench-vector-rl-1"
    settings_type: ClassVar[type] = VectorSettings
    columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "whole": WHOLE_COLUMNS,
        "task": TASK_COLUMNS,
        "class": CLASS_COLUMNS,
    }
    answered: ClassVar[tuple[str, ...]] = ("whole", "device")
    streamed: ClassVar[tuple[str, ...]] = ("whole", "device")

    settings: VectorSettings

    def shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, slots = self.settings.hidden, self.settings.slots
        widths = (vector_length(slots), hidden, hidden, WHOLE_ANSWERS + slots)
        weights = {f"layers.{k}.weight": (widths[k + 1], widths[k]) for k in range(LAYERS)}
        return weights | {f"layers.{k}.bias": (widths[k + 1],) for k in range(LAYERS)}

    def module(self) -> nn.Module:
        from .perceptron import Perceptron

        return Perceptron(self.settings.hidden, self.settings.slots)

    def tensors(self, seen: SeenArrays) -> Any:
        from .perceptron import vector_tensors

        return vector_tensors(seen, self.settings.slots)

    def forward_pass(self, weights: Weights) -> VectorPass:
        return VectorPass(weights, self.settings)


@dataclass(frozen=True)
class VectorTraining(ListRuleTraining):
    """``cpu_minutes`` of processor time, or a fixed number of ``steps``, on ``instances`` of each
    problem, in the stages and with the budget of hgnn: ``imitate`` (with ``expert_work``) and
    ``label`` shares first, then policy gradient with ``samples`` per instance and ``batch``
    instances per step, validation every ``check_every`` steps, ``rate`` as the first learning rate.
    ``start`` is a checkpoint to go on from; with ``only_streams`` its network stays and the
    read-outs for arriving work are trained. ``hidden`` is the width of the two layers, ``slots``
    the number of classes of devices that have prices of their own.
    """

    solver: ClassVar[str] = "vector_rl"

    hidden: int = 128
    slots: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden", "slots"):
            self._require(getattr(self, name) >= 1, name, "at least 1")

    @property
    def design(self) -> NetworkDesign:
        return VectorDesign(VectorSettings(self.hidden, self.slots))
