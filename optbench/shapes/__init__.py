"""Shapes of one's own: data, a Pyomo model, ``encode``, ``decode`` and ``verify``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optbench.shapes.protocol.process import ActionError, Process
    from optbench.shapes.protocol.shape import Metric
    from optbench.shapes.pyomo_models.pyomo_shape import Findings, PyomoShape

__all__ = ["ActionError", "Findings", "Metric", "Process", "PyomoShape"]

# Imported when they are asked for: a schedule needs none of them.
PLACES = {
    "ActionError": "optbench.shapes.protocol.process",
    "Findings": "optbench.shapes.pyomo_models.pyomo_shape",
    "Metric": "optbench.shapes.protocol.shape",
    "Process": "optbench.shapes.protocol.process",
    "PyomoShape": "optbench.shapes.pyomo_models.pyomo_shape",
}


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(PLACES[name]), name)
