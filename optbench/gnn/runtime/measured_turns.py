"""Readings of several plans in turns, by processes that are started once.

What slows the machine down for a while then slows all plans alike. Plans whose devices are not the
same ones need other processes: they are measured after each other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from optbench.gnn.runtime.measured_step import StepCase, readings_of, step_case
from optbench.gnn.runtime.training_job import write_job
from optbench.gnn.runtime.training_processes import start_processes
from optbench.gnn.runtime.training_result import read_result
from optbench.shapes.gnn_training.training_data import GnnTraining
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.protocol.measurements import Measurements


def measured_in_turns(
    plans: Sequence[tuple[GnnTraining, TrainingPlan]], turns: int
) -> list[Measurements]:
    """Return ``turns`` readings of each plan, which alternate with those of the others.

    ``busy_s`` of the provenance has a row for each reading: seconds of computing in a step, of each
    device, which are processor time over speed.
    """
    cases = [step_case(data, plan, 1) for data, plan in plans]
    alike: dict[tuple[tuple[float, ...], tuple[int, ...]], list[int]] = {}
    for k, case in enumerate(cases):
        alike.setdefault((case.job.speeds, case.job.cores), []).append(k)
    found = dict[int, Measurements]()
    for members in alike.values():
        found |= zip(members, _in_turns([cases[k] for k in members], turns), strict=True)
    return [found[k] for k in range(len(cases))]


def _in_turns(cases: Sequence[StepCase], turns: int) -> list[Measurements]:
    """Readings of cases on the same processes."""
    with tempfile.TemporaryDirectory(prefix="optbench-turns-") as base:
        folders = [[Path(base) / f"{turn}-{k}" for k in range(len(cases))] for turn in range(turns)]
        for row in folders:
            for folder, case in zip(row, cases, strict=True):
                write_job(folder, case.job, case.nodes)
        start_processes([folder for row in folders for folder in row])
        out = list[Measurements]()
        for k, case in enumerate(cases):
            read = [readings_of(case, read_result(row[k])) for row in folders]
            seconds = tuple(each.readings["step_s"][0] for each in read)
            busy = [
                [s * share for share in each.provenance["utilisation"]]
                for s, each in zip(seconds, read, strict=True)
            ]
            about = {**read[-1].provenance, "busy_s": busy}
            out.append(replace(read[-1], readings={"step_s": seconds}, provenance=about))
        return out
