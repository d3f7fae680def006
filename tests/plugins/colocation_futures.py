"""Another future of a co-location instance, for the conformance of its policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.training import Trainable, TrainingRun
from optbench.shapes.colocation.colocation_data import Bools, Colocation, Outage
from optbench.shapes.colocation.colocation_process import Observation

# The public facts of all its seeds agree, since the families that are held out are given.
SMALL = "colocation:jobs=14,gpus=6,held_out=[LM,A3C]"
# The same public facts, and a sixth of the epochs.
SHORT = "colocation:jobs=8,gpus=4,held_out=[LM,A3C],duration_s=2400"
MORE = 1.25


def hidden_cells(data: Colocation, observations: Sequence[Observation]) -> tuple[Bools, Bools]:
    """Cells, alone and in pairs, that are neither public nor were measured."""
    alone, pairs = ~data.known, ~data.known_pairs
    for each in (one for seen in observations for one in seen.measurements):
        g, t, s = each.gpu_type, each.job_type, each.partner_type
        if s < 0:
            alone[g, t] = False
        else:
            pairs[g, t, s] = pairs[g, s, t] = False
    return alone, pairs


def other_future(data: Colocation, observations: Sequence[Observation]) -> Colocation:
    """Later jobs arrive an epoch later, a GPU fails in the next epoch, and every throughput that
    was not shown is higher by a quarter.
    """
    alone, pairs = hidden_cells(data, observations)
    last = observations[-1]
    later = data.jobs.arrival_s > last.now_s
    arrival_s = data.jobs.arrival_s + np.where(later, data.epoch_s, 0.0)
    return replace(
        data,
        alone_per_s=np.where(alone, MORE * data.alone_per_s, data.alone_per_s),
        beside_per_s=np.where(pairs, MORE * data.beside_per_s, data.beside_per_s),
        jobs=replace(data.jobs, arrival_s=arrival_s),
        outages=(*data.outages, Outage(0, 1, last.epoch + 1, last.epoch + 2)),
    )


@cache
def quick_checkpoint() -> Path:
    """Networks of gogh for the public facts of SMALL, after a few steps."""
    solver: Any = load_solver("gogh")[1]
    assert isinstance(solver, Trainable)
    path = Path(mkdtemp()) / "quick.safetensors"
    settings = solver.settings(steps=10, rows=8, cells=64, folds=2)
    solver.train(TrainingRun([load_problem(SMALL)], path, settings, [SMALL]))
    return path
