"""Trials of estimators: public facts, measurements in a fixed order, and the cells to estimate.

Of every held-out job type ten runs beside known partners are drawn before anything is trained. The
cells of the evaluation are all others of the held-out types beside known ones, in both directions,
where the pair fits: the same cells for every method and any number of runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from optbench.learn.colocation.look_up import LookUp
from optbench.learn.colocation.row_tables import RowModel
from optbench.plugins.problems._throughput_tables import ThroughputTables
from optbench.shapes.colocation.colocation_data import Bools, Floats, GpuType
from optbench.shapes.colocation.colocation_process import Measurement, PublicFacts
from optbench.shapes.colocation.estimates import Estimates

NOISE, MOST_RUNS = 0.03, 10
# Seeds of what is drawn for the report; networks are trained with others (see gogh_estimation).
DRAW_SEED = 7_000


@dataclass(frozen=True)
class EstimationTrial:
    """One set of held-out job types; ``runs`` are (job type, GPU type, partner type)."""

    name: str
    tables: ThroughputTables
    facts: PublicFacts
    new: Bools
    runs: tuple[tuple[int, int, int], ...]
    profile_gpu: int
    seed: int

    @classmethod
    def of(
        cls, name: str, tables: ThroughputTables, new: Bools, profile_gpu: int, seed: int
    ) -> EstimationTrial:
        facts = facts_of(tables, new)
        rng = np.random.default_rng([DRAW_SEED, seed])
        runs = []
        for t in np.flatnonzero(new).tolist():
            able = np.argwhere((tables.beside_per_s[:, t, :] > 0) & ~new[None, :])
            for g, s in able[rng.permutation(len(able))[:MOST_RUNS]].tolist():
                runs.append((t, g, s))
        return cls(name, tables, facts, new, tuple(runs), profile_gpu, seed)

    def with_shuffled_features(self) -> EstimationTrial:
        """The same trial, in which job types have the features of others."""
        types = self.facts.job_types
        order = np.random.default_rng([DRAW_SEED, self.seed, 1]).permutation(len(types))
        shuffled = tuple(types[k] for k in order)
        return replace(self, facts=replace(self.facts, job_types=shuffled))

    def cells(self) -> Bools:
        """The pairs [g, t, s] of the evaluation."""
        pair = self.new[:, None] != self.new[None, :]
        out: Bools = pair[None] & (self.tables.beside_per_s > 0)
        for t, g, s in self.runs:
            out[g, t, s] = out[g, s, t] = False
        return out

    def digest(self) -> str:
        """A hash of the cells of the evaluation."""
        return hashlib.sha256(np.packbits(self.cells()).tobytes()).hexdigest()[:12]

    def measured(self, profile: bool, pairs: int, alone_too: bool = True) -> list[Measurement]:
        """Measurements of a profile run, and of so many runs beside partners of each type."""
        rng = np.random.default_rng([DRAW_SEED, self.seed, 2])
        alone, beside = self.tables.alone_per_s, self.tables.beside_per_s
        out = []

        def noisy(value: float) -> float:
            return value * (1 + NOISE * float(rng.standard_normal()))

        done = dict.fromkeys(np.flatnonzero(self.new).tolist(), 0)
        for t in done if profile else ():
            g = self.profile_gpu
            out.append(Measurement(g, 0, t, -1, noisy(alone[g, t])))
        for t, g, s in self.runs:
            if done[t] < pairs:
                done[t] += 1
                if alone_too:
                    out.append(Measurement(g, 0, t, -1, noisy(alone[g, t])))
                out.append(Measurement(g, 0, t, s, noisy(beside[g, t, s])))
                out.append(Measurement(g, 0, s, t, noisy(beside[g, s, t])))
        return out


@dataclass(frozen=True)
class TrialScores:
    """Errors of one method in one state of knowledge.

    ``ratio`` is the mean relative error of ratios that were not measured; ``alone`` are relative
    errors of throughputs alone where no run was; ``within`` is the share of ratios within two
    standard deviations; ``fit`` the Brier score of pairs that are not public."""

    ratio: float
    alone: Floats
    within: float
    fit: float


def facts_of(tables: ThroughputTables, new: Bools) -> PublicFacts:
    """Public facts in which everything of the new types is unknown."""
    known = np.broadcast_to(~new, tables.alone_per_s.shape).copy()
    pairs = known[:, :, None] & known[:, None, :]
    gpus = tuple(GpuType(name, 1, 10.0, 20.0, 200.0) for name in tables.gpu_names)
    return PublicFacts(
        gpus,
        tables.job_types,
        np.where(known, tables.alone_per_s, np.nan),
        np.where(pairs, tables.beside_per_s, np.nan),
        known,
        np.full(known.shape, 0.8),
        360.0,
        60.0,
        60.0,
        0.0,
        NOISE,
    )


def estimates_after(
    trial: EstimationTrial, model: RowModel, told: list[Measurement], relatives: bool = False
) -> Estimates:
    """What a learning estimator with this model expects after measurements."""
    estimator = LookUp(trial.facts, model, relatives)
    seen: Any = SimpleNamespace(measurements=tuple(told), misfits=())
    estimator.learn(seen)
    return estimator.estimates()


def scores(
    trial: EstimationTrial,
    estimates: Estimates,
    told: list[Measurement],
    only: Bools | None = None,
) -> TrialScores:
    """Compare estimates with the true tables, of some of the new types."""
    new = trial.new if only is None else only
    alone, beside = trial.tables.alone_per_s, trial.tables.beside_per_s
    cells = trial.cells() & (new[None, :, None] | new[None, None, :])
    truth = beside / np.where(alone > 0, alone, 1.0)[:, :, None]
    ratio = estimates.beside_per_s / np.maximum(estimates.alone_per_s, 1e-12)[:, :, None]
    error = np.abs(ratio - truth)[cells]
    open_alone = new[None, :] & (alone > 0)
    open_alone = open_alone.copy()
    for each in told:
        if each.partner_type < 0:
            open_alone[each.gpu_type, each.job_type] = False
    alone_error = np.abs(estimates.alone_per_s - alone)[open_alone] / alone[open_alone]
    strange = np.isnan(trial.facts.beside_per_s) & (new[None, :, None] | new[None, None, :])
    fit = float(((estimates.fits - (beside > 0))[strange] ** 2).mean())
    within = error <= 2 * estimates.ratio_sd[cells]
    return TrialScores(float((error / truth[cells]).mean()), alone_error, within.mean(), fit)


def gavel_trials(tables: ThroughputTables, seed: int) -> Iterator[EstimationTrial]:
    """Leave one family out, job types of one GPU."""
    single = np.flatnonzero([each.gpus == 1 for each in tables.job_types])
    types = tuple(tables.job_types[k] for k in single)
    small = ThroughputTables(
        tables.gpu_names,
        types,
        tables.alone_per_s[:, single],
        tables.beside_per_s[:, single][:, :, single],
    )
    family = np.array([each.family for each in types])
    newest = tables.gpu_names.index("v100")
    for name in sorted(set(family)):
        yield EstimationTrial.of(name, small, family == name, newest, seed)


def growth_trial(tables: ThroughputTables, seed: int) -> tuple[EstimationTrial, dict[str, Bools]]:
    """Six families held out whole, and a fifth of the types of the others."""
    rng = np.random.default_rng([DRAW_SEED, seed, 3])
    family = np.array([each.family for each in tables.job_types])
    names = sorted(set(family))
    whole = np.isin(family, [names[k] for k in rng.permutation(len(names))[:6]])
    size = ~whole & (rng.random(len(family)) < 0.2)
    newest = len(tables.gpu_names) - 1
    trial = EstimationTrial.of(f"growth {seed}", tables, whole | size, newest, seed)
    return trial, {"new family": whole, "new size": size}
