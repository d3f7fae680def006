"""Training a network on a graph in parts: from a job to its result and weights."""

from __future__ import annotations

from pathlib import Path

from optbench.gnn.runtime.held_folder import held
from optbench.gnn.runtime.training_job import LabelledNodes, TrainingJob, write_job
from optbench.gnn.runtime.training_processes import start_processes
from optbench.gnn.runtime.training_result import GraphTrainingResult, read_result


def train(folder: Path, job: TrainingJob, nodes: LabelledNodes) -> GraphTrainingResult:
    """Train on this machine's cores or GPUs.

    A folder that holds a checkpoint of this job continues it. ``trained_weights`` reads what came
    of it.
    """
    with held(folder) as lock:
        write_job(folder, job, nodes)
        start_processes([folder], lock)
    return read_result(folder)
