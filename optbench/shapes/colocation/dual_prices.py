"""What GPUs and jobs cost at the duals of a relaxation, in W.

With y the duals, a GPU of type g costs −y_g, and a job of class p costs what one more of its class
adds to the bound: the dual of its place where its group has one lane (plus its own terms), the dual
of its class otherwise, and its price of waiting where no pattern serves it. Duals stay feasible
when a job comes or goes. So the bound changes by the price of a job of a class that there is; for
one of a new class, by the least of its price of waiting and of the terms and duals of the places
that serve its requirement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Floats
from optbench.shapes.colocation.epoch_rows import EpochRows
from optbench.shapes.colocation.pattern_program import PatternProgram
from optbench.shapes.colocation.pattern_relaxation import SolvedRelaxation
from optbench.shapes.colocation.row_prices import row_prices_mw


@dataclass(frozen=True, eq=False)
class DualPrices:
    """Prices at the duals of a programme's relaxation."""

    program: PatternProgram
    relaxed: SolvedRelaxation

    @cached_property
    def class_w(self) -> Floats:
        """Price of a job of each class."""
        program, groups, lanes = self.program, self.program.groups, self.program.lanes
        duals, begin = self.relaxed.duals, self.program.row_begin
        price = program.demand.shortfall_mw[groups.representative] / 1000.0
        one_lane = np.diff(lanes.begin)[groups.class_group] == 1
        direct = np.flatnonzero(one_lane & ~groups.several[groups.class_group])
        lane = lanes.begin[groups.class_group[direct]]
        place = program.places.serving(lane, groups.class_level[direct])
        served = place >= 0
        own = lanes.own_mw[direct[served]] / 1000.0
        price[direct[served]] = own + duals[begin[1] + place[served]]
        split = np.unique(program.assigned)
        price[split] = duals[begin[2] : begin[3]]
        return price

    @cached_property
    def job_w(self) -> Floats:
        """Price of each job."""
        return self.class_w[self.program.groups.class_of_job]

    def reduced_w(self, rows: EpochRows) -> Floats:
        """Return by how much each row is dearer than its jobs and GPUs at the duals.

        Rows of jobs with replicas, which have no price, count as 0."""
        demand = self.program.demand
        gpus = demand.gangs[demand.jobs.job_type[rows.first]]
        paired = rows.second != NOBODY
        other = np.where(paired, rows.second, rows.first)
        price = row_prices_mw(demand, rows.gpu_type, rows.first, rows.second) / 1000.0
        paid = self.job_w[rows.first] + np.where(paired, self.job_w[other], 0.0)
        price = price - paid - gpus * self.relaxed.duals[rows.gpu_type]
        return np.where(demand.several[rows.first] | demand.several[other], 0.0, price)
