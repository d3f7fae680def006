"""Instances as JSON, version 2: the columns of Instance, with these differences made for readers and for size.

* null stands for what is not there: a deadline, a memory limit, a clock, a link's latency.
* A mode names its kind and its needs, ``[[pool, devices], ...]``, instead of pointers into flat columns.
* Only links that differ from "no link" (and from the free diagonal) are listed.

Times are whole ticks. Version 1 is still read (``files.version1``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, ModelError, nearest
from optbench.model.files import json_columns as col
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.stream_json import stream_from, stream_to_dict
from optbench.model.files.strict_json import parse_json, render, write_text
from optbench.model.files.version1 import current_instance
from optbench.model.instance import Edges, Floats, Instance, Limits, Links, Modes, Places, Pools, Tariffs, Tasks
from optbench.model.objective import METRICS, RATIOS, Objective
from optbench.model.plain_instance import unlinked
from optbench.model.validate import validate
from optbench.typed_values import describe, number, refuse

FORMAT, VERSION, OLDEST = "optbench-instance", 2, 1
# Tables of pools by pools and of tasks by modes follow from short columns: bounded here, before they are made.
MAX_POOLS = 4096
MAX_PAIRS = 50_000_000

KEYS = (
    "format",
    "version",
    "name",
    "tick_s",
    "horizon",
    "preemptive",
    "objective",
    "tasks",
    "edges",
    "places",
    "pools",
    "modes",
    "limits",
)
OPTIONAL = ("problem", "links", "tariffs", "stream")
TASK_COLUMNS = ("kind", "units", "release", "deadline", "deadline_hard", "weight", "memory_gb")
POOL_COLUMNS = ("names", "place", "count", "idle_w", "sleep_w", "gated", "memory_gb")
MODE_COLUMNS = ("kinds", "kind", "time_per_unit_s", "energy_per_unit_j", "power_w", "clock", "needs")
LINK_COLUMNS = ("sender", "receiver", "latency_s", "s_per_gb", "j_per_gb")
TARIFF_COLUMNS = ("times", "price_usd_per_kwh", "carbon_g_per_kwh")


def read_instance(path: str | Path) -> Instance:
    """The valid instance in an optbench JSON file."""
    path = Path(path)
    text = read_text(path)
    try:
        return validate(instance_from_dict(parse_json(text)))
    except (FileFormatError, ModelError) as error:
        raise FileFormatError(f"{shown(path)}: {error}") from None


def write_instance(instance: Instance, path: str | Path) -> None:
    write_text(Path(path), instance_to_json(instance))


def instance_to_json(instance: Instance) -> str:
    return render(instance_to_dict(instance))


def instance_from_dict(data: Any) -> Instance:
    """An instance, its form checked but not its meaning: ``validate`` does that."""
    if isinstance(data, dict) and col.header(data, FORMAT, VERSION, OLDEST) == 1:
        data = current_instance(data)
    data = col.table(data, "", KEYS, OPTIONAL)
    pools = pools_from(data["pools"])
    modes, tasks = modes_from(data["modes"]), tasks_from(data["tasks"])
    check_sizes(tasks, modes, pools)
    return Instance(
        name=col.text(data["name"], "name"),
        tick_s=number(data["tick_s"], "tick_s"),
        horizon=None if data["horizon"] is None else col.whole(data["horizon"], "horizon"),
        tasks=tasks,
        edges=edges_from(data["edges"]),
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
    )


def check_sizes(tasks: Tasks, modes: Modes, pools: Pools) -> None:
    if len(pools.names) > MAX_POOLS:
        raise FileFormatError(f"pools.names has {len(pools.names):,} entries; at most {MAX_POOLS:,} are allowed")
    sizes = np.diff(modes.kind_ptr)
    known = tasks.kind[(tasks.kind >= 0) & (tasks.kind < len(sizes))]
    pairs = int(sizes[known].sum()) if len(known) else 0
    if pairs > MAX_PAIRS:
        raise FileFormatError(f"tasks and their modes make {pairs:,} pairs; at most {MAX_PAIRS:,} are allowed")


def objective_from(value: Any) -> Objective:
    levels = col.rows(value, "objective")
    if not levels:
        refuse("objective", levels, 'a list of levels, for example [{"makespan_s": 1.0}]')
    out = []
    for k, level in enumerate(levels):
        path = f"objective[{k}]"
        if not isinstance(level, dict) or not level:
            refuse(path, level, 'an object of metrics and weights, for example {"makespan_s": 1.0}')
        out.append(tuple((name, weight_from(weight, name, f"{path}.{name}")) for name, weight in level.items()))
    return Objective(tuple(out))


def weight_from(value: Any, metric: str, path: str) -> float:
    if metric not in (*METRICS, *RATIOS):
        raise FileFormatError(f"{describe(path)}: unknown metric; {nearest(metric, (*METRICS, *RATIOS))}")
    weight = number(value, path)
    if weight <= 0:
        refuse(path, value, "a positive number")
    return weight


def tasks_from(value: Any) -> Tasks:
    data = col.table(value, "tasks", TASK_COLUMNS, ("names",))
    n = len(col.rows(data["kind"], "tasks.kind"))
    return Tasks(
        kind=col.column(data, "kind", "tasks", "int"),
        units=col.column(data, "units", "tasks", "float", n),
        release=col.column(data, "release", "tasks", "int", n),
        deadline=deadlines_from(data["deadline"], n),
        deadline_hard=col.column(data, "deadline_hard", "tasks", "bool", n),
        weight=col.column(data, "weight", "tasks", "float", n),
        memory_gb=col.column(data, "memory_gb", "tasks", "float", n),
        names=None if data["names"] is None else col.column(data, "names", "tasks", "text", n),
    )


def deadlines_from(value: Any, length: int) -> Floats:
    """Whole ticks, null for none."""
    rows = col.rows(value, "tasks.deadline", length)
    given = [row for row, entry in enumerate(rows) if entry is not None]
    out = np.full(length, np.inf)
    out[given] = col.ints([rows[row] for row in given], lambda k: f"tasks.deadline[{given[k]}]")
    return out


def edges_from(value: Any) -> Edges:
    data = col.table(value, "edges", ("source", "target", "data_gb"))
    n = len(col.rows(data["source"], "edges.source"))
    return Edges(
        col.column(data, "source", "edges", "int"),
        col.column(data, "target", "edges", "int", n),
        col.column(data, "data_gb", "edges", "float", n),
    )


def places_from(value: Any) -> Places:
    data = col.table(value, "places", ("names", "parent"))
    names = col.column(data, "names", "places", "text")
    if len(names) > MAX_POOLS:
        raise FileFormatError(f"places.names has {len(names):,} entries; at most {MAX_POOLS:,} are allowed")
    return Places(names, col.column(data, "parent", "places", "int", len(names)))


def pools_from(value: Any) -> Pools:
    data = col.table(value, "pools", POOL_COLUMNS)
    names = col.column(data, "names", "pools", "text")
    n = len(names)
    return Pools(
        names=names,
        place=col.column(data, "place", "pools", "int", n),
        count=col.column(data, "count", "pools", "int", n),
        idle_w=col.column(data, "idle_w", "pools", "float", n),
        sleep_w=col.column(data, "sleep_w", "pools", "float", n),
        gated=col.column(data, "gated", "pools", "bool", n),
        memory_gb=col.column(data, "memory_gb", "pools", "float", n, null=np.inf),
    )


def modes_from(value: Any) -> Modes:
    data = col.table(value, "modes", MODE_COLUMNS)
    kinds = col.column(data, "kinds", "modes", "text")
    kind = col.column(data, "kind", "modes", "int")
    n = len(kind)
    outside = (kind < 0) | (kind >= len(kinds))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        refuse(f"modes.kind[{row}]", int(kind[row]), f"the index of one of the {len(kinds)} kinds")
    if (np.diff(kind) < 0).any():
        row = int(np.flatnonzero(np.diff(kind) < 0)[0]) + 1
        allowed = f"at least {kind[row - 1]}: the modes of a kind stand together, in the order of the kinds"
        refuse(f"modes.kind[{row}]", int(kind[row]), allowed)
    needs = [col.rows(entry, f"modes.needs[{k}]") for k, entry in enumerate(col.rows(data["needs"], "modes.needs", n))]
    flat = [pair for entry in needs for pair in entry]
    if any(type(pair) is not list or len(pair) != 2 for pair in flat):
        k = next(k for k, entry in enumerate(needs) if any(type(pair) is not list or len(pair) != 2 for pair in entry))
        refuse(f"modes.needs[{k}]", needs[k], "a list of pairs [pool, devices]")
    return Modes(
        kind_names=kinds,
        kind_ptr=np.concatenate(([0], np.cumsum(np.bincount(kind, minlength=len(kinds))))).astype(np.int64),
        time_per_unit_s=col.column(data, "time_per_unit_s", "modes", "float", n),
        energy_per_unit_j=col.column(data, "energy_per_unit_j", "modes", "float", n),
        power_w=col.column(data, "power_w", "modes", "float", n),
        clock=col.column(data, "clock", "modes", "float", n, null=np.nan),
        req_ptr=np.cumsum([0] + [len(entry) for entry in needs], dtype=np.int64),
        req_pool=col.ints([pair[0] for pair in flat], lambda r: f"modes.needs, pool of requirement {r}"),
        req_count=col.ints([pair[1] for pair in flat], lambda r: f"modes.needs, devices of requirement {r}"),
    )


def links_from(value: Any, num_pools: int) -> Links:
    """Matrices from the listed links."""
    links = unlinked(num_pools)
    if value is None:
        return links
    data = col.table(value, "links", LINK_COLUMNS)
    sender = col.column(data, "sender", "links", "int")
    n = len(sender)
    receiver = col.column(data, "receiver", "links", "int", n)
    for name, ends in (("sender", sender), ("receiver", receiver)):
        bad = np.flatnonzero((ends < 0) | (ends >= num_pools))
        if len(bad):
            refuse(f"links.{name}[{bad[0]}]", int(ends[bad[0]]), f"the index of one of the {num_pools} pools")
    _, first = np.unique(sender * num_pools + receiver, return_index=True)
    if len(first) < n:
        row = int(np.setdiff1d(np.arange(n), first)[0])
        raise FileFormatError(f"links, row {row}: the link from pool {sender[row]} to pool {receiver[row]} is listed twice")
    links.latency_s[sender, receiver] = col.column(data, "latency_s", "links", "float", n, null=np.inf)
    links.s_per_gb[sender, receiver] = col.column(data, "s_per_gb", "links", "float", n)
    links.j_per_gb[sender, receiver] = col.column(data, "j_per_gb", "links", "float", n)
    return links


def limits_from(value: Any) -> Limits:
    data = col.table(value, "limits", ("cap_place", "cap_w", "metric_max"))
    place = col.column(data, "cap_place", "limits", "int")
    if not isinstance(data["metric_max"], dict):
        refuse("limits.metric_max", data["metric_max"], "an object of metrics and their limits")
    metric_max = {name: number(limit, f"limits.metric_max.{name}") for name, limit in data["metric_max"].items()}
    return Limits(place, col.column(data, "cap_w", "limits", "float", len(place)), metric_max)


def tariffs_from(value: Any, num_pools: int) -> Tariffs | None:
    if value is None:
        return None
    data = col.table(value, "tariffs", TARIFF_COLUMNS)
    times = col.column(data, "times", "tariffs", "int")

    def matrix(key: str) -> Floats:
        path = f"tariffs.{key}"
        lines = [col.rows(row, f"{path}[{p}]", len(times)) for p, row in enumerate(col.rows(data[key], path, num_pools))]
        flat = [entry for row in lines for entry in row]
        return col.floats(flat, lambda i: f"{path}[{i // len(times)}][{i % len(times)}]").reshape(num_pools, len(times))

    return Tariffs(times, matrix("price_usd_per_kwh"), matrix("carbon_g_per_kwh"))


def instance_to_dict(instance: Instance) -> dict[str, Any]:
    """The JSON object of an instance."""
    tasks, edges, pools, limits, tariffs = instance.tasks, instance.edges, instance.pools, instance.limits, instance.tariffs
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": instance.name,
        "problem": instance.problem,
        "tick_s": float(instance.tick_s),
        "horizon": None if instance.horizon is None else int(instance.horizon),
        "preemptive": bool(instance.preemptive),
        "objective": [{name: float(weight) for name, weight in level} for level in instance.objective.levels],
        "tasks": {
            "names": None if tasks.names is None else list(tasks.names),
            **{key: listed(getattr(tasks, key)) for key in TASK_COLUMNS},
            "release": times_listed(tasks.release),
            "deadline": times_listed(tasks.deadline),
        },
        "edges": {key: listed(getattr(edges, key)) for key in ("source", "target", "data_gb")},
        "places": {"names": list(instance.places.names), "parent": listed(instance.places.parent)},
        "pools": {"names": list(pools.names), **{key: listed(getattr(pools, key)) for key in POOL_COLUMNS[1:]}},
        "modes": modes_to_dict(instance.modes),
        "links": links_to_dict(instance.links),
        "limits": {
            "cap_place": listed(limits.cap_place),
            "cap_w": listed(limits.cap_w),
            "metric_max": {name: float(limit) for name, limit in limits.metric_max.items()},
        },
        "tariffs": None if tariffs is None else tariffs_to_dict(tariffs),
        **({} if instance.stream is None else {"stream": stream_to_dict(instance.stream)}),
    }


def listed(values: Any) -> list[Any]:
    """An array as a list, with null for what is not finite."""
    out: list[Any] = values.tolist()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return [value if np.isfinite(value) else None for value in out]
    return out


def times_listed(values: Any) -> list[Any]:
    """Times as whole numbers, null for what is not finite, whatever the array's type."""
    if values.dtype.kind == "f":
        return [int(value) if np.isfinite(value) else None for value in values.tolist()]
    return listed(values)


def tariffs_to_dict(tariffs: Tariffs) -> dict[str, Any]:
    rates = {key: listed(getattr(tariffs, key)) for key in TARIFF_COLUMNS[1:]}
    return {"times": times_listed(np.asarray(tariffs.times)), **rates}


def modes_to_dict(modes: Modes) -> dict[str, Any]:
    ptr, pairs = modes.req_ptr.tolist(), np.stack((modes.req_pool, modes.req_count), axis=1).tolist()
    return {
        "kinds": list(modes.kind_names),
        "kind": listed(modes.kind),
        **{key: listed(getattr(modes, key)) for key in MODE_COLUMNS[2:-1]},
        "needs": [pairs[ptr[k] : ptr[k + 1]] for k in range(len(ptr) - 1)],
    }


def links_to_dict(links: Links) -> dict[str, Any] | None:
    differs = (links.latency_s != unlinked(len(links.latency_s)).latency_s) | (links.s_per_gb != 0)
    differs |= links.j_per_gb != 0
    sender, receiver = np.nonzero(differs)
    if len(sender) == 0:
        return None
    entries = {key: listed(getattr(links, key)[sender, receiver]) for key in LINK_COLUMNS[2:]}
    return {"sender": sender.tolist(), "receiver": receiver.tolist(), **entries}
