"""Rows of job types: a row holds what a type's throughputs are on every GPU type and beside others.

The row of a job type t has the cells

    alone[g]             logarithm of the throughput alone
    ratio[0, g, k]       logarithm of the ratio beside / alone of t beside the known type k
    ratio[1, g, k]       logarithm of the ratio of k beside t
    ratio[., g, K]       the mean over all partners, which stands for partners that are not known

Known types are those of one GPU of which some throughputs are public. A throughput beside a partner
says something of the ratio only with the throughput alone: where that one has not been seen, an
estimate stands for it, and its uncertainty is added to that of the cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optbench.learn.colocation.job_features import JobFeatures
from optbench.learn.colocation.seen_cells import SeenCells, logarithm
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.colocation.colocation_process import PublicFacts

# Standard deviation of one ratio around the mean over partners, as a logarithm.
PARTNER_SD = 0.35


@dataclass(frozen=True)
class KnownRows:
    """The public part of all rows: what every model is made from.

    ``alone`` is (T, G), ``ratio`` (T, 2, G, K + 1), with NaN where a cell is not public or does not
    fit; ``known`` are the types that are columns of ``ratio``."""

    features: JobFeatures
    known: Ints
    alone: Floats
    ratio: Floats
    gangs: Ints

    @property
    def num_gpu_types(self) -> int:
        return int(self.alone.shape[1])

    @property
    def num_known(self) -> int:
        return len(self.known)

    @property
    def has_alone(self) -> Bools:
        """Types of which a throughput alone is public."""
        return np.asarray(~np.isnan(self.alone).all(axis=1), dtype=np.bool_)

    @classmethod
    def of(cls, facts: PublicFacts) -> KnownRows:
        features = JobFeatures.of(facts.job_types)
        gangs = np.array([each.gpus for each in facts.job_types], dtype=np.int64)
        alone = logarithm(facts.alone_per_s)
        known = np.flatnonzero((gangs == 1) & ~np.isnan(alone).all(axis=0))
        log_ratio = logarithm(facts.beside_per_s) - alone[:, :, None]
        return cls(features, known, alone.T.copy(), _rows(log_ratio, known), gangs)


@dataclass(frozen=True)
class SeenRows:
    """What has been seen of the rows of some types, with standard deviations (infinite: nothing).

    Cells that are public or measured are the same to a model: both have a value and a standard
    deviation."""

    types: Ints
    alone: Floats
    alone_sd: Floats
    ratio: Floats
    ratio_sd: Floats


@dataclass(frozen=True)
class RowGuess:
    """Estimates of whole rows: logarithms of throughputs alone, and ratios as such.

    The arrays are those of ``SeenRows``; ``ratio`` lies between 0 and 1."""

    log_alone: Floats
    log_alone_sd: Floats
    ratio: Floats
    ratio_sd: Floats


class RowModel(Protocol):
    """Estimates rows of job types from what has been seen of them; it holds no state."""

    @property
    def rows(self) -> KnownRows:
        """The public part that the model was made from."""

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        """Return logarithms of throughputs alone (n, G), and their standard deviations."""

    def guess(self, seen: SeenRows) -> RowGuess:
        """Return whole rows; ``seen`` has the ratios too."""


def seen_alone(seen: SeenCells, types: Ints) -> tuple[Floats, Floats]:
    """Logarithms of throughputs alone (n, G) and their standard deviations."""
    value = logarithm(seen.alone())[:, types].T
    sd = np.where(np.isnan(value), np.inf, seen.alone_log_sd()[:, types].T)
    return value, sd


def seen_ratios(
    seen: SeenCells, known: Ints, types: Ints, log_alone: Floats, log_alone_sd: Floats
) -> tuple[Floats, Floats]:
    """Logarithms of ratios (n, 2, G, K + 1); ``log_alone`` (G, T) is seen or estimated."""
    value = logarithm(seen.beside()) - log_alone[:, :, None]
    sd = np.hypot(seen.beside_log_sd(), log_alone_sd[:, :, None])
    sd = np.where(np.isnan(value), np.inf, sd)
    out, spread = _rows(value, known)[types], _rows(sd, known, np.inf)[types]
    out[..., -1], spread[..., -1] = _beside_strangers(value, sd, known, types)
    return out, spread


def _rows(table: Floats, known: Ints, mean: float | None = None) -> Floats:
    """Turn [g, t, s] into rows (T, 2, G, K + 1); the last column is the mean over partners."""
    own = np.moveaxis(table[:, :, known], 1, 0)
    other = np.moveaxis(np.swapaxes(table, 1, 2)[:, :, known], 1, 0)
    out = np.stack([own, other], axis=1)
    last = nan_mean(out, axis=-1) if mean is None else np.full(out.shape[:-1], mean)
    return np.concatenate([out, last[..., None]], axis=-1)


def _beside_strangers(value: Floats, sd: Floats, known: Ints, types: Ints) -> tuple[Floats, Floats]:
    """Means over partners that are no columns, (n, 2, G), and their standard deviations."""
    stranger = np.ones(value.shape[1], dtype=np.bool_)
    stranger[known] = False
    both = np.stack([value, np.swapaxes(value, 1, 2)])[:, :, types][..., stranger]
    spread = np.stack([sd, np.swapaxes(sd, 1, 2)])[:, :, types][..., stranger]
    precision = np.where(np.isnan(both), 0.0, 1.0 / (spread**2 + PARTNER_SD**2))
    total = precision.sum(axis=-1)
    mean = (precision * np.where(np.isnan(both), 0.0, both)).sum(axis=-1)
    found = total > 0
    mean = np.divide(mean, total, out=np.full(total.shape, np.nan), where=found)
    out = np.divide(1.0, np.sqrt(total), out=np.full(total.shape, np.inf), where=found)
    return np.moveaxis(mean, 2, 0), np.moveaxis(out, 2, 0)


def nan_mean(values: Floats, axis: int, otherwise: float = np.nan) -> Floats:
    """The mean of what is a number along an axis; ``otherwise`` where nothing is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    out: Floats = np.full(np.shape(total), otherwise, dtype=float)
    np.divide(total, count, out=out, where=count > 0)
    return out
