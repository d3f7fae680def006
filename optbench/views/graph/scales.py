"""The scales by which the values of an instance are divided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import Floats, Instance
from optbench.views.graph.feature_columns import LOGARITHMIC, RATIO


@dataclass(frozen=True)
class Scales:
    """One scale per measure, 1 where an instance has nothing of the kind.

    time and energy: mean over tasks of the shortest duration and of the least energy; power: mean
    of the modes that draw any; data: mean volume of the edges that carry any; weight, price,
    carbon: means; memory: the largest.
    """

    time: float
    energy: float
    power: float
    data: float
    weight: float
    memory: float
    price: float
    carbon: float

    def encode(self, values: Any, measure: str) -> Floats:
        """Features of physical values."""
        given = np.asarray(values, dtype=float)
        if measure in LOGARITHMIC:
            return np.asarray(np.log1p(given / getattr(self, measure, 1.0)))
        return np.asarray(given / getattr(self, measure)) if measure in RATIO else given

    def decode(self, features: Floats, measure: str) -> Floats:
        """Physical values of features."""
        if measure in LOGARITHMIC:
            return np.asarray(np.expm1(features) * getattr(self, measure, 1.0))
        return (
            np.asarray(features * getattr(self, measure))
            if measure in RATIO
            else np.asarray(features)
        )

    def table(self, columns: Mapping[str, str], rows: int, *values: Any) -> Floats:
        """Physical values side by side as features, one for each of the columns."""
        assert len(values) == len(columns), (
            f"{len(values)} values for the columns {', '.join(columns)}"
        )
        out = np.empty((rows, len(values)))
        for c, (given, measure) in enumerate(zip(values, columns.values(), strict=True)):
            out[:, c] = self.encode(given, measure)
        return out


def scales_of(instance: Instance, shortest_s: Floats, least_j: Floats) -> Scales:
    data, power, tariffs = instance.edges.data_gb, instance.modes.power_w, instance.tariffs
    rooms = instance.pools.memory_gb[np.isfinite(instance.pools.memory_gb)]
    return Scales(
        time=mean(shortest_s)
        if shortest_s.any()
        else mean(instance.pairs.duration * instance.tick_s),
        energy=mean(least_j) if least_j.any() else mean(instance.pairs.energy_j),
        power=mean(power[power > 0]) if (power > 0).any() else mean(instance.pools.rest_w),
        data=mean(data[data > 0]),
        weight=mean(instance.tasks.weight),
        memory=float(max(rooms.max(initial=0.0), instance.tasks.memory_gb.max(initial=0.0))) or 1.0,
        price=mean(tariffs.price_usd_per_kwh) if tariffs is not None else 1.0,
        carbon=mean(tariffs.carbon_g_per_kwh) if tariffs is not None else 1.0,
    )


def mean(values: Any) -> float:
    return float(values.mean()) if len(values) and values.any() else 1.0
