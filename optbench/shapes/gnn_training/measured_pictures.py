"""Pictures of what devices did while a plan was measured, from the samples of their processes.

A sample (``device_rows`` of the provenance, a list per device) has ``at_s``, the time at its end,
``seconds``, ``busy_s``, perhaps ``waited_s``, the ``step`` that follows, and ``sent_mb``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optbench.rendering import resolve
from optbench.shapes.gnn_training.training_data import GnnTraining
from optbench.shapes.gnn_training.training_pictures import device_names

LANES, LANE = "optbench.html.device_pictures:share_lanes", "optbench.html.device_pictures:Lane"
CURVES = "optbench.html.device_pictures:step_curves"
ROWS = "device_rows"
NEEDED = ("device", "at_s", "seconds", "busy_s", "step", "sent_mb")
SUMMED = ("seconds", "busy_s", "waited_s", "sent_mb")
# Samples of a device that are drawn; of more, neighbours are joined.
MOST_SAMPLES = 300

Sample = Mapping[str, Any]


def measured_pictures(data: GnnTraining, provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return utilisation and communication over time by title; empty without samples."""
    found = samples_of(provenance, data.num_devices)
    if not found:
        return {}
    names = device_names(data)
    return {
        "Utilisation of devices": utilisation(found, names),
        "Communication": communication(found, names),
    }


def samples_of(provenance: Mapping[str, Any], num_devices: int) -> dict[int, list[Sample]]:
    """The samples of each device in order, of provenances that have them."""
    out: dict[int, list[Sample]] = {}
    for rows in provenance.get(ROWS, ()):
        for row in rows:
            if all(key in row for key in NEEDED) and 0 <= row["device"] < num_devices:
                out.setdefault(row["device"], []).append(row)
    joined = {d: _joined(sorted(rows, key=lambda row: row["at_s"])) for d, rows in out.items()}
    return dict(sorted(joined.items()))


def _joined(rows: Sequence[Sample]) -> list[Sample]:
    """At most so many samples as are drawn."""
    width = -(-len(rows) // MOST_SAMPLES)
    out: list[Sample] = []
    for begin in range(0, len(rows), width):
        group = rows[begin : begin + width]
        summed = {key: sum(row[key] for row in group) for key in SUMMED if key in group[0]}
        out.append({**group[-1], **summed})
    return out


def utilisation(found: Mapping[int, Sequence[Sample]], names: Sequence[str]) -> str:
    """A lane per device: the shares of the time in which it computed and waited for others."""
    lane = resolve(LANE)
    first = min(rows[0]["at_s"] - rows[0]["seconds"] for rows in found.values())
    lanes, busy, whole = {}, 0.0, 0.0
    for d, rows in found.items():
        begin = max(rows[0]["at_s"] - rows[0]["seconds"] - first, 0.0)
        edges = [begin, *(max(row["at_s"] - first, begin) for row in rows)]
        shares = {"computing": [_share(row["busy_s"], row["seconds"]) for row in rows]}
        if all("waited_s" in row for row in rows):
            shares["waiting for others"] = [
                min(_share(row["waited_s"], row["seconds"]), 1 - share)
                for row, share in zip(rows, shares["computing"], strict=True)
            ]
        lanes[names[d]] = lane(edges, shares)
        busy += sum(row["busy_s"] for row in rows)
        whole += sum(row["seconds"] for row in rows)
    words = f"Measured: devices computed in {100 * _share(busy, whole):.0f} % of the time; blank "
    words += "is sending, and waiting for a core"
    return str(resolve(LANES)(lanes, "s", words))


def communication(found: Mapping[int, Sequence[Sample]], names: Sequence[str]) -> str:
    """What each device sent per step, over the steps; the first sample tells where they begin."""
    curves = {}
    for d, rows in found.items():
        edges, values = [float(rows[0]["step"])], list[float]()
        for row in rows[1:]:
            if row["step"] > edges[-1]:
                values.append(row["sent_mb"] / (row["step"] - edges[-1]))
                edges.append(float(row["step"]))
        if values:
            curves[names[d]] = (edges, values)
    drawn = curves or {"nothing sent": ([0.0, 1.0], [0.0])}
    return str(resolve(CURVES)(drawn, "step", "MB per step"))


def _share(part: float, whole: float) -> float:
    return min(part / whole, 1.0) if whole > 0 else 0.0
