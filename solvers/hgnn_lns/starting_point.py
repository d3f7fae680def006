"""Where the search starts: the best of some schedules of the network, as a point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance
from optbench.sim.kernel.dispatch import STRICT, Rule
from optbench.sim.rules import run_rule

from .._lp_finder import Finder
from ..hgnn import Hgnn
from ..hgnn.answer_noise import draw_noise, shifted
from ..hgnn.answers import Answers
from ..hgnn.milestone_rule import numbers_of, rule_of
from ..hgnn.situation import Situation, situation_of
from .neighbourhoods import TaskSurroundings, surroundings_of_tasks
from .network_scores import scores_of


@dataclass(frozen=True, eq=False)
class NetworkStart:
    """The search at its start, and what selectors know."""

    finder: Finder
    surroundings: TaskSurroundings


def start_of(
    instance: Instance, network: Hgnn, samples: int, seed: int, time_left: Callable[[], float]
) -> NetworkStart | None:
    """Play the network's rule, and others with noise on its answers, at least one; None where it
    finishes no schedule.

    The first point is that of the least value among the modes and starts of all these schedules.
    Ready tasks start strictly by key: where one has to wait, so do those behind it. Else tasks
    would start early on devices that the network's rule leaves free for more urgent ones, and the
    first point would be far worse than the schedule that it was read from.
    """
    found = situation_of(instance)
    mean = network.answers(instance, found)
    first = run_rule(instance, rule_of(instance, found, mean)).schedule
    if first is None:
        return None
    scores = scores_of(instance, numbers_of(instance, found, mean))
    finder = Finder(instance, scores.guide(first), seed)
    finder.rule.option[STRICT] = 1
    for rule in rules_of(instance, found, mean, samples, seed):
        finder.consider_rule(rule)
        if time_left() <= 0:
            break
    return NetworkStart(finder, surroundings_of_tasks(instance, found, scores))


def rules_of(
    instance: Instance, found: Situation, mean: Answers | None, samples: int, seed: int
) -> Iterator[Rule]:
    """Yield the rule of the network's answers, then of answers with noise, in antithetic pairs."""
    yield rule_of(instance, found, mean)
    if mean is None:
        return
    rng = np.random.default_rng(seed)
    for sample in range(1, samples):
        if sample % 2:
            noise = draw_noise(found.seen, mean, rng)
        yield rule_of(instance, found, shifted(mean, noise, 1.0 if sample % 2 else -1.0))
