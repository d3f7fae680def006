"""A database that is made once and copied: its tables take a second."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from optbench.bench.track import Tracking


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        Tracking(workspace=root).client.search_experiments()
    return root / "mlflow" / "mlflow.db"


@pytest.fixture
def workspace(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty tracking store."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "mlflow").mkdir()
    shutil.copy(empty_database, tmp_path / "mlflow" / "mlflow.db")
    return tmp_path
