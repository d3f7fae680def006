"""The ``stream`` of an instance in JSON: null where a pool cannot be reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.model.files import json_columns as col
from optbench.model.streams import Outages, Stream

STREAM_COLUMNS: col.Readers = {"ingress": col.ints, "sent_to": col.ints}
OUTAGE_COLUMNS: col.Readers = {
    **dict.fromkeys(("time", "pool", "devices"), col.ints),
    "announced": col.bools,
}


def stream_from(value: Any, num_tasks: int, num_pools: int) -> Stream | None:
    if value is None:
        return None
    others, optional = ("ingress_names", "latency_s"), ("opens", "outages")
    data = col.columns(value, "stream", STREAM_COLUMNS, num_tasks, others=others, optional=optional)
    names, latency, opens, outages = (data[key] for key in (*others, *optional))
    names = col.column(names, "stream.ingress_names", col.texts)
    data["ingress_names"] = names
    data["latency_s"] = col.matrix(latency, "stream.latency_s", len(names), num_pools, np.inf)
    data["opens"] = None if opens is None else col.whole(opens, "stream.opens")
    if outages is not None:
        outages = col.columns(outages, "stream.outages", OUTAGE_COLUMNS)
    data["outages"] = Outages(**(outages or {}))
    return Stream(**data)


def stream_to_dict(stream: Stream) -> dict[str, Any]:
    outages = {key: getattr(stream.outages, key).tolist() for key in OUTAGE_COLUMNS}
    outages["time"] = [int(time) for time in outages["time"]]
    return {
        "ingress_names": list(stream.ingress_names),
        "latency_s": [
            [value if np.isfinite(value) else None for value in row]
            for row in stream.latency_s.tolist()
        ],
        "ingress": stream.ingress.tolist(),
        "sent_to": stream.sent_to.tolist(),
        "opens": None if stream.opens is None else int(stream.opens),
        "outages": outages if outages["time"] else None,
    }
