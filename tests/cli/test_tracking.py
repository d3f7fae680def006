"""`optbench sync` and `optbench ui` from the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from optbench.track.runs import TrackedRun
from optbench.track.tracking import Tracking
from tests.cli.conftest import COMMAND, Cli, environment

STUDY = """\
question = "Which rule is shorter?"
problems = ["jobshop:jobs=2,machines=2"]
solvers = ["fcfs", "heft"]
seeds = [3]
work_limit = 10
bound_limit = "1s"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "tiny.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def database(study: Path, empty_database: Path) -> Path:
    return copy_database(empty_database, study)


def copy_database(file: Path, workspace: Path) -> Path:
    (workspace / "mlflow").mkdir()
    return Path(shutil.copy(file, workspace / "mlflow" / "mlflow.db"))


def test_a_study_that_ran_untracked_is_sent_later_and_once(
    cli: Cli, study: Path, empty_database: Path
) -> None:
    assert cli("run", "tiny", "--no-track", "--json").code == 0
    assert not (study / "mlflow").exists()
    copy_database(empty_database, study)
    first = cli("sync", "--json").json["studies"]
    # Two solvers, the bounding of their instance, and the parent.
    assert [(each["study"], each["created"]) for each in first] == [("tiny", 4)]
    again = cli("sync", "tiny", "--json").json["studies"]
    assert [(each["created"], each["updated"], each["unchanged"]) for each in again] == [(0, 0, 4)]
    assert "tiny" in cli("sync").out


def test_a_run_sends_while_it_runs(cli: Cli, study: Path, database: Path) -> None:
    assert cli("run", "tiny", "--json").code == 0
    tracking = Tracking(f"sqlite:///{study / 'mlflow' / 'mlflow.db'}", workspace=study)
    experiment = tracking.client.get_experiment_by_name("optbench/tiny")
    assert experiment is not None
    runs = tracking.client.search_runs([experiment.experiment_id])
    assert sorted(str(run.info.run_name).split(" ")[0] for run in runs) == [
        "bounds",
        "fcfs",
        "heft",
        "tiny",
    ]
    assert {run.info.status for run in runs} == {"FINISHED"}


def test_a_server_that_is_down_costs_a_word_and_nothing_else(cli: Cli, study: Path) -> None:
    down = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    ran = cli("run", "tiny", "--json", **down)
    assert ran.code == 0
    assert "optbench sync" in ran.err
    assert ran.json["done"] == 3
    sync = cli("sync", **down)
    assert sync.code == 2
    assert "no server answers there" in sync.err and "http://127.0.0.1:9" in sync.err


def test_nothing_to_send_and_nothing_to_show(cli: Cli, study: Path) -> None:
    assert "nothing has been run here yet" in cli("sync").out
    wrong = cli("sync", "tyny")
    assert wrong.code == 2 and "did you mean 'tiny'" in wrong.err
    shown = cli("ui")
    assert shown.code == 2 and "optbench run" in shown.err


def test_a_server_that_does_not_answer_is_named(cli: Cli, study: Path) -> None:
    shown = cli("ui", MLFLOW_TRACKING_URI="http://127.0.0.1:9")
    assert shown.code == 2 and "http://127.0.0.1:9" in shown.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_pages_come_up_and_leave_nothing_behind(
    study: Path, database: Path, number: signal.Signals
) -> None:
    Tracking(f"sqlite:///{database}", workspace=study).sync(
        "optbench/x", TrackedRun("c", "shown"), []
    )
    words = [*COMMAND, "ui", "--port", str(port()), "--no-browser", "--json"]
    shown = subprocess.Popen(
        words,
        cwd=study,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert shown.stdout is not None
    told = "".join(shown.stdout.readline() for _ in range(3))
    url = json.loads(told)["url"]
    with urllib.request.urlopen(url, timeout=10) as page:
        assert b"<title>MLflow</title>" in page.read()
    servers = children(shown.pid)
    assert servers
    shown.send_signal(number)
    _, err = shown.communicate(timeout=30)
    assert (shown.returncode, err) == (
        (0, "") if number == signal.SIGINT else (-signal.SIGKILL, "")
    )
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in servers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in servers if alive(pid)] == []


def test_a_port_in_use_is_named(cli: Cli, study: Path, database: Path) -> None:
    Tracking(f"sqlite:///{database}", workspace=study).sync(
        "optbench/x", TrackedRun("c", "shown"), []
    )
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        number = taken.getsockname()[1]
        refused = cli("ui", "--port", str(number))
    assert refused.code == 2
    assert str(number) in refused.err and "--port" in refused.err


@pytest.mark.skipif(
    shutil.which("optuna-dashboard") is not None, reason="the dashboard is installed here"
)
def test_the_dashboard_that_is_not_there_is_named(cli: Cli, study: Path) -> None:
    refused = cli("ui", "--optuna")
    assert refused.code == 2 and "optbench[dashboard]" in refused.err


def port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        return int(free.getsockname()[1])


def children(pid: int) -> list[int]:
    """All descendants."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(word) for word in path.read_text().split()] if path.exists() else []
    return [*found, *(grandchild for child in found for grandchild in children(child))]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
