"""A solver that starts every task at time 0, whatever that breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import optbench as ob


@dataclass
class BreaksOrder(ob.Solver):
    """A solver that starts every task at time 0, whatever that breaks."""

    supports: ClassVar[frozenset[str]] = frozenset({"precedence"})

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        first = instance.modes.kind_ptr[instance.tasks.kind]
        return ob.Schedule.of(instance, first, np.zeros(instance.num_tasks, dtype=np.int64))
