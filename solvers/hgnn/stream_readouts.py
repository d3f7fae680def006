"""Read-outs for work that arrives over time, added to the network's answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats

from .answers import TASK_ANSWERS, WHOLE_ANSWERS, Answers
from .seen_arrays import CLASS_COLUMNS, TASK_COLUMNS, WHOLE_COLUMNS, Float32, SeenArrays

# Shapes: a row per feature and a constant one, a column per answer.
SHAPES = {
    "whole": (len(WHOLE_COLUMNS) + 1, WHOLE_ANSWERS),
    "device": (len(CLASS_COLUMNS) + 1, 1),
    "task": (len(TASK_COLUMNS) + 1, TASK_ANSWERS),
}


@dataclass(frozen=True, eq=False)
class StreamReadouts:
    """What is added to the network's answers where work arrives over time: linear in the features
    of the whole, of classes and of tasks, the last row being constant.
    """

    whole: Float32
    device: Float32
    task: Float32

    def add(self, answers: Answers, seen: SeenArrays) -> Answers:
        def linear(rows: Float32, weights: Float32) -> Floats:
            return np.asarray(rows @ weights[:-1] + weights[-1], dtype=float)

        return Answers(
            answers.whole + linear(seen.whole, self.whole),
            answers.device + linear(seen.device, self.device)[:, 0],
            answers.task + linear(seen.task, self.task),
            answers.task_factor,
            answers.set_factor,
        )

    def flat(self) -> Floats:
        """Return all numbers in one row."""
        return np.concatenate([getattr(self, name).ravel() for name in SHAPES]).astype(float)


def readouts_from(flat: Floats) -> StreamReadouts:
    """Return read-outs of numbers in one row."""
    parts, at = {}, 0
    for name, shape in SHAPES.items():
        size = shape[0] * shape[1]
        parts[name] = flat[at : at + size].reshape(shape).astype(np.float32)
        at += size
    return StreamReadouts(**parts)


def which_readouts(names: Collection[str]) -> Floats:
    """Return 1 for the numbers in the row that are trained of these parts: all of classes, and the
    constants of the whole and of tasks; 0 for the others.
    """
    parts = []
    for name, shape in SHAPES.items():
        part = np.zeros(shape)
        part[0 if name == "device" else -1 :] = float(name in names)
        parts.append(part.ravel())
    return np.concatenate(parts)


def num_readouts() -> int:
    return sum(rows * columns for rows, columns in SHAPES.values())
