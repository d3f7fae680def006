"""What has been seen of the throughputs so far: public values, and means of measurements.

A cell is a GPU type and a job type, alone or beside another job type. Public cells are exact. A
measured cell is the mean of its n measurements, whose relative standard deviation is the noise of
the process over the root of n.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.colocation.colocation_process import Measurement, PublicFacts
from optbench.shapes.colocation.epoch_physics import Misfit

# A throughput below this share of a unit per second counts as this one in logarithms.
LEAST_PER_S = 1e-9


class SeenCells:
    """Sums and counts of measurements by cell, and what is known not to fit.

    ``version[t]`` rises when anything that concerns job type t is learnt."""

    def __init__(self, facts: PublicFacts) -> None:
        self.facts = facts
        g, t = facts.alone_per_s.shape
        self.gangs: Ints = np.array([each.gpus for each in facts.job_types], dtype=np.int64)
        self._alone_sum, self._alone_count = np.zeros((g, t)), np.zeros((g, t))
        self._beside_sum, self._beside_count = np.zeros((g, t, t)), np.zeros((g, t, t))
        self.version: Ints = np.zeros(t, dtype=np.int64)
        # The public part never changes: NaN marks what is not public.
        self.alone_misfit: Bools = facts.alone_per_s == 0
        self.pair_misfit: Bools = facts.beside_per_s == 0
        gang = self.gangs > 1
        self.pair_misfit |= gang[None, :, None] | gang[None, None, :]

    def learn(self, measurements: Iterable[Measurement], misfits: Iterable[Misfit]) -> None:
        """Add new measurements and misfits."""
        for each in measurements:
            g, t, s = each.gpu_type, each.job_type, each.partner_type
            if s == NOBODY:
                self._alone_sum[g, t] += each.per_s
                self._alone_count[g, t] += 1
            else:
                self._beside_sum[g, t, s] += each.per_s
                self._beside_count[g, t, s] += 1
                self.version[s] += 1
            self.version[t] += 1
        for misfit in misfits:
            g, t, s = misfit.gpu_type, misfit.job_type, misfit.partner_type
            if s == NOBODY:
                self.alone_misfit[g, t] = True
            else:
                self.pair_misfit[g, t, s] = self.pair_misfit[g, s, t] = True
                self.version[s] += 1
            self.version[t] += 1

    def alone(self) -> Floats:
        """Throughputs alone that have been seen, NaN elsewhere."""
        mean = _mean(self._alone_sum, self._alone_count)
        out = np.where(np.isnan(self.facts.alone_per_s), mean, self.facts.alone_per_s)
        return np.where(self.alone_misfit, 0.0, out)

    def alone_log_sd(self) -> Floats:
        """Standard deviation of the logarithm of a cell that has been seen; infinite elsewhere."""
        return _sd(self.facts.noise, self._alone_count, self.facts.alone_per_s)

    def beside(self) -> Floats:
        """Throughputs beside a partner that have been seen, NaN elsewhere."""
        mean = _mean(self._beside_sum, self._beside_count)
        out = np.where(np.isnan(self.facts.beside_per_s), mean, self.facts.beside_per_s)
        return np.where(self.pair_misfit, 0.0, out)

    def beside_log_sd(self) -> Floats:
        """Like ``alone_log_sd``, beside a partner."""
        return _sd(self.facts.noise, self._beside_count, self.facts.beside_per_s)

    def fits(self) -> Floats:
        """1 where a pair has run or is public, 0 where it is known not to fit, NaN elsewhere."""
        ran = (self._beside_count > 0) | (self.facts.beside_per_s > 0)
        ran |= np.swapaxes(ran, 1, 2)
        out = np.where(ran, 1.0, np.nan)
        lone = self.alone_misfit
        never = self.pair_misfit | lone[:, :, None] | lone[:, None, :]
        return np.where(never & ~ran | self.pair_misfit, 0.0, out)


def logarithm(values: Floats) -> Floats:
    """The logarithm of throughputs above 0, NaN elsewhere."""
    with np.errstate(invalid="ignore"):
        above = values > 0
    out: Floats = np.log(np.where(above, np.maximum(values, LEAST_PER_S), np.nan))
    return out


def _mean(total: Floats, count: Floats) -> Floats:
    out = np.full(total.shape, np.nan)
    np.divide(total, count, out=out, where=count > 0)
    return out


def _sd(noise: float, count: Floats, public: Floats) -> Floats:
    measured = np.divide(noise, np.sqrt(count), out=np.full(count.shape, np.inf), where=count > 0)
    return np.where(np.isnan(public), measured, 0.0)
