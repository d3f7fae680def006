"""Names and places of every feature, and how its values are scaled.

A column has a *measure*. Those in LOGARITHMIC are stored as log(1 + value / scale), those in RATIO
as value / scale, ``share`` (0 to 1), ``flag`` (0 or 1) and ``plain`` as they are; the scales are
those of the instance (``scales.Scales``), so that graphs of small and large instances have similar
values and every value can be recovered (``physical``). The logarithms of the scales are features of
the cluster.

Of every kind of node, the columns in STATIC come first and those in DYNAMIC last; in a static graph
these describe the moment before anything has started.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from optbench.errors import UnknownNameError

EdgeType = tuple[str, str, str]
# Names of columns, in order, with their measures.
Columns = Mapping[str, str]

NODE_TYPES = ("task", "device", "node", "cluster")

# Values in s, J, W, GB, as weights and as numbers of things; and in GB of memory, USD per kWh and g
# per kWh.
LOGARITHMIC = ("time", "energy", "power", "data", "weight", "count")
RATIO = ("memory", "price", "carbon")

# The metrics that an objective can weigh, in the order of the cluster's columns; makespan counts as
# makespan_s.
AIMS = ("makespan_s", "energy_j", "flow_time_s", "tardiness_s", "cost_usd", "carbon_g")

TASK: Columns = MappingProxyType(
    {
        "shortest_time": "time",  # in its fastest mode
        "longest_time": "time",
        "least_energy": "energy",
        "most_energy": "energy",
        "release": "time",
        "has_deadline": "flag",
        "deadline": "time",  # 0 without one
        "deadline_hard": "flag",
        "weight": "weight",
        "memory": "memory",  # on each device
        "modes": "count",  # that fit
        "predecessors": "count",
        "successors": "count",
        "head": "share",  # of the critical path, that must pass before it starts
        "tail": "share",  # of the critical path, that must follow its end
    }
)
DEVICE: Columns = MappingProxyType(
    {
        "count": "count",  # devices in the pool
        "share": "share",  # of all devices of the instance
        "idle_power": "power",  # of one device
        "sleep_power": "power",  # of one device
        "gated": "flag",  # it sleeps when it is not busy
        "memory": "memory",  # 1 without a limit
        "memory_limited": "flag",
    }
)
PLACE: Columns = MappingProxyType(
    {
        "devices": "count",  # at the place and below it
        "rest_power": "power",  # of all of them when none is busy
        "capped": "flag",
        "cap": "power",  # 0 without one
    }
)
CLUSTER: Columns = MappingProxyType(
    {
        **PLACE,
        "tasks": "count",
        "has_horizon": "flag",
        "horizon": "time",  # 0 without one
        "preemptive": "flag",
        "log_time_scale": "plain",  # ln of seconds
        "log_energy_scale": "plain",  # ln of J
        "log_power_scale": "plain",  # ln of W
        "log_data_scale": "plain",  # ln of GB
        # Shares of the objective's first level, each weight times the size of its metric.
        **{f"aim_{name}": "share" for name in AIMS},
    }
)
STATIC: Mapping[str, Columns] = MappingProxyType(
    {"task": TASK, "device": DEVICE, "node": PLACE, "cluster": CLUSTER}
)

DYNAMIC: Mapping[str, Columns] = MappingProxyType(
    {
        "task": {
            "remaining": "share",  # of its units
            "ready": "flag",  # released, its predecessors ended and their data arrived
            "running": "flag",
            "waited": "time",  # since it was ready
        },
        "device": {
            "free": "share",  # of the pool's devices
            "next_free": "time",  # until the first busy device is free, 0 when none is busy
            "price": "price",  # now; 0 without a tariff
            "carbon": "carbon",  # now; 0 without a tariff
        },
        "node": {
            "power": "power",  # drawn now
            "headroom": "power",  # left under the cap, 0 without one
        },
        "cluster": {
            "power": "power",
            "headroom": "power",
            "now": "time",
            "done": "share",  # tasks that have ended
        },
    }
)

COLUMNS: Mapping[str, Columns] = MappingProxyType(
    {kind: {**STATIC[kind], **DYNAMIC[kind]} for kind in NODE_TYPES}
)

# A task in a mode: on the edges to each pool that the mode needs, and in the table of pairs.
PAIR: Columns = MappingProxyType(
    {
        "time": "time",  # the whole task
        "energy": "energy",  # the whole task
        "power": "power",  # the highest drawn
        "rest_power": "power",  # what its devices would draw if they were not busy
        "has_clock": "flag",
        "clock": "share",  # of the top clock, 1 where it has no meaning
        "way": "time",  # ingress latency of the task
    }
)

# The need of a mode for one of its pools; the share is of the pool's devices.
NEED: Columns = MappingProxyType({"devices": "count", "share": "share", "primary": "flag"})

PRECEDES: EdgeType = ("task", "precedes", "task")
RUNS_ON: EdgeType = ("task", "runs_on", "device")
LINKED: EdgeType = ("device", "linked", "device")
INSIDE: tuple[EdgeType, ...] = (
    ("device", "in", "node"),
    ("device", "in", "cluster"),
    ("node", "in", "node"),
    ("node", "in", "cluster"),
)
FORWARD: tuple[EdgeType, ...] = (PRECEDES, RUNS_ON, LINKED, *INSIDE)


def reverse(edge: EdgeType) -> EdgeType:
    return edge[2], f"rev_{edge[1]}", edge[0]


EDGE_TYPES: tuple[EdgeType, ...] = (*FORWARD, *(reverse(edge) for edge in FORWARD))

# The other edges have no features; a reverse edge has those of its original.
EDGES: Mapping[EdgeType, Columns] = MappingProxyType(
    {
        PRECEDES: {"volume": "data"},
        RUNS_ON: {**PAIR, **NEED},
        # Of the mean volume, latency apart.
        LINKED: {"latency": "time", "transfer_time": "time", "transfer_energy": "energy"},
    }
)


def column(kind: str, name: str) -> int:
    """Return the position of a feature of a kind of node."""
    if kind not in COLUMNS:
        raise UnknownNameError("kind of node", kind, COLUMNS)
    if name not in COLUMNS[kind]:
        raise UnknownNameError(f"column of {kind!r}:", name, COLUMNS[kind])
    return list(COLUMNS[kind]).index(name)
