"""Common parts of the policies for sites: a grid of modes, and destinations of jobs without
routing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.plugins.policy import CARRIED_OUT, Policy
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.sites.steering import Steering
from optbench.sim.rules import Trace
from optbench.sim.sites.sites import ModeGrid, grid_of, play_sites, why_unsupported

# Outages stop work that continues later; a job that is not stopped runs to its end.
SITES = CARRIED_OUT - {
    "precedence",
    "transfers",
    "multi_resource",
    "power_cap",
    "cooling",
    "congestion",
    "checkpoints",
    "waking",
} | {"preemption", "outages"}


class SitePolicy(Policy):
    """Decides by compiled rules; ``steer`` returns their parameters."""

    supports: ClassVar[frozenset[str] | set[str]] = SITES
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"sites"})

    def refuse(self, instance: Instance) -> str | None:
        return why_unsupported(instance)

    def steer(self, grid: ModeGrid, rng: np.random.Generator) -> Steering:
        raise NotImplementedError

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        return play_sites(instance, self.steer(grid_of(instance), rng), faults, until)


def sent_or_uniform(instance: Instance, rng: np.random.Generator) -> Ints:
    """Return the pool that a record gives for each job, else one of those it can reach, uniformly
    at random.
    """
    stream, tasks = instance.stream, instance.tasks
    if stream is not None and (stream.sent_to >= 0).all():
        return stream.sent_to
    served = np.zeros((len(instance.modes.kind_names), instance.num_pools), dtype=bool)
    served[instance.modes.kind, instance.modes.primary] = True
    way = (
        np.ones((1, instance.num_pools), dtype=bool)
        if stream is None
        else np.isfinite(stream.latency_s)
    )
    # One row per (kind, ingress): the pools that it can reach, then the others.
    opened = (served[:, None, :] & way[None, :, :]).reshape(-1, instance.num_pools)
    listed, count = np.argsort(~opened, axis=1, kind="stable"), opened.sum(axis=1)
    row = tasks.kind if stream is None else tasks.kind * len(way) + stream.ingress
    nth = np.minimum((rng.random(instance.num_tasks) * count[row]).astype(np.int64), count[row] - 1)
    pool = listed[row, nth]
    return pool if stream is None else np.where(stream.sent_to >= 0, stream.sent_to, pool)
