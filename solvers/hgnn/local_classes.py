"""Temporary: class view until the kernel branch lands."""
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from optbench.bounds.combinatorial.merging import alike_pools

@dataclass(frozen=True, eq=False)
class ClassView:
    num_classes: int
    class_of_pool: np.ndarray
    count: np.ndarray
    set_of_mode: np.ndarray
    first_mode: np.ndarray
    set_kind: np.ndarray
    set_class: np.ndarray

_CACHE = {}
def class_view(instance):
    got = instance.__dict__.get("_cv")
    if got is None:
        cls = alike_pools(instance); m = instance.modes
        c = cls[np.maximum(0, m.primary)]
        key = np.column_stack([m.kind, c, m.devices, m.time_per_unit_s, m.energy_per_unit_j, m.power_w, np.nan_to_num(m.clock, nan=-1)])
        _, first, inv = np.unique(key, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first); rank = np.empty_like(order); rank[order] = np.arange(len(order))
        first = first[order]; inv = rank[inv.reshape(-1)]
        C = int(cls.max()) + 1
        got = ClassView(C, cls, np.bincount(cls, weights=instance.pools.count, minlength=C), inv, first, m.kind[first], c[first])
        instance.__dict__["_cv"] = got
    return got
