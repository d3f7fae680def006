"""Training of a user's module, or of a built-in network on a user's graph, under a plan.

Each device that the plan uses is a process, as in ``runtime.measured_step``: on a GPU of its own,
or on a core of this machine, throttled to the device's relative speed. All epochs are trained; the
readings are means over equal blocks of steps after the first ones. The folder then holds

    weights.pt         the trained parameters, which ``load_state_dict`` of the user's class takes
    training.json      losses, accuracies, and what is needed to use the weights: sizes, classes
    device_rows.jsonl  samples of each process that ran on this machine, over time

and ``training/`` while the processes run, from whose last checkpoint a training that was
interrupted goes on. A finished training is kept also where its seconds say nothing, because a
device had not its speed or no epoch was left to time; readings are then withheld, with the reason.
Without labels nothing can be learnt: seconds are measured with labels that are
drawn by the seed, and no weights are kept.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from optbench.errors import UnsupportedError
from optbench.files import write_whole
from optbench.gnn.kernels.fusion_plan import fusion_names
from optbench.gnn.kernels.kernel_names import fusions_of
from optbench.gnn.own_model.node_values import ValuesOfNodes, values_of_nodes
from optbench.gnn.own_model.own_model_job import (
    COMPUTED,
    OwnModelSettings,
    own_model_fingerprint,
    write_own_model,
)
from optbench.gnn.runtime.held_folder import held
from optbench.gnn.runtime.measured_step import (
    SAMPLE_S,
    devices_in_use,
    measured_rows,
    read_network,
    utilisation,
)
from optbench.gnn.runtime.section_clock import check_speeds
from optbench.gnn.runtime.training_job import (
    GraphNetworkSettings,
    LabelledNodes,
    TrainingJob,
    fingerprint,
    write_job,
)
from optbench.gnn.runtime.training_processes import TrainingError, machines, train_everywhere
from optbench.gnn.runtime.training_result import (
    RESULT,
    WEIGHTS,
    GraphTrainingResult,
    read_result,
)
from optbench.shapes.gnn_training.training_origin import TrainingOrigin
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.protocol.measurements import Measurements, MeasuringMachine
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# Steps that are left out of readings, where there are enough of them.
WARM = 5
NO_FOLDER = "the weights were not kept; name a folder for them: ob.measure(..., folder='trained')"
TRAINING, JOB_NAME, SUMMARY = "training", "job_hash.txt", "training.json"
SAMPLES = "device_rows.jsonl"


def measured_training(
    instance: ShapedInstance, plan: TrainingPlan, machine: MeasuringMachine
) -> Measurements:
    """Train under the plan; return readings of a step, the accuracy, and the paths of weights."""
    data, origin = instance.data, instance.origin
    used, device, speeds, cores = devices_in_use(data, plan, pinned=machines() == 1)
    values = values_of_nodes(origin, data.graph.num_nodes)
    chosen = fusion_names(data.fusions, plan.fusions)
    settings, classes, executed = _network_of(instance, values)
    executed &= chosen
    own = sorted(chosen) if origin.model is not None else []
    job = TrainingJob(
        settings,
        classes,
        epochs=origin.epochs,
        seed=origin.seed,
        learning_rate=origin.learning_rate,
        weight_decay=origin.weight_decay,
        speeds=speeds,
        cores=cores,
        overlap=plan.overlap,
        sample_s=SAMPLE_S,
        fusions=tuple(sorted(executed)),
        only_readings=values.drawn_labels,
    )
    nodes = LabelledNodes(
        data.graph, values.features, values.labels, values.split, device[plan.part]
    )
    with _folder_of(machine) as folder:
        work = folder / (TRAINING if machines() == 1 else f"{TRAINING}-{platform.node()}")
        with held(work) as lock:
            result = _trained(work, lock, job, nodes, origin, own)
            files = _kept(folder, work, machine, origin, values, result, job)
            computed = _computed(work)
            shutil.rmtree(work)
    reason = why_withheld(speeds, result)
    rows = [measured_rows(each, d) for d, each in zip(used, result.device_rows, strict=True)]
    unkept = [] if machine.folder or values.drawn_labels else [NO_FOLDER]
    return Measurements(
        {} if reason else {"step_s": _readings(result.step_s, machine.repeats)},
        {
            "tool": f"torch {version('torch')}, {result.backend}",
            "speeds": list(speeds),
            "solo_speeds": result.solo_speeds,
            "cores": list(cores),
            "fusions": sorted(executed),
            "fusions_not_executed": sorted(chosen - executed),
            "sent_mb_per_step": result.sent_mb_per_step,
            "utilisation": [utilisation(each) for each in rows],
            "device_rows": rows,
            **computed,
            "remarks": [*values.remarks, *unkept],
        },
        _outcome(result, values),
        files,
        {"step_s": reason} if reason else {},
    )


def why_withheld(speeds: tuple[float, ...], result: GraphTrainingResult) -> str:
    """Why there are no readings of a training that is finished; empty where there are."""
    if not result.step_s:
        return "the training had been interrupted after its last epoch; no epoch was left to time"
    try:
        check_speeds(speeds, result.solo_speeds)
    except UnsupportedError as error:
        return str(error)
    return ""


def _network_of(
    instance: ShapedInstance, values: ValuesOfNodes
) -> tuple[GraphNetworkSettings, int, set[str]]:
    """Settings of the network, the number of classes, and the fusions that can be executed."""
    if instance.origin.model is not None:
        return GraphNetworkSettings(), max(values.num_classes, 1), set()
    found = read_network(instance.data)
    hidden = found.widths[1:-1]
    known = set(fusions_of(found.network, len(hidden) + 1))
    return GraphNetworkSettings(found.network, hidden, heads=1), found.widths[-1], known


@contextmanager
def _folder_of(machine: MeasuringMachine) -> Iterator[Path]:
    """The folder that is named, or one that does not outlive the training."""
    if machine.folder is not None:
        machine.folder.mkdir(parents=True, exist_ok=True)
        yield machine.folder.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="optbench-train-") as folder:
        yield Path(folder)


def _trained(
    folder: Path,
    lock: int,
    job: TrainingJob,
    nodes: LabelledNodes,
    origin: TrainingOrigin,
    fusions: list[str],
) -> GraphTrainingResult:
    """Train anew, or go on where the same training was interrupted, if it is not finished."""
    name = _written(folder, job, nodes, origin, fusions)
    before = folder / JOB_NAME
    if not before.is_file() or before.read_text() != name:
        shutil.rmtree(folder)
        _written(folder, job, nodes, origin, fusions)
    elif (folder / RESULT).is_file() and machines() == 1:
        return read_result(folder)
    write_whole(before, name)
    try:
        train_everywhere(folder, lock)
    except TrainingError as error:
        raise TrainingError(str(error).removeprefix(f"{folder}: ")) from None
    return read_result(folder)


def _written(
    folder: Path,
    job: TrainingJob,
    nodes: LabelledNodes,
    origin: TrainingOrigin,
    fusions: list[str],
) -> str:
    """Write the job, and return the hash by which a checkpoint knows it."""
    write_job(folder, job, nodes)
    if origin.model is None:
        return fingerprint(folder)
    file, _, name = origin.model.rpartition(":")
    sizes = (origin.features, origin.hidden, origin.classes)
    spec = f"{Path(file).resolve()}:{name}"
    write_own_model(folder, OwnModelSettings(spec, *sizes, tuple(fusions)))
    return own_model_fingerprint(folder)


def _computed(folder: Path) -> dict[str, Any]:
    """How many nodes each process computed for a user's module, and what became of the fusions."""
    path = folder / COMPUTED
    words: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return words


def _readings(seconds: list[float], repeats: int) -> tuple[float, ...]:
    """Means over equal blocks of steps; the first steps are left out where enough remain."""
    kept = seconds[WARM:] if len(seconds) >= WARM + repeats else seconds
    blocks = np.array_split(np.array(kept), min(repeats, len(kept)))
    return tuple(fmean(each.tolist()) for each in blocks)


def _outcome(result: GraphTrainingResult, values: ValuesOfNodes) -> dict[str, Any]:
    """Losses and accuracies, where there was something to learn."""
    if values.drawn_labels:
        return {"epochs": len(result.losses)}
    return {
        "epochs": len(result.losses),
        "first_loss": result.losses[0],
        "last_loss": result.losses[-1],
        "accuracy": result.accuracy,
    }


def _kept(
    folder: Path,
    work: Path,
    machine: MeasuringMachine,
    origin: TrainingOrigin,
    values: ValuesOfNodes,
    result: GraphTrainingResult,
    job: TrainingJob,
) -> dict[str, str]:
    """Keep weights and summary where a folder is named and there was something to learn."""
    if machine.folder is None or values.drawn_labels:
        return {}
    weights, summary, samples = (folder / name for name in (WEIGHTS, SUMMARY, SAMPLES))
    # ``work`` stays whole, so that a command that is killed here finds the result again.
    write_whole(weights, (work / WEIGHTS).read_bytes())
    lines = (each.read_bytes() for each in sorted(work.glob("rows-*.jsonl")))
    write_whole(samples, b"".join(lines))
    words = {
        "model": origin.model,
        "sizes": {name: getattr(origin, name) for name in ("features", "hidden", "classes")},
        "network": asdict(job.network) if origin.model is None else None,
        "classes": list(values.class_names),
        "feature_names": list(values.feature_names),
        "nodes": values.counts(),
        "remarks": values.remarks,
        **{name: getattr(job, name) for name in ("epochs", "seed", "learning_rate")},
        "weight_decay": job.weight_decay,
        "torch": version("torch"),
        "accuracy": result.accuracy,
        "losses": result.losses,
    }
    write_whole(summary, json.dumps(words, indent=1))
    return {"weights": str(weights), "training": str(summary), "device_rows": str(samples)}
