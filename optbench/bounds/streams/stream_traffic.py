"""Arriving work summed up by class: the data of the stream LP about its tasks.

Tasks of one class may use the same modes and have the same weight. All times here are seconds. A
task is available after the shortest ingress latency to a pool it may use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.timegrid import grid_up

# With more different weights than this, the least one is used for all.
MAX_WEIGHTS = 16


@dataclass(frozen=True, eq=False)
class Traffic:
    """``of[j]`` is the class of task j (-1: it arrives after the horizon); ``allowed[c, k]`` says
    which modes a class may use.

    ``ingress_s`` is each task's shortest ingress latency, ``there_s`` when it is available,
    ``shortest_s`` its shortest running time.
    """

    of: Ints
    kind: Ints
    allowed: Bools
    units: Floats
    weight: Floats
    ingress_s: Floats
    there_s: Floats
    shortest_s: Floats

    @property
    def num_classes(self) -> int:
        return len(self.kind)

    @property
    def here(self) -> Bools:
        """Tasks that arrive before the horizon."""
        return self.of >= 0


def traffic(instance: Instance) -> Traffic:
    """Return the classes of an instance's tasks."""
    tasks, time = instance.tasks, instance.modes.time_per_unit_s
    release = np.asarray(tasks.release, dtype=float)
    end = float(instance.end_of_time) if instance.is_open else np.inf
    here = release < end
    group, fits, ingress = _groups(instance)
    few = len(np.unique(tasks.weight)) <= MAX_WEIGHTS
    weight = tasks.weight if few else np.full(len(group), tasks.weight.min())
    first, of = _codes(group[here], weight[here])
    of_all = np.full(instance.num_tasks, -1, dtype=np.int64)
    of_all[here] = of
    chosen = group[here][first]
    shortest = np.where(fits, time, np.inf).min(axis=1, initial=np.inf)[group] * tasks.units
    units = np.asarray(
        np.bincount(of, weights=tasks.units[here], minlength=len(first)), dtype=float
    )
    return Traffic(
        of_all,
        tasks.kind[here][first],
        fits[chosen],
        units,
        weight[here][first],
        ingress,
        (release + grid_up(ingress / instance.tick_s)) * instance.tick_s,
        shortest,
    )


def _groups(instance: Instance) -> tuple[Ints, Bools, Floats]:
    """Group tasks that may use the same modes: group of each task, modes of each group, and each
    task's shortest ingress latency.
    """
    tasks, modes, stream = instance.tasks, instance.modes, instance.stream
    ingress = np.zeros(instance.num_tasks, dtype=np.int64) if stream is None else stream.ingress
    # Tasks that fit the same devices are equal, whatever memory they need.
    first, of = _codes(
        tasks.kind, ingress, np.searchsorted(np.unique(instance.mode_memory_gb), tasks.memory_gb)
    )
    fits = (modes.kind[None, :] == tasks.kind[first][:, None]) & (
        tasks.memory_gb[first][:, None] <= instance.mode_memory_gb
    )
    if stream is None:
        return of, fits, np.zeros(instance.num_tasks)
    ingress = np.where(modes.primary >= 0, stream.latency_s[ingress[first]][:, modes.primary], 0.0)
    reached = fits & np.isfinite(ingress)
    shortest = np.where(reached, ingress, np.inf).min(axis=1, initial=np.inf)
    same, group = _codes(
        tasks.kind[first], np.unique(reached, axis=0, return_inverse=True)[1].reshape(-1)
    )
    return group[of], reached[same], shortest[of]


def _codes(*columns: Any) -> tuple[Ints, Ints]:
    """Number distinct rows: return the first row of each number, and the number of each row."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, which = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + which.reshape(-1), return_inverse=True)[1].reshape(-1)
    _, first = np.unique(code, return_index=True)
    return first, code
