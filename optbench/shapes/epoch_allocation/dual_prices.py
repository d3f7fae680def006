"""What GPUs and jobs cost at the duals of a relaxation, in W.

With y the duals, a GPU of type g costs −y_g, and a job of class p costs what one more of its class
adds to the bound: the dual of its place where its group has one lane (plus its own terms), the dual
of its class otherwise, and at most its price of waiting. At these prices π no
column is cheaper than its jobs and GPUs:

    W_c − n_c y_g − Σ_i∈c π_i ≥ 0.

This stays so when a job leaves, and when one comes whose price is the least of its price of waiting
and of W_c − n_c y_g − π_j over its own columns: the bound moves by these prices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.pattern_program import PatternProgram
from optbench.shapes.epoch_allocation.pattern_relaxation import SolvedPatterns
from optbench.shapes.epoch_allocation.row_prices import is_column, row_prices_mw


@dataclass(frozen=True, eq=False)
class DualPrices:
    """Prices of the jobs of a demand and duals of its GPUs, with the bound that they prove."""

    demand: EpochDemand
    gpu_w: Floats
    job_w: Floats
    bound_mw: float

    @classmethod
    def of(cls, program: PatternProgram, relaxed: SolvedPatterns) -> DualPrices:
        of_class = class_prices_w(program, relaxed.duals)
        gpu = np.minimum(relaxed.duals[: program.demand.num_gpu_types], 0.0)
        job = of_class[program.groups.class_of_job]
        return cls(program.demand, gpu, job, relaxed.plain_mw)

    def reduced_w(self, rows: EpochRows) -> Floats:
        """Return by how much each row is dearer than its jobs and GPUs.

        Rows of jobs with replicas, which have no price, count as 0."""
        demand = self.demand
        paired = rows.second != NOBODY
        other = np.where(paired, rows.second, rows.first)
        gpus = demand.gangs[demand.jobs.job_type[rows.first]]
        price = row_prices_mw(demand, rows.gpu_type, rows.first, rows.second) / 1000.0
        paid = self.job_w[rows.first] + np.where(paired, self.job_w[other], 0.0)
        out = price - paid - gpus * self.gpu_w[rows.gpu_type]
        return np.where(demand.several[rows.first] | demand.several[other], 0.0, out)

    def beside_w(self, job: int, gpu: Ints, partner: Ints) -> Floats:
        """Return what a job may cost at most in columns with these partners (-1: none); infinite
        where it may not be.
        """
        demand, one = self.demand, np.full(len(gpu), job)
        out = np.full(len(gpu), np.inf)
        at = np.flatnonzero(is_column(demand, gpu, one, partner))
        gpu, partner = gpu[at], partner[at]
        price = row_prices_mw(demand, gpu, one[at], partner) / 1000.0
        gpus = demand.gangs[demand.jobs.job_type[job]]
        price -= gpus * self.gpu_w[gpu] + np.where(partner != NOBODY, self.job_w[partner], 0.0)
        out[at] = price
        return out

    def moved(self, demand: EpochDemand, was: Ints) -> DualPrices | None:
        """Return the prices of a demand that differs by some jobs; None where one that comes or
        goes has replicas or is served at best effort.
        """
        came = np.flatnonzero(was < 0)
        gone = np.setdiff1d(np.arange(self.demand.jobs.count), was)
        unpriced = demand.several | demand.below
        if unpriced[came].any() or (self.demand.several | self.demand.below)[gone].any():
            return None
        job_w = np.where(was >= 0, self.job_w[was], 0.0)
        bound = self.bound_mw - 1000.0 * float(self.job_w[gone].sum())
        num_gpus, present = demand.num_gpu_types, np.flatnonzero(was >= 0)
        for job in came.tolist():
            out = DualPrices(demand, self.gpu_w, job_w, bound)
            if demand.several[present].any():  # their shares in columns have no price
                return None
            partners = np.append(present, NOBODY)
            gpu = np.repeat(np.arange(num_gpus), len(partners))
            most = out.beside_w(job, gpu, np.tile(partners, num_gpus)).min(initial=np.inf)
            job_w = job_w.copy()
            job_w[job] = min(most, demand.shortfall_mw[job] / 1000.0)
            bound += 1000.0 * float(job_w[job])
            present = np.append(present, job)
        return DualPrices(demand, self.gpu_w, job_w, bound)


def class_prices_w(program: PatternProgram, duals: Floats) -> Floats:
    """Price of a job of each class."""
    groups, lanes, begin = program.groups, program.lanes, program.row_begin
    price = program.demand.shortfall_mw[groups.representative] / 1000.0
    one_lane = np.diff(lanes.begin)[groups.class_group] == 1
    direct = np.flatnonzero(one_lane & ~groups.several[groups.class_group])
    lane = lanes.begin[groups.class_group[direct]]
    place = program.places.serving(lane, groups.class_level[direct])
    served = place >= 0
    own = lanes.own_mw[direct[served]] / 1000.0
    price[direct[served]] = own + duals[begin[1] + place[served]]
    price[program.served] = duals[begin[2] : begin[3]]
    return np.minimum(price, program.demand.shortfall_mw[groups.representative] / 1000.0)
