"""A run as MLflow is to show it, and what sending runs came to."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from optbench.errors import OptbenchError

RunStatus = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]
PREFIX = "optbench."
# Identifies a run within its experiment.
CELL = f"{PREFIX}cell"
# The cell of the parent, on the parent itself and on its children: one search finds them all.
GROUP = f"{PREFIX}group"
# Hash of what was sent; it is sent last, so that a run without it is incomplete.
CONTENT = f"{PREFIX}content"
# What the artifacts were made from.
FILES = f"{PREFIX}files"
# How often metrics were replaced: MLflow takes the value with the latest time for the current one.
REVISION = f"{PREFIX}revision"
# Set before optbench itself deletes a run; a run deleted without it was deleted by a user.
SUPERSEDED = f"{PREFIX}superseded"
OWN = (CELL, GROUP, CONTENT, FILES, REVISION, SUPERSEDED)
# Length limits of MLflow for a parameter and a tag.
MAX_PARAM, MAX_TAG = 6000, 5000
# Characters that MLflow does not allow in the name of a metric.
NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")


class TrackingError(OptbenchError):
    """The tracking store cannot be used now; the local store has all results."""


@dataclass(frozen=True)
class TrackedRun:
    """One run: ``cell`` is its identity within the experiment; everything else may change and is
    then sent again.

    ``artifacts`` writes the run's files into a folder; they are sent again when ``files_version``
    changes. ``curves`` has the metrics of each step of a training. Metrics that are not finite are
    left out.
    """

    cell: str
    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    curves: Sequence[Mapping[str, float]] = ()
    began_ms: int = 0
    ended_ms: int = 0
    status: RunStatus = "FINISHED"
    artifacts: Callable[[Path], object] | None = None
    files_version: str = ""

    @property
    def content(self) -> str:
        """Of all that can be sent again: MLflow fixes when a run began."""
        parts = [
            self.name,
            self.all_tags(),
            self.all_params(),
            self.all_metrics(),
            self.ended_ms,
            self.status,
            self.files_version,
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def all_tags(self) -> dict[str, str]:
        return {key: str(value)[:MAX_TAG] for key, value in self.tags.items()}

    def all_params(self) -> dict[str, str]:
        return {key: str(value)[:MAX_PARAM] for key, value in self.params.items()}

    def all_metrics(self) -> dict[str, float]:
        return _sendable(self.metrics)

    def all_points(self) -> list[tuple[int, str, float]]:
        """Return step, name and value of every point of the curves."""
        steps = enumerate(map(_sendable, self.curves))
        return [(step, name, value) for step, point in steps for name, value in point.items()]


def _sendable(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics that MLflow can store, under names that it allows."""
    finite = {key: float(value) for key, value in metrics.items() if math.isfinite(value)}
    return {NOT_IN_NAMES.sub("_", key): value for key, value in finite.items()}


@dataclass(frozen=True)
class SyncReport:
    """The result of ``sync``: numbers of runs that were created, completed or changed, and already
    right; ``removed`` were duplicates, and ``deleted`` were deleted by a user in MLflow and stay
    deleted.
    """

    experiment_id: str
    parent_run_id: str
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        return self.created + self.updated + self.unchanged + self.deleted
