"""Small instances whose optimum is known by an argument, for the search for tolerance exploits.

Times are picoseconds (but for ``large_work``), so that shifts by less than 1e-9 s, and by less than
1e-9 of a time, are whole ticks.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.second_verifier import brute_force
from tests.second_verifier.decoder import Row
from tests.second_verifier.problem import Json

SECOND = 10**12
TICK_S = 1e-12
TWO_KINDS: tuple[Json, ...] = ({}, {"kind": 1})


@dataclass(frozen=True)
class Family:
    """``least`` is the optimum of the objective's only level, ``rows`` a schedule that has it."""

    name: str
    data: Json
    least: Fraction
    rows: tuple[Row, ...]


def instance(
    name: str,
    tasks: Sequence[Json],
    modes: Sequence[Json],
    pools: Sequence[Json],
    objective: dict[str, float],
    **parts: Any,
) -> Json:
    """A valid JSON object from rows; what a row leaves out has a plain value."""
    task_row = {
        "kind": 0,
        "units": 1.0,
        "release": 0,
        "deadline": None,
        "deadline_hard": True,
        "weight": 1.0,
        "memory_gb": 0.0,
    }
    mode_row = {
        "kind": 0,
        "time_per_unit_s": 1.0,
        "energy_per_unit_j": 0.0,
        "power_w": 0.0,
        "clock": None,
        "needs": [[0, 1]],
    }
    pool_row = {
        "place": 0,
        "count": 1,
        "idle_w": 0.0,
        "sleep_w": 0.0,
        "gated": False,
        "memory_gb": None,
    }
    kinds = 1 + max(mode.get("kind", 0) for mode in modes)
    made: Json = {
        "format": "optbench-instance",
        "version": 2,
        "name": name,
        "problem": None,
        "tick_s": TICK_S,
        "horizon": None,
        "preemptive": False,
        "objective": [objective],
        "tasks": columns(task_row, tasks),
        "edges": {"source": [], "target": [], "data_gb": []},
        "places": {"names": ["cluster"], "parent": [-1]},
        "pools": {"names": [f"p{k}" for k in range(len(pools))], **columns(pool_row, pools)},
        "modes": {"kinds": [f"k{k}" for k in range(kinds)], **columns(mode_row, modes)},
        "links": None,
        "limits": {"cap_place": [], "cap_w": [], "metric_max": {}},
        "tariffs": None,
    }
    return copy.deepcopy(made | parts)


def columns(plain: Json, rows: Sequence[Json]) -> Json:
    return {key: [(plain | row)[key] for row in rows] for key in plain}


def stream(
    num_tasks: int, num_pools: int, latency_s: float = 0.0, opens: int | None = None
) -> Json:
    """One ingress, as near to every pool."""
    return {
        "ingress_names": ["in0"],
        "latency_s": [[latency_s] * num_pools],
        "ingress": [0] * num_tasks,
        "sent_to": [-1] * num_tasks,
        "opens": opens,
        "outages": None,
    }


def families() -> list[Family]:
    """All of them."""
    return [
        cap(),
        devices(),
        tiny_work(),
        large_work(),
        tariff(),
        opening(),
        sliver(),
        dear_deadline(),
        dear_horizon(),
        latency(),
        chain(),
        rounding(),
    ]


def cap() -> Family:
    """Two tasks of 100 W under a cap of 100 W: one at a time, and each takes D ticks in all."""
    length = 3 * SECOND // 100_000_000
    caps = {"cap_place": [0], "cap_w": [100.0], "metric_max": {}}
    mode = {"time_per_unit_s": 3e-8, "energy_per_unit_j": 3e-6, "power_w": 100.0}
    data = instance(
        "cap", [{}, {}], [mode], [{"count": 2}], {"makespan_s": 1.0}, preemptive=True, limits=caps
    )
    return Family(
        "cap", data, 2 * length * Fraction(TICK_S), ((0, 0, 0, length), (1, 0, length, 2 * length))
    )


def devices() -> Family:
    """Three tasks on one device: one at a time."""
    length = SECOND // 1_000_000
    data = instance(
        "devices", [{}] * 3, [{"time_per_unit_s": 1e-6}], [{}], {"makespan_s": 1.0}, preemptive=True
    )
    rows = tuple((task, 0, task * length, (task + 1) * length) for task in range(3))
    return Family("devices", data, 3 * length * Fraction(TICK_S), rows)


def tiny_work() -> Family:
    """1e-10 units at 1e14 J each: progress of at least 1 costs all of it."""
    mode = {"time_per_unit_s": 1e10, "energy_per_unit_j": 1e14, "power_w": 1e4}
    data = instance(
        "tiny_work", [{"units": 1e-10}], [mode], [{}], {"energy_j": 1.0}, preemptive=True
    )
    return Family("tiny_work", data, Fraction(1e-10) * Fraction(1e14), ((0, 0, 0, SECOND),))


def large_work() -> Family:
    """1,000,000.0015 units of a second each do not fit 1,000,000 seconds."""
    data = instance(
        "large_work",
        [{"units": 1_000_000.0015}],
        [{}],
        [{}],
        {"makespan": 1.0},
        preemptive=True,
        tick_s=1.0,
    )
    return Family("large_work", data, Fraction(1_000_001), ((0, 0, 0, 1_000_001),))


def tariff() -> Family:
    """Power is free only after the horizon, and 1 USD per kWh before."""
    mode = {"energy_per_unit_j": 3.6e6, "power_w": 3.6e6}
    prices = {
        "times": [0, 10 * SECOND],
        "price_usd_per_kwh": [[1.0, 0.0]],
        "carbon_g_per_kwh": [[0.0, 0.0]],
    }
    data = instance(
        "tariff", [{}], [mode], [{}], {"cost_usd": 1.0}, tariffs=prices, horizon=5 * SECOND
    )
    return Family("tariff", data, Fraction(1), ((0, 0, 0, SECOND),))


def opening() -> Family:
    """Work before the opening keeps nothing from resting; the vertex argument of ``brute_force``
    gives the optimum.
    """
    data = instance(
        "opening",
        [{}, {"release": 12 * SECOND}],
        [{"time_per_unit_s": 8.0, "energy_per_unit_j": 100.0, "power_w": 20.0}],
        [{"idle_w": 15.0}],
        {"j_per_unit": 1.0},
        horizon=20 * SECOND,
        stream=stream(2, 1, opens=10 * SECOND),
    )
    return by_brute_force("opening", data)


def sliver() -> Family:
    """Work where it is cheap and a dear transfer, or dear work: one pool for the whole task."""
    modes: list[Json] = [
        {"energy_per_unit_j": 1.0, "power_w": 1.0},
        {"energy_per_unit_j": 500.0, "power_w": 500.0, "needs": [[1, 1]]},
        {"kind": 1, "energy_per_unit_j": 1.0, "power_w": 1.0, "needs": [[1, 1]]},
    ]
    links = {
        "sender": [0],
        "receiver": [1],
        "latency_s": [0.0],
        "s_per_gb": [0.0],
        "j_per_gb": [1000.0],
    }
    data = instance(
        "sliver",
        TWO_KINDS,
        modes,
        [{}, {}],
        {"energy_j": 1.0},
        preemptive=True,
        links=links,
        edges={"source": [0], "target": [1], "data_gb": [1.0]},
    )
    return Family("sliver", data, Fraction(501), ((0, 1, 0, SECOND), (1, 2, SECOND, 2 * SECOND)))


def two_speeds(name: str, **parts: Any) -> Family:
    """Two tasks of a second on one device and a tick too little time: one has to take the fast and
    dear mode.
    """
    modes: list[Json] = [
        {"energy_per_unit_j": 1.0, "power_w": 1.0},
        {"time_per_unit_s": 0.5, "energy_per_unit_j": 100.0, "power_w": 200.0},
    ]
    deadline = parts.pop("deadline", None)
    data = instance(name, [{"deadline": deadline}] * 2, modes, [{}], {"energy_j": 1.0}, **parts)
    return Family(
        name, data, Fraction(101), ((0, 0, 0, SECOND), (1, 1, SECOND, SECOND + SECOND // 2))
    )


def dear_deadline() -> Family:
    return two_speeds("dear_deadline", deadline=2 * SECOND - 1)


def dear_horizon() -> Family:
    return two_speeds("dear_horizon", horizon=2 * SECOND - 1)


def latency() -> Family:
    """A task that comes in from afar ends no earlier than its latency and its length."""
    data = instance(
        "latency", [{"release": SECOND}], [{}], [{}], {"makespan_s": 1.0}, stream=stream(1, 1, 0.5)
    )
    start = SECOND + SECOND // 2
    return Family(
        "latency", data, (start + SECOND) * Fraction(TICK_S), ((0, 0, start, start + SECOND),)
    )


def chain() -> Family:
    """Six tasks of a millisecond one after the other."""
    length = SECOND // 1000
    edges = {"source": [0, 1, 2, 3, 4], "target": [1, 2, 3, 4, 5], "data_gb": [0.0] * 5}
    data = instance(
        "chain", [{}] * 6, [{"time_per_unit_s": 1e-3}], [{}], {"makespan_s": 1.0}, edges=edges
    )
    rows = tuple((task, 0, task * length, (task + 1) * length) for task in range(6))
    return Family("chain", data, 6 * length * Fraction(TICK_S), rows)


def rounding() -> Family:
    """A device-tick does a quarter of a task in either mode, so 2 tasks need 8 of them: 4 ticks of
    2 devices.
    """
    modes: list[Json] = [{"time_per_unit_s": 1.01, "needs": [[0, 2]]}, {"time_per_unit_s": 4.0}]
    data = instance(
        "rounding", [{}, {}], modes, [{"count": 2}], {"makespan": 1.0}, preemptive=True, tick_s=1.0
    )
    return Family("rounding", data, Fraction(4), ((0, 0, 0, 2), (1, 0, 2, 4)))


def by_brute_force(name: str, data: Json) -> Family:
    found = brute_force.optimum(data)
    assert found is not None
    table = found.schedule["segments"]
    rows = tuple(zip(table["task"], table["mode"], table["start"], table["end"]))
    return Family(name, data, found.values[0], rows)
