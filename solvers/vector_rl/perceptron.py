"""The perceptron as a torch module, for training."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..hgnn.answers import FACTORS, TASK_ANSWERS, WHOLE_ANSWERS
from ..hgnn.encoder import AnswerTensors
from ..hgnn.seen_arrays import SeenArrays
from .feature_vector import feature_vector, vector_length

# Deviation of the first weights of the last layer, so that training begins near no network.
FIRST_SPREAD = 0.01


class VectorTensors(NamedTuple):
    """The vector, the row of each class, and how many tasks and sets need answers."""

    values: Tensor
    row: Tensor
    tasks: int
    sets: int


def vector_tensors(seen: SeenArrays, slots: int) -> VectorTensors:
    """Return the input of a perceptron with so many rows for classes."""
    made = feature_vector(seen, slots)
    values, row = torch.from_numpy(made.values), torch.from_numpy(made.row)
    return VectorTensors(values, row, len(seen.task), len(seen.sets))


class Perceptron(nn.Module):
    """vector → relu → relu → numbers for the whole, and a price per row of the table."""

    def __init__(self, hidden: int, slots: int) -> None:
        super().__init__()
        inputs, outputs = vector_length(slots), WHOLE_ANSWERS + slots
        self.layers = nn.ModuleList(
            nn.Linear(a, b) for a, b in ((inputs, hidden), (hidden, hidden), (hidden, outputs))
        )
        for name, value in self.layers[-1].named_parameters():
            if name == "bias":
                nn.init.zeros_(value)
            else:
                nn.init.normal_(value, std=FIRST_SPREAD)

    def forward(self, seen: VectorTensors) -> AnswerTensors:
        x = seen.values
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        out = self.layers[-1](x)
        prices = torch.cat((out[WHOLE_ANSWERS:], torch.zeros(1)))
        task, factors = torch.zeros(seen.tasks, TASK_ANSWERS), torch.zeros(seen.tasks, FACTORS)
        sets = torch.zeros(seen.sets, FACTORS)
        return AnswerTensors(out[:WHOLE_ANSWERS], prices[seen.row], task, factors, sets)
