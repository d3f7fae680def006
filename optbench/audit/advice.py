"""Clocks to take: what each clock is best for, by the price of a second in the system.

On n GPUs of a type, the clock of least  (P(n, f) − n rest) T(n, f) + μ T(n, f)  is the right one
while a second of a run in the system is worth μ watts. It rises with μ; ``from_w`` and ``to_w`` are
where it takes over and where the next one does. The price that belongs to the certified least
energy at the record's mean sojourn is the dual λ of the bound; a policy's own is its ``time_w``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.audit.least_energy import Least
from optbench.audit.logged_cluster import LoggedCluster
from optbench.model.instance import Floats
from optbench.plugins.discovery import load_solver


@dataclass(frozen=True)
class Clock:
    """``now`` marks the clock that is right at the recommended price."""

    gpu_type: str
    gpus: int
    clock: float
    from_w: float
    to_w: float
    now: bool


@dataclass(frozen=True)
class Use:
    """Share of the work that the optimum of the bound does in one way."""

    gpu_type: str
    gpus: int
    clock: float
    share: float


def envelope(net_j: Floats, time_s: Floats) -> list[tuple[int, float, float]]:
    """(index, from, to) of the lines net + μ time that are lowest for some μ ≥ 0, in order of μ."""
    out: list[tuple[int, float, float]] = []
    at = 0.0
    here = int(np.lexsort((time_s, net_j))[0])
    while True:
        faster = np.flatnonzero(time_s < time_s[here])
        if len(faster) == 0:
            return [*out, (here, at, float("inf"))]
        meets = (net_j[faster] - net_j[here]) / (time_s[here] - time_s[faster])
        least = float(meets.min())
        then = int(faster[np.flatnonzero(meets <= least)[-1]])
        out.append((here, at, max(at, least)))
        at, here = max(at, least), then


def clocks_of(cluster: LoggedCluster, price_w: float, gpus: tuple[int, ...]) -> list[Clock]:
    """The thresholds of each type for these numbers of GPUs."""
    ways, log, out = cluster.ways, cluster.log, []
    rest = cluster.instance.pools.rest_w
    for t, name in enumerate(log.types):
        for n in gpus:
            rows = np.flatnonzero((ways.kind == t) & (ways.gpus == n))
            if len(rows) == 0:
                continue
            net = (ways.power_w[rows] - n * rest[t]) * ways.time_s[rows]
            for which, low, high in envelope(net, ways.time_s[rows]):
                out.append(
                    Clock(name, n, float(ways.clock[rows[which]]), low, high, low <= price_w < high)
                )
    return out


def uses_of(cluster: LoggedCluster, least: Least, smallest: float = 0.005) -> list[Use]:
    """Where the optimum of the bound does its work, largest first."""
    ways, done = cluster.ways, least.units.sum(axis=0)
    share = done / done.sum()
    out = []
    for w in np.argsort(-share, kind="stable").tolist():
        if share[w] >= smallest:
            kind = cluster.log.types[int(ways.kind[w])]
            out.append(Use(kind, int(ways.gpus[w]), float(ways.clock[w]), float(share[w])))
    return out


def price_of(policy: str, params: Mapping[str, Any], bound_w: float) -> float:
    """What a second in the system is worth to a policy, in watts; the bound's price where it learns
    it from a budget.
    """
    if "latency_budget_s" in params:
        return bound_w
    _, solver = load_solver(policy, dict(params))
    return float(getattr(solver, "time_w", 0.0))


def counts_of(params: Mapping[str, Any], cluster: LoggedCluster) -> tuple[int, ...]:
    """GPUs per run that the advice is for: those of the policy's thresholds, else the usual
    ones.
    """
    most = int(cluster.log.gpus.max())
    chosen = {
        int(params[name]) for name in ("wide", "middle", "narrow", "gpus") if params.get(name)
    }
    return tuple(sorted(n for n in (chosen or {1, 2, 4, 8}) if n <= most)) or (1,)
