"""The ``stream`` of an instance in JSON: null for an ingress from where a pool cannot be reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.model.files import json_columns as col
from optbench.model.streams import Outages, Stream

STREAM_KEYS = ("ingress_names", "latency_s", "ingress", "sent_to")
OUTAGE_COLUMNS = ("time", "pool", "devices", "announced")


def stream_from(value: Any, num_tasks: int, num_pools: int) -> Stream | None:
    if value is None:
        return None
    data = col.table(value, "stream", STREAM_KEYS, ("opens", "outages"))
    names = col.column(data, "ingress_names", "stream", "text")
    path = "stream.latency_s"
    lines = [col.rows(row, f"{path}[{g}]", num_pools) for g, row in enumerate(col.rows(data["latency_s"], path, len(names)))]
    flat = [entry for row in lines for entry in row]
    latency = col.floats(flat, lambda i: f"{path}[{i // num_pools}][{i % num_pools}]", null=np.inf).reshape(len(names), num_pools)
    return Stream(
        ingress=col.column(data, "ingress", "stream", "int", num_tasks),
        latency_s=latency,
        sent_to=col.column(data, "sent_to", "stream", "int", num_tasks),
        outages=Outages() if data["outages"] is None else outages_from(data["outages"]),
        opens=None if data["opens"] is None else col.whole(data["opens"], "stream.opens"),
        ingress_names=names,
    )


def outages_from(value: Any) -> Outages:
    path = "stream.outages"
    data = col.table(value, path, OUTAGE_COLUMNS)
    n = len(col.rows(data["time"], f"{path}.time"))
    return Outages(
        col.column(data, "time", path, "int"),
        col.column(data, "pool", path, "int", n),
        col.column(data, "devices", path, "int", n),
        col.column(data, "announced", path, "bool", n),
    )


def stream_to_dict(stream: Stream | None) -> dict[str, Any] | None:
    if stream is None:
        return None
    way = stream.latency_s
    outages = stream.outages
    return {
        "ingress_names": list(stream.ingress_names),
        "latency_s": [[value if np.isfinite(value) else None for value in row] for row in way.tolist()],
        "ingress": stream.ingress.tolist(),
        "sent_to": stream.sent_to.tolist(),
        "opens": None if stream.opens is None else int(stream.opens),
        "outages": _outages_to_dict(outages) if len(outages.time) else None,
    }


def _outages_to_dict(outages: Outages) -> dict[str, Any]:
    rest = {key: getattr(outages, key).tolist() for key in OUTAGE_COLUMNS[1:]}
    return {"time": [int(time) for time in outages.time.tolist()], **rest}
