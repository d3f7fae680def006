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
from typing import TYPE_CHECKING, ClassVar, Literal

from numpy.random import Generator

from optbench.errors import ParameterError
from optbench.plugins.process_policy import Act, ProcessPolicy

from .._estimated_demand import AllocationSettings, acting_on

if TYPE_CHECKING:
    from optbench.shapes.colocation.colocation_process import PublicFacts
    from optbench.shapes.colocation.estimates import Estimator

Kind = Literal["feed_forward", "recurrent", "transformer"]


@dataclass(frozen=True)
class Gogh(AllocationSettings, ProcessPolicy):
    """GOGH: P1 and P2 estimate throughputs, and an ILP allocates the GPUs of each epoch.

    The networks are trained on what is public of an instance, a minute or less, and kept in the
    workspace for the next run on the same public facts.
    """

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})

    p1: Kind = "recurrent"  # network at first sight
    p2: Kind = "feed_forward"  # network that refines by measurements
    learn: bool = True  # whether P2 and the look-up of measured cells are used
    checkpoint: Path | None = None  # networks of `optbench train gogh`, of the same public facts
    network_seed: int = 0  # of the training

    def actor(self, rng: Generator) -> Act:
        return acting_on(self._estimator, self)

    def _estimator(self, facts: PublicFacts) -> Estimator:
        from optbench.learn.colocation.estimators import trained_networks
        from optbench.learn.colocation.look_up import Frozen, LookUp
        from optbench.learn.colocation.network_files import load_networks

        if self.checkpoint is not None:
            if self.network_seed:
                raise ParameterError("give either a checkpoint or network_seed, not both")
            networks = load_networks(self.checkpoint, facts)
        else:
            networks = trained_networks(facts, (self.p1, self.p2), self.network_seed)
        return LookUp(facts, networks, relatives=True) if self.learn else Frozen(facts, networks)
