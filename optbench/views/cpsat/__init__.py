"""CP-SAT view: ``build(instance)`` makes the model, ``CpsatView`` translates schedules and
bounds.
"""

from optbench.views.cpsat.view import CpsatView, build

__all__ = ["CpsatView", "build"]
