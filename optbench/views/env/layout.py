"""The sizes of observations and actions: the same for every instance that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from optbench.errors import OptbenchError
from optbench.model.instance import Instance, task_instance
from optbench.model.objective import METRICS
from optbench.model.windows import windows
from optbench.sim.arrivals import TaskArrivals
from optbench.sim.kernel.observe import (
    LIMIT,
    OPTION_FEATURES,
    OVERALL_FEATURES,
    POOL_FEATURES,
    TASK_FEATURES,
    View,
)
from optbench.sim.kernel.plant import Plant

Rows = NDArray[np.float32]
Observation = dict[str, Rows]
SLOTS = 32


class EnvError(OptbenchError):
    """An environment cannot be created, or does not allow an action."""


@dataclass(frozen=True)
class Layout:
    """The numbers of slots for ready tasks, of modes per kind and of pools."""

    slots: int
    modes: int
    pools: int

    def __post_init__(self) -> None:
        for name in ("slots", "modes", "pools"):
            value = getattr(self, name)
            if value < (0 if name == "pools" else 1):
                raise EnvError(f"{name} is {value!r}; it must be a positive integer")

    @property
    def actions(self) -> int:
        """The number of actions: slots times modes, and waiting."""
        return self.slots * self.modes + 1

    @property
    def wait(self) -> int:
        """The action that waits for the next event."""
        return self.slots * self.modes

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each part of an observation; ``optbench.sim.kernel.observe`` names the
        features of the last axis.
        """
        return {
            "tasks": (self.slots, len(TASK_FEATURES)),
            "options": (self.slots, self.modes, len(OPTION_FEATURES)),
            "pools": (self.pools, len(POOL_FEATURES)),
            "overall": (len(OVERALL_FEATURES),),
        }

    @property
    def width(self) -> int:
        """The number of values in one observation."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def observation_space(self) -> spaces.Space[Observation]:
        boxes = {
            name: spaces.Box(-LIMIT, LIMIT, shape, np.float32)
            for name, shape in self.shapes.items()
        }
        return spaces.Dict(boxes)  # type: ignore[arg-type,return-value]

    def action_space(self) -> spaces.Discrete:
        return spaces.Discrete(self.actions)

    def parts(self, rows: Rows) -> Observation:
        """Return rows of numbers as named parts of the last axis, which share memory."""
        out, begin = {}, 0
        for name, shape in self.shapes.items():
            end = begin + int(np.prod(shape))
            out[name] = rows[..., begin:end].reshape(*rows.shape[:-1], *shape)
            begin = end
        return out

    def check(self, instance: Instance) -> None:
        """Refuse an instance that does not fit."""
        most = int(np.diff(instance.modes.kind_ptr).max(initial=1))
        for name, needed in (("modes", most), ("pools", instance.num_pools)):
            room = getattr(self, name)
            if needed > room:
                what = f"{name} of one kind" if name == "modes" else name
                raise EnvError(
                    f"{instance.name!r} has {needed} {what}, there is room for {room}; make it "
                    f"with {name}={needed}"
                )


def layout_of(*instances: Instance, slots: int | None = None) -> Layout:
    """Return a layout for all of these instances; as many slots as the largest has tasks, at most
    32, unless given.
    """
    for each in instances:
        task_instance(each, "a scheduling environment")
    modes = max((int(np.diff(each.modes.kind_ptr).max(initial=1)) for each in instances), default=1)
    pools = max((each.num_pools for each in instances), default=1)
    if slots is None:
        slots = min(SLOTS, max((each.num_tasks for each in instances), default=1))
    return Layout(max(1, slots), modes, pools)


def new_view(instance: Instance, plant: Plant, layout: Layout, level: int) -> View:
    """Return sizes, scales and prices of one instance under a layout."""
    levels = instance.objective.num_levels
    if not 0 <= level < levels:
        raise EnvError(
            f"level is {level}; the objective of {instance.name!r} has levels 0 to {levels - 1}"
        )
    if instance.is_open:
        why = "which rewards per step do not express; require all work completed"
        raise EnvError(f"{instance.name!r} may leave work undone at its horizon, {why}")
    known, worth = windows(instance), dict(instance.objective.levels[level])
    # Scales are those of the tasks that arrive first: later ones are not known yet.
    first = first_arrivals(instance)
    early, pairs = known if first is instance else windows(first), first.pairs
    least = np.full(first.num_tasks, np.inf)
    np.minimum.at(least, pairs.task, pairs.energy_j)
    devices = max(1, int(plant.pool_count.sum()))
    span = max(early.critical_path, float(early.shortest.sum()) / devices)
    return View(
        shape=np.array([layout.slots, layout.modes, layout.pools], dtype=np.int64),
        scale=np.array(
            [
                _or_one(span),
                _mean(early.shortest),
                _mean(least),
                _mean(first.tasks.weight),
                _mean(plant.pool_rest_w),
                _mean(plant.price),
                _mean(plant.carbon),
            ]
        ),
        tail=known.tail.astype(np.float64),
        shortest=known.shortest.astype(np.float64),
        worth=np.array([worth.get(name, 0.0) for name in METRICS]),
        limit=np.array([float(instance.limits.metric_max.get(name, np.inf)) for name in METRICS]),
        slot=np.zeros(layout.slots, dtype=np.int64),
        later=np.zeros(layout.slots, dtype=np.int64),
        book=np.zeros(2),
    )


def first_arrivals(instance: Instance) -> Instance:
    """Return the instance with the tasks that arrive first and no others."""
    release = instance.tasks.release
    if not (release != release[:1]).any():
        return instance
    arrivals = TaskArrivals.of(instance)
    return arrivals.known(float(arrivals.time[0]))


def _mean(values: Any) -> float:
    """Return the mean of the numbers that are finite and not zero."""
    known = values[np.isfinite(values) & (values > 0)]
    return float(known.mean()) if len(known) else 1.0


def _or_one(value: float) -> float:
    return value if np.isfinite(value) and value > 0 else 1.0
