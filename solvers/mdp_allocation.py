"""Allocation of given parts to devices as a Markov decision process: METIS cuts, an agent places.

``optbench.gnn.placement.allocation_process`` states the process; the agents are those of
``optbench.learn.placement``. ``optbench train mdp_allocation --on gnn_training:... -o FILE`` trains
one on instances of the given problems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from optbench import __version__
from optbench.errors import ParameterError
from optbench.gnn.placement.placement_methods import LEARNED, METHODS, place
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    placement_table,
    smallest_table,
)
from optbench.learn.placement.placement_settings import PlacementTraining
from optbench.plugins.protocol import Run
from optbench.plugins.training import FIRST_SEED, Trainable, TrainingResult, TrainingRun
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from ._metis_runs import MetisRuns

# Methods that use up any budget.
ENDLESS = ("local_search", "annealing", *LEARNED)
# Seeds 500 to 599 are for validation.
FIRST_VALIDATION = 500


@dataclass(frozen=True)
class MdpAllocation(Trainable):
    """METIS's parts, placed on the devices, or on some of them, by an agent or by a rule.

    ``method`` is agent, policy_gradient, random_weights, permuted_weights, identity, greedy,
    argmin, local_search, annealing or milp; ``checkpoint`` is a file of ``optbench train``, for the
    method agent. With a work limit a method makes its fixed number of rounds, whatever the limit.
    """

    shapes: ClassVar[frozenset[str] | set[str]] = frozenset({"gnn_training"})
    settings: ClassVar[type] = PlacementTraining

    method: str = "agent"
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        known = (*METHODS, *LEARNED)
        if self.method not in known:
            raise ParameterError(
                f"mdp_allocation: method is {self.method!r}; it must be one of {', '.join(known)}"
            )
        if self.checkpoint is not None and self.method != "agent":
            raise ParameterError(
                f"mdp_allocation: checkpoint is {self.checkpoint!r} with method={self.method}; "
                "only method=agent reads one"
            )

    def warm_up(self, instance: Any) -> None:
        import pymetis  # noqa: F401

        self._placed(smallest_table(), np.random.default_rng(0), lambda: np.inf, np.inf)

    def solve(self, instance: Any, run: Run) -> Any:
        data: GnnTraining = instance.data
        part = _metis_parts(data)
        if part is None:
            run.report_message(
                f"METIS makes a part of more than {data.max_part} nodes; give a larger max_part"
            )
            return None
        plan = TrainingPlan(part)
        table = placement_table(data, plan)
        device = self._placed(table, run.rng, _time_left(run), run.time_left())
        run.report(TrainingPlan(part, device))
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif run.time_left() <= 0:
            run.report_termination("time_limit")
        elif self.method in ENDLESS and run.work_limit is not None:
            run.report_termination("work_limit")
        elif self.method in ENDLESS and run.time_limit_s is not None:
            run.report_termination("time_limit")
        return run.best

    def _placed(
        self,
        table: PlacementTable,
        rng: np.random.Generator,
        time_left: Callable[[], float],
        most_s: float,
    ) -> Ints:
        if self.checkpoint is None:
            return place(self.method, table, rng, time_left, most_s)
        from optbench.learn.placement.learned_placement import place_by_checkpoint

        return place_by_checkpoint(Path(self.checkpoint), table, rng, time_left)

    def train(self, run: TrainingRun) -> TrainingResult:
        """Train on the parts that METIS makes of instances of the run's problems."""
        from optbench.learn.placement.placement_checkpoints import write_agent
        from optbench.learn.placement.placement_training import train_placement

        settings: PlacementTraining = run.settings
        if run.output.exists() and not run.fresh:
            raise ParameterError(f"{run.output} exists; --fresh trains anew and replaces it")
        first = FIRST_SEED + 100 * run.seed
        done = train_placement(
            _drawn(run, first, settings.instances),
            _drawn(run, FIRST_VALIDATION, settings.validation),
            settings,
            run.seed,
            run.on_point,
            run.stop.is_set,
        )
        about = {
            "solver": "mdp_allocation",
            "trained_on": list(run.names),
            "seed": run.seed,
            "instance_seeds": [first, first + 99],
            "validation_seeds": [FIRST_VALIDATION, FIRST_VALIDATION + 99],
            "settings": asdict(settings),
            "training_s": round(done.spent_s, 1),
            "complete": not done.interrupted,
            "optbench": __version__,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_agent(run.output, done.weights, about)
        return TrainingResult(done.history, about, done.interrupted, resumes=False)


def _drawn(run: TrainingRun, first: int, count: int) -> list[PlacementTable]:
    """The tables of so many instances of each problem."""
    out = []
    for k in range(count):
        for problem in run.problems:
            instance: Any = problem.instance(first + k % 100)
            if instance.shape.name != "gnn_training":
                raise ParameterError(
                    f"mdp_allocation is trained on gnn_training, not on {instance.shape.name}"
                )
            part = _metis_parts(instance.data)
            if part is not None:
                out.append(placement_table(instance.data, TrainingPlan(part)))
    if not out:
        raise ParameterError(
            "mdp_allocation: METIS makes no parts within max_part on any instance of the training"
        )
    return out


def _metis_parts(data: GnnTraining) -> Ints | None:
    """The parts that METIS makes by k-way partitioning, or None above ``max_part``."""
    runs = MetisRuns(data)
    _, part = runs.part(recursive=False)
    if not runs.fits(part):
        _, part = runs.part(recursive=False, ufactor=runs.ufactor)
    return part if runs.fits(part) else None


def _time_left(run: Run) -> Callable[[], float]:
    """What a method is told of the time: where work is limited, nothing until it is over."""
    if run.work_limit is None:
        return run.time_left
    return lambda: np.inf if run.time_left() > 0 else 0.0
