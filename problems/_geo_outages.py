"""Parse outages of sites (``us-west@36h+12h``, ``largest@2d+6h``) and bursts (``3@36h+6h``)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from optbench.arguments import require
from optbench.errors import nearest
from optbench.model.instance import Bools, Floats, Ints
from optbench.units import SECONDS_PER

from ._geo_arrivals import Burst

FORM = re.compile(r"([\w.-]+)@(\d+(?:\.\d+)?)(s|m|h|d)\+(\d+(?:\.\d+)?)(s|m|h|d)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
MOST_FACTOR = 1000.0


def span_of(
    family: str, parameter: str, entry: str, what: str, example: str
) -> tuple[str, float, float]:
    """The part of an entry before ``@``, its begin and its length in seconds."""
    match = FORM.fullmatch(entry)
    require(match is not None, family, parameter, entry, f"{what}@begin+length, such as {example}")
    assert match is not None
    begin, length = float(match[2]) * SECONDS_PER[match[3]], float(match[4]) * SECONDS_PER[match[5]]
    require(length > 0, family, parameter, entry, "of a positive length")
    return match[1], begin, length


def bursts_of(family: str, parameter: str, entries: Sequence[str]) -> tuple[Burst, ...]:
    """The intervals in which the rate of arrivals is multiplied by a factor."""
    out = []
    for entry in entries:
        example = "3@36h+6h, three times the rate for 6 hours"
        factor, begin, length = span_of(family, parameter, entry, "factor", example)
        number = float(factor) if NUMBER.fullmatch(factor) else -1.0
        allowed = f"a burst with a factor from 0 to {MOST_FACTOR:g}"
        require(0 <= number <= MOST_FACTOR, family, parameter, entry, allowed)
        out.append(Burst(number, begin, begin + length))
    return tuple(out)


def outages_of(
    family: str,
    sites: Sequence[tuple[str, int]],
    groups: Sequence[tuple[str, tuple[str, ...], bool]],
) -> tuple[Floats, Ints, Ints, Bools]:
    """Outages of whole sites in order of time: seconds, pool, devices, announced.

    Each group is a parameter's name, its entries, and whether they are announced.
    """
    names = [name for name, _ in sites]
    rows: list[tuple[float, int, int, bool]] = []
    for parameter, entries, announced in groups:
        for entry in entries:
            name, begin, length = span_of(
                family, parameter, entry, "site", "us-west@36h+12h or largest@2d+6h"
            )
            largest = int(np.argmax([count for _, count in sites]))
            pool = largest if name == "largest" else names.index(name) if name in names else -1
            allowed = f"an outage of a known site or of 'largest'; {nearest(name, names)}"
            require(pool >= 0, family, parameter, entry, allowed)
            rows += [
                (begin, pool, sites[pool][1], announced),
                (begin + length, pool, -sites[pool][1], announced),
            ]
    rows.sort(key=lambda row: (row[0], row[2]))
    time, pool_idx, devices, known = zip(*rows, strict=True) if rows else ((), (), (), ())
    return (
        np.array(time, dtype=float),
        np.array(pool_idx, dtype=np.int64),
        np.array(devices, dtype=np.int64),
        np.array(known, dtype=bool),
    )
