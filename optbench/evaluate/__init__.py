"""Results of a study: rows, statistics, formulas, gates and claims."""
