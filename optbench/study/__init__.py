"""Study files: their grammar, grids, budgets, formula syntax, and the cells that they come to."""
