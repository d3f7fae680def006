"""What a policy expects of throughputs: a value, its uncertainty, and the chance that a pair fits.

An estimator is made from the public facts and learns from observations, one after another; the true
throughputs are in neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from optbench.shapes.colocation.colocation_data import Floats
from optbench.shapes.colocation.colocation_process import Observation


@dataclass(frozen=True)
class Estimates:
    """Arrays over GPU types g and job types t, s, like those of ``Colocation``.

    ``alone_per_s[g, t]`` and ``beside_per_s[g, t, s]`` are 0 where a misfit is known. Uncertainties
    are standard deviations: of the logarithm of the throughput alone, and of the ratio of both
    throughputs. ``fits[g, t, s]`` is the probability that the pair fits, 0 or 1 where it is known.
    """

    alone_per_s: Floats
    beside_per_s: Floats
    alone_log_sd: Floats
    ratio_sd: Floats
    fits: Floats


class Estimator(Protocol):
    """Learns from measurements and misfits while a policy acts."""

    def learn(self, observation: Observation) -> None:
        """Take the new measurements and misfits of an observation."""

    def estimates(self) -> Estimates:
        """Return what is expected now."""
