"""Starts planned at learned prices: a network says what a device of each site is worth at each time, jobs book by those prices.

Each job books the site and the time at which its energy, the devices at their learned price and its wait cost least
(``optbench.sim.plans``), and is held until then. The network (``optbench.learn.site_prices``) sees tariffs, sites and the length
of the stream, nothing of jobs that are to come. It imitates what devices were worth in hindsight, by the programme behind
the slotted bound, on training seeds; evolution strategies go on from there on simulated days.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from optbench.learn.site_prices import features, plans_by
from optbench.model.instance import Floats, Instance
from optbench.sim.kernel.plant import Fault
from optbench.sim.plans import board_of, play_plans
from optbench.sim.rules import Trace
from optbench.sim.sites import grid_of, why_no_grid

from ._sites import SITES, SitePolicy

SHIPPED = Path(__file__).with_name("_learned_prices.json")


@lru_cache(maxsize=1)
def shipped() -> Floats:
    """What was learned, with its provenance in the same file."""
    return np.asarray(json.loads(SHIPPED.read_text())["theta"], dtype=float)


@dataclass(frozen=True)
class LearnedPrices(SitePolicy):
    """Holds work for cheap hours by booking devices at prices that a network has learned; for drained streams with tariffs."""

    supports: ClassVar[frozenset[str] | set[str]] = SITES - {"outages", "preemption", "open_end", "per_unit"}

    def refuse(self, instance: Instance) -> str | None:
        reason = why_no_grid(instance)
        if reason is not None:
            return reason
        if instance.tariffs is None or instance.stream is None or instance.is_open:
            return "it plans around tariffs, on drained streams (geo_dc:drain=yes,minimize=cost); -s carbon_cost routes others"
        if not (grid_of(instance).mode_at[:, :, 0] >= 0).any(axis=2).all():
            return "some kind of task has no mode on one device of some pool; it plans one device per task"
        return None

    def play(self, instance: Instance, rng: np.random.Generator, faults: Sequence[Fault] = (), until: float = math.inf) -> Trace:
        board = board_of(instance)
        return play_plans(board, plans_by(shipped(), board, *features(board)), faults, until)
