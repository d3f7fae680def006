"""Drift plus penalty (Neely 2010): least energy at a mean time in the system, by one number that is
learned online.

A job of u units goes where  u (e + μ T) + μ (a + wait)  is least, e the joules above rest per unit
in that mode, a the ingress latency.
μ, in watts, is the price of a second in the system. A virtual queue sums the seconds by which the
jobs sent so far are expected to exceed the budget, and μ grows with it: for a stationary stream the
mean comes to the budget and the energy to the least at that mean, up to an error that falls with
``gain``. Future arrivals are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.sites.moves import ELASTIC, URGENT
from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import Router, budget_of, index, on_devices, require_at_least


@dataclass(frozen=True)
class DriftPenalty(Router):
    """Least energy at a mean time in the system of ``latency_budget_s``; without one, at ``time_w``
    watts per second in it.

    The budget may come from the instance's own limit on flow time. ``gain`` is watts per second of
    debt, ``rest_share`` the share of a device's resting power that is charged too, ``gpus`` fixes
    the devices per job; ``queues`` lets jobs wait at a full site where that is expected to cost
    less than a free device elsewhere. Where an instance is preemptive, short work interrupts long
    work (``preempt``), and running jobs shrink for new ones and grow into free devices
    (``elastic``).
    """

    latency_budget_s: float | None = None
    time_w: float = 20.0
    gain: float = 3e-4
    rest_share: float = 0.0
    gpus: int | None = None
    queues: bool = False
    preempt: bool = True
    elastic: bool = False

    def __post_init__(self) -> None:
        require_at_least("drift_penalty", "latency_budget_s", self.latency_budget_s, 1e-9)
        require_at_least("drift_penalty", "gpus", self.gpus, 1)
        for field in ("time_w", "gain", "rest_share"):
            require_at_least("drift_penalty", field, getattr(self, field), 0)

    @property
    def how(self) -> int:
        return URGENT * self.preempt + ELASTIC * self.elastic

    def routes(self, grid: ModeGrid) -> Routes:
        return index(
            grid,
            time_w=self.time_w,
            device_w=self.rest_share * grid.instance.pools.rest_w,
            gain=self.gain,
            queues=self.queues,
            budget_s=budget_of(grid.instance, self.latency_budget_s),
            allowed=on_devices(grid.instance, self.gpus),
        )
