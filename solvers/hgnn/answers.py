"""The answers of the network as arrays, and those of no network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats

# Numbers of answers: for the whole, per task; width of the factors of costs of (task, set).
WHOLE_ANSWERS, TASK_ANSWERS, FACTORS = 8, 3, 6


@dataclass(frozen=True, eq=False)
class Answers:
    """Numbers for the whole, per class of devices, per task, and the factors of the costs of tasks
    in sets; ``milestone_rule`` says what they mean.
    """

    whole: Floats
    device: Floats
    task: Floats
    task_factor: Floats
    set_factor: Floats


def plain_answers(tasks: int, classes: int, sets: int) -> Answers:
    """Return the answers of no network: every task half way between its earliest and its latest
    end, every device at the mean price of one.
    """
    return Answers(
        np.zeros(WHOLE_ANSWERS),
        np.zeros(classes),
        np.zeros((tasks, TASK_ANSWERS)),
        np.zeros((tasks, FACTORS)),
        np.zeros((sets, FACTORS)),
    )
