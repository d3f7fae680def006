"""A trained network that routes jobs to sites: its inputs, its weights, and how it is run; without
torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import FileFormatError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites.network_scores import FLAT, INPUTS, SHARED
from optbench.sim.kernel.sites.pilot import run_pilot
from optbench.sim.kernel.sites.steering import WISHED
from optbench.sim.kernel.sites.view import (
    BALANCED,
    CHEAPEST,
    FOR_CARBON,
    FOR_COST,
    FOR_ENERGY,
    G,
    O,
    S,
    SiteView,
)
from optbench.sim.kernel.state import last_moment, new_state
from optbench.sim.rules import Trace
from optbench.sim.sites.sites import ModeGrid, grid_of, inference_first, steering_of, trace_of

Float32 = NDArray[np.float32]
NETS = {"shared": SHARED, "flat": FLAT, "inputs": INPUTS}
CLOCKS = {"balanced": BALANCED, "cheapest": CHEAPEST}
# The inputs: with or without the regret of sites and options, which solves a part of the problem.
SEEN = {"regrets": 0, "sites": 1}


@dataclass(frozen=True, eq=False)
class RoutingNetwork:
    """A network in compiled form: ``theta`` holds its arrays one after the other
    (``sim.kernel.sites.network_scores``).
    """

    kind: str
    hidden: int
    theta: Float32
    clock: str = "balanced"
    greedy: bool = False
    seen: str = "regrets"

    @property
    def net(self) -> Ints:
        return np.array([NETS[self.kind], self.hidden, self.greedy], dtype=np.int64)

    def taking_best(self) -> RoutingNetwork:
        """Return the same network, taking the best option instead of drawing one."""
        return replace(self, greedy=True)

    def inputs_alone(self) -> RoutingNetwork:
        """Return a rule without a network: the option of least cost, by the costs that the network
        receives.
        """
        return RoutingNetwork("inputs", 1, np.zeros(1, dtype=np.float32), self.clock, greedy=True)

    def check(self, grid: ModeGrid) -> None:
        """Refuse weights whose shape does not fit the grid."""
        if self.kind == "inputs":
            return
        wanted = num_weights(self.kind, self.hidden, grid.mode_at.shape[1], grid.widest)
        if len(self.theta) != wanted:
            raise FileFormatError(
                f"the network has {len(self.theta)} weights; {self.kind!r} of width "
                f"{self.hidden} on {grid.mode_at.shape[1]} "
                f"sites and up to {grid.widest} devices has {wanted}. Train one for these sites: "
                "optbench train chsac_af --on ..."
            )


def layers(kind: str, hidden: int, pools: int, widest: int) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the arrays of a network, in the order of ``theta``."""
    h = hidden
    if kind == "shared":
        return {
            "site_mean": (S, h),
            "whole_mean": (G, h),
            "bias_mean": (h,),
            "option": (O, h),
            "site": (S, h),
            "whole": (G, h),
            "mean": (h, h),
            "bias": (h,),
            "second": (h, h),
            "bias_second": (h,),
            "last": (h, 1),
            "bias_last": (1,),
        }
    return {
        "first": (G + pools * S, h),
        "bias_first": (h,),
        "second": (h, h),
        "bias_second": (h,),
        "third": (h, h),
        "bias_third": (h,),
        "sites": (h, pools),
        "bias_sites": (pools,),
        "counts": (h, widest),
        "bias_counts": (widest,),
    }


def num_weights(kind: str, hidden: int, pools: int, widest: int) -> int:
    return sum(math.prod(shape) for shape in layers(kind, hidden, pools, widest).values())


def row_size(pools: int, widest: int) -> int:
    """Return the number of inputs per job."""
    return G + pools * S + pools * widest * O


def view_of(
    grid: ModeGrid,
    *,
    mean_units: float,
    clock: str = "balanced",
    price_w: float = 0.0,
    seen: str = "regrets",
) -> SiteView:
    """Return the inputs for an instance, with their scales; ``price_w`` is the price of a second of
    latency.

    ``mean_units`` is the usual size of a job: that of the training, because the mean of the
    instance's own jobs would reveal future ones.
    """
    instance = grid.instance
    kinds, pools, widest, clocks = grid.mode_at.shape
    options = pools * widest
    aim = _weighed_by(instance)
    leaves = _announced_losses(instance)
    least = (
        np.where(np.isfinite(grid.net_j), grid.net_j, np.inf).reshape(kinds, pools, -1).min(axis=2)
    )
    least_j = float(least[np.isfinite(least)].mean()) if np.isfinite(least).any() else 1.0
    times = grid.time_s[np.isfinite(grid.time_s)]
    tariffs = instance.tariffs
    rates = (
        None
        if tariffs is None
        else tariffs.price_usd_per_kwh
        if aim == FOR_COST
        else tariffs.carbon_g_per_kwh
    )
    mean_rate = float(np.mean(rates)) if rates is not None and np.size(rates) else 1.0
    shape = [widest, clocks, aim, CLOCKS[clock], len(leaves[0]), SEEN[seen]]
    return SiteView(
        shape=np.array(shape, dtype=np.int64),
        scale=np.array(
            [
                price_w,
                max(least_j, 1e-9),
                max(mean_units, 1e-9),
                float(np.exp(np.log(times).mean())),
                mean_rate if mean_rate > 0 else 1.0,
                20.0,
            ]
        ),
        net_j=np.ascontiguousarray(grid.net_j, dtype=float).ravel(),
        time_s=np.ascontiguousarray(grid.time_s, dtype=float).ravel(),
        best_clock=np.ascontiguousarray(grid.best_clock, dtype=np.int64).ravel(),
        leave_time=leaves[0],
        leave_pool=leaves[1],
        leave_devices=leaves[2],
        cost=np.zeros(options),
        clock=np.zeros(options, dtype=np.int64),
        net=np.zeros(options),
        time=np.zeros(options),
        tariff=np.zeros(pools),
        least=np.zeros(pools),
    )


def _weighed_by(instance: Instance) -> int:
    """Return what the joules are weighed with: the current price or carbon where these are
    minimised.
    """
    names = {name for level in instance.objective.levels for name, _ in level}
    if "cost_usd" in names:
        return FOR_COST
    return FOR_CARBON if "carbon_g" in names else FOR_ENERGY


def _announced_losses(instance: Instance) -> tuple[Floats, Ints, Ints]:
    if instance.stream is None:
        return np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    outages = instance.stream.outages
    known = outages.announced
    return (
        outages.time[known].astype(float),
        outages.pool[known].copy(),
        outages.devices[known].copy(),
    )


def run_network(
    instance: Instance,
    pilot: RoutingNetwork,
    price_w: float,
    rng: np.random.Generator,
    faults: Sequence[Fault] = (),
    until: float = math.inf,
    *,
    mean_units: float,
    budget_s: float = math.inf,
    gain: float = 0.0,
    range_w: tuple[float, float] = (0.0, math.inf),
    inf_priority: bool = True,
) -> tuple[Trace, int]:
    """Run a network from time 0; return its trace and the number of its decisions.

    With a budget and a gain the price follows the budget, within a range
    (``sim.kernel.sites.pilot``). ``inf_priority`` serves waiting inference work before any other.
    """
    grid = grid_of(instance)
    pilot.check(grid)
    plant = plant_of(instance, faults)
    classes = inference_first(instance).tolist() if inf_priority else None
    state, steering = new_state(plant), steering_of(grid, pick_by=WISHED, class_of=classes)
    view = view_of(grid, mean_units=mean_units, clock=pilot.clock, price_w=price_w, seen=pilot.seen)
    draws = rng.random(max(1, instance.num_tasks))
    asked = run_pilot(
        addresses(plant),
        addresses(state),
        addresses(steering),
        addresses(view),
        pilot.net,
        pilot.theta,
        draws,
        np.array([budget_s, gain, *range_w]),
        last_moment(instance, until),
    )
    return trace_of(instance, plant, state), int(asked)


def random_network(
    grid: ModeGrid, rng: np.random.Generator, kind: str = "shared", hidden: int = 32
) -> RoutingNetwork:
    """Return an untrained network."""
    parts: list[Any] = []
    for shape in layers(kind, hidden, grid.mode_at.shape[1], grid.widest).values():
        spread = 1.0 / math.sqrt(shape[0]) if len(shape) > 1 else 0.1
        parts.append(rng.uniform(-spread, spread, math.prod(shape)))
    return RoutingNetwork(kind, hidden, np.concatenate(parts).astype(np.float32))
