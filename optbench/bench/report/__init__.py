"""The report of a study as one self-contained HTML page, and as plain data."""

from optbench.bench.report.document import render, write, write_report
from optbench.bench.report.gathered import Report, caveats, gather
from optbench.bench.report.outline import last_ran, outline, write_index
from optbench.bench.report.verdict import verdict

__all__ = [
    "Report", "caveats", "gather", "last_ran", "outline", "render", "verdict", "write", "write_index", "write_report",
]  # fmt: skip
