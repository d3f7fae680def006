"""The tracking store: the workspace's own database, or what MLFLOW_TRACKING_URI names."""

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
# A database whose creation began this many seconds ago was abandoned.
STALE_S = 600.0
# MLflow itself must not repeat a request: a create request whose answer was lost would make a
# second run. ``Tracking`` repeats it after looking for the run. Telemetry is switched off.
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
        """Return the given URI, that of the variable, or the workspace's database."""
        root = workspace if workspace is not None else activate() or Path.cwd()
        own = root / FOLDER
        given = uri or os.environ.get(VARIABLE)
        if given and given != local_uri(root):
            return cls(given, None, root)
        return cls(local_uri(root), own / ARTIFACTS, root)

    @property
    def local(self) -> bool:
        """Whether it is the workspace's own database."""
        return self.artifacts is not None

    @property
    def database(self) -> Path:
        return self.folder / FOLDER / DATABASE

    @property
    def exists(self) -> bool:
        return not self.local or self.database.exists()

    def make(self) -> None:
        """Create folders and database, the latter beside its place: a kill leaves no half one."""
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
        """Hold this workspace's lock; yield the file that names its last holder."""
        folder = self.folder / STORE
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder / LOCK


def local_uri(root: Path) -> str:
    return f"sqlite:///{root / FOLDER / DATABASE}"


def stamp(lock: Path) -> str:
    """Write a new mark to the lock file, which only its holder does."""
    mark = secrets.token_hex(8)
    lock.write_text(mark)
    return mark


def prepare() -> None:
    """Set options of MLflow's client for this process; the user's settings take precedence."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # alembic logs the migrations of a new database.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="mlflow")
