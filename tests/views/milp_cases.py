"""Tiny random instances with every feature, for the tests of the MILP view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optbench.model.instance import (
    Edges,
    Floats,
    Instance,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tariffs,
    Tasks,
)
from optbench.model.objective import Objective
from optbench.model.validate import validate

WEIGHTS = {"makespan": 3.0, "energy_j": 0.5, "flow_time_s": 0.25, "tardiness_s": 2.0}
PRICED = {**WEIGHTS, "cost_usd": 4e5, "carbon_g": 900.0}
# Time, energy, power and needs of a mode.
Row = tuple[float, float, float, list[tuple[int, int]]]


def tiny(
    seed: int,
    *,
    tasks: int = 3,
    varying: bool = False,
    fixed: bool = False,
    capped: bool = False,
    limited: bool = False,
    pools: int = 2,
    shared: bool = True,
    clocks: bool = False,
    **changes: Any,
) -> Instance:
    """A random instance of a few tasks on two nodes, in small whole numbers."""
    rng = np.random.default_rng(seed)
    kinds = 2
    rows = [
        [_mode(rng, pools, shared) for _ in range(int(rng.integers(1, 3)))] for _ in range(kinds)
    ]
    rows = _with_clocks(rows) if clocks else rows
    pairs = [(i, j) for i in range(tasks) for j in range(i + 1, tasks) if rng.random() < 0.5]
    source, target = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    deadline = np.where(rng.random(tasks) < 0.7, rng.integers(2, 8, tasks), np.inf).astype(float)
    latency = rng.integers(0, 2, (pools, pools)).astype(float)
    np.fill_diagonal(latency, 0.0)
    if pools > 1 and rng.random() < 0.4:
        latency[0, 1] = np.inf
    instance = Instance(
        name=f"tiny{seed}",
        tick_s=2.0,
        horizon=9 if fixed else None,
        tasks=Tasks(
            rng.integers(0, kinds, tasks),
            rng.integers(1, 3, tasks).astype(float),
            rng.integers(0, 2, tasks).astype(float),
            deadline,
            np.isfinite(deadline) & (rng.random(tasks) < 0.4),
            rng.integers(1, 4, tasks).astype(float),
            np.zeros(tasks),
        ),
        edges=Edges(source, target, rng.integers(0, 3, len(source)).astype(float)),
        places=Places(("cluster", "node0", "node1"), np.asarray([-1, 0, 0])),
        pools=_pools(rng, pools, shared),
        modes=_modes(rows),
        links=Links(
            latency,
            numbers(rng, 0, 2, 1.5, (pools, pools)),
            rng.integers(1, 4, (pools, pools)).astype(float),
        ),
        limits=Limits(
            np.asarray([0, 2] if capped else [], dtype=np.int64),
            np.asarray([55.0, 40.0] if capped else []),
        ),
        objective=Objective.weighted(PRICED if varying else WEIGHTS),
        tariffs=_tariffs(rng, pools) if varying else None,
    )
    if limited:
        instance = _limited(instance, varying)
    return replace(instance, **changes)


def numbers(rng: np.random.Generator, low: int, high: int, scale: float, shape: Any) -> Floats:
    return np.asarray(rng.integers(low, high, shape) * scale, dtype=np.float64)


def _pools(rng: np.random.Generator, pools: int, shared: bool) -> Pools:
    return Pools(
        tuple(f"p{p}" for p in range(pools)),
        1 + np.arange(pools) % 2,
        np.asarray([2 if shared else 1, 1, 1][:pools]),
        numbers(rng, 0, 4, 5.0, pools),
        np.full(pools, 1.0),
        rng.random(pools) < 0.3,
        np.full(pools, np.inf),
    )


def _modes(rows: list[list[Row]]) -> Modes:
    """The modes of each kind, in columns."""
    flat = [mode for kind in rows for mode in kind]
    needs = [need for mode in flat for need in mode[3]]
    return Modes(
        ("a", "b"),
        np.concatenate(([0], np.cumsum([len(kind) for kind in rows]))),
        np.asarray([m[0] for m in flat]),
        np.asarray([m[1] for m in flat]),
        np.asarray([m[2] for m in flat]),
        np.full(len(flat), np.nan),
        np.concatenate(([0], np.cumsum([len(m[3]) for m in flat]))),
        np.asarray([p for p, _ in needs], dtype=np.int64),
        np.asarray([n for _, n in needs], dtype=np.int64),
    )


def _tariffs(rng: np.random.Generator, pools: int) -> Tariffs:
    return Tariffs(
        np.asarray([0.0, 3.0, 5.0]),
        numbers(rng, 1, 9, 0.1, (pools, 3)),
        numbers(rng, 1, 9, 50.0, (pools, 3)),
    )


def _limited(instance: Instance, varying: bool) -> Instance:
    """The instance with limits on metrics that some of its schedules keep."""
    tops = {"energy_j": 260.0, "makespan_s": 16.0, "flow_time_s": 60.0, "tardiness_s": 20.0}
    if varying:
        tops |= {"cost_usd": 6e-5, "carbon_g": 0.02}
    return instance.with_limits(**tops)


def _with_clocks(rows: list[list[Row]]) -> list[list[Row]]:
    """The modes, others on two devices of the first pool, and all of them at half the speed."""
    return [
        [
            (factor * mode[0], mode[1] / factor, mode[2], needs)
            for mode in kind
            for needs in (mode[3], [(0, 2)])
            for factor in (1.0, 2.0)
        ]
        for kind in rows
    ]


def _mode(rng: np.random.Generator, pools: int, shared: bool) -> Row:
    """Time, energy, power and needs of a mode: on one pool, or on both."""
    first = int(rng.integers(pools))
    most = 2 if first == 0 and shared else 1
    needs = [(first, int(rng.integers(1, most + 1)))]
    if pools > 1 and rng.random() < 0.3:
        needs.append((1 - first, 1))
    return (
        float(rng.integers(0 if rng.random() < 0.15 else 1, 4)),
        float(rng.integers(1, 40)),
        float(rng.integers(5, 40)),
        needs,
    )


__all__ = ["PRICED", "WEIGHTS", "tiny", "validate"]
