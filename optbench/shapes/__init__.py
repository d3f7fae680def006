"""Shapes of one's own: data, ``verify``, and a Pyomo model with ``encode`` and ``decode``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optbench.shapes.protocol.data_shape import DataShape as DataShape
    from optbench.shapes.protocol.data_shape import Findings as Findings
    from optbench.shapes.protocol.measurements import Measurements as Measurements
    from optbench.shapes.protocol.measurements import MeasuringMachine as MeasuringMachine
    from optbench.shapes.protocol.process import ActionError as ActionError
    from optbench.shapes.protocol.process import Process as Process
    from optbench.shapes.protocol.shape import Metric as Metric
    from optbench.shapes.pyomo_models.pyomo_shape import PyomoShape as PyomoShape

# Imported when they are asked for: a schedule needs none of them.
_HOME = {
    "ActionError": "optbench.shapes.protocol.process",
    "DataShape": "optbench.shapes.protocol.data_shape",
    "Findings": "optbench.shapes.protocol.data_shape",
    "MeasuringMachine": "optbench.shapes.protocol.measurements",
    "Measurements": "optbench.shapes.protocol.measurements",
    "Metric": "optbench.shapes.protocol.shape",
    "Process": "optbench.shapes.protocol.process",
    "PyomoShape": "optbench.shapes.pyomo_models.pyomo_shape",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
