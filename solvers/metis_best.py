"""METIS at its best: many seeds, recursive and k-way, in the time that there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from ._metis_runs import MetisRuns


@dataclass
class MetisBest(Solver):
    """The best of METIS's runs: its default, then recursive and k-way with many seeds.

    Runs with seeds may use the imbalance that ``max_part`` allows; what exceeds it is discarded. A
    work limit is a number of runs.
    """

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})

    def warm_up(self, instance: Any) -> None:
        import pymetis  # noqa: F401
        import scipy.optimize  # noqa: F401  # for labels of a graph that changed

    def solve(self, instance: Any, run: Run) -> Any:
        data, least, tried = instance.data, float("inf"), 0
        runs = MetisRuns(data)
        for cut, part in runs.many(run):
            tried += 1
            if (data.minimize != "cut" or cut < least) and runs.fits(part):
                least = cut
                run.report(TrainingPlan(kept_labels(data, part)))
            if least == 0:
                break
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif run.best is None:
            run.report_message(
                f"each of {tried} runs of METIS makes a part of more than {data.max_part} "
                "nodes; use mis_spectral"
            )
        return run.best
