"""Declarations of a ``Model`` that hold for places and for the whole schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from optbench.arguments import known_keywords_of_methods
from optbench.errors import ModelError, nearest
from optbench.model.assemble_physics import tariff_series
from optbench.model.declarations import (
    CongestionData,
    CoolingData,
    Place,
    Pool,
    PoolData,
    TariffData,
)
from optbench.model.objective import METRICS, Objective


@known_keywords_of_methods("m", ModelError)
class DeclaredLimits:
    """Power caps, limits on metrics, tariffs, cooled places, busy links and the objective."""

    def __init__(self) -> None:
        self.place_names, self.place_parent = ["cluster"], [-1]
        self.caps: list[tuple[int, float]] = []
        self.metric_max: dict[str, float] = {}
        self.tariffs: list[TariffData] = []
        self.cooled: list[CoolingData] = []
        self.busy: list[CongestionData] = []
        self.pools: list[PoolData] = []
        self.objective: Objective | None = None

    def limit(
        self, *, power_w: float | None = None, at: Place | None = None, **metric_max: float
    ) -> None:
        """Declare a power cap of a place (default: the cluster) or limits (``energy_j=1e6``)."""
        if power_w is not None:
            self.caps.append((at.idx if at is not None else 0, float(power_w)))
        elif at is not None:
            raise ModelError(
                "limit: `at` can only be combined with power_w; limits on metrics hold for the "
                "whole schedule"
            )
        for name, value in metric_max.items():
            if name not in METRICS:
                raise ModelError(
                    f"limit: unknown metric {name!r}; {nearest(name, (*METRICS, 'power_w'))}"
                )
            self.metric_max[name] = min(float(value), self.metric_max.get(name, np.inf))

    def tariff(
        self,
        *,
        price_usd_per_kwh: float | Sequence[float] = 0.0,
        carbon_g_per_kwh: float | Sequence[float] = 0.0,
        times_s: Sequence[float] | None = None,
        every_s: float = 3600.0,
        at: Place | None = None,
    ) -> None:
        """Declare price and carbon of a place: constant, or by ``every_s`` or ``times_s``."""
        place = at.idx if at is not None else 0
        if any(tariff.place == place for tariff in self.tariffs):
            raise ModelError(f"tariff: {self.place_names[place]!r} has one already")
        series = tariff_series(price_usd_per_kwh, carbon_g_per_kwh, times_s, every_s)
        self.tariffs.append(TariffData(place, *series))

    def cool(
        self,
        at: Place | None = None,
        *,
        ambient_c: float,
        c_per_w: float,
        time_constant_s: float,
        limit_c: float,
        start_c: float | None = None,
    ) -> None:
        """Declare how warm a place (default: the cluster) may become.

        A constant power P settles at ``ambient_c + c_per_w · P`` with this time constant;
        ``start_c`` is the temperature at time 0, that of the air by default.
        """
        self.cooled.append(
            CoolingData(
                at.idx if at is not None else 0,
                float(ambient_c),
                float(c_per_w),
                float(time_constant_s),
                float(limit_c),
                float(ambient_c if start_c is None else start_c),
            )
        )

    def congestion(
        self, times_s: Sequence[float], factors: Mapping[Pool | Place, float | Sequence[float]]
    ) -> None:
        """Declare how much slower links are than free ones, from each of these times on.

        ``factors`` gives a number of at least 1, or one per time, for pools and for all pools of a
        place; others have 1. A transfer takes the larger factor of its two ends when it begins.
        """
        times = tuple(float(time) for time in times_s)
        if not times or times[0] != 0 or any(b <= a for a, b in pairwise(times)):
            raise ModelError(
                f"congestion: times_s is {list(times)}; it must start at 0 and rise strictly"
            )
        for where, given in factors.items():
            series = np.atleast_1d(np.asarray(given, dtype=float))
            if len(series) not in (1, len(times)):
                sizes = f"{len(series)} factors of {where.name!r} and {len(times)} times"
                raise ModelError(f"congestion: {sizes} do not fit together")
            row = tuple(np.broadcast_to(series, len(times)).tolist())
            self.busy.append(CongestionData(times, self._pools_at(where), row))

    def _pools_at(self, where: Pool | Place) -> tuple[int, ...]:
        """A pool, or the declared pools at and below a place."""
        if isinstance(where, Pool):
            return (where.idx,)
        inside = {where.idx}
        for place, parent in enumerate(self.place_parent):
            if parent in inside:
                inside.add(place)
        return tuple(p for p, pool in enumerate(self.pools) if pool.place in inside)

    def minimize(self, **weights: float) -> None:
        """Minimise a weighted sum of metrics: ``m.minimize(energy_j=1.0, makespan_s=50.0)``."""
        self.objective = Objective.weighted(weights)

    def minimize_in_order(self, *metrics: str | Mapping[str, float]) -> None:
        """Declare a lexicographic objective: each metric is held for those after it."""
        self.objective = Objective.in_order(*metrics)
