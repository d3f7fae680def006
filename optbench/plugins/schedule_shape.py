"""Schedules of tasks on pools, the first shape, with data, verifier and files of ``model``; and the
shape of any instance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from optbench.bounds.auto import bound_kernels, lower_bounds
from optbench.bounds.proving import labelled, prove
from optbench.errors import FileFormatError
from optbench.model.files.instance_json import instance_from_dict, instance_to_dict
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.schedule_json import read_schedule, schedule_from_dict, schedule_to_dict
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.model.measures import is_closed
from optbench.model.repair import verified_or_repaired
from optbench.model.result import Bound, Infeasibility
from optbench.model.schedule import Schedule
from optbench.model.verify import Verdict, verify
from optbench.shapes.protocol.shape import Accepted, Sense, Shape


class ScheduleShape(Shape):
    """The shape of ``ob.Model``: when each task runs, and in which mode."""

    name = "schedule"
    usual_solver = "cpsat"
    decision = "schedule"
    decision_words = "an ob.Schedule (ob.Schedule.of makes one)"
    fact_words: ClassVar[Mapping[str, str]] = {
        "num_tasks": "tasks",
        "num_edges": "precedences between tasks",
        "num_pools": "pools of devices",
        "num_devices": "devices of all pools",
    }

    @property
    def decision_type(self) -> type:
        return Schedule

    def describe(self, instance: Instance) -> str:
        return f"{instance.num_tasks:,} tasks"

    def facts_of(self, instance: Instance) -> dict[str, float]:
        devices = float(instance.pools.count.sum())
        numbers = (instance.num_tasks, len(instance.edges.source), instance.num_pools, devices)
        return dict(zip(self.fact_words, map(float, numbers), strict=True))

    def num_levels(self, instance: Instance) -> int:
        return instance.objective.num_levels

    def label(self, instance: Instance, level: int = 0) -> str:
        return instance.objective.level(level).label

    def sense(self, instance: Instance) -> Sense:
        return "min"

    def at_level(self, instance: Instance, level: int, reached: Sequence[float]) -> Instance:
        for k in range(level):
            instance = instance.with_limits(**instance.objective.held(k, reached[k]))
        return instance.with_objective(instance.objective.level(level))

    def alone(self, instance: Instance, level: int) -> Instance:
        return instance.with_objective(instance.objective.level(level))

    def may_be_levels(self, instance: Instance) -> list[Instance]:
        out = []
        for k in range(instance.objective.num_levels):
            level = instance.with_objective(instance.objective.level(k))
            held = [name for before in instance.objective.levels[:k] for name, _ in before]
            out.append(level.with_limits(**dict.fromkeys(held, math.inf)) if held else level)
        return out

    def features(self, instance: Instance) -> frozenset[str]:
        """Those of all levels: the levels after the first are solved under limits."""
        if instance.objective.num_levels > 1:
            first = (metric for metric, _ in instance.objective.levels[0])
            instance = instance.with_limits(**dict.fromkeys(first, math.inf))
        return instance.features

    def verdict_of(self, instance: Instance, decision: Schedule) -> Verdict:
        return verify(instance, decision)

    def accept(self, instance: Instance, decision: Schedule) -> Accepted:
        made = verified_or_repaired(instance, decision)
        return Accepted(made.schedule, made.verdict, made.to_dict(instance))

    def write(self, instance: Instance) -> dict[str, Any]:
        return instance_to_dict(instance)

    def read(self, data: Mapping[str, Any]) -> Instance:
        return instance_from_dict(data)

    def write_decision(self, instance: Instance, decision: Schedule) -> dict[str, Any]:
        return schedule_to_dict(decision, instance)

    def read_decision(self, instance: Instance, data: Mapping[str, Any]) -> Schedule:
        return schedule_from_dict(data, instance)

    def kernels(self, instance: Instance, method: str = "auto") -> frozenset[str]:
        return bound_kernels(instance, method)

    def bounds(
        self, instance: Instance, method: str, time_limit_s: float, best: Schedule | None
    ) -> list[Bound]:
        upper = math.inf if best is None else float(best.end.max(initial=0))
        return lower_bounds(instance, method, time_limit_s, upper)

    def bounding_s(self, instance: Instance, usual_s: float, most_s: float) -> float:
        return min(most_s, usual_s * max(1.0, instance.num_tasks / 1000))

    def labelled(self, instance: Instance, bound: Bound) -> Bound:
        return labelled(instance, bound)

    def prove(self, instance: Instance, certificate: str) -> Bound:
        return prove(instance, certificate)

    def certify_infeasible(self, instance: Instance, time_limit_s: float) -> Infeasibility | None:
        from optbench.bounds.infeasible import certify_infeasible

        return certify_infeasible(instance, time_limit_s)

    def is_better(self, instance: Instance, value: float, other: float) -> bool:
        return value < other

    def smallest_value(self, instance: Instance) -> float:
        """No metric of a feasible schedule is negative, and weights are positive."""
        return 0.0

    def is_closed(self, instance: Instance, objective: float | None, bound: float | None) -> bool:
        return is_closed(instance, objective, bound)

    def more_metrics(self, instance: Instance, metrics: Mapping[str, float]) -> dict[str, float]:
        if instance.stream is None:
            return {}
        from optbench.bounds.streams.stream_bound import path_metrics

        return path_metrics(instance, metrics)


SCHEDULES = ScheduleShape()


def shape_of(instance: Any) -> Shape:
    """Return the shape of an instance; those of ``ob.Model`` are schedules."""
    if isinstance(instance, Instance):
        return SCHEDULES
    shape: Shape = instance.shape
    return shape


def read_decision(path: str | Path, instance: Any) -> Any:
    """Read a decision of this instance from a file; an error names file and field."""
    shape = shape_of(instance)
    if shape is SCHEDULES:
        return read_schedule(path, instance)
    try:
        data = parse_json(read_text(Path(path)))
        if not isinstance(data, dict):
            raise FileFormatError("not a JSON object")
        return shape.read_decision(instance, data)
    except FileFormatError as error:
        words = str(error)
        named = words if words.startswith(shown(Path(path))) else f"{shown(Path(path))}: {words}"
        raise FileFormatError(named) from None
