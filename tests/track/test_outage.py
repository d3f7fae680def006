"""A real server that is killed, stands still, or loses answers: afterwards every run is there, once
and whole.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from optbench.track.runs import TrackedRun, TrackingError
from optbench.track.tracking import Tracking
from tests.track.servers import Server, forgetful

PARENT = TrackedRun("c0ffee-study", "hand", began_ms=1000, ended_ms=9000)
NUMBER = 8


def children() -> list[TrackedRun]:
    return [
        TrackedRun(
            f"c0ffee-{k}",
            f"run {k}",
            params={"k": str(k)},
            metrics={"objective": float(k), "gap": 0.5},
            began_ms=1000,
            ended_ms=2000,
            artifacts=lambda folder, k=k: (folder / "schedule.json").write_text(str(k)),  # type: ignore[misc]
            files_version="1",
        )
        for k in range(NUMBER)
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_database, folder / "server.db")
    found = Server(folder)
    found.start()
    yield found
    found.end()


def check_whole(tracking: Tracking, experiment: str) -> None:
    """One finished run per cell, with its values and its file."""
    found = tracking.client.get_experiment_by_name(experiment)
    assert found is not None
    runs = tracking.client.search_runs([found.experiment_id])
    assert sorted(run.data.tags["optbench.cell"] for run in runs) == sorted(
        [PARENT.cell, *(c.cell for c in children())]
    )
    assert {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        if run.data.tags["optbench.cell"] != PARENT.cell:
            k = run.data.params["k"]
            assert run.data.metrics == {"objective": float(k), "gap": 0.5}
            assert (
                Path(
                    tracking.client.download_artifacts(run.info.run_id, "schedule.json")
                ).read_text()
                == k
            )


def test_a_server_killed_in_the_midst_and_started_again(server: Server, workspace: Path) -> None:
    def kill(done: int, total: int) -> None:
        if done == NUMBER // 2:
            server.kill()

    with pytest.raises(TrackingError, match=server.url):
        Tracking(server.url, workspace=workspace, attempts=1).sync(
            "optbench/killed", PARENT, children(), on_sent=kill
        )
    server.start()
    tracking = Tracking(server.url, workspace=workspace)
    report = tracking.sync("optbench/killed", PARENT, children())
    assert report.created + report.updated + report.unchanged == NUMBER + 1
    assert report.unchanged >= NUMBER // 2
    check_whole(tracking, "optbench/killed")


def test_a_server_that_stands_still_and_goes_on(
    server: Server, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked of it while it stood still is done when it goes on, after the client has given
    up.
    """
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")

    def stop(done: int, total: int) -> None:
        if done == NUMBER // 2:
            server.signal(signal.SIGSTOP)

    tracking = Tracking(server.url, workspace=workspace, attempts=2)
    with pytest.raises(TrackingError, match="no answer in time"):
        tracking.sync("optbench/still", PARENT, children(), on_sent=stop)
    server.signal(signal.SIGCONT)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    tracking.sync("optbench/still", PARENT, children())
    tracking.sync("optbench/still", PARENT, children())
    check_whole(Tracking(server.url, workspace=workspace), "optbench/still")


def test_answers_that_are_lost_make_no_doubles(server: Server, workspace: Path) -> None:
    with forgetful(server.url) as (url, forwarder):
        report = Tracking(url, workspace=workspace).sync("optbench/lost", PARENT, children())
    assert forwarder.lost == 3 and forwarder.created == NUMBER + 1
    assert report.removed == 0
    check_whole(Tracking(server.url, workspace=workspace), "optbench/lost")
