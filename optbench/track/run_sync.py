"""Compare the runs of one parent with what the tracking store holds and send the differences."""

from __future__ import annotations

import getpass
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from optbench.track.known_runs import PARENT, KnownRun, without_duplicates
from optbench.track.runs import (
    CELL,
    CONTENT,
    FILES,
    GROUP,
    OWN,
    PREFIX,
    REVISION,
    SUPERSEDED,
    SyncReport,
    TrackedRun,
    TrackingError,
)

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

# Limits of one request.
MAX_METRICS, MAX_PARAMS, MAX_TAGS, PAGE = 800, 100, 100, 5000
# Status codes for which a repeated request would fail again.
FINAL = (
    "INVALID_PARAMETER_VALUE",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "CUSTOMER_UNAUTHORIZED",
    "ENDPOINT_NOT_FOUND",
)
PAUSE_S = 0.5
T = TypeVar("T")


class RunSender:
    """Synchronises one group once, under the lock; ``known`` is what the store holds, if known."""

    def __init__(
        self,
        client: MlflowClient,
        experiment_id: str,
        group: str,
        attempts: int,
        known: dict[str, KnownRun] | None,
        restore: bool,
    ) -> None:
        self.client, self.experiment_id, self.group = client, experiment_id, group
        self.attempts, self.restore = attempts, restore
        self.known: dict[str, KnownRun] = {} if known is None else known
        self.counts = dict.fromkeys(("created", "updated", "unchanged", "removed", "deleted"), 0)
        self.troubled = False
        if known is None:
            self.query_group()

    def report(self, parent_run_id: str) -> SyncReport:
        return SyncReport(self.experiment_id, parent_run_id, **self.counts)

    def query_group(self) -> None:
        """Query all runs of the group and remove duplicates."""
        self.known, doubles = without_duplicates(self._search(f"tags.`{GROUP}` = '{self.group}'"))
        for seen in doubles:
            self._delete(seen)
            self.counts["removed"] += 1

    def _search(self, condition: str) -> list[KnownRun]:
        from mlflow.entities import ViewType

        found: list[KnownRun] = []
        token: str | None = None
        while True:
            page = self.client.search_runs(
                [self.experiment_id],
                condition,
                run_view_type=ViewType.ALL,
                max_results=PAGE,
                page_token=token,
            )
            found += [KnownRun.of(run) for run in page]
            token = page.token
            if not token:
                return found

    def _delete(self, seen: KnownRun) -> None:
        self.client.set_tag(seen.run_id, SUPERSEDED, "true")
        self.client.delete_run(seen.run_id)

    def send(self, run: TrackedRun, parent_run_id: str | None) -> str:
        """Make the store hold ``run`` and return its id; a failed request is tried again."""
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        for attempt in range(self.attempts):
            try:
                if attempt:
                    self._look_up(run.cell)
                what, run_id = self._send(run, parent_run_id)
                self.counts[what] += 1
                return run_id
            except (MlflowException, SQLAlchemyError, OSError) as error:
                self.troubled = True
                if attempt + 1 == self.attempts or getattr(error, "error_code", "") in FINAL:
                    raise
                time.sleep(PAUSE_S * 2**attempt)
        raise TrackingError("no attempt at all was allowed")

    def _look_up(self, cell: str) -> None:
        """Look for a run whose creation was not answered: it may exist."""
        kept, _ = without_duplicates(self._search(f"tags.`{CELL}` = '{cell}'"))
        self.known.pop(cell, None)
        self.known.update(kept)

    def _send(self, run: TrackedRun, parent_run_id: str | None) -> tuple[str, str]:
        """Return what was done, and the run's id."""
        seen = self.known.get(run.cell)
        if seen is not None and seen.gone:
            if not self.restore:
                return "deleted", seen.run_id
            self.client.restore_run(seen.run_id)
            seen.gone = False
        if seen is not None and seen.holds(run, parent_run_id):
            return "unchanged", seen.run_id
        with TemporaryDirectory(prefix="optbench-track-") as name:
            files = Path(name)
            if run.artifacts is not None and (
                seen is None or seen.files != run.files_version or not seen.content
            ):
                run.artifacts(files)
            if seen is not None and (seen.contradicts(run) or self._leftover(seen, files)):
                self._delete(seen)
                del self.known[run.cell]
                return self._send(run, parent_run_id)
            what = "created" if seen is None else "updated"
            seen = seen or self._create(run, parent_run_id)
            self._fill(seen, run, parent_run_id, files)
        return what, seen.run_id

    def _leftover(self, seen: KnownRun, files: Path) -> bool:
        """Whether files exist that the new state lacks: MLflow's client cannot remove them."""
        names = {path.name for path in files.iterdir()}
        if not names or not seen.files:
            return False
        return any(entry.path not in names for entry in self.client.list_artifacts(seen.run_id))

    def _create(self, run: TrackedRun, parent_run_id: str | None) -> KnownRun:
        tags = {
            "mlflow.user": _user(),
            "mlflow.source.name": "optbench",
            **run.all_tags(),
            CELL: run.cell,
            GROUP: self.group,
        }
        if parent_run_id is not None:
            tags[PARENT] = parent_run_id
        made = self.client.create_run(
            self.experiment_id, start_time=run.began_ms, tags=tags, run_name=run.name
        )
        seen = KnownRun(made.info.run_id, run.name, "RUNNING", False, tags=tags)
        self.known[run.cell] = seen
        return seen

    def _fill(
        self, seen: KnownRun, run: TrackedRun, parent_run_id: str | None, files: Path
    ) -> None:
        """Send all that differs, the hash of the content after all else, the status last."""
        from mlflow.entities import Metric, Param, RunTag

        if any(files.iterdir()):
            self.client.log_artifacts(seen.run_id, str(files))
        wanted = run.all_metrics()
        metrics = {key: value for key, value in wanted.items() if seen.metrics.get(key) != value}
        if any(key in seen.metrics for key in metrics):
            seen.tags[REVISION] = str(seen.revision + 1)
            self.client.set_tag(seen.run_id, REVISION, seen.tags[REVISION])
        params = {key: value for key, value in run.all_params().items() if key not in seen.params}
        tags = run.all_tags() | {FILES: run.files_version, CONTENT: run.content}
        if parent_run_id is not None:
            tags[PARENT] = parent_run_id
        tags = {key: value for key, value in tags.items() if seen.tags.get(key) != value}
        at = run.ended_ms + seen.revision
        points = [Metric(name, value, at, step) for step, name, value in run.all_points()]
        points += [Metric(key, value, at, 0) for key, value in metrics.items()]
        self._send_in_parts(
            seen.run_id,
            metrics=cut_into_parts(points, MAX_METRICS),
            params=cut_into_parts([Param(*each) for each in params.items()], MAX_PARAMS),
            tags=cut_into_parts([RunTag(*each) for each in tags.items()], MAX_TAGS),
        )
        seen.tags |= tags
        seen.params |= params
        seen.metrics |= metrics
        self._finish(seen, run)

    def _send_in_parts(self, run_id: str, **parts: list[Any]) -> None:
        """Send what does not fit into one request; the last parts of all kinds go together."""
        for kind, (*early, _) in parts.items():
            for part in early:
                request: dict[str, Any] = {kind: part}
                self.client.log_batch(run_id, **request)
        last: dict[str, Any] = {kind: each[-1] for kind, each in parts.items()}
        self.client.log_batch(run_id, **last)

    def _finish(self, seen: KnownRun, run: TrackedRun) -> None:
        for key in [
            key for key in seen.tags if key.startswith(PREFIX) and key not in (*OWN, *run.tags)
        ]:
            self.client.delete_tag(seen.run_id, key)
            del seen.tags[key]
        if seen.name != run.name:
            self.client.update_run(seen.run_id, name=run.name)
            seen.name = run.name
        if run.status == "RUNNING":
            if seen.status != run.status:
                self.client.update_run(seen.run_id, status=run.status)
        elif (seen.status, seen.ended_ms) != (run.status, run.ended_ms):
            self.client.set_terminated(seen.run_id, run.status, run.ended_ms)
        seen.status, seen.ended_ms = run.status, run.ended_ms


def cut_into_parts(things: Sequence[T], size: int) -> list[Sequence[T]]:
    """Cut a sequence into parts of at most ``size``; the last part may be empty."""
    return [things[k : k + size] for k in range(0, max(len(things), 1), size)]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user in this container
        return ""
