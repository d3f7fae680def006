"""Declarations of a ``Model`` that hold for places and for the whole schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optbench.arguments import known_keywords_of_methods
from optbench.errors import ModelError, nearest
from optbench.model import assemble
from optbench.model.declarations import CoolingData, Place, TariffData
from optbench.model.objective import METRICS, Objective


@known_keywords_of_methods("m", ModelError)
class DeclaredLimits:
    """Power caps, limits on metrics, tariffs, cooled places and the objective."""

    def __init__(self) -> None:
        self.place_names, self.place_parent = ["cluster"], [-1]
        self.caps: list[tuple[int, float]] = []
        self.metric_max: dict[str, float] = {}
        self.tariffs: list[TariffData] = []
        self.cooled: list[CoolingData] = []
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
        series = assemble.tariff_series(price_usd_per_kwh, carbon_g_per_kwh, times_s, every_s)
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

    def minimize(self, **weights: float) -> None:
        """Minimise a weighted sum of metrics: ``m.minimize(energy_j=1.0, makespan_s=50.0)``."""
        self.objective = Objective.weighted(weights)

    def minimize_in_order(self, *metrics: str | Mapping[str, float]) -> None:
        """Declare a lexicographic objective: each metric is held for those after it."""
        self.objective = Objective.in_order(*metrics)
