"""Random arrivals of jobs at the ingresses of a geo-distributed data centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from optbench.model.instance import Floats, Ints

# The paper's sizes: training lognormal around 50,000 units, inference Pareto from one unit on.
MEDIAN_UNITS, SIGMA, LEAST_UNITS = 50_000.0, 0.4, 0.1
PARETO_SHAPE = 1.8
# The rate of inference jobs follows a sine: its relative amplitude and its period.
SWING, PERIOD_S = 0.6, 300.0

Sizes = Literal["lognormal", "exponential"]


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows in order of arrival.

    ``kind`` is 0 for training and 1 for inference; ``site`` is -1 where the record names no site.
    """

    time_s: Floats
    ingress: Ints
    kind: Ints
    units: Floats
    site: Ints
    names: tuple[str, ...] | None = None

    def sorted(self) -> Arrivals:
        return self.rows(np.argsort(self.time_s, kind="stable"))

    def rows(self, which: Ints) -> Arrivals:
        """These rows, in this order."""
        names = None if self.names is None else tuple(self.names[i] for i in which.tolist())
        return Arrivals(
            self.time_s[which],
            self.ingress[which],
            self.kind[which],
            self.units[which],
            self.site[which],
            names,
        )


@dataclass(frozen=True)
class Burst:
    """An interval from ``begin_s`` to ``end_s`` in which the rate is multiplied by ``factor``."""

    factor: float
    begin_s: float
    end_s: float


def draw_arrivals(
    rng: np.random.Generator,
    ingresses: int,
    end_s: float,
    rate: float,
    inference_rate: float,
    sizes: Sizes = "lognormal",
    bursts: Sequence[Burst] = (),
) -> Arrivals:
    """Draw Poisson training and sinusoidal inference arrivals at each ingress until ``end_s``."""
    rows = []
    peak = peak_rate_factor(bursts)
    for g in range(ingresses):
        t = _poisson(rng, rate * peak, end_s)
        if bursts:
            t = t[rng.random(len(t)) * peak < _factor(bursts, t)]
        if sizes == "lognormal":
            units = np.maximum(LEAST_UNITS, rng.lognormal(np.log(MEDIAN_UNITS), SIGMA, len(t)))
        else:
            units = rng.exponential(MEDIAN_UNITS, len(t))
        rows.append((t, g, 0, units))
        t = _poisson(rng, inference_rate * peak * (1 + SWING), end_s)
        swing = _factor(bursts, t) * (1 + SWING * np.sin(2 * np.pi * t / PERIOD_S))
        t = t[rng.random(len(t)) * (1 + SWING) * peak < swing]  # thinning
        rows.append((t, g, 1, (1.0 - rng.random(len(t))) ** (-1.0 / PARETO_SHAPE)))
    time = np.concatenate([row[0] for row in rows])
    ingress = np.concatenate([np.full(len(row[0]), row[1]) for row in rows])
    kind = np.concatenate([np.full(len(row[0]), row[2]) for row in rows])
    units = np.concatenate([row[3] for row in rows])
    return Arrivals(time, ingress, kind, units, np.full(len(time), -1)).sorted()


def _poisson(rng: np.random.Generator, rate: float, end_s: float) -> Floats:
    return np.sort(rng.random(rng.poisson(rate * end_s))) * end_s


def peak_rate_factor(bursts: Sequence[Burst]) -> float:
    """The largest factor by which bursts multiply the rate."""
    changes = [0.0, *(burst.begin_s for burst in bursts), *(burst.end_s for burst in bursts)]
    return float(_factor(bursts, np.array(changes)).max())


def _factor(bursts: Sequence[Burst], time_s: Floats) -> Any:
    """The factor of the rate at each of these times; factors of overlapping bursts multiply."""
    out = np.ones(len(time_s))
    for burst in bursts:
        out *= np.where((time_s >= burst.begin_s) & (time_s < burst.end_s), burst.factor, 1.0)
    return out
