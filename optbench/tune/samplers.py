"""Samplers, pruners and distributions of a search.

A sampler is made anew for every trial, its seed drawn from the search's seed and the trial's
number: a search that is resumed, or has several workers, does not draw the same start-up trials
again, and what a trial draws depends on the trials before it only.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from optbench.errors import ParameterError
from optbench.study.tune_section import SpaceAxis

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

    from optbench.tune.search_task import SearchTask

# A trial is not pruned before this share of its instances, and at least this number of them, has
# been seen.
WARMUP_SHARE, LEAST_WARMUP = 0.2, 3
# One-sided level at which a trial counts as worse; it is tested after every instance, hence below
# the customary 0.05.
WILCOXON_P = 0.02


def sampler_of(task: SearchTask, number: int) -> BaseSampler:
    """The sampler that draws trial ``number``."""
    from optuna import samplers

    seed = int(np.random.SeedSequence((task.section.seed, number)).generate_state(1)[0])
    startup = task.section.startup
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of experimental options
        if task.section.sampler == "random":
            return samplers.RandomSampler(seed=seed)
        if task.section.sampler == "nsga2":
            return samplers.NSGAIISampler(population_size=max(2, startup), seed=seed)
        if task.section.sampler == "cmaes":
            _need_cmaes()
            return samplers.CmaEsSampler(
                n_startup_trials=startup, seed=seed, warn_independent_sampling=False
            )
        return samplers.TPESampler(n_startup_trials=startup, seed=seed)


def pruner_of(task: SearchTask) -> BasePruner:
    from optuna import pruners

    warmup = max(LEAST_WARMUP, round(WARMUP_SHARE * len(task.points)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if task.section.pruner == "median":
            return pruners.MedianPruner(
                n_startup_trials=task.section.startup, n_warmup_steps=warmup - 1
            )
        if task.section.pruner == "wilcoxon":
            return pruners.WilcoxonPruner(p_threshold=WILCOXON_P, n_startup_steps=warmup)
        return pruners.NopPruner()


def distribution_of(axis: SpaceAxis) -> BaseDistribution:
    from optuna import distributions

    if axis.kind == "choice":
        return distributions.CategoricalDistribution(axis.choices)
    if axis.kind == "int":
        return distributions.IntDistribution(
            int(axis.low), int(axis.high), log=axis.log, step=int(axis.step or 1)
        )
    return distributions.FloatDistribution(axis.low, axis.high, log=axis.log, step=axis.step)


def within(axis: SpaceAxis, value: Any) -> bool:
    """Whether a value lies in the range, so that a trial can have it."""
    if axis.kind == "choice":
        return value in axis.choices
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    steps = 0.0 if not number or axis.step is None else (value - axis.low) / axis.step
    return number and axis.low <= value <= axis.high and abs(steps - round(steps)) < 1e-9


def _need_cmaes() -> None:
    try:
        import cmaes  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        raise ParameterError(
            "tune.sampler 'cmaes' needs the package cmaes; install it, or use tpe"
        ) from None
