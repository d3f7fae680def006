"""``optbench train`` of a network that fills in a list rule: instances of the problems, the
training, and the checkpoint that it writes.

Problems whose work is all there at time 0 train the network; those with arrivals train the
read-outs for streams, for a share of the processor time, once the network is done.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from optbench import __version__
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.plugins.training import FIRST_SEED, TrainingResult, TrainingRun

from .instance_kinds import has_arrivals
from .learning_settings import ListRuleTraining
from .network_checkpoint import NetworkCheckpoint, read_network, write_network
from .network_design import AnsweringNetwork, NetworkDesign
from .network_training import NetworkTraining, train_network
from .stream_readouts import StreamReadouts, readouts_from
from .stream_training import StreamTraining

# Seeds 500 to 599 are for validation.
FIRST_VALIDATION = 500
# The share of the time of both that streams take; ``cpu_minutes`` is that of the network alone.
STREAM_SHARE = 0.3
# Steps of stream training between two validations.
CHECK_EVERY = 3


def train(run: TrainingRun) -> TrainingResult:
    """Train on the problems of the run and write its output."""
    settings: ListRuleTraining = run.settings
    design = settings.design
    if run.fresh:
        run.kept.unlink(missing_ok=True)
    elif run.output.exists() and not run.kept.exists():
        finished = read_network(run.output, type(design)).provenance.get("complete", True)
        if finished:
            raise ParameterError(
                f"{run.output} is the checkpoint of a finished training; --fresh trains anew and "
                "replaces it"
            )
    first = FIRST_SEED + 100 * run.seed
    made = drawn(run, first, settings.instances)
    checks = drawn(run, FIRST_VALIDATION, settings.validation)
    streams, late = ([x for x in group if has_arrivals(x)] for group in (made, checks))
    if settings.only_streams:
        return train_streams(run, first, streams, late)
    static = [x for x in made if not has_arrivals(x)]
    if not static:
        raise ParameterError(
            f"{settings.solver} is trained on at least one problem without arrivals (gpu_cluster "
            "without load); streams train its read-outs besides, or alone with -p "
            "only_streams=yes -p start=FILE"
        )
    training = NetworkTraining(
        static, [x for x in checks if not has_arrivals(x)], settings, run.seed, run.pool
    )
    if run.kept.exists():
        training.load(run.kept)
    complete = train_network(training, run.kept, run.on_point, run.stop.is_set)
    if complete:
        training.require_a_valid_check()
    weights = {name: value.numpy().copy() for name, value in training.best.items()}
    history, readouts, spent = list(training.history), None, training.spent_s
    if complete and streams:
        network = design.forward_pass(weights)
        stream = stream_training(run, network, streams, late, None)
        ratio = STREAM_SHARE / (1.0 - STREAM_SHARE)
        spent += play_streams(run, stream, ratio)
        readouts, complete = readouts_from(stream.best), not run.stop.is_set()
        history += stream.history
    about = provenance(run, first, spent, complete) | {
        "features": features_of(static + streams),
        "stream_features": features_of(streams),
        "gradient_steps": training.step,
        "validation_loss": training.least,
    }
    found = NetworkCheckpoint(design.settings, weights, readouts, training.table(), about)
    write_network(run.output, found, type(design))
    if complete:
        run.kept.unlink(missing_ok=True)
    return TrainingResult(history, about, not complete)


def train_streams(
    run: TrainingRun, first: int, streams: list[Instance], checks: list[Instance]
) -> TrainingResult:
    """Train the read-outs for arriving work of a checkpoint whose network stays."""
    settings: ListRuleTraining = run.settings
    if not streams:
        raise ParameterError(
            f"training of {settings.solver}: only_streams needs a problem with arrivals (load=)"
        )
    design = type(settings.design)
    start = read_network(Path(settings.start or ""), design)
    network = design(start.settings).forward_pass(start.weights)
    begun = start.streams if run.fresh else begun_readouts(run.output, start, design)
    stream = stream_training(run, network, streams, checks, begun)
    spent = play_streams(run, stream, 1.0)
    about = start.provenance | {
        "complete": not run.stop.is_set(),
        "stream_features": features_of(streams),
        "streams": provenance(run, first, spent, not run.stop.is_set())
        | {"steps": stream.steps, "validation_loss": stream.least},
    }
    made = readouts_from(stream.best)
    found = NetworkCheckpoint(start.settings, start.weights, made, start.table, about)
    write_network(run.output, found, design)
    return TrainingResult(stream.history, about, run.stop.is_set())


def begun_readouts(
    path: Path, start: NetworkCheckpoint, design: type[NetworkDesign]
) -> StreamReadouts | None:
    """Return the read-outs of an interrupted training of the same network, else those of its
    start.
    """
    if not path.exists():
        return start.streams
    found = read_network(path, design)
    same = found.weights.keys() == start.weights.keys() and all(
        np.array_equal(each, start.weights[name]) for name, each in found.weights.items()
    )
    return found.streams if same else start.streams


def stream_training(
    run: TrainingRun,
    network: AnsweringNetwork,
    streams: list[Instance],
    checks: list[Instance],
    start: StreamReadouts | None,
) -> StreamTraining:
    """Return the training of the read-outs of a network."""
    streamed = run.settings.design.streamed
    return StreamTraining(
        network, streams, checks or streams[:1], run.seed, start, streamed, run.pool
    )


def play_streams(run: TrainingRun, stream: StreamTraining, ratio: float) -> float:
    """Train for ``ratio`` times the steps or the processor time of the settings; return the
    seconds spent.
    """
    settings: ListRuleTraining = run.settings
    seconds, steps = 60 * settings.cpu_minutes * ratio, math.ceil(settings.steps * ratio)
    return stream.train(seconds, steps, CHECK_EVERY, run.stop.is_set, run.on_point)


def drawn(run: TrainingRun, first: int, count: int) -> list[Instance]:
    """Return so many instances of each problem, with seeds of their own."""
    out = []
    for place, problem in enumerate(run.problems):
        for k in range(count):
            instance = problem.instance(first + (place * count + k) % 100)
            if not isinstance(instance, Instance):
                raise ParameterError(
                    f"{run.settings.solver} is trained on problems of tasks on pools"
                )
            out.append(instance)
    return out


def features_of(instances: list[Instance]) -> list[str]:
    """Return the features of all of them."""
    return sorted(frozenset[str]().union(*(each.features for each in instances)))


def provenance(run: TrainingRun, first: int, spent_s: float, complete: bool) -> dict[str, object]:
    """Return what the file says of its training."""
    return {
        "solver": run.settings.solver,
        "trained_on": list(run.names),
        "seed": run.seed,
        "instance_seeds": [first, first + 99],
        "validation_seeds": [FIRST_VALIDATION, FIRST_VALIDATION + 99],
        "settings": asdict(run.settings),
        "training_s": round(spent_s, 1),
        "complete": complete,
        "optbench": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
