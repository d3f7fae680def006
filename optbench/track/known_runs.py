"""Runs that a tracking store already holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optbench.track.runs import CELL, CONTENT, FILES, PREFIX, REVISION, SUPERSEDED, TrackedRun

if TYPE_CHECKING:
    from mlflow.entities import Run

PARENT = "mlflow.parentRunId"


@dataclass
class KnownRun:
    """A run of the store; ``gone`` means that it is deleted in MLflow."""

    run_id: str
    name: str
    status: str
    gone: bool
    ended_ms: int | None = None
    tags: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> KnownRun:
        tags = {
            key: value
            for key, value in run.data.tags.items()
            if key.startswith(PREFIX) or key == PARENT
        }
        info = run.info
        return cls(
            info.run_id,
            str(info.run_name),
            str(info.status),
            info.lifecycle_stage != "active",
            info.end_time,
            tags,
            dict(run.data.params),
            dict(run.data.metrics),
        )

    @property
    def cell(self) -> str:
        return self.tags.get(CELL, "")

    @property
    def content(self) -> str:
        return self.tags.get(CONTENT, "")

    @property
    def files(self) -> str:
        return self.tags.get(FILES, "")

    @property
    def revision(self) -> int:
        return int(self.tags.get(REVISION, "0"))

    @property
    def superseded(self) -> bool:
        return SUPERSEDED in self.tags

    def holds(self, run: TrackedRun, parent_run_id: str | None) -> bool:
        """Whether everything of ``run`` has arrived."""
        return (
            self.content == run.content
            and self.status == run.status
            and self.tags.get(PARENT) == parent_run_id
        )

    def contradicts(self, run: TrackedRun) -> bool:
        """Whether a new run must replace this one: MLflow keeps parameters and metrics."""
        params = run.all_params()
        changed = any(params.get(key, value) != value for key, value in self.params.items())
        drawn = {name for _, name, _ in run.all_points()}
        return changed or not set(self.metrics) <= set(run.all_metrics()) | drawn


def without_duplicates(runs: Iterable[KnownRun]) -> tuple[dict[str, KnownRun], list[KnownRun]]:
    """Return, by cell, the run that stays (complete and lowest id first), and the others."""
    kept: dict[str, KnownRun] = {}
    doubles = []
    for seen in sorted(
        runs, key=lambda each: (each.gone, not each.content, each.status == "RUNNING", each.run_id)
    ):
        if seen.superseded or seen.cell in kept:
            doubles += [] if seen.gone else [seen]
        else:
            kept[seen.cell] = seen
    return kept, doubles
