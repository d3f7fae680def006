"""Shapes of one's own: data, a Pyomo model, ``encode``, ``decode`` and ``verify``."""

from optbench.shapes.protocol.shape import Metric
from optbench.shapes.pyomo_models.pyomo_shape import Findings, PyomoShape

__all__ = ["Findings", "Metric", "PyomoShape"]
