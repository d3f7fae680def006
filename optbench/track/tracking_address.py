"""Where runs are tracked: the workspace's own database unless MLFLOW_TRACKING_URI names another place."""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from optbench.files import replacing
from optbench.workspace import STORE, activate

VARIABLE = "MLFLOW_TRACKING_URI"
FOLDER, DATABASE, ARTIFACTS = "mlflow", "mlflow.db", "artifacts"
LOCK = "tracking.lock"
# A database that has been in the making for so long was given up.
STALE_S = 600.0
# A request is never repeated by MLflow itself: a create whose answer was lost would make a second run. Tracking repeats it,
# after looking whether it arrived. Nobody outside is told of anything.
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}


@dataclass(frozen=True)
class TrackingAddress:
    """A tracking store. ``artifacts`` is None where the server decides."""

    uri: str
    artifacts: Path | None
    folder: Path

    @classmethod
    def of(cls, workspace: Path | None = None, uri: str | None = None) -> TrackingAddress:
        """The given URI, the variable's, or the workspace's database."""
        root = workspace if workspace is not None else activate() or Path.cwd()
        own = root / FOLDER
        given = uri or os.environ.get(VARIABLE)
        if given and given != local_uri(root):
            return cls(given, None, root)
        return cls(local_uri(root), own / ARTIFACTS, root)

    @property
    def local(self) -> bool:
        """The workspace's own database."""
        return self.artifacts is not None

    @property
    def database(self) -> Path:
        return self.folder / FOLDER / DATABASE

    @property
    def exists(self) -> bool:
        return not self.local or self.database.exists()

    def make(self) -> None:
        """The workspace's own folders and database: the latter beside its place first, so that a kill leaves no half of it."""
        if self.artifacts is None:
            return
        self.artifacts.mkdir(parents=True, exist_ok=True)
        if self.database.exists():
            return
        from mlflow.tracking import MlflowClient

        for old in self.database.parent.glob(f".{DATABASE}.*"):
            if time.time() - old.stat().st_mtime > STALE_S:
                old.unlink(missing_ok=True)
        with replacing(self.database) as fresh:
            address = f"sqlite:///{fresh}"
            MlflowClient(tracking_uri=address, registry_uri=address).search_experiments()

    @contextmanager
    def locked(self) -> Iterator[Path]:
        """Alone among this workspace's processes; yields a file that says who was here last."""
        folder = self.folder / STORE
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder / LOCK


def local_uri(root: Path) -> str:
    return f"sqlite:///{root / FOLDER / DATABASE}"


def stamp(lock: Path) -> str:
    """Leave a new mark in the lock file, which only its holder does."""
    mark = secrets.token_hex(8)
    lock.write_text(mark)
    return mark


def prepare() -> None:
    """Settings of MLflow's client, for this process; what the user has set stays."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # The migrations of a new database speak through alembic's logger.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="mlflow")
