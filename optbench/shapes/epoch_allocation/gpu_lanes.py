"""Lanes: GPU types on which the own terms of a group's jobs differ by a constant.

With s_p(g, e) the own terms of class p on GPU type g, in patterns where the work of services is
paid (e = 0) or not (e = 1), split

    s_p(g, e) = base(g, e) + own_p + rest_p(lane(g, e)),

base being the terms of the group's first class. Where all rests are 0, the group has one lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.demand_groups import JobGroups

# Patterns in which the work of services is paid by the job, or by the pattern.
PAID, UNPAID = 0, 1


@dataclass(frozen=True, eq=False)
class Lanes:
    """``lane[group, gpu, mode]`` numbers lanes, ``base_mw`` has the terms of the patterns.

    ``own_mw`` is per class; ``rest_mw[class, k]`` belongs to the k-th lane of the class's group,
    whose lanes begin at ``begin``."""

    lane: Ints
    base_mw: Ints
    own_mw: Ints
    rest_mw: Ints
    begin: Ints

    @property
    def count(self) -> int:
        return int(self.begin[-1])


def lanes_of(groups: JobGroups) -> Lanes:
    """Split the own terms of all classes."""
    num_gpus, num_classes = groups.demand.num_gpu_types, len(groups.class_group)
    terms = np.empty((num_classes, num_gpus, 2), dtype=np.int64)
    terms[:, :, UNPAID] = groups.own_migration_mw
    terms[:, :, PAID] = groups.own_work_mw + groups.own_migration_mw
    first = groups.class_begin[:-1]
    base = terms[first] if groups.count else np.zeros((0, num_gpus, 2), dtype=np.int64)
    rest = (terms - base[groups.class_group]).reshape(num_classes, 2 * num_gpus)
    own = rest[:, 0].copy()
    rest = rest - own[:, None]
    lane = np.zeros((groups.count, 2 * num_gpus), dtype=np.int64)
    lane_mw = np.zeros((num_classes, 2 * num_gpus), dtype=np.int64)
    begin = np.arange(groups.count + 1)
    differs = np.zeros(groups.count, dtype=np.bool_)
    differs[groups.class_group[rest.any(axis=1)]] = True
    extra = np.zeros(groups.count, dtype=np.int64)
    for k in np.flatnonzero(differs).tolist():
        mine = slice(int(groups.class_begin[k]), int(groups.class_begin[k + 1]))
        columns, of = np.unique(rest[mine], axis=1, return_inverse=True)
        lane[k] = of.ravel()
        lane_mw[mine, : columns.shape[1]] = columns
        extra[k] = columns.shape[1] - 1
    begin[1:] += np.cumsum(extra)
    lane += begin[:-1, None]
    return Lanes(lane.reshape(-1, num_gpus, 2), base, own, lane_mw, begin)
