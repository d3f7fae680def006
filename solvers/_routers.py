"""Common parts of the index routers: the weights of an objective, and running in the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Bools, Instance
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.rules import Trace
from optbench.sim.sites.routes import play_routes, routes_of
from optbench.sim.sites.sites import ModeGrid, grid_of, why_unsupported
from optbench.units import J_PER_KWH

from ._sites import SITES, SitePolicy


class Router(SitePolicy):
    """Routes by an index; ``routes`` returns its parameters."""

    supports: ClassVar[frozenset[str] | set[str]] = SITES
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"routes"})

    def routes(self, grid: ModeGrid) -> Routes:
        raise NotImplementedError

    @property
    def how(self) -> int:
        """Return what may change while it runs: bits of ``sim.kernel.sites.moves``."""
        return 0

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        grid = grid_of(instance)
        return play_routes(grid, self.routes(grid), faults, until, how=self.how)


class CappedRouter(Router):
    """Keeps power caps by lower clocks, down to a share ``floor`` of the top clock."""

    floor: float = 0.0
    supports: ClassVar[frozenset[str] | set[str]] = SITES | {"power_cap"}

    def refuse(self, instance: Instance) -> str | None:
        return why_unsupported(instance, capped=True)

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        grid = grid_of(instance, capped=True)
        top = np.where(np.isnan(grid.clocks), 0.0, grid.clocks).max(axis=2, keepdims=True)
        low = (grid.clocks < self.floor * top).sum(axis=2)
        return play_routes(grid, self.routes(grid), faults, until, how=self.how, low_clock=low)


def rates(instance: Instance) -> tuple[float, float, float]:
    """Return weights of joules, dollars and grams as in the objective, scaled so that a joule costs
    1 on average.

    An objective without any of them counts joules.
    """
    wanted = dict(instance.objective.levels[0])
    energy = wanted.get("energy_j", 0.0) + wanted.get("j_per_unit", 0.0)
    return scaled_rates(instance, energy, wanted.get("cost_usd", 0.0), wanted.get("carbon_g", 0.0))


def scaled_rates(
    instance: Instance, energy: float, usd: float, carbon: float
) -> tuple[float, float, float]:
    """Scale these weights so that a joule costs 1 on average over sites and time; joules alone
    count where that is 0.
    """
    tariffs = instance.tariffs
    if tariffs is None:
        return 1.0, 0.0, 0.0
    per_kwh = usd * float(tariffs.price_usd_per_kwh.mean()) + carbon * float(
        tariffs.carbon_g_per_kwh.mean()
    )
    mean = energy + per_kwh / J_PER_KWH
    return (energy / mean, usd / mean, carbon / mean) if mean > 0 else (1.0, 0.0, 0.0)


def on_devices(instance: Instance, gpus: int | None) -> Bools:
    """Return the modes on this many devices, or all of them."""
    devices = instance.modes.devices
    return np.asarray(devices > 0 if gpus is None else devices == gpus, dtype=bool)


def require_at_least(
    solver: str, field: str, value: float | None, least: float, why: str = ""
) -> None:
    """Raise a ParameterError unless the value is None or at least ``least``."""
    if value is not None and not (least <= value < math.inf):
        raise ParameterError(f"{solver}: {field} is {value!r}; it must be at least {least:g}{why}")


def budget_of(instance: Instance, budget_s: float | None) -> float | None:
    """Return a mean time in the system: the given one, else that of the instance's limit on flow
    time.
    """
    limit = instance.limits.metric_max.get("flow_time_s")
    if budget_s is not None or limit is None:
        return budget_s
    return limit / max(1, instance.num_tasks)


def index(grid: ModeGrid, **more: Any) -> Routes:
    """Return parameters of a router whose cost is the full power of a mode's devices, rest
    included, at the rates of the objective.

    Rest is paid in any case; charging it, as the price of a device, slightly speeds up work that
    keeps others from good devices.
    """
    return routes_of(
        grid, **{"rates": rates(grid.instance), "device_w": grid.instance.pools.rest_w, **more}
    )
