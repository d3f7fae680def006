"""Instances as JSON, version 2: the columns of Instance, with these differences made for readers
and for size.

* null stands for what is not there: a deadline, a memory limit, a clock, a link's latency.
* A mode names its kind and its needs, ``[[pool, devices], ...]``, instead of pointers into flat
columns.
* Only links that differ from "no link" (and from the free diagonal) are listed.

Times are whole ticks. Version 1 is still read (``files.version1``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, ModelError, naming, nearest
from optbench.model.files import json_columns as col
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.physics_json import congestion_from, cooling_from, physics_to_dict
from optbench.model.files.stream_json import stream_from, stream_to_dict
from optbench.model.files.strict_json import parse_json, render, write_text
from optbench.model.files.version1 import current_instance
from optbench.model.instance import (
    Edges,
    Instance,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tariffs,
    Tasks,
)
from optbench.model.objective import METRICS, RATIOS, Objective
from optbench.model.plain_instance import unlinked
from optbench.model.validate import validate
from optbench.typed_values import describe, number, refuse

FORMAT, VERSION, OLDEST = "optbench-instance", 2, 1
# Tables of pools by pools and of tasks by modes follow from short columns: bounded here, before
# they are made.
MAX_POOLS = 4096
MAX_PAIRS = 50_000_000

FLOATS_OR_INF = partial(col.floats, null=np.inf)
KEYS = ("name", "tick_s", "horizon", "preemptive", "objective")
PARTS = ("tasks", "edges", "places", "pools", "modes", "limits")
OPTIONAL = ("problem", "links", "tariffs", "stream", "cooling", "congestion")
TASK_COLUMNS: col.Readers = {
    "kind": col.ints,
    "units": col.floats,
    "release": col.ints,
    "deadline": partial(col.whole_numbers, null=np.inf),
    "deadline_hard": col.bools,
    "weight": col.floats,
    "memory_gb": col.floats,
}
EDGE_COLUMNS: col.Readers = {"source": col.ints, "target": col.ints, "data_gb": col.floats}
POOL_COLUMNS: col.Readers = {
    "names": col.texts,
    "place": col.ints,
    "count": col.ints,
    "idle_w": col.floats,
    "sleep_w": col.floats,
    "gated": col.bools,
    "memory_gb": FLOATS_OR_INF,
}
LATER_POOL_COLUMNS = ("failures_per_s", "wake_s", "wake_j")
MODE_COLUMNS: col.Readers = {
    "kind": col.ints,
    "time_per_unit_s": col.floats,
    "energy_per_unit_j": col.floats,
    "power_w": col.floats,
    "clock": partial(col.floats, null=np.nan),
}
LINK_COLUMNS: col.Readers = {
    "latency_s": FLOATS_OR_INF,
    "s_per_gb": col.floats,
    "j_per_gb": col.floats,
}
RATES = ("price_usd_per_kwh", "carbon_g_per_kwh")


def read_instance(path: str | Path) -> Instance:
    """The valid instance in an optbench JSON file."""
    path = Path(path)
    text = read_text(path)
    with naming(shown(path), FileFormatError, ModelError):
        return validate(instance_from_dict(parse_json(text)))


def write_instance(instance: Instance, path: str | Path) -> None:
    write_text(Path(path), instance_to_json(instance))


def instance_to_json(instance: Instance) -> str:
    return render(instance_to_dict(instance))


def instance_from_dict(data: Any) -> Instance:
    """An instance, its form checked but not its meaning: ``validate`` does that."""
    if isinstance(data, dict) and col.header(data, FORMAT, VERSION, OLDEST) == 1:
        data = current_instance(data)
    data = col.table(data, "", ("format", "version", *KEYS, *PARTS), OPTIONAL)
    pools = pools_from(data["pools"])
    modes, tasks = modes_from(data["modes"]), tasks_from(data["tasks"])
    check_sizes(tasks, modes, pools)
    return Instance(
        name=col.text(data["name"], "name"),
        tick_s=number(data["tick_s"], "tick_s"),
        horizon=None if data["horizon"] is None else col.whole(data["horizon"], "horizon"),
        tasks=tasks,
        edges=Edges(**col.columns(data["edges"], "edges", EDGE_COLUMNS)),
        places=places_from(data["places"]),
        pools=pools,
        modes=modes,
        links=links_from(data["links"], len(pools.names)),
        limits=limits_from(data["limits"]),
        objective=objective_from(data["objective"]),
        tariffs=tariffs_from(data["tariffs"], len(pools.names)),
        preemptive=col.flag(data["preemptive"], "preemptive"),
        problem=None if data["problem"] is None else col.text(data["problem"], "problem"),
        stream=stream_from(data["stream"], len(tasks.kind), len(pools.names)),
        cooling=cooling_from(data["cooling"]),
        congestion=congestion_from(data["congestion"], len(pools.names)),
    )


def check_sizes(tasks: Tasks, modes: Modes, pools: Pools) -> None:
    check_number(pools.names, "pools.names")
    sizes = np.diff(modes.kind_ptr)
    known = tasks.kind[(tasks.kind >= 0) & (tasks.kind < len(sizes))]
    pairs = int(sizes[known].sum()) if len(known) else 0
    if pairs > MAX_PAIRS:
        most = f"at most {MAX_PAIRS:,} are allowed"
        raise FileFormatError(f"tasks and their modes make {pairs:,} pairs; {most}")


def objective_from(value: Any) -> Objective:
    levels = col.rows(value, "objective")
    if not levels:
        refuse("objective", levels, 'a list of levels, for example [{"makespan_s": 1.0}]')
    out = []
    for k, level in enumerate(levels):
        path = f"objective[{k}]"
        if not isinstance(level, dict) or not level:
            refuse(path, level, 'an object of metrics and weights, for example {"makespan_s": 1.0}')
        out.append(
            tuple(
                (name, weight_from(weight, name, f"{path}.{name}"))
                for name, weight in level.items()
            )
        )
    return Objective(tuple(out))


def weight_from(value: Any, metric: str, path: str) -> float:
    if metric not in (*METRICS, *RATIOS):
        raise FileFormatError(
            f"{describe(path)}: unknown metric; {nearest(metric, (*METRICS, *RATIOS))}"
        )
    weight = number(value, path)
    if weight <= 0:
        refuse(path, value, "a positive number")
    return weight


def tasks_from(value: Any) -> Tasks:
    every = partial(col.whole_numbers, null=np.inf)
    later: col.Readers = {"names": col.texts, "user": col.ints, "checkpoint": every}
    data = col.columns(value, "tasks", TASK_COLUMNS, optional=(*later, "user_names"))
    for key, reader in later.items():
        if data[key] is not None:
            data[key] = col.column(data[key], f"tasks.{key}", reader, len(data["kind"]))
    if data["user_names"] is not None:
        data["user_names"] = col.column(data["user_names"], "tasks.user_names", col.texts)
    return Tasks(**data)


def pools_from(value: Any) -> Pools:
    data = col.columns(value, "pools", POOL_COLUMNS, optional=LATER_POOL_COLUMNS)
    for key in LATER_POOL_COLUMNS:
        if data[key] is not None:
            data[key] = col.column(data[key], f"pools.{key}", col.floats, len(data["names"]))
    return Pools(**data)


def places_from(value: Any) -> Places:
    readers: col.Readers = {"names": col.texts, "parent": col.ints}
    places = Places(**col.columns(value, "places", readers))
    check_number(places.names, "places.names")
    return places


def check_number(names: tuple[str, ...], path: str) -> None:
    if len(names) > MAX_POOLS:
        most = f"at most {MAX_POOLS:,} are allowed"
        raise FileFormatError(f"{path} has {len(names):,} entries; {most}")


def modes_from(value: Any) -> Modes:
    data = col.columns(value, "modes", MODE_COLUMNS, others=("kinds", "needs"))
    kinds, kind = col.column(data.pop("kinds"), "modes.kinds", col.texts), data.pop("kind")
    n = len(kind)
    known = f"the index of one of the {len(kinds)} kinds"
    col.check_index(kind, "modes.kind", len(kinds), known)
    if (np.diff(kind) < 0).any():
        row = int(np.flatnonzero(np.diff(kind) < 0)[0]) + 1
        order = "the modes of a kind stand together, in the order of the kinds"
        refuse(f"modes.kind[{row}]", int(kind[row]), f"at least {kind[row - 1]}: {order}")
    listed = col.rows(data.pop("needs"), "modes.needs", n)
    needs = [col.rows(entry, f"modes.needs[{k}]") for k, entry in enumerate(listed)]
    for k, entry in enumerate(needs):
        if any(type(pair) is not list or len(pair) != 2 for pair in entry):
            refuse(f"modes.needs[{k}]", entry, "a list of pairs [pool, devices]")
    flat = [pair for entry in needs for pair in entry]

    def requirement(place: int, what: str) -> Any:
        where = f"modes.needs, {what} of requirement"
        return col.ints([pair[place] for pair in flat], lambda r: f"{where} {r}")

    return Modes(
        kind_names=kinds,
        kind_ptr=np.searchsorted(kind, np.arange(len(kinds) + 1)).astype(np.int64),
        **data,
        req_ptr=np.cumsum([0] + [len(entry) for entry in needs], dtype=np.int64),
        req_pool=requirement(0, "pool"),
        req_count=requirement(1, "devices"),
    )


def links_from(value: Any, num_pools: int) -> Links:
    """Matrices from the listed links."""
    links = unlinked(num_pools)
    if value is None:
        return links
    ends: col.Readers = {"sender": col.ints, "receiver": col.ints}
    data = col.columns(value, "links", {**ends, **LINK_COLUMNS})
    for key in ends:
        known = f"the index of one of the {num_pools} pools"
        col.check_index(data[key], f"links.{key}", num_pools, known)
    sender, receiver = data["sender"], data["receiver"]
    _, first = np.unique(sender * num_pools + receiver, return_index=True)
    if len(first) < len(sender):
        row = int(np.setdiff1d(np.arange(len(sender)), first)[0])
        link = f"the link from pool {sender[row]} to pool {receiver[row]}"
        raise FileFormatError(f"links, row {row}: {link} is listed twice")
    for key in LINK_COLUMNS:
        getattr(links, key)[sender, receiver] = data[key]
    return links


def limits_from(value: Any) -> Limits:
    caps: col.Readers = {"cap_place": col.ints, "cap_w": col.floats}
    data = col.columns(value, "limits", caps, others=("metric_max",))
    if not isinstance(data["metric_max"], dict):
        refuse("limits.metric_max", data["metric_max"], "an object of metrics and their limits")
    data["metric_max"] = {
        name: number(limit, f"limits.metric_max.{name}")
        for name, limit in data["metric_max"].items()
    }
    return Limits(**data)


def tariffs_from(value: Any, num_pools: int) -> Tariffs | None:
    if value is None:
        return None
    data = col.columns(value, "tariffs", {"times": col.ints}, others=RATES)
    for key in RATES:
        data[key] = col.matrix(data[key], f"tariffs.{key}", num_pools, len(data["times"]))
    return Tariffs(**data)


def instance_to_dict(instance: Instance) -> dict[str, Any]:
    """The JSON object of an instance."""
    tasks, pools, limits = instance.tasks, instance.pools, instance.limits
    levels, saved = instance.objective.levels, tasks.checkpoint
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": instance.name,
        "problem": instance.problem,
        "tick_s": float(instance.tick_s),
        "horizon": None if instance.horizon is None else int(instance.horizon),
        "preemptive": bool(instance.preemptive),
        "objective": [{name: float(weight) for name, weight in level} for level in levels],
        "tasks": {
            "names": None if tasks.names is None else list(tasks.names),
            **listed_columns(tasks, TASK_COLUMNS),
            "release": times_listed(tasks.release),
            "deadline": times_listed(tasks.deadline),
            **listed_where_there(tasks, ("user", "user_names")),
            **({} if saved is None else {"checkpoint": times_listed(saved)}),
        },
        "edges": listed_columns(instance.edges, EDGE_COLUMNS),
        "places": {"names": list(instance.places.names), "parent": listed(instance.places.parent)},
        "pools": listed_columns(pools, POOL_COLUMNS)
        | listed_where_there(pools, LATER_POOL_COLUMNS),
        "modes": modes_to_dict(instance.modes),
        "links": links_to_dict(instance.links),
        "limits": {
            "cap_place": listed(limits.cap_place),
            "cap_w": listed(limits.cap_w),
            "metric_max": {name: float(limit) for name, limit in limits.metric_max.items()},
        },
        "tariffs": None if instance.tariffs is None else tariffs_to_dict(instance.tariffs),
        **({} if instance.stream is None else {"stream": stream_to_dict(instance.stream)}),
        **physics_to_dict(instance),
    }


def listed_columns(part: Any, names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: listed(getattr(part, name)) for name in names}


def listed_where_there(part: Any, names: Iterable[str]) -> dict[str, list[Any]]:
    return listed_columns(part, [name for name in names if getattr(part, name) is not None])


def listed(values: Any) -> list[Any]:
    """An array or names as a list, with null for what is not finite."""
    if isinstance(values, tuple):
        return list(values)
    out: list[Any] = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return [value if math.isfinite(value) else None for value in out]
    return out


def times_listed(values: Any) -> list[Any]:
    """Times as whole numbers, null for what is not finite, whatever the array's type."""
    if values.dtype.kind == "f":
        return [int(value) if np.isfinite(value) else None for value in values.tolist()]
    return listed(values)


def tariffs_to_dict(tariffs: Tariffs) -> dict[str, Any]:
    times = times_listed(np.asarray(tariffs.times))
    return {"times": times, **listed_columns(tariffs, RATES)}


def modes_to_dict(modes: Modes) -> dict[str, Any]:
    ptr = modes.req_ptr.tolist()
    pairs = np.stack((modes.req_pool, modes.req_count), axis=1).tolist()
    return {
        "kinds": list(modes.kind_names),
        **listed_columns(modes, MODE_COLUMNS),
        "needs": [pairs[a:b] for a, b in itertools.pairwise(ptr)],
    }


def links_to_dict(links: Links) -> dict[str, Any] | None:
    differs = (links.latency_s != unlinked(len(links.latency_s)).latency_s) | (links.s_per_gb != 0)
    sender, receiver = np.nonzero(differs | (links.j_per_gb != 0))
    if len(sender) == 0:
        return None
    entries = {key: listed(getattr(links, key)[sender, receiver]) for key in LINK_COLUMNS}
    return {"sender": sender.tolist(), "receiver": receiver.tolist(), **entries}
