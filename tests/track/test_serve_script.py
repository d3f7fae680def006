"""mlflow/serve.sh, as a reader would use it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from optbench.track.runs import TrackedRun
from optbench.track.server import free_port, serving
from optbench.track.tracking import Tracking

SCRIPT = Path(__file__).parents[2] / "mlflow" / "serve.sh"


def test_it_serves_what_its_settings_name(workspace: Path, tmp_path: Path) -> None:
    port = free_port("127.0.0.1", None)
    settings = tmp_path / "own settings.env"
    lines = [
        f"MLFLOW_BACKEND_STORE_URI=sqlite:///{workspace / 'mlflow' / 'mlflow.db'}",
        f"MLFLOW_ARTIFACTS={tmp_path / 'files'}",
        f"MLFLOW_PORT={port}",
        "MLFLOW_WORKERS=1",
    ]
    settings.write_text("\n".join(lines) + "\n")
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "PYTHON": sys.executable}
    with serving([str(SCRIPT), str(settings)], f"{url}/health", tmp_path / "log", environment):
        run = TrackedRun(
            "c",
            "sent",
            artifacts=lambda folder: (folder / "x.txt").write_text("x"),
            files_version="1",
        )
        Tracking(url, workspace=tmp_path).sync("optbench/served", run, [])
    assert [path.name for path in (tmp_path / "files").rglob("*.txt")] == ["x.txt"]


@pytest.mark.parametrize("words", [[], ["missing.env"]])
def test_it_says_what_it_needs(tmp_path: Path, words: list[str]) -> None:
    script = tmp_path / "serve.sh"
    script.write_bytes(SCRIPT.read_bytes())
    script.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    refused = subprocess.run(
        [str(script), *words], capture_output=True, text=True, env=environment, check=False
    )
    assert refused.returncode == 2
    assert "server.env.example" in refused.stderr and (not words or "missing.env" in refused.stderr)


def test_it_serves_nothing_else_in_this_folder() -> None:
    """What lies beside it is configuration: a module here could shadow the library."""
    assert list(SCRIPT.parent.glob("*.py")) == []
