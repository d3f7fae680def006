"""``optbench train gogh``: its settings, the public facts that it trains on, its progress.

The networks belong to the public facts of one instance, that of ``--seed``. A training of the
default length takes about ten seconds, so that one that is interrupted keeps nothing.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from optbench import __version__
from optbench.errors import ParameterError, with_article
from optbench.learn.colocation.estimator_settings import (
    KINDS_BY_VALIDATION,
    EstimatorSettings,
    Kind,
)
from optbench.plugins.schedule_shape import shape_of
from optbench.plugins.training import TrainingResult, TrainingRun
from optbench.shapes.colocation.colocation_process import PublicFacts

SHAPE = "colocation"
# Steps of one point of the curves.
STEPS_PER_POINT = 25


@dataclass(frozen=True)
class GoghTraining(EstimatorSettings):
    """Kinds of both networks, their training's length and batches, and the seed of their weights.

    ``steps`` are those of each of ``4 × folds`` networks: first sight and refinement, of
    throughputs alone and of ratios, each on all families but those of a fold.
    """

    p1: Kind = KINDS_BY_VALIDATION[0]
    p2: Kind = KINDS_BY_VALIDATION[1]
    network_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(self.network_seed >= 0, "network_seed")


class StoppedTraining(Exception):
    """Raised within a training that is to stop."""


@dataclass
class TrainingCurve:
    """Takes the losses of a training: a point per ``STEPS_PER_POINT`` steps, their mean."""

    run: TrainingRun
    total: int
    done: int = 0
    losses: list[float] = field(default_factory=list)
    points: list[dict[str, float]] = field(default_factory=list)

    def __call__(self, loss: float) -> None:
        self.done += 1
        self.losses.append(loss)
        if len(self.losses) == STEPS_PER_POINT:
            point = {"step": float(self.done), "loss": sum(self.losses) / STEPS_PER_POINT}
            self.points.append(point)
            self.losses.clear()
            if self.run.on_point is not None:
                self.run.on_point(self.done, self.total, point)
        if self.run.stop.is_set():
            raise StoppedTraining


def train_networks(run: TrainingRun) -> TrainingResult:
    """Train on what is public, and write ``run.output``; nothing is written where it is stopped."""
    from optbench.learn.colocation.network_files import facts_hash, save_networks
    from optbench.learn.colocation.network_rows import train

    if run.output.exists() and not run.fresh:
        raise ParameterError(f"{run.output} is there already; --fresh trains anew and replaces it")
    settings: GoghTraining = run.settings
    facts = facts_of(run)
    about: dict[str, Any] = {
        "solver": "gogh",
        "trained_on": list(run.names),
        "instance_seeds": [run.seed, run.seed],
        "facts": facts_hash(facts),
        "settings": asdict(settings),
        "optbench": __version__,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    curve, began = TrainingCurve(run, settings.all_steps), time.perf_counter()
    kinds = (settings.p1, settings.p2)
    try:
        model = train(facts, kinds, settings, settings.network_seed, curve)
    except StoppedTraining:
        return TrainingResult(curve.points, about, interrupted=True, resumes=False)
    spent_s = round(time.perf_counter() - began, 3)
    about |= {"gradient_steps": curve.done, "training_s": spent_s}
    save_networks(run.output, model, facts, about)
    return TrainingResult(curve.points, about, interrupted=False, resumes=False)


def facts_of(run: TrainingRun) -> PublicFacts:
    """What is public of the problems' instances of the run's seed, which must all agree in it."""
    from optbench.learn.colocation.network_files import facts_hash

    found: dict[str, PublicFacts] = {}
    for name, problem in zip(run.names, run.problems, strict=True):
        instance = problem.instance(run.seed)
        shape = shape_of(instance)
        if shape.name != SHAPE:
            raise ParameterError(
                f"--on {name}: its instances are of the shape {shape.name!r}; gogh is trained on "
                f"{with_article(SHAPE)}, such as colocation:load=0.9"
            )
        facts: PublicFacts = shape.public_of(instance)
        found[facts_hash(facts)] = facts
    if len(found) != 1:
        raise ParameterError(
            f"--on {' --on '.join(run.names)}: their public facts differ at seed {run.seed}, and "
            "networks belong to those of one instance; train one checkpoint for each"
        )
    return next(iter(found.values()))
