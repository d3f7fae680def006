"""The decision of a GNN training instance: part of every node, device and clock of every part,
fusions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.protocol.plain_data import LEFT_OUT_BY_DEFAULT


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _as_int64(given: Any) -> Any:
    """An array of integers, or without entries, as int64; all else as it is."""
    if not isinstance(given, np.ndarray) or given.ndim != 1:
        return given
    if not given.size:
        return _none()
    is_whole = np.issubdtype(given.dtype, np.integer)
    if not is_whole or given.max() > np.iinfo(np.int64).max:
        return given
    return np.asarray(given, dtype=np.int64)


@dataclass(frozen=True)
class TrainingPlan:
    """Indices: ``part`` of each node, ``device`` and ``clock`` (of its device) of each part,
    ``fusions`` that are chosen.

    What a solver leaves empty is the identity: part p on device p modulo the number of devices, at
    its top clock, and no fusion. Without ``overlap`` devices exchange rows first and compute then.

    Arrays of other integers are cast to int64, in which products of indices do not wrap; what is no
    array of integers is kept as it is, for the verifier to refuse.
    """

    part: Ints
    device: Ints = field(default_factory=_none)
    clock: Ints = field(default_factory=_none)
    fusions: Ints = field(default_factory=_none)
    overlap: bool = field(default=True, metadata=LEFT_OUT_BY_DEFAULT)

    def __post_init__(self) -> None:
        for name in ("part", "device", "clock", "fusions"):
            object.__setattr__(self, name, _as_int64(getattr(self, name)))

    def device_of(self, data: GnnTraining) -> Ints:
        """The device of every part."""
        if len(self.device):
            return self.device
        return np.arange(data.num_parts, dtype=np.int64) % data.num_devices

    def clock_of(self, data: GnnTraining) -> Ints:
        """The clock of every part, as an index of its device's clocks."""
        if len(self.clock):
            return self.clock
        top = np.array([len(each.clocks) - 1 for each in data.devices], dtype=np.int64)
        return top[self.device_of(data)]
