"""METIS at its best: many seeds, recursive and k-way, in the time that there is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from ._metis_runs import MetisRuns

# Where neither a work limit nor a time limit ends the search.
MOST_RUNS = 1000


@dataclass
class MetisBest(Solver):
    """The best of METIS's runs with many seeds: its default, recursive and k-way up to max_part.

    The first run is METIS's default; what exceeds ``max_part`` is discarded. A work limit is a
    number of runs.
    """

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})

    def warm_up(self, instance: Any) -> None:
        import pymetis  # noqa: F401

    def solve(self, instance: Any, run: Run) -> Any:
        data, runs = instance.data, MetisRuns(instance.data)
        ways = ((None, None), (True, runs.ufactor), (False, runs.ufactor))
        most = run.work_limit or (MOST_RUNS if run.time_limit_s is None else float("inf"))
        least = None
        for number in count():
            recursive, ufactor = ways[number % len(ways)]
            seed = None if number == 0 else run.seed * 100_003 + number
            cut, part = runs.part(recursive, seed, ufactor)
            is_better = data.minimize != "cut" or least is None or cut < least
            if is_better and runs.fits(part):
                least = cut
                run.report(TrainingPlan(kept_labels(data, part)))
            if number + 1 >= most or run.time_left() <= 0 or least == 0:
                break
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif run.best is None:
            run.report_message(
                f"each of {number + 1} runs of METIS makes a part of more than {data.max_part} "
                "nodes; use mis_spectral"
            )
        return run.best
