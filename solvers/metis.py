"""METIS as it comes: its default method and settings, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from ._metis_runs import MetisRuns
from .mis_spectral.part_loads import part_shares


@dataclass
class Metis(Solver):
    """METIS's default: recursive bisection up to 8 parts, k-way above; discarded above max_part.

    Where the default's largest part exceeds the limit, METIS runs once more with its allowed
    imbalance (``ufactor``) set to it. Parts are equal, whatever the devices; with ``by_speed`` the
    share of nodes that a part is to have (``tpwgts``) is that of its device in all speed.
    """

    by_speed: bool = False

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})

    def warm_up(self, instance: Any) -> None:
        import pymetis  # noqa: F401
        import scipy.optimize  # noqa: F401  # for labels of a graph that changed

    def solve(self, instance: Any, run: Run) -> Any:
        runs = MetisRuns(instance.data)
        shares = part_shares(instance.data).tolist() if self.by_speed else None
        _, part = runs.part(shares=shares)
        if not runs.fits(part):
            _, part = runs.part(ufactor=runs.ufactor, shares=shares)
        if runs.fits(part):
            run.report(TrainingPlan(kept_labels(instance.data, part)))
        else:
            run.report_message(
                f"METIS makes a part of more than {instance.data.max_part} nodes; use metis_best, "
                "which tries many seeds, or mis_spectral"
            )
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        return run.best
