"""CP-SAT view: ``build(instance)`` makes the model, ``CpsatView`` translates schedules and
bounds.
"""

from optbench.views.cpsat.cpsat_view import CpsatView, build

__all__ = ["CpsatView", "build"]
