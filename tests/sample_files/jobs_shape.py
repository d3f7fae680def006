"""A shape without a model: the order of jobs on one device; and a solver of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import optbench as ob
from optbench.shapes import DataShape, Findings, Metric


@dataclass(frozen=True)
class JobData:
    """Hours of each job."""

    hours: list[float]


@dataclass(frozen=True)
class Order:
    """The jobs, the first one first."""

    jobs: list[int]


class Jobs(DataShape):
    """Jobs on one device, for the least sum of ends: without a model."""

    name = "job_order"
    data, solution = JobData, Order
    metrics: ClassVar = {"flow_h": Metric("h", "sum of the ends")}
    constraints: ClassVar = {"once": "each job is in the order once"}
    minimize = "flow_h"

    def verify(self, data: Any, decision: Any) -> Findings:
        found, end, flow = Findings(), 0.0, 0.0
        once = sorted(decision.jobs) == list(range(len(data.hours)))
        found.require(once, "once", "a job is missing or twice in the order")
        for job in decision.jobs if once else ():
            end += data.hours[job]
            flow += end
        found.metrics = {"flow_h": flow}
        return found


class ShortestFirst(ob.Solver):
    """Shortest job first, which is optimal."""

    shapes: ClassVar[frozenset[str]] = frozenset({"job_order", "watched_jobs"})

    def solve(self, instance: Any, run: ob.Run) -> Any:
        hours = instance.data.hours
        return Order(sorted(range(len(hours)), key=hours.__getitem__))
