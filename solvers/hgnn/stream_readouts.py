"""Read-outs for work that arrives over time: what is made of the network's answers and of the state
of the stream.

With a, b_i, p_c, u_i, v_s the network's answers (``milestone_rule``), those for all that waits as
means over the last jobs, x_c the features of class c, z = (log(1 + crowd), log(1 + load)) the state
of the stream and shadow_c the shadow prices (``traffic``),

    a   becomes  g_1 a + z W
    p_c becomes  log(exp(g_2 p_c + (x_c, z) w) + g_5 shadow_c)
    b_i becomes  g_3 b_i + x_i V,        ⟨u_i, v_s⟩ becomes g_4 ⟨u_i, v_s⟩

where each row of features ends with a 1. With g_1 to g_5 = 0 this is a list rule of fixed prices;
with read-outs of 0 it is the network's rule, with the shadow prices added.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance

from .answers import TASK_ANSWERS, WHOLE_ANSWERS, Answers
from .class_tables import ClassTables
from .seen_arrays import CLASS_COLUMNS, TASK_COLUMNS, Float32
from .situation import Situation
from .traffic import ClassTraffic

STATE_COLUMNS = ("crowd", "load")
# The last two are of the shadow prices: their pace and the room that they leave.
GAINS = ("whole", "device", "task", "sets", "shadow", "pace", "room")
# Shapes: a row per feature and a constant one, a column per answer.
SHAPES = {
    "whole": (len(STATE_COLUMNS) + 1, WHOLE_ANSWERS),
    "device": (len(CLASS_COLUMNS) + len(STATE_COLUMNS) + 1, 1),
    "task": (len(TASK_COLUMNS) + 1, TASK_ANSWERS),
    "gain": (len(GAINS), 1),
}
# What read-outs of 0 mean.
PACE, ROOM, SHADOW = 0.1, 0.9, 0.5
# Answers that are relative to the cost of the makespan of the whole cluster: the late price and the
# price of time. A stream has no makespan to shorten: they become relative to that of one device.
OF_MAKESPAN = [3, 5]
# Where training begins, found by hand on a validation stream: the late price and the price of time,
# devices, gains.
FIRST_WHOLE, FIRST_DEVICE = {3: -3.0, 5: 4.7}, -1.0
FIRST_GAINS = {"whole": -1.0, "device": -0.5, "task": -0.5, "sets": -0.5}
# Logarithms of prices without shadow.
LEAST_PRICE, MOST_PRICE = -6.0, 3.0


@dataclass(frozen=True, eq=False)
class StreamReadouts:
    """The numbers above: W and w and V, and the gains, as what is added to 1 for answers of the
    network and as a logarithm of a factor for the others (of the odds, for ``room``).
    """

    whole: Float32
    device: Float32
    task: Float32
    gain: Float32

    def traffic(self, instance: Instance, tables: ClassTables) -> ClassTraffic:
        """Return the memory of a run."""
        pace, room = self._gain("pace"), self._gain("room")
        odds = ROOM / (1.0 - ROOM) * math.exp(room)
        return ClassTraffic(instance, tables, PACE * math.exp(pace), odds / (1.0 + odds))

    def read(
        self,
        job: Instance,
        found: Situation,
        answers: Answers,
        traffic: ClassTraffic,
        now: float,
        waiting: float,
    ) -> Answers:
        """Return the answers for a job that arrives, while so much device-time waits."""
        classes, answers = traffic.arrive(found, answers, now)
        state = np.log1p([traffic.crowd(waiting), traffic.load()])
        rows = np.hstack((classes, np.broadcast_to(state, (len(classes), len(state)))))
        base = (1.0 + self._gain("device")) * answers.device + linear(rows, self.device)[:, 0]
        price = np.exp(np.clip(base, LEAST_PRICE, MOST_PRICE))
        share = SHADOW * math.exp(self._gain("shadow"))
        traffic.ask(job, found, price + share * traffic.shadow)
        whole = (1.0 + self._gain("whole")) * answers.whole + linear(state, self.whole)
        whole[OF_MAKESPAN] -= math.log(max(1.0, float(found.tables.num_devices.sum())))
        return Answers(
            whole,
            np.log(price + share * traffic.shadow),
            (1.0 + self._gain("task")) * answers.task + linear(found.seen.task, self.task),
            (1.0 + self._gain("sets")) * answers.task_factor,
            answers.set_factor,
        )

    def _gain(self, name: str) -> float:
        return float(self.gain[GAINS.index(name), 0])

    def flat(self) -> Floats:
        """Return all numbers in one row."""
        return np.concatenate([getattr(self, name).ravel() for name in SHAPES]).astype(float)


def linear(rows: Floats | Float32, weights: Float32) -> Floats:
    return np.asarray(rows @ weights[:-1] + weights[-1], dtype=float)


def readouts_from(flat: Floats) -> StreamReadouts:
    """Return read-outs of numbers in one row."""
    parts, at = {}, 0
    for name, shape in SHAPES.items():
        size = shape[0] * shape[1]
        parts[name] = flat[at : at + size].reshape(shape).astype(np.float32)
        at += size
    return StreamReadouts(**parts)


def which_readouts(names: Collection[str]) -> Floats:
    """Return 1 for the numbers in the row that are trained of these parts: all, but of tasks only
    the constants; 0 for the others.
    """
    parts = []
    for name, shape in SHAPES.items():
        part = np.zeros(shape)
        part[-1 if name == "task" else 0 :] = float(name in names)
        parts.append(part.ravel())
    return np.concatenate(parts)


def first_readouts() -> Floats:
    """Return the row at which training begins: a price of time near that of a device, a low price
    of devices, and half of the network's answers.
    """
    parts = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    for answer, value in FIRST_WHOLE.items():
        parts["whole"][-1, answer] = value
    parts["device"][-1] = FIRST_DEVICE
    for name, value in FIRST_GAINS.items():
        parts["gain"][GAINS.index(name)] = value
    return np.concatenate([parts[name].ravel() for name in SHAPES])


def num_readouts() -> int:
    return sum(rows * columns for rows, columns in SHAPES.values())
