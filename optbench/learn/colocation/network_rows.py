"""Both networks for both parts of a row: trained on public facts, asked for new jobs.

Throughputs alone and ratios have networks of their own; the refinement of ratios is also given what
first sight got wrong of the throughputs alone. Everything is trained on the public facts of one
instance, in a known order of random numbers: the same facts, settings and seed give the same
weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from optbench.errors import ModelError
from optbench.learn.colocation.estimator_settings import EstimatorSettings, Kind, OnStep
from optbench.learn.colocation.first_sight import FirstSight, train_first_sight
from optbench.learn.colocation.matrix_completion import as_guess, family_folds
from optbench.learn.colocation.refinement import Context, Refinement, train_refinement
from optbench.learn.colocation.residuals import MODES, Residuals
from optbench.learn.colocation.row_parts import RowPart, alone_part, ratio_part
from optbench.learn.colocation.row_tables import KnownRows, RowGuess, SeenRows
from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.colocation.colocation_process import PublicFacts

# Public facts with less teach a network nothing: strangers are simulated by leaving families out.
FEWEST_FAMILIES, FEWEST_TYPES = 3, 6


@dataclass(frozen=True)
class NetworkRows:
    """A model of rows (``RowModel``): first sight, then refinement, of both parts."""

    rows: KnownRows
    alone_part: Refinement
    ratio_part: Refinement

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        empty = np.zeros((len(seen.types), 0))
        context = Context(empty, empty.astype(np.bool_))
        mean, variance = self.alone_part.refine(seen.types, seen.alone, seen.alone_sd, context)
        return mean, np.sqrt(variance)

    def guess(self, seen: SeenRows) -> RowGuess:
        log_alone, log_sd = self.alone(seen)
        n = len(seen.types)
        first = self.alone_part.first.every[0][seen.types]
        there = np.isfinite(seen.alone_sd) & ~np.isnan(seen.alone)
        context = Context(np.nan_to_num(seen.alone - first), there)
        values, sd = seen.ratio.reshape(n, -1), seen.ratio_sd.reshape(n, -1)
        mean, variance = self.ratio_part.refine(seen.types, values, sd, context)
        return as_guess(log_alone, log_sd, mean, variance, seen.ratio.shape)


@dataclass(frozen=True)
class FirstSights:
    """P1 of both parts, on which refinements of any kind are trained."""

    rows: KnownRows
    alone: FirstSight
    alone_residuals: Residuals
    alone_fold: Ints
    ratio: FirstSight
    ratio_residuals: Residuals
    ratio_fold: Ints


def num_families(rows: KnownRows) -> int:
    """Known families."""
    return len(np.unique(rows.features.family[rows.known]))


def is_enough(rows: KnownRows) -> bool:
    """Whether strangers can be simulated from what is public: with fewer families, networks cannot
    be held against a family that they were not trained on.
    """
    return num_families(rows) >= FEWEST_FAMILIES and rows.num_known >= FEWEST_TYPES


def check_enough(rows: KnownRows) -> None:
    """Refuse public facts from which no stranger can be simulated."""
    if not is_enough(rows):
        raise ModelError(
            f"networks need {FEWEST_TYPES} known job types of {FEWEST_FAMILIES} families; the "
            f"public facts have {rows.num_known} of {num_families(rows)}. Make more types known, "
            "or use another estimator (-s estimated_allocation)"
        )


def train_first(
    facts: PublicFacts,
    kind: Kind,
    settings: EstimatorSettings,
    seed: int,
    on_step: OnStep | None = None,
) -> FirstSights:
    """Train P1 of both parts."""
    rows = KnownRows.of(facts)
    check_enough(rows)
    alone, ratio = alone_part(rows), ratio_part(rows)
    folds = [_folds(part, settings.folds) for part in (alone, ratio)]
    with one_thread(seed):
        own, own_held = train_first_sight(alone, folds[0], kind, settings, seed, on_step)
        shared, shared_held = train_first_sight(ratio, folds[1], kind, settings, seed, on_step)
    return FirstSights(
        rows,
        own,
        Residuals.of(alone, own_held),
        folds[0],
        shared,
        Residuals.of(ratio, shared_held),
        folds[1],
    )


def train_second(
    first: FirstSights,
    kind: Kind,
    settings: EstimatorSettings,
    seed: int,
    on_step: OnStep | None = None,
) -> NetworkRows:
    """Train P2 of both parts upon P1."""
    with one_thread(seed):
        alone = train_refinement(
            first.alone,
            first.alone_residuals,
            first.alone_fold,
            kind,
            settings,
            seed,
            None,
            on_step,
        )
        of_alone = _alone_residuals(first)
        ratio = train_refinement(
            first.ratio,
            first.ratio_residuals,
            first.ratio_fold,
            kind,
            settings,
            seed,
            of_alone,
            on_step,
        )
    return NetworkRows(first.rows, alone, ratio)


def train(
    facts: PublicFacts,
    kinds: tuple[Kind, Kind],
    settings: EstimatorSettings,
    seed: int,
    on_step: OnStep | None = None,
) -> NetworkRows:
    """Train P1 and P2 of these kinds on public facts."""
    first = train_first(facts, kinds[0], settings, seed, on_step)
    return train_second(first, kinds[1], settings, seed, on_step)


def _folds(part: RowPart, num_folds: int) -> Ints:
    return family_folds(part.features.family[part.members], num_folds)


def _alone_residuals(first: FirstSights) -> Floats:
    """What P1 gets wrong of throughputs alone, of the rows of ratios, per mode (2, N, G)."""
    part = first.alone.part
    place = {int(t): k for k, t in enumerate(part.members)}
    rows = [place[int(t)] for t in first.ratio.part.members]
    return np.stack([(part.table - first.alone_residuals.held[int(mode)])[rows] for mode in MODES])


@contextmanager
def one_thread(seed: int) -> Iterator[None]:
    """Run torch with one thread, whose sums have one order, and leave its generator as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
