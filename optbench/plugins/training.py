"""Solvers that are trained: ``optbench train`` makes the checkpoint that they decide by."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from optbench.plugins.protocol import Problem, Solver

# Seeds of training begin here; validation takes 500 to 599, reports 0 to 99.
FIRST_SEED = 1000

OnPoint = Callable[[int, int, dict[str, float]], None]


@dataclass
class TrainingRun:
    """What a training gets: problems, a seed, where to write, whom to tell, when to stop; ``kept`` is what it goes on from."""

    problems: Sequence[Problem]
    output: Path
    settings: Any
    names: Sequence[str] = ()
    seed: int = 0
    fresh: bool = False
    on_point: OnPoint | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def kept(self) -> Path:
        return self.output.with_name(f"{self.output.name}.state")


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What came of it: the curves (one dictionary per point), figures for people, and whether it was stopped before its end."""

    history: list[dict[str, float]]
    about: dict[str, Any]
    interrupted: bool


class Trainable(Solver):
    """``settings`` is the dataclass of what training can be told (``optbench train -p key=value``)."""

    settings: ClassVar[type]
    # Names of ``compiling.kernel_table.KERNELS`` that training runs, where these are others than in solving.
    needs_in_training: ClassVar[frozenset[str] | set[str]] = frozenset()

    def train(self, run: TrainingRun) -> TrainingResult:
        """Train and write ``run.output``."""
        raise NotImplementedError
