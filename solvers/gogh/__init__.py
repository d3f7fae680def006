"""Two networks that learn while jobs are allocated: P1 at first sight, P2 from measurements.

P1 expects the throughputs of a new job alone on each GPU type and beside each known job, from the
known jobs that are most like it and from what its user states. P2 refines them by everything that
has been measured of that type so far. Both state their uncertainty, which the allocation ILP of
each epoch prices (``_estimated_demand``); cells that were measured are looked up. A type that was
never seen runs where it is expected to be served; an estimate that proves wrong is replaced by what
was measured, so that the next epoch allocates anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from numpy.random import Generator

from optbench.errors import ParameterError
from optbench.learn.colocation.estimator_settings import KINDS_BY_VALIDATION, Kind
from optbench.plugins.process_policy import Act, ProcessPolicy
from optbench.plugins.training import Trainable, TrainingResult, TrainingRun

from .._estimated_demand import AllocationSettings, acting_on
from .gogh_training import GoghTraining, train_networks

if TYPE_CHECKING:
    from optbench.learn.colocation.row_tables import RowModel
    from optbench.shapes.colocation.colocation_process import PublicFacts
    from optbench.shapes.colocation.estimates import Estimator


@dataclass(frozen=True)
class Gogh(AllocationSettings, ProcessPolicy, Trainable):
    """GOGH: P1 and P2 estimate throughputs, and an ILP allocates the GPUs of each epoch.

    The networks are trained before the first epoch on what is public of an instance, which takes
    about ten seconds, and kept in the workspace for the next run on the same public facts;
    ``checkpoint`` is a file of ``optbench train gogh``, which has other settings too. Of fewer than
    three known families no stranger can be simulated; then the low-rank completion that the
    networks refine is used without them.
    """

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})
    settings: ClassVar[type] = GoghTraining
    nothing_to_distribute: ClassVar[str] = (
        "its networks are trained one after another, in one order of random numbers, within seconds"
    )

    # Prices that the search of benchmarks/gogh_margins.py found.
    progress_price: float = 1.027
    risk_w: float = 22.88
    most_risk: float = 0.7364
    misfit_w: float = 160.5
    caution: float = 0.5305
    p1: Kind = KINDS_BY_VALIDATION[0]  # network at first sight
    p2: Kind = KINDS_BY_VALIDATION[1]  # network that refines by measurements
    learn: bool = True  # whether P2 and the look-up of measured cells are used
    checkpoint: Path | None = None  # networks of `optbench train gogh`, of the same public facts
    network_seed: int = 0  # of the training

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.network_seed >= 0, "network_seed", "at least 0")
        own = (self.p1, self.p2, self.network_seed)
        if self.checkpoint is not None and own != (*KINDS_BY_VALIDATION, 0):
            raise ParameterError(
                f"gogh: checkpoint is {str(self.checkpoint)!r}, which holds its networks; leave "
                "out p1, p2 and network_seed, or the checkpoint"
            )

    def prepare(self, public: PublicFacts) -> None:
        self._networks(public)

    def actor(self, rng: Generator) -> Act:
        return acting_on(self._estimator, self)

    def train(self, run: TrainingRun) -> TrainingResult:
        return train_networks(run)

    def _estimator(self, facts: PublicFacts) -> Estimator:
        from optbench.learn.colocation.look_up import Frozen, LookUp

        networks = self._networks(facts)
        return LookUp(facts, networks, relatives=True) if self.learn else Frozen(facts, networks)

    def _networks(self, facts: PublicFacts) -> RowModel:
        from optbench.learn.colocation.estimators import networks_of_file, networks_or_completion

        if self.checkpoint is not None:
            return networks_of_file(self.checkpoint, facts)
        return networks_or_completion(facts, (self.p1, self.p2), self.network_seed)
