"""The allocation of one epoch as a shape of its own: an ``EpochDemand``, and rows of jobs on GPUs.

With columns c = (g, {i}) or (g, {i, j}), W_c their prices (``row_prices``), n_c the GPUs of a gang
and S_i the price of waiting, the surrogate is

    min  Σ_c W_c z_c + Σ_i S_i w_i
    s.t. Σ_c∈g n_c z_c ≤ counts_g,      Σ_c∋i z_c + w_i = 1,      z, w whole,

over the columns that meet the requirement of every member. A job with k > 1 replicas is in at most
k columns whose throughputs add up to its requirement. At best effort, a job that no GPU type alone
serves as required may run alone for S_i (1 − rate/required).

``verify`` computes this from the rows. The model that solvers are given is the equal programme over
patterns of alike jobs (``pattern_program``), which is a thousand times smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, credits, meets, needed
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.pattern_program import PatternProgram, pattern_program
from optbench.shapes.epoch_allocation.pattern_solution import point_of, rows_of
from optbench.shapes.epoch_allocation.row_prices import (
    lacks_mw,
    row_prices_mw,
    throughputs,
)
from optbench.shapes.protocol.data_shape import Findings
from optbench.shapes.protocol.shape import Metric
from optbench.shapes.pyomo_models.pyomo_shape import PyomoShape

METRICS = {
    "surrogate_w": Metric("W", "prices of the rows and of the jobs that wait"),
    "rows_w": Metric("W", "prices of the rows: power beyond sleep less the value of progress"),
    "shortfall_w": Metric("W", "prices of jobs that wait or lack a part of their requirement"),
    "waiting": Metric("", "jobs without a GPU"),
    "gpus": Metric("", "GPUs in use"),
    "shared": Metric("", "rows with two jobs"),
    "moves": Metric("", "jobs on another GPU type than in the epoch before, or after waiting"),
}
CONSTRAINTS = {
    "form": "rows name GPU types and jobs that exist",
    "gpu_count": "no more GPUs of a type are in use than there are",
    "distinct": "two jobs on a GPU are two different ones",
    "gang_alone": "a job of several GPUs runs alone",
    "replicas": "a job stands in no more rows than it has replicas",
    "fits": "a job runs only where its throughput is above 0",
    "requirement": "a job in a row gets what it requires, or runs alone at best effort",
}


class EpochAllocationShape(PyomoShape):
    """The jobs of one epoch on GPUs of several generations, alone or in pairs."""

    name = "epoch_allocation"
    decision = "allocation"
    data, solution = EpochDemand, EpochRows
    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    constraints: ClassVar[Mapping[str, str]] = CONSTRAINTS
    minimize = "surrogate_w"

    def verify(self, data: EpochDemand, decision: EpochRows) -> Findings:
        found = Findings()
        if not _well_formed(data, decision, found):
            return found
        _check_rows(data, decision, found)
        _check_requirements(data, decision, found)
        if not found.violations:
            found.metrics = metrics_of(data, decision)
        return found

    def model(self, data: EpochDemand) -> Any:
        return pyomo_model(pattern_program(data))

    def encode(self, data: EpochDemand, decision: EpochRows, model: Any) -> None:
        point = point_of(model.program, decision)
        for k, variable in model.column.items():
            variable.set_value(int(point[k]))

    def decode(self, data: EpochDemand, model: Any) -> EpochRows:
        values = [model.column[k].value or 0 for k in range(model.program.num_columns)]
        return rows_of(model.program, np.array(values, dtype=np.int64))

    def describe(self, instance: Any) -> str:
        data: EpochDemand = instance.data
        return f"{data.jobs.count:,} jobs, {int(data.counts.sum()):,} GPUs"


def pyomo_model(program: PatternProgram) -> Any:
    """Return the programme over patterns as a Pyomo model; all columns are whole."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.program = program
    model.row_names = [""] * program.num_rows
    upper = program.upper.astype(np.int64).tolist()
    model.column = pyo.Var(
        range(program.num_columns), domain=pyo.Integers, bounds=lambda m, k: (0, upper[k])
    )
    watts = (program.cost_mw / 1000.0).tolist()
    model.surrogate_w = pyo.Objective(
        expr=pyo.quicksum(watts[k] * model.column[k] for k in range(program.num_columns))
        + program.constant_mw / 1000.0
    )
    column = np.repeat(np.arange(program.num_columns), np.diff(program.start))
    order = np.lexsort((column, program.index))
    begin = np.searchsorted(program.index[order], np.arange(program.num_rows + 1))
    names = ("gpu_count", "place", "class_size", "replicas", "requirement")
    for name, first, end in zip(names, program.row_begin, program.row_begin[1:], strict=False):
        rows = pyo.ConstraintList()
        model.add_component(name, rows)
        for row in range(int(first), int(end)):
            at = order[begin[row] : begin[row + 1]]
            terms = zip(program.value[at].tolist(), column[at].tolist(), strict=True)
            body = pyo.quicksum(value * model.column[k] for value, k in terms)
            low, high = float(program.row_lower[row]), float(program.row_upper[row])
            if len(at):
                model.row_names[row] = rows.add(_sides(body, low, high)).name
    return model


def _sides(body: Any, low: float, high: float) -> Any:
    """Return a row with its finite sides."""
    if low == high:
        return body == low
    return body <= high if low == -np.inf else body >= low


def _well_formed(data: EpochDemand, rows: EpochRows, found: Findings) -> bool:
    n = data.jobs.count
    wrong = (rows.gpu_type < 0) | (rows.gpu_type >= data.num_gpu_types)
    wrong |= (rows.first < 0) | (rows.first >= n) | (rows.second < NOBODY) | (rows.second >= n)
    for r in np.flatnonzero(wrong)[:1].tolist():
        words = (
            f"row {r} has GPU type {rows.gpu_type[r]} and jobs {rows.first[r]} and "
            f"{rows.second[r]}; there are {data.num_gpu_types} types and {n:,} jobs"
        )
        found.require(False, "form", words, float(wrong.sum()))
    return not wrong.any()


def _check_rows(data: EpochDemand, rows: EpochRows, found: Findings) -> None:
    kind = data.jobs.job_type
    used = np.bincount(rows.gpu_type, data.gangs[kind[rows.first]], data.num_gpu_types)
    for g in np.flatnonzero(used > data.counts).tolist():
        words = f"{used[g]:.0f} GPUs of type {g} are in use; there are {data.counts[g]}"
        found.require(False, "gpu_count", words, float(used[g] - data.counts[g]))
    for r in np.flatnonzero(rows.first == rows.second).tolist():
        found.require(False, "distinct", f"job {rows.first[r]} stands beside itself")
    paired = rows.second != NOBODY
    other = np.where(paired, rows.second, rows.first)
    gang = (data.gangs[kind[rows.first]] > 1) | (data.gangs[kind[other]] > 1)
    for r in np.flatnonzero(paired & gang).tolist():
        words = f"jobs {rows.first[r]} and {rows.second[r]} share GPUs; one of them is a gang"
        found.require(False, "gang_alone", words)
    jobs, times = np.unique(np.concatenate([rows.first, rows.second[paired]]), return_counts=True)
    allowed = np.where(data.several, data.jobs.replicas, 1)[jobs]
    for k in np.flatnonzero(times > allowed).tolist():
        words = f"job {jobs[k]} stands in {times[k]} rows; at most {allowed[k]} are allowed"
        found.require(False, "replicas", words, float(times[k] - allowed[k]))


def _members(data: EpochDemand, rows: EpochRows) -> tuple[Ints, Ints, Ints, Any]:
    """Row, job, partner and throughput of all members of rows."""
    paired = np.flatnonzero(rows.second != NOBODY)
    row = np.concatenate([np.arange(rows.num_rows), paired])
    job = np.concatenate([rows.first, rows.second[paired]])
    partner = np.concatenate([rows.second, rows.first[paired]])
    return row, job, partner, throughputs(data, rows.gpu_type[row], job, partner)


def _check_requirements(data: EpochDemand, rows: EpochRows, found: Findings) -> None:
    row, job, partner, rate = _members(data, rows)
    jobs, gpu = data.jobs, rows.gpu_type[row]
    for k in np.flatnonzero(rate <= 0).tolist():
        words = f"row {row[k]}: job {job[k]} does not run there, on GPU type {gpu[k]}"
        found.require(False, "fits", words)
    required = jobs.required_per_s[job]
    lone = data.below[job] & (partner == NOBODY)
    several = data.several[job]
    short = ~meets(rate, required) & (rate > 0) & ~lone & ~several
    for k in np.flatnonzero(short).tolist():
        words = f"row {row[k]}: job {job[k]} gets {rate[k]:.6g} per second of {required[k]:.6g}"
        found.require(False, "requirement", words, float(required[k] - rate[k]))
    for k in np.flatnonzero(data.below[job] & several & ~lone).tolist():
        words = f"row {row[k]}: job {job[k]} is served at best effort and has a partner"
        found.require(False, "requirement", words)
    got = np.bincount(job[several], credits(rate, required)[several], jobs.count)
    there = np.bincount(job, minlength=jobs.count) > 0
    lacking = there & data.several & ~data.below & (got < needed(data))
    for i in np.flatnonzero(lacking).tolist():
        words = f"the rows of job {i} give it {got[i] / 1e4:.4f} % of its requirement"
        found.require(False, "requirement", words, float(needed(data)[i] - got[i]))


def metrics_of(data: EpochDemand, rows: EpochRows) -> dict[str, float]:
    """Return every metric of rows that are allowed."""
    row, job, _, _ = _members(data, rows)
    kind = data.jobs.job_type
    prices = int(row_prices_mw(data, rows.gpu_type, rows.first, rows.second).sum())
    lacks = int(lacks_mw(data, rows.gpu_type, rows.first, rows.second).sum())
    waits = np.bincount(job, minlength=data.jobs.count) == 0
    before = data.jobs.before[job]
    moved = np.unique(job[(before >= -1) & (before != rows.gpu_type[row])])
    return {
        "surrogate_w": (prices + lacks) / 1000.0,
        "rows_w": prices / 1000.0,
        "shortfall_w": lacks / 1000.0,
        "waiting": float(waits.sum()),
        "gpus": float(data.gangs[kind[rows.first]].sum()),
        "shared": float((rows.second != NOBODY).sum()),
        "moves": float(len(moved)),
    }
