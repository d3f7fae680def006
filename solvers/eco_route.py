"""``eco_route`` of the CHSAC-AF paper's simulator: to the site of the least best mode, started as
by the default policy.

    score(job, site) = u · min over (n, f) of P(n, f) T(n, f)
                       [· carbon or price of the site at the hour of arrival]

It ignores how many devices are free, and (n, f) is not kept: a job takes all free devices at a
lowered clock, or waits. Jobs of a kind therefore go to one site while rates do not change.
``carbon_route`` considers free devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.sites.steering import STICKY, Steering
from optbench.sim.sites.sites import ModeGrid, inference_first, steering_of

from ._sites import SitePolicy
from .default_policy import lowered

OBJECTIVES = ("energy", "carbon", "cost")


@dataclass(frozen=True)
class EcoRoute(SitePolicy):
    """To the site of least energy per unit (or carbon, or cost), however full, as the paper's
    authors coded it.

    ``low`` is the clock of ``default_policy``; ``inf_priority`` serves waiting inference work
    before any other.
    """

    objective: Literal["energy", "carbon", "cost"] = "energy"
    low: float = 0.6
    inf_priority: bool = True

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ParameterError(
                f"eco_route: objective is {self.objective!r}; it must be one of "
                f"{', '.join(OBJECTIVES)}"
            )
        if not 0 < self.low <= 1:
            raise ParameterError(
                f"eco_route: low is {self.low!r}; it must be above 0 and at most 1"
            )

    def refuse(self, instance: Instance) -> str | None:
        if self.objective != "energy" and instance.tariffs is None:
            return (
                f"objective={self.objective} needs tariffs (geo_dc:drain=yes,minimize=cost); "
                "-p objective=energy needs none"
            )
        return super().refuse(instance)

    def steer(self, grid: ModeGrid, rng: np.random.Generator) -> Steering:
        classes = inference_first(grid.instance).tolist() if self.inf_priority else None
        low = lowered(grid, self.low)
        return steering_of(
            grid, pick_by=STICKY, low_clock=low, pools=self.best_pools(grid), class_of=classes
        )

    def best_pools(self, grid: ModeGrid) -> Ints:
        """Return the pool of each job, by its kind, ingress and hour; the first of ties."""
        instance, stream = grid.instance, grid.instance.stream
        kinds, pools = grid.mode_at.shape[:2]
        least = grid.energy_j.reshape(kinds, pools, -1).min(axis=2)
        score = least[instance.tasks.kind] * self.rates(instance)
        if stream is not None:
            score = np.where(np.isfinite(stream.latency_s[stream.ingress]), score, np.inf)
        return np.asarray(score.argmin(axis=1), dtype=np.int64)

    def rates(self, instance: Instance) -> Floats:
        """Return the cost of a joule, by job and pool, when the job arrives."""
        tariffs = instance.tariffs
        if self.objective == "energy" or tariffs is None:
            return np.ones((1, instance.num_pools))
        period = (
            np.searchsorted(np.asarray(tariffs.times), instance.tasks.release, side="right") - 1
        )
        rate = tariffs.price_usd_per_kwh if self.objective == "cost" else tariffs.carbon_g_per_kwh
        return np.asarray(rate[:, period].T, dtype=float)
