"""Results as one self-contained HTML page: a table, a Gantt chart with the power curve below it, incumbents and bounds."""

from optbench.bench.page.document import render, write

__all__ = ["render", "write"]
