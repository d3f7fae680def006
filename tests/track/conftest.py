"""Workspaces with a tracking store, empty or with runs by hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from optbench.model.files.schedule_json import schedule_to_dict
from optbench.store.run_store import Store
from tests.track.runs_by_hand import INSTANCE, SOLVED, bounding, record


@pytest.fixture
def workspace(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty tracking store."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (tmp_path / "mlflow").mkdir()
    shutil.copy(empty_database, tmp_path / "mlflow" / "mlflow.db")
    return tmp_path


@pytest.fixture
def store(workspace: Path) -> Store:
    """The instance, and of fcfs a real schedule with a trajectory by hand: 20 from 0.5 s, 10 from
    1.0 s on.
    """
    (workspace / "optbench.toml").touch()
    made = Store(workspace / ".optbench").make()
    made.add_instance(INSTANCE)
    assert SOLVED.schedule is not None
    points = [
        {"t_s": t_s, "objective": value, "bound": None, "level": 0}
        for t_s, value in ((0.5, 20.0), (1.0, 10.0))
    ]
    files = {
        "schedule.json": schedule_to_dict(SOLVED.schedule, INSTANCE),
        "trajectory.json": points,
    }
    made.add(
        record("fcfs", 10.0), {name: json.dumps(value).encode() for name, value in files.items()}
    )
    made.add(record("random_rules:k=8", 16.0), {})
    made.add(bounding(8.0), {})
    return made
