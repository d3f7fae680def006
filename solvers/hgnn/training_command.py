"""``optbench train hgnn``: instances of the problems, the training, and the checkpoint that it writes.

Problems whose work is all there at time 0 train the network; those with arrivals train the read-outs
for streams, for a share of the processor time, once the network is done.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from optbench import __version__
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.plugins.training import FIRST_SEED, TrainingResult, TrainingRun

from .forward_pass import ForwardPass
from .instance_kinds import has_arrivals
from .learning_settings import HgnnTraining
from .network_checkpoint import NetworkCheckpoint, read_network, write_network
from .network_training import NetworkTraining, train_network
from .stream_readouts import readouts_from
from .stream_training import StreamTraining

# Seeds 500 to 599 are for validation.
FIRST_VALIDATION = 500
# Share of the processor time that streams take where there are both.
STREAM_SHARE = 0.3
PAIRS, CHECK_EVERY = 4, 10


def train(run: TrainingRun) -> TrainingResult:
    """Train on the problems of the run and write its output."""
    settings: HgnnTraining = run.settings
    if run.fresh:
        run.kept.unlink(missing_ok=True)
    elif run.output.exists() and not run.kept.exists():
        finished = read_network(run.output).provenance.get("complete", True)
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
        return train_streams(run, settings, first, streams, late)
    static = [x for x in made if not has_arrivals(x)]
    if not static:
        raise ParameterError(
            "hgnn is trained on at least one problem without arrivals (gpu_cluster without load); "
            "streams train its read-outs besides, or alone with -p only_streams=yes -p start=FILE"
        )
    training = NetworkTraining(
        static, [x for x in checks if not has_arrivals(x)], settings, run.seed
    )
    if run.kept.exists():
        training.load(run.kept)
    complete = train_network(training, run.kept, run.on_point, run.stop.is_set)
    weights = {name: value.numpy().copy() for name, value in training.best.items()}
    history, readouts, spent = list(training.history), None, training.spent_s
    if complete and streams:
        share = STREAM_SHARE / (1.0 - STREAM_SHARE)
        network = ForwardPass(weights, settings.network)
        stream = StreamTraining(network, streams, late or streams[:1], PAIRS, run.seed)
        seconds = 60 * settings.cpu_minutes * share
        spent += stream.train(seconds, CHECK_EVERY, run.stop.is_set, run.on_point)
        readouts, complete = readouts_from(stream.best), not run.stop.is_set()
        history += stream.history
    about = provenance(run, first, spent, complete) | {
        "gradient_steps": training.step,
        "validation_loss": training.least,
    }
    found = NetworkCheckpoint(settings.network, weights, readouts, training.table(), about)
    write_network(run.output, found)
    return TrainingResult(history, about, not complete)


def train_streams(
    run: TrainingRun,
    settings: HgnnTraining,
    first: int,
    streams: list[Instance],
    checks: list[Instance],
) -> TrainingResult:
    """Train the read-outs for arriving work of a checkpoint whose network stays."""
    if not streams:
        raise ParameterError("training of hgnn: only_streams needs a problem with arrivals (load=)")
    start = read_network(Path(settings.start or ""))
    network = ForwardPass(start.weights, start.settings)
    stream = StreamTraining(network, streams, checks or streams[:1], PAIRS, run.seed, start.streams)
    spent = stream.train(60 * settings.cpu_minutes, CHECK_EVERY, run.stop.is_set, run.on_point)
    about = start.provenance | {
        "streams": provenance(run, first, spent, not run.stop.is_set())
        | {"steps": stream.steps, "validation_loss": stream.least}
    }
    made = readouts_from(stream.best)
    found = NetworkCheckpoint(start.settings, start.weights, made, start.table, about)
    write_network(run.output, found)
    return TrainingResult(stream.history, about, run.stop.is_set())


def drawn(run: TrainingRun, first: int, count: int) -> list[Instance]:
    """Return so many instances of each problem, with seeds of their own."""
    out = []
    for place, problem in enumerate(run.problems):
        for k in range(count):
            instance = problem.instance(first + (place * count + k) % 100)
            if not isinstance(instance, Instance):
                raise ParameterError("hgnn is trained on problems of tasks on pools")
            out.append(instance)
    return out


def provenance(run: TrainingRun, first: int, spent_s: float, complete: bool) -> dict[str, object]:
    """Return what the file says of its training."""
    return {
        "solver": "hgnn",
        "trained_on": list(run.names),
        "seed": run.seed,
        "instance_seeds": [first, first + 99],
        "validation_seeds": [FIRST_VALIDATION, FIRST_VALIDATION + 99],
        "settings": vars(run.settings),
        "training_s": round(spent_s, 1),
        "complete": complete,
        "optbench": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
