"""A user's devices and links, from a JSON file.

    {"devices": [{"name": "big", "gflops": 9000, "gb_per_s": 800, "idle_w": 40, "alpha_w": 120,
                  "beta_w": 60, "gamma_w": 40, "clocks": [0.5, 1.0], "memory_gb": 24},
                 {"profile": "L4"}],
     "links": {"gb_per_s": 12.0, "latency_s": 5e-5, "overlap": 0.5, "joule_per_gb": 2.0},
     "speeds": [[1.0, 0.8], [0.9, 1.0]]}

A device is a shipped profile, or has the fields of ``TrainingDevice``. Links are one number for all
pairs of devices, or a matrix; what is left out is taken from the parameters of the problem.
``speeds`` has a row for each recorded window. ``optbench gpu cores`` writes such a file for the
cores of a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, naming, nearest
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json
from optbench.shapes.gnn_training.training_data import DeviceLinks, Floats, TrainingDevice
from optbench.shapes.protocol.plain_data import from_plain

from ._training_devices import training_devices

# ``about`` says where the figures come from; nothing reads it.
FIELDS = ("devices", "links", "speeds", "about")
LINK_FIELDS = ("gb_per_s", "latency_s", "overlap", "joule_per_gb")


@dataclass(frozen=True, eq=False)
class OwnDevices:
    """Devices, their links, and recorded speeds (no rows: full speed)."""

    devices: tuple[TrainingDevice, ...]
    links: DeviceLinks
    speeds: Floats


def read_devices(file: str, gb_per_s: float, latency_s: float, overlap: float) -> OwnDevices:
    """Read a file; the numbers are those of links that it does not state."""
    path = Path(file)
    with naming(shown(path)):
        held = parse_json(read_text(path))
        _refuse_unknown(held, FIELDS, "the document")
        rows = held.get("devices")
        if not isinstance(rows, list) or not rows:
            raise FileFormatError(
                "devices is missing or empty; it is a list of at least one device"
            )
        devices = tuple(_device(row, f"devices[{k}]") for k, row in enumerate(rows))
        links = {"gb_per_s": gb_per_s, "latency_s": latency_s, "overlap": overlap}
        given = held.get("links", {})
        _refuse_unknown(given, LINK_FIELDS, "links")
        speeds = from_plain(Floats, held.get("speeds", []), "speeds")
        if speeds.size == 0:
            speeds = np.zeros((0, 0))
        return OwnDevices(devices, _links({**links, **given}, len(devices)), speeds)


def _device(row: Any, where: str) -> TrainingDevice:
    """A device by its profile, or by its own figures."""
    if isinstance(row, dict) and "profile" in row:
        _refuse_unknown(row, ("profile",), where)
        (found,) = training_devices(from_plain(str, row["profile"], f"{where}.profile"), 1)
        return found
    device: TrainingDevice = from_plain(TrainingDevice, row, where)
    return device


def _links(given: dict[str, Any], count: int) -> DeviceLinks:
    def matrix(name: str) -> Floats:
        value = given[name]
        if isinstance(value, list):
            out: Floats = from_plain(Floats, value, f"links.{name}")
        else:
            out = np.full((count, count), from_plain(float, value, f"links.{name}"))
        if out.shape != (count, count):
            raise FileFormatError(
                f"links.{name} has shape {out.shape}; it must be a number or ({count}, {count})"
            )
        return out

    return DeviceLinks(
        matrix("gb_per_s"),
        matrix("latency_s"),
        from_plain(float, given["overlap"], "links.overlap"),
        from_plain(float, given.get("joule_per_gb", 0.0), "links.joule_per_gb"),
    )


def _refuse_unknown(held: Any, known: tuple[str, ...], where: str) -> None:
    """Refuse what is no object, and fields that nobody reads."""
    if not isinstance(held, dict):
        raise FileFormatError(f"{where} is {held!r:.60}; it must be an object")
    for name in held:
        if name not in known:
            raise FileFormatError(f"{where}: {name!r} is unknown; {nearest(name, known)}")
