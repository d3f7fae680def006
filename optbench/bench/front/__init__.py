"""Fronts between two metrics: ``pareto`` finds them, ``Front`` is what it returns."""

from optbench.bench.front.points import Front, FrontPoint, FrontProgress
from optbench.bench.front.search import pareto

__all__ = ["Front", "FrontPoint", "FrontProgress", "pareto"]
