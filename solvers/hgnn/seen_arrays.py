"""The tables of features that the network reads, as arrays of single precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optbench.model.instance import Bools, Ints

Float32 = NDArray[np.float32]

TASK_COLUMNS = (
    "head", "tail", "slack", "length", "load", "dearness", "in_degree", "out_degree",
    "work_before", "work_behind", "has_deadline", "deadline_slack", "has_later_deadline",
    "later_deadline_slack", "weight", "clock_stretch", "energy_spread", "sends", "choices",
)  # fmt: skip
CLASS_COLUMNS = (
    "share", "log_count", "rest", "demand_at_0.5", "demand_at_1", "demand_at_2", "demand_at_4",
    "slowness", "dearness", "fits", "free", "backlog", "heat",
)  # fmt: skip
PAIR_COLUMNS = ("slowness", "net", "cost", "clock_stretch")
LINK_COLUMNS = ("latency", "slowness")
SET_COLUMNS = ("clock", "slowness", "energy", "devices")
WHOLE_COLUMNS = (
    "path_share", "work_share", "log_devices", "log_tasks", "tasks_per_device", "time_value",
    "lateness_value", "dated", "date_slack", "transfers", "classes", "arrives",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SeenArrays:
    """One row per task, class, (task, class), (class, class), set, and one for the whole, with the
    columns above.

    ``fits`` says which classes a task may use, ``near`` how strong the links between classes are,
    ``member`` which share of each class stands in each group of alike nodes. ``importance`` is
    between 0 and 1 and serves only sampling.
    """

    task: Float32
    device: Float32
    pair: Float32
    whole: Float32
    sets: Float32
    link: Float32
    near: Float32
    member: Float32
    fits: Bools
    set_class: Ints
    source: Ints
    target: Ints
    importance: Float32
