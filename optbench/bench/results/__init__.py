"""Results of a study: its cells joined, checked against each other, and summed up by solver."""

from optbench.bench.results.known import BestKnown
from optbench.bench.results.rows import MISSING_GAP, Contradiction, Row, Table, rows, table
from optbench.bench.results.summaries import Summary, summaries

__all__ = ["MISSING_GAP", "BestKnown", "Contradiction", "Row", "Summary", "Table", "rows", "summaries", "table"]
