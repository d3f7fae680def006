"""Solvers that a study shows and does not rank: clairvoyant references on arriving work."""

from __future__ import annotations

from optbench.errors import OptbenchError
from optbench.evaluate.rows import Table
from optbench.plugins.discovery import load_class

# A metric of every instance whose work arrives over time.
ARRIVING = "units_offered"


def clairvoyant_labels(table: Table) -> frozenset[str]:
    """Return the solvers whose class says ``clairvoyant = True`` and that ran on arriving work, or
    on another shape than schedules, whose policies play a process.

    Where everything is known at the beginning, nothing can be read ahead."""
    names = {entry.label: entry.name for entry in table.plan.study.solvers}
    arriving = {
        row.cell.label
        for row in table.rows
        if row.record is not None and (row.cell.shape is not None or ARRIVING in row.record.metrics)
    }
    return frozenset(label for label in arriving if _is_clairvoyant(names.get(label, label)))


def _is_clairvoyant(solver: str) -> bool:
    try:
        return bool(getattr(load_class("solver", solver), "clairvoyant", False))
    except OptbenchError:  # it is not there any more
        return False
