"""Pictures of an allocation: GPUs over time by combination, energy and jobs over the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.rendering import resolve
from optbench.shapes.colocation.allocations import NOBODY, Allocation
from optbench.shapes.colocation.colocation_data import Colocation
from optbench.shapes.colocation.regret import last_epoch
from optbench.shapes.colocation.trace_replay import TraceReplay, replay

STACKED = "optbench.html.standalone_charts:stacked_steps"
LINES = "optbench.html.standalone_charts:step_lines"
JOULES_PER_MJ = 1e6


def pictures_of(data: Colocation, decision: Allocation) -> dict[str, str]:
    """Return the pictures by title."""
    played = replay(data, decision)
    epochs = last_epoch(played) + 1
    hours = (np.arange(epochs + 1) * data.epoch_s / 3600).tolist()
    energy = np.cumsum(played.by_epoch(data.horizon_epochs, "energy_j")[:epochs]) / JOULES_PER_MJ
    stacked, lines = resolve(STACKED), resolve(LINES)
    return {
        "GPUs in use by combination": stacked(
            hours, gpus_in_use(data, played, epochs), "h", "GPUs"
        ),
        "Jobs": stacked(hours, jobs_by_service(data, played, epochs), "h", "jobs in the system"),
        "Energy": lines(hours, {"energy beyond sleep": energy.tolist()}, "h", "MJ"),
    }


def gpus_in_use(data: Colocation, played: TraceReplay, epochs: int) -> dict[str, list[float]]:
    """GPUs of each type with one job, two jobs, or as a part of a gang, by epoch."""
    kinds = ("alone", "shared", "gang")
    out = {f"{gpu.name} {kind}": np.zeros(epochs) for gpu in data.gpu_types for kind in kinds}
    for each in played.played:
        if each.epoch >= epochs:
            continue
        rows = each.rows
        gangs = data.gangs[data.jobs.job_type[rows.first]]
        for r in range(rows.num_rows):
            kind = "shared" if rows.second[r] != NOBODY else "gang" if gangs[r] > 1 else "alone"
            name = data.gpu_types[int(rows.gpu_type[r])].name
            out[f"{name} {kind}"][each.epoch] += float(gangs[r])
    return {name: values.tolist() for name, values in out.items() if values.any()}


def jobs_by_service(data: Colocation, played: TraceReplay, epochs: int) -> dict[str, list[float]]:
    """Jobs that have what they require, less than that, and those that wait: means by epoch."""
    out: dict[str, Any] = {name: np.zeros(epochs) for name in ("as required", "below", "waiting")}
    for each in played.played:
        if each.epoch >= epochs:
            continue
        effects = each.effects
        placed = np.zeros(data.jobs.count, dtype=bool)
        placed[effects.members.job[~effects.members.fails]] = True
        there, below = effects.present_s / data.epoch_s, effects.below_s / data.epoch_s
        out["as required"][each.epoch] = (there - below).sum()
        out["below"][each.epoch] = below[placed].sum()
        out["waiting"][each.epoch] = below[~placed].sum()
    return {name: values.tolist() for name, values in out.items()}
