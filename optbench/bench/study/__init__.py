"""Studies: what a study file declares, and the cells it comes to."""

from optbench.bench.study.cells import Cell
from optbench.bench.study.declared import CellBudget, Claim, SolverEntry, Study
from optbench.bench.study.planning import Plan
from optbench.bench.study.reading import load_study
from optbench.bench.study.snapshots import load_plan, load_plans, studies_run

__all__ = ["Cell", "CellBudget", "Claim", "Plan", "SolverEntry", "Study", "load_plan", "load_plans", "load_study", "studies_run"]
