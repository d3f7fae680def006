"""Send runs to MLflow so that it can be repeated at any time: complete runs stay, missing or
incomplete ones are completed.

A run is found by the tag ``optbench.cell``. It is created with that tag, then filled, and the hash
of its content is written last; a crash between two requests leaves a run that the next ``sync``
finds and completes. A create request whose answer was lost is looked up before it is repeated, and
duplicates that arise nevertheless are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.track.known_runs import KnownRun
from optbench.track.run_sync import RunSender
from optbench.track.runs import SyncReport, TrackedRun, TrackingError
from optbench.track.saved_view import SavedView
from optbench.track.tracking_address import VARIABLE, TrackingAddress, prepare, stamp

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

OnSent = Callable[[int, int], None]
# Without this tag MLflow's pages open with those for language models, which show no runs.
EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}
MAX_SAID = 200
# Patterns of frequent errors of MLflow's client, and the message for each.
SIGNS = {
    "connection refused": "no server answers there (connection refused)",
    "failed to resolve|name or service not known": "there is no host of this name",
    "timed out|timeout": "no answer in time",
    "error code 40[13]|unauthenticated|permission_denied": (
        "access is denied; $MLFLOW_TRACKING_USERNAME and _PASSWORD log in"
    ),
    "maintenance mode": (
        "MLflow no longer stores runs in folders; name a database "
        "(sqlite:///...) or a server (http://...)"
    ),
    "unsupported uri|invalid uri|not supported": (
        "not an address of a tracking store (http://..., sqlite:///..., postgresql://...)"
    ),
}


class Tracking:
    """A tracking store. Several processes of a workspace may use it; they wait for each other."""

    def __init__(
        self, uri: str | None = None, workspace: Path | None = None, attempts: int = 3
    ) -> None:
        self.place = TrackingAddress.of(workspace, uri)
        self.attempts = attempts
        self._client: MlflowClient | None = None
        self._experiments: dict[str, str] = {}
        self._tags: dict[str, dict[str, str]] = {}
        self._known: dict[tuple[str, str], dict[str, KnownRun]] = {}
        self._mark = ""

    @property
    def client(self) -> MlflowClient:
        """MLflow's client, with which sent runs can be read."""
        if self._client is None:
            with as_tracking_errors(self.place.uri):
                from mlflow.tracking import MlflowClient

                self.place.make()
                self._client = MlflowClient(
                    tracking_uri=self.place.uri, registry_uri=self.place.uri
                )
        return self._client

    def sync(
        self,
        experiment: str,
        parent: TrackedRun,
        children: Iterable[TrackedRun],
        *,
        restore: bool = False,
        on_sent: OnSent | None = None,
        view: SavedView | None = None,
    ) -> SyncReport:
        """Make the store hold exactly one run for each of these; ``restore`` also restores what was
        deleted in MLflow.

        ``on_sent(done, total)`` counts the children; ``view`` is the page that shows them.
        """
        runs = list(children)
        with self.place.locked() as lock, as_tracking_errors(self.place.uri):
            if lock.read_text() != self._mark:  # another process has used the store
                self._known.clear()
            self._mark = stamp(lock)
            report = None
            try:
                report = self._sync(
                    experiment, parent, runs, restore, on_sent or (lambda done, total: None)
                )
                self._hold_tags(report.experiment_id, view)
            finally:
                if report is None:  # the store has to be queried again
                    self._known.clear()
                    self._experiments.clear()
                    self._tags.clear()
            return report

    def _sync(
        self,
        experiment: str,
        parent: TrackedRun,
        children: list[TrackedRun],
        restore: bool,
        on_sent: OnSent,
    ) -> SyncReport:
        number = self._experiment(experiment, restore)
        place = (number, parent.cell)
        sender = RunSender(
            self.client, number, parent.cell, self.attempts, self._known.get(place), restore
        )
        parent_run_id = sender.send(parent, None)
        if sender.counts["deleted"]:  # the configuration was deleted with the parent
            sender.counts["deleted"] += len(children)
            return sender.report(parent_run_id)
        for done, child in enumerate(children):
            on_sent(done, len(children))
            sender.send(child, parent_run_id)
        on_sent(len(children), len(children))
        if sender.troubled:  # a slow server may have created a run after a timeout
            sender.query_group()
        self._known[place] = sender.known
        return sender.report(parent_run_id)

    def _experiment(self, name: str, restore: bool) -> str:
        """Return the experiment's id; it is created if missing."""
        if name not in self._experiments:
            found = self.client.get_experiment_by_name(name)
            if found is None:
                artifacts = self.place.artifacts
                location = None if artifacts is None else (artifacts / name).as_uri()
                self._experiments[name] = self.client.create_experiment(
                    name, artifact_location=location, tags=EXPERIMENT_TAGS
                )
                self._tags[self._experiments[name]] = dict(EXPERIMENT_TAGS)
                return self._experiments[name]
            if found.lifecycle_stage != "active":
                if not restore:
                    raise TrackingError(
                        f"experiment {name!r} was deleted in MLflow ({self.place.uri}): "
                        "`optbench sync --restore` brings it back"
                    )
                self.client.restore_experiment(found.experiment_id)
            self._experiments[name] = found.experiment_id
            self._tags[found.experiment_id] = dict(found.tags)
        return self._experiments[name]

    def active_experiment(self, name: str) -> str | None:
        """Return the id of an experiment that was not deleted; None where there is none."""
        with as_tracking_errors(self.place.uri):
            found = self.client.get_experiment_by_name(name)
        if found is None or found.lifecycle_stage != "active":
            return None
        self._tags[found.experiment_id] = dict(found.tags)
        return str(found.experiment_id)

    def hold_view(self, experiment_id: str, view: SavedView) -> None:
        """Make an experiment hold a view; ``active_experiment`` has found it."""
        with self.place.locked(), as_tracking_errors(self.place.uri):
            self._hold_tags(experiment_id, view)

    def _hold_tags(self, experiment_id: str, view: SavedView | None) -> None:
        """Make the experiment hold the view, and a kind unless it has one."""
        held = self._tags[experiment_id]
        wanted = {key: value for key, value in EXPERIMENT_TAGS.items() if key not in held}
        if view is not None:
            wanted[view.tag] = view.value
        for key, value in wanted.items():
            if held.get(key) != value:
                self.client.set_experiment_tag(experiment_id, key, value)
                held[key] = value


@contextmanager
def as_tracking_errors(uri: str) -> Iterator[None]:
    """Turn errors of MLflow into TrackingError with a clear message."""
    prepare()
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except ModuleNotFoundError as error:
        remedy = "`pip install 'optbench[server]'`, and postgresql+psycopg2://... as address"
        raise TrackingError(
            f"tracking store {uri} needs the package {error.name!r}, which is not installed: "
            f"{remedy}"
        ) from error
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise TrackingError(
            f"tracking store {uri}: {error_line(error)}; ${VARIABLE} names another store"
        ) from error


def error_line(error: Exception) -> str:
    """Describe an error in one line; the client's own words have some 500 characters."""
    said = " ".join(str(error).split())
    for sign, words in SIGNS.items():
        if re.search(sign, said, re.IGNORECASE):
            return words
    return said if len(said) <= MAX_SAID else f"{said[:MAX_SAID]}..."
