"""Samples of a device over time, of which neighbours are joined until few enough are left.

Seconds and megabytes of joined rows are added, memory is their mean over time, and what tells the
end of a sample, such as ``at_s`` and ``step``, is that of the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_ROWS = 500
SUMMED = ("seconds", "busy_s", "waited_s", "sent_mb")


def thinned(rows: Sequence[Mapping[str, Any]], most: int = MOST_ROWS) -> list[dict[str, Any]]:
    """At most ``most`` rows, of equally many of the given ones each but the last."""
    width = -(-len(rows) // most)
    return [_joined(rows[begin : begin + width]) for begin in range(0, len(rows), width or 1)]


def _joined(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if len(group) == 1:
        return dict(group[0])
    row = {**group[-1], **{name: sum(each[name] for each in group) for name in SUMMED}}
    seconds = row["seconds"]
    row["utilisation"] = min(row["busy_s"] / seconds, 1.0)
    row["memory_mb"] = sum(each["memory_mb"] * each["seconds"] for each in group) / seconds
    return row
