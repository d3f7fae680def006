"""A small closed language over the cells of a study: ``gap <= 0.01``, ``rel(energy_j, heft, fcfs)``.

Parsing and looking up names is here; computing is in ``evaluation``, which needs results.
"""

from optbench.bench.formulas.binding import Formula, condition, number
from optbench.bench.formulas.errors import FormulaError
from optbench.bench.formulas.names import Scope

__all__ = ["Formula", "FormulaError", "Scope", "condition", "number"]
