"""The MILP view: one formulation as arrays and as a Pyomo model, and the bipartite graph of any
Pyomo model.
"""

from __future__ import annotations

from optbench.views.milp.arrays import BuildStoppedError, Columns, MilpArrays, Rows
from optbench.views.milp.choose import FORMS, Formulation, choose, formulate
from optbench.views.milp.disjunctive import Disjunctive
from optbench.views.milp.pyomo_model import to_pyomo
from optbench.views.milp.standard_form import StandardForm, bipartite, standard_form
from optbench.views.milp.time_indexed import TimeIndexed

__all__ = [
    "FORMS",
    "BuildStoppedError",
    "Columns",
    "Disjunctive",
    "Formulation",
    "MilpArrays",
    "Rows",
    "StandardForm",
    "TimeIndexed",
    "bipartite",
    "choose",
    "formulate",
    "standard_form",
    "to_pyomo",
]
