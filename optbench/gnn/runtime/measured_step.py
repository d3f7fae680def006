"""Readings of the seconds of a training step under a plan, on this machine.

Each device that the plan uses is a process, on a GPU of its own or on a core of this machine. A
device slower than the fastest one is throttled to its relative speed,

    speed_d = gflops_d × (mean recorded speed of d) / (the largest of these),

and devices whose speeds do not fit the cores are refused. A reading is the mean over ``BLOCK``
steps after ``WARM`` ones; the plan's fusions are executed. Network and widths are read from the
operators; features are drawn by a seed, of the same width, because seconds do not depend on their
values.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from optbench.errors import UnsupportedError
from optbench.gnn.kernels.fusion_plan import fusion_names
from optbench.gnn.kernels.kernel_names import fusions_of
from optbench.gnn.runtime.core_placement import cores_of_devices, usable_cores
from optbench.gnn.runtime.section_clock import check_speeds
from optbench.gnn.runtime.thinned_rows import thinned
from optbench.gnn.runtime.trained_network import train
from optbench.gnn.runtime.training_job import GraphNetworkSettings, LabelledNodes, TrainingJob
from optbench.gnn.runtime.training_result import GraphTrainingResult
from optbench.shapes.gnn_training.training_data import Floats, GnnTraining
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.protocol.measurements import Measurements, MeasuringMachine

WARM, BLOCK = 5, 20
VALUE_BYTES = 4.0
# Rows of devices over time are at least so far apart.
SAMPLE_S = 0.02


@dataclass(frozen=True)
class ReadNetwork:
    """A network as its operators tell it: kind and widths, features to classes."""

    network: Literal["gcn", "sage", "gat"]
    widths: tuple[int, ...]


@dataclass(frozen=True)
class StepCase:
    """A training job of as many steps as readings take, and what of the plan it executes."""

    job: TrainingJob
    nodes: LabelledNodes
    used: list[int]
    not_executed: list[str]


def measured_step(data: GnnTraining, plan: TrainingPlan, machine: MeasuringMachine) -> Measurements:
    """Train for some steps under the plan, and return readings of a step's seconds."""
    case = step_case(data, plan, machine.repeats)
    with tempfile.TemporaryDirectory(prefix="optbench-measure-") as folder:
        return readings_of(case, train(Path(folder), case.job, case.nodes))


def step_case(data: GnnTraining, plan: TrainingPlan, readings: int) -> StepCase:
    """The job of a plan on random features and labels."""
    used, device, speeds, cores = devices_in_use(data, plan)
    found = read_network(data)
    chosen = fusion_names(data.fusions, plan.fusions)
    hidden, classes = found.widths[1:-1], found.widths[-1]
    executed = chosen & set(fusions_of(found.network, len(hidden) + 1))
    job = TrainingJob(
        GraphNetworkSettings(found.network, hidden, heads=1),
        classes,
        epochs=WARM + BLOCK * readings,
        speeds=speeds,
        cores=cores,
        checkpoint_every=0,
        overlap=plan.overlap,
        most_restarts=1,
        sample_s=SAMPLE_S,
        fusions=tuple(sorted(executed)),
        only_readings=True,
    )
    rng = np.random.default_rng(0)
    n = data.graph.num_nodes
    nodes = LabelledNodes(
        data.graph,
        rng.standard_normal((n, found.widths[0]), dtype=np.float32),
        rng.integers(0, classes, n),
        np.ones(n, dtype=np.int64),
        device[plan.part],
    )
    return StepCase(job, nodes, used, sorted(chosen - executed))


def readings_of(case: StepCase, result: GraphTrainingResult) -> Measurements:
    """The readings of a finished job; processes that had not their speeds are refused."""
    check_speeds(case.job.speeds, result.solo_speeds)
    seconds = result.step_s[WARM:]
    blocks = [seconds[k : k + BLOCK] for k in range(0, len(seconds), BLOCK)]
    rows = [measured_rows(each, d) for d, each in zip(case.used, result.device_rows, strict=True)]
    return Measurements(
        {"step_s": tuple(map(fmean, blocks))},
        {
            "tool": f"torch {version('torch')}, {result.backend}",
            "steps_per_reading": BLOCK,
            "speeds": list(case.job.speeds),
            "solo_speeds": result.solo_speeds,
            "cores": list(case.job.cores),
            "fusions": list(case.job.fusions),
            "fusions_not_executed": case.not_executed,
            "sent_mb_per_step": result.sent_mb_per_step,
            "utilisation": [utilisation(each) for each in rows],
            "device_rows": rows,
        },
    )


def devices_in_use(
    data: GnnTraining, plan: TrainingPlan, pinned: bool = True
) -> tuple[list[int], Any, tuple[float, ...], tuple[int, ...]]:
    """The device of every process, the process of every part, the relative speed of every process,
    and its core if it is ``pinned`` to one of this machine.
    """
    device, clock = plan.device_of(data), plan.clock_of(data)
    for p, (d, c) in enumerate(zip(device.tolist(), clock.tolist(), strict=True)):
        top = len(data.devices[d].clocks) - 1
        if c != top:
            raise UnsupportedError(
                f"part {p} runs at clock {data.devices[d].clocks[c]:g}; no clocks "
                f"are set here. Use the top one, {data.devices[d].clocks[top]:g}, to measure"
            )
    used = np.unique(device[np.unique(plan.part)])
    number = np.zeros(data.num_devices, dtype=np.int64)
    number[used] = np.arange(len(used))
    import torch

    if torch.cuda.device_count() >= len(used):
        return used.tolist(), number[device], (1.0,) * len(used), ()
    speeds = relative_speeds(data)[used]
    given = tuple(float(each) for each in speeds)
    cores = cores_of_devices(given, usable_cores()) if pinned else ()
    return used.tolist(), number[device], given, cores


def relative_speeds(data: GnnTraining) -> Floats:
    """The speed of each device as a share of the fastest one's."""
    rate = np.array([each.gflops for each in data.devices]) * data.windows.mean(axis=0)
    speeds: Floats = rate / rate.max()
    return speeds


def read_network(data: GnnTraining) -> ReadNetwork:
    """Return network and widths of operators such as dense1, gather1, ..., dense2.

    A dense operator from a to b keeps its input, 4 a bytes per node, and moves 4 (a + b) bytes in
    each of its products, of which there are as many as launches.
    """
    kinds = {each.kind for each in data.operators}
    softmax, pairs = "softmax" in kinds, any(each.name == "own1" for each in data.operators)
    network: Literal["gcn", "sage", "gat"] = "gat" if softmax else "sage" if pairs else "gcn"
    name = "own" if network == "sage" else "dense"
    costs = {each.name: each.cost for each in data.operators if each.kind == "dense"}
    widths = list[int]()
    for layer in range(1, len(costs) + 1):
        cost = costs.get(f"{name}{layer}")
        if cost is None:
            break
        a = cost.kept_bytes_per_node / VALUE_BYTES
        b = cost.bytes_per_node / VALUE_BYTES / max(cost.launches, 1) - a
        whole = a == int(a) >= 1 and b == int(b) >= 1 and (not widths or widths[-1] == a)
        if not whole:
            widths = []
            break
        widths = [*(widths or [int(a)]), int(b)]
    if len(widths) < 2:
        known = ", ".join(sorted(each.name for each in data.operators)) or "none"
        raise UnsupportedError(
            "the operators are none of a GCN, GraphSAGE or GAT with dense products dense1, dense2, "
            f"... (own1, ... in GraphSAGE), so that there is nothing to train; they are: {known}"
        )
    return ReadNetwork(network, tuple(widths))


def measured_rows(rows: list[dict[str, Any]], device: int) -> list[dict[str, Any]]:
    """The rows of a process after the first steps, with the number of its device; neighbours are
    joined where there are many.
    """
    return thinned([{**row, "device": device} for row in rows if row["step"] > WARM])


def utilisation(rows: list[dict[str, Any]]) -> float:
    """Computing over time on the wall, of one device."""
    seconds = sum(row["seconds"] for row in rows)
    return sum(row["busy_s"] for row in rows) / seconds if seconds else 0.0
