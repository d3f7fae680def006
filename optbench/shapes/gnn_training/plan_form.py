"""Whether a plan is one: arrays of whole numbers, of the right lengths, whose indices exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.shapes.gnn_training.operator_costs import has_cycle
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.protocol.data_shape import Findings

COLUMNS = ("part", "device", "clock", "fusions")
ALLOWED = "it must be a one-dimensional array of integers that fit int64"


def well_formed(data: GnnTraining, plan: TrainingPlan, found: Findings) -> bool:
    """Check types, lengths and indices, and the fusions."""
    _check_types(plan, found)
    if not found.violations:
        _check_lengths(data, plan, found)
    if not found.violations:
        k = data.num_parts
        _check_range(found, "part", plan.part, np.full(len(plan.part), k))
        _check_range(found, "fusions", plan.fusions, np.full(len(plan.fusions), len(data.fusions)))
        _check_range(found, "device", plan.device_of(data), np.full(k, data.num_devices))
    if not found.violations:
        clocks = np.array([len(each.clocks) for each in data.devices])
        _check_range(found, "clock", plan.clock_of(data), clocks[plan.device_of(data)])
    if not found.violations:
        _check_fusions(data, plan, found)
    return not found.violations


def _check_types(plan: TrainingPlan, found: Findings) -> None:
    """Note columns that are no int64; a plan casts other integers when it is made."""
    for name in COLUMNS:
        given = getattr(plan, name)
        fits = isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype == np.int64
        found.require(fits, "form", f"{name} is {_kind(given)}; {ALLOWED}")
    words = f"overlap is {plan.overlap!r}; it must be True or False"
    found.require(isinstance(plan.overlap, bool), "form", words)


def _kind(given: Any) -> str:
    """What a column is instead."""
    if isinstance(given, np.ndarray):
        return f"an array of {given.dtype} in {given.ndim} dimensions"
    return f"of type {type(given).__name__}"


def _check_lengths(data: GnnTraining, plan: TrainingPlan, found: Findings) -> None:
    k = data.num_parts
    for name, wanted in (("part", data.graph.num_nodes), ("device", k), ("clock", k)):
        length = len(getattr(plan, name))
        words = f"{name} has {length} entries; it must have {wanted}"
        fits = length == wanted or (length == 0 and name != "part")
        found.require(fits, "form", words)


def _check_range(found: Findings, name: str, values: Ints, ends: Ints) -> None:
    """Note the first value that is not from 0 to below its end."""
    wrong = ~((values >= 0) & (values < ends))
    for i in np.flatnonzero(wrong)[:1].tolist():
        words = f"{name}[{i}] is {values[i]}; it must be from 0 to {ends[i] - 1}"
        found.require(False, "form", words, float(wrong.sum()))


def _check_fusions(data: GnnTraining, plan: TrainingPlan, found: Findings) -> None:
    chosen = [data.fusions[i].replaces for i in plan.fusions.tolist()]
    members = [i for each in chosen for i in each]
    twice = sorted({i for i in members if members.count(i) > 1})
    words = f"operators {twice} are replaced by two fusions"
    found.require(not twice, "fusion_overlap", words, len(twice))
    if not twice:
        circle = has_cycle(data.operators, chosen)
        found.require(not circle, "fusion_cycle", "chosen fusions wait for each other")
