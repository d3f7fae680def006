"""Solvers that are trained: ``optbench train`` writes the checkpoint that they use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from optbench.learn.work_pool import OneProcess, WorkPool
from optbench.plugins.protocol import Problem, Solver

# Training uses seeds from here on, validation 500 to 599, reports 0 to 99.
FIRST_SEED = 1000

OnPoint = Callable[[int, int, dict[str, float]], None]


@dataclass
class TrainingRun:
    """Input of a training: problems, seed, output file, progress callback and stop event.

    ``kept`` is the state of an interrupted training, from which it continues. ``pool`` makes the
    calls that do not depend on each other, here or on the nodes of a cluster.
    """

    problems: Sequence[Problem]
    output: Path
    settings: Any
    names: Sequence[str] = ()
    seed: int = 0
    fresh: bool = False
    on_point: OnPoint | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    pool: WorkPool = field(default_factory=OneProcess)

    @property
    def kept(self) -> Path:
        return self.output.with_name(f"{self.output.name}.state")


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Curves (a dictionary per point), figures to show, whether it was interrupted, and whether the
    same command then goes on where it was.
    """

    history: list[dict[str, float]]
    about: dict[str, Any]
    interrupted: bool
    resumes: bool = True


class Trainable(Solver):
    """A solver that can be trained; ``settings`` is the dataclass of its ``-p key=value``."""

    settings: ClassVar[type]
    # Names of ``compiling.kernel_table.KERNELS`` that training runs, where these are others than in
    # solving.
    needs_in_training: ClassVar[frozenset[str] | set[str]] = frozenset()
    # What training gives to ``TrainingRun.pool``; None where it gives nothing, for the reason
    # beside it.
    distributes: ClassVar[str | None] = None
    nothing_to_distribute: ClassVar[str] = "its training makes no calls that are independent"

    def train(self, run: TrainingRun) -> TrainingResult:
        """Train and write ``run.output``."""
        raise NotImplementedError
