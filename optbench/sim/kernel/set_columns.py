"""Sets of alike modes as columns of a plant, and the pools of each kind."""

from __future__ import annotations

import numpy as np

from optbench.model.classes import class_view
from optbench.model.instance import Instance, Ints

# Kinds with at least this many modes per set are chosen for by sets.
ALIKE = 2


def set_columns(instance: Instance, device_ptr: Ints) -> dict[str, Ints]:
    """Return the columns of ``Plant`` that are about sets; ``device_ptr`` are the rows of expected
    devices.
    """
    view, modes, pools = class_view(instance), instance.modes, instance.num_pools
    lists, kinds = view.pool_lists, len(modes.kind_ptr) - 1
    list_ptr, kind_list = _rows(view.kind, lists.of_set, kinds)
    primary = np.where(modes.primary < 0, pools, modes.primary)
    pool_ptr, kind_pool = _rows(modes.kind, primary, kinds)
    return {
        "has_sets": (np.diff(modes.kind_ptr) >= ALIKE * np.diff(view.kind_ptr)).astype(np.int64),
        "mode_set": view.mode_set,
        "kind_set_ptr": view.kind_ptr,
        "set_ptr": view.member_ptr,
        "set_mode": view.member,
        "set_list": lists.of_set,
        "kind_list_ptr": list_ptr,
        "kind_list": kind_list,
        "list_width": lists.width,
        "list_ptr": lists.ptr,
        "entry_pool": lists.pool,
        "entry_devices": lists.devices,
        "entry_slot": device_ptr[lists.pool] + lists.devices - 1,
        "kind_pool_ptr": pool_ptr,
        "kind_pool": kind_pool,
    }


def _rows(kind: Ints, value: Ints, kinds: int) -> tuple[Ints, Ints]:
    """Return the different values of each kind in compressed rows."""
    width = int(value.max(initial=0)) + 1
    key = np.unique(kind * width + value)
    return np.searchsorted(key, np.arange(kinds + 1) * width).astype(np.int64), key % width
