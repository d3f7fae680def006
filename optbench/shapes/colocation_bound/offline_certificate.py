"""The text of an offline bound's certificate: bins, classes, held value and multipliers."""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.shapes.colocation.colocation_data import Colocation, Ints
from optbench.shapes.colocation_bound.offline_demand import check_edges, job_classes
from optbench.shapes.colocation_bound.offline_proof import OfflineMultipliers
from optbench.shapes.colocation_bound.offline_relaxation import PRICE_BITS, Numbers

METHOD = "colocation_offline_lp"
# Digits of a multiplier; larger ones are of no use, a price of 10^9 W has 19.
MOST_DIGITS = 40
MOST_BINS = 400
NAMES = tuple(OfflineMultipliers.__dataclass_fields__)


@dataclass(frozen=True)
class OfflineCertificate:
    """What a bound is proved from. ``held_shortfall_s`` is None where none is held."""

    level: int
    held_shortfall_s: float | None
    groups: int
    edges: Ints
    multipliers: OfflineMultipliers


def write_certificate(given: OfflineCertificate) -> str:
    """Return the certificate as JSON; float multipliers are rounded down."""
    flat = [_whole(getattr(given.multipliers, name)) for name in NAMES]
    packed = base64.b64encode(zlib.compress(";".join(flat).encode(), 6)).decode()
    text = {
        "edges": given.edges.tolist(),
        "groups": given.groups,
        "held": given.held_shortfall_s,
        "level": given.level,
        "method": METHOD,
        "multipliers": packed,
    }
    return json.dumps(text, separators=(",", ":"))


def _whole(values: Numbers) -> str:
    scaled = np.floor(np.ldexp(values.astype(float), PRICE_BITS))
    return ",".join(str(int(v)) for v in scaled.ravel().tolist())


def read_certificate(text: str, data: Colocation) -> OfflineCertificate:
    """Read an untrusted certificate; its arrays must have the sizes of the instance."""
    try:
        return _read(json.loads(text), data)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise OptbenchError(f"the certificate cannot be read ({error})") from None


def _read(given: Any, data: Colocation) -> OfflineCertificate:
    if given["method"] != METHOD:
        raise ValueError(f"its method is {given['method']!r:.40}, not {METHOD!r}")
    level, groups, held = given["level"], given["groups"], given["held"]
    if type(level) is not int or level not in (0, 1) or type(groups) is not int or groups < 1:
        raise ValueError(f"level {level!r:.20} and groups {groups!r:.20}")
    if held is not None and not (
        type(held) in (int, float) and math.isfinite(held) and held >= 0 and level == 1
    ):
        raise ValueError(f"held at {held!r:.20} at level {level}")
    if not all(type(e) is int for e in given["edges"]):
        raise ValueError("edges of bins are whole numbers")
    if len(given["edges"]) > MOST_BINS + 1:
        raise ValueError(f"{len(given['edges']) - 1} bins; there are at most {MOST_BINS}")
    edges = np.array(given["edges"], dtype=np.int64)
    check_edges(data, edges)
    n, c, b = data.jobs.count, job_classes(data, groups).count, len(edges) - 1
    shapes = [(n, b), (n,), (c, b), (c, b), (c, b), (c, b)]
    most = sum(math.prod(shape) for shape in shapes) * (MOST_DIGITS + 1) + len(shapes)
    unpack = zlib.decompressobj()
    packed = unpack.decompress(base64.b64decode(given["multipliers"], validate=True), most + 1)
    parts = packed.decode("ascii").split(";")
    if len(packed) > most or len(parts) != len(shapes):
        raise ValueError(f"{len(parts)} lists of multipliers, not {len(shapes)}")
    arrays = [_array(part, shape) for part, shape in zip(parts, shapes, strict=True)]
    held_s = None if held is None else float(held)
    return OfflineCertificate(level, held_s, groups, edges, OfflineMultipliers(*arrays))


def _array(text: str, shape: tuple[int, ...]) -> Numbers:
    words = text.split(",")
    if len(words) != math.prod(shape):
        raise ValueError(f"{len(words)} multipliers of {math.prod(shape)}")
    out = np.empty(len(words), dtype=object)
    for k, word in enumerate(words):
        if not word.isdecimal() or len(word) > MOST_DIGITS:
            raise ValueError(f"{word[:20]!r} is no multiplier")
        out[k] = int(word)
    return out.reshape(shape)
