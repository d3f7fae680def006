"""The content hash of an instance, which does not depend on how the instance was built or stored.

Numbers are float64 (also integers, so that 3 and 3.0 agree; −0.0 is 0.0). Columns are in the
alphabetical order of their names, mappings in the order of their keys. Rows without a meaningful
order (edges, places of limits, a mode's pools after the primary one) are sorted. Names of tasks,
pools, kinds, places and ingresses are left out. Parts and columns that came later are content only
where they are there, so that instances without them keep their hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

# Parts whose rows are a set: the columns to sort by, the most significant one last.
SETS_OF_ROWS = {
    "edges": ("data_gb", "target", "source"),
    "limits": ("cap_w", "cap_place"),
    "outages": ("announced", "devices", "pool", "time"),
    "cooling": ("start_c", "limit_c", "time_constant_s", "c_per_w", "ambient_c", "place"),
}
NAMES = frozenset({"names", "kind_names", "ingress_names", "user_names"})
PARTS = ("tasks", "edges", "places", "pools", "modes", "links", "limits", "tariffs", "stream")
LATER_PARTS = ("cooling", "congestion")
LATER_COLUMNS = frozenset({"user", "failures_per_s", "checkpoint", "wake_s", "wake_j"})


def physics_digest(instance: Any) -> str:
    """The digest of an instance without its names and its objective."""
    digest = hashlib.sha256(repr((float(instance.tick_s), bool(instance.preemptive))).encode())
    add_to_digest(digest, "horizon", instance.horizon)
    later = [name for name in LATER_PARTS if getattr(instance, name) is not None]
    for name in (*PARTS, *later):
        add_to_digest(digest, name, getattr(instance, name))
    return digest.hexdigest()


def add_to_digest(digest: Any, name: str, value: Any) -> None:
    """Add a named part, column or number to the digest; a missing part (None) is content too."""
    if value is None:
        digest.update(f"{name}: none;".encode())
    elif is_dataclass(value):
        part = _with_sorted_rows(name, value)
        digest.update(f"{name}: part;".encode())
        for column in sorted(field.name for field in fields(part)):
            values = getattr(part, column)
            if column not in NAMES and not (column in LATER_COLUMNS and values is None):
                add_to_digest(digest, column, values)
    elif isinstance(value, Mapping):
        digest.update(f"{name}: {len(value)} entries;".encode())
        for key in sorted(value):
            add_to_digest(digest, key, value[key])
    else:
        # Integers beyond 2^53 would collide as floats; no column holds any: times end at 2^52.
        numbers = np.asarray(value, dtype=np.float64) + 0.0
        digest.update(f"{name}: {numbers.shape};".encode())
        digest.update(np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes())


def _with_sorted_rows(name: str, part: Any) -> Any:
    if name == "modes":
        return _with_sorted_needs(part)
    if name not in SETS_OF_ROWS:
        return part
    order = np.lexsort([np.asarray(getattr(part, column)) for column in SETS_OF_ROWS[name]])
    return replace(
        part, **{column: np.asarray(getattr(part, column))[order] for column in SETS_OF_ROWS[name]}
    )


def _with_sorted_needs(modes: Any) -> Any:
    """The pools of each mode, with those after the primary one sorted by index."""
    ptr = np.asarray(modes.req_ptr, dtype=np.int64)
    row, first = np.arange(len(modes.req_pool)), ptr[:-1][np.diff(ptr) > 0]
    # Invalid pointers must have a hash too, since an error about them may name the instance by its
    # hash.
    owner, later = np.searchsorted(ptr[1:], row, side="right"), ~np.isin(row, first)
    order = np.lexsort((modes.req_pool, later, owner))
    return replace(
        modes,
        req_pool=np.asarray(modes.req_pool)[order],
        req_count=np.asarray(modes.req_count)[order],
    )
