"""Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu 2002) as a list rule, blind to
energy.

    rank_i = mean_k p_ik + max_j (l_ij + rank_j)

over the modes k that fit and the successors j, l_ij halfway between the shortest and the longest
transfer. The largest rank goes first, in the mode that ends first; a task that ends earlier on a
busy device waits for it.

Differences from the publication: tasks are placed online, once they are ready, not by one list made
in advance; and no task is inserted into a gap before placed ones. A mode is a pool, a number of
devices and a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.rules import (
    Rule,
    RulePolicy,
    by_source,
    edge_lags,
    has_choice,
    list_rule,
    longest_lags,
)


@dataclass(frozen=True)
class Heft(RulePolicy):
    """Earliest finish time, by upward rank; energy-blind."""

    job_by_job: ClassVar[bool] = True

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        return list_rule(
            instance, base=-upward_rank(instance), end_weight=1.0, lookahead=has_choice(instance)
        )


def upward_rank(instance: ob.Instance) -> ob.Floats:
    """Return the mean length of the longest path from the start of a task to the end of
    everything.
    """
    pairs, edges, n = instance.pairs, instance.edges, instance.num_tasks
    mean = np.bincount(pairs.task, weights=pairs.duration, minlength=n) / np.maximum(
        1, np.diff(pairs.ptr)
    )
    shortest = edge_lags(instance)
    lag = 0.5 * (np.where(np.isfinite(shortest), shortest, 0.0) + longest_lags(instance))
    rank, source, target = mean.tolist(), edges.source.tolist(), edges.target.tolist()
    for e in reversed(by_source(instance)):
        rank[source[e]] = max(
            rank[source[e]], float(mean[source[e]]) + float(lag[e]) + rank[target[e]]
        )
    return np.asarray(rank)
