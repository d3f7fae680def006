"""Sending runs to the workspace's own database: once, again, after damage, by two at a time."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow.entities import Metric, Param, Run, ViewType

from optbench.track.runs import TrackedRun, TrackingError
from optbench.track.tracking import Tracking

EXPERIMENT = "optbench/hand"
PARENT = TrackedRun(
    "c0ffee-study", "hand", tags={"optbench.config_hash": "c0ffee"}, began_ms=1000, ended_ms=9000
)


def child(k: int, **changes: object) -> TrackedRun:
    run = TrackedRun(
        f"c0ffee-{k}",
        f"heft | shop | {k}",
        tags={"optbench.solver": "heft", "optbench.seed": str(k)},
        params={"rank": "upward"},
        metrics={"objective": 10.0 + k, "gap": 0.5},
        began_ms=1000 + k,
        ended_ms=2000 + k,
        artifacts=lambda folder: write(folder / "schedule.json", f'{{"k": {k}}}'),
        files_version="1",
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def write(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.fixture
def tracking(workspace: Path) -> Tracking:
    return Tracking(workspace=workspace)


def runs(tracking: Tracking, view: int = ViewType.ACTIVE_ONLY) -> dict[str, list[Run]]:
    """By cell, everything of the experiment."""
    experiment = tracking.client.get_experiment_by_name(EXPERIMENT)
    assert experiment is not None
    found: dict[str, list[Run]] = {}
    for run in tracking.client.search_runs([experiment.experiment_id], run_view_type=view):
        found.setdefault(run.data.tags["optbench.cell"], []).append(run)
    return found


def only(tracking: Tracking, cell: str) -> Run:
    (run,) = runs(tracking)[cell]
    return run


def artifact(tracking: Tracking, run: Run, name: str = "schedule.json") -> str:
    return Path(tracking.client.download_artifacts(run.info.run_id, name)).read_text()


def test_runs_arrive_whole(tracking: Tracking, workspace: Path) -> None:
    report = tracking.sync(EXPERIMENT, PARENT, [child(0), child(1)])
    assert (report.created, report.updated, report.unchanged) == (3, 0, 0)
    assert (workspace / "mlflow" / "mlflow.db").exists()
    run = only(tracking, "c0ffee-1")
    assert run.info.run_name == "heft | shop | 1"
    assert (run.info.start_time, run.info.end_time, run.info.status) == (1001, 2001, "FINISHED")
    assert run.data.metrics == {"objective": 11.0, "gap": 0.5}
    assert run.data.params == {"rank": "upward"}
    assert run.data.tags["optbench.seed"] == "1"
    assert run.data.tags["mlflow.parentRunId"] == report.parent_run_id
    assert artifact(tracking, run) == '{"k": 1}'
    assert str(run.info.artifact_uri).startswith((workspace / "mlflow" / "artifacts").as_uri())


@pytest.mark.parametrize("afresh", [False, True])
def test_a_second_time_changes_nothing(tracking: Tracking, workspace: Path, afresh: bool) -> None:
    first = tracking.sync(EXPERIMENT, PARENT, [child(0)])
    before = only(tracking, "c0ffee-0").to_dictionary()
    again = Tracking(workspace=workspace) if afresh else tracking
    report = again.sync(EXPERIMENT, PARENT, [child(0)])
    assert (report.created, report.updated, report.unchanged) == (0, 0, 2)
    assert report.parent_run_id == first.parent_run_id
    assert only(tracking, "c0ffee-0").to_dictionary() == before


@pytest.mark.parametrize("stage", ["created", "logged", "all but the content"])
def test_what_a_crash_left_half_done_is_completed(
    tracking: Tracking, workspace: Path, stage: str
) -> None:
    """The run as it is when the sender dies after its creation, after its metrics, or before the
    last tag.
    """
    report = tracking.sync(EXPERIMENT, PARENT, [])
    client = tracking.client
    tags = {
        "optbench.cell": "c0ffee-0",
        "optbench.group": PARENT.cell,
        "mlflow.parentRunId": report.parent_run_id,
    }
    half = client.create_run(
        report.experiment_id, start_time=1000, tags=tags, run_name="heft | shop | 0"
    )
    if stage != "created":
        client.log_batch(
            half.info.run_id,
            metrics=[Metric("objective", 10.0, 2000, 0)],
            params=[Param("rank", "upward")],
        )
    if stage == "all but the content":
        client.set_terminated(half.info.run_id, "FINISHED", 2000)
    Tracking(workspace=workspace).sync(EXPERIMENT, PARENT, [child(0)])
    run = only(tracking, "c0ffee-0")
    assert run.info.run_id == half.info.run_id
    assert (run.info.status, run.info.end_time) == ("FINISHED", 2000)
    assert run.data.metrics == {"objective": 10.0, "gap": 0.5}
    assert [
        point.timestamp for point in client.get_metric_history(run.info.run_id, "objective")
    ] == [2000]
    assert artifact(tracking, run) == '{"k": 0}'


def test_a_change_is_sent_and_is_what_mlflow_shows(tracking: Tracking) -> None:
    tracking.sync(EXPERIMENT, PARENT, [child(0)])
    first = only(tracking, "c0ffee-0")
    # A better bound makes the gap smaller; MLflow shows the larger of two values of one time.
    better = child(
        0, metrics={"objective": 10.0, "gap": 0.1, "rpd": 0.0}, tags={"optbench.solver": "heft"}
    )
    report = tracking.sync(EXPERIMENT, PARENT, [better])
    assert (report.updated, report.unchanged) == (1, 1)
    run = only(tracking, "c0ffee-0")
    assert run.info.run_id == first.info.run_id
    assert run.data.metrics == {"objective": 10.0, "gap": 0.1, "rpd": 0.0}
    assert "optbench.seed" not in run.data.tags
    tracking.sync(EXPERIMENT, PARENT, [child(0)])
    assert only(tracking, "c0ffee-0").data.metrics["gap"] == 0.5


def test_files_are_sent_again_when_their_version_changes(tracking: Tracking) -> None:
    tracking.sync(EXPERIMENT, PARENT, [child(0)])
    changed = child(0, artifacts=lambda folder: write(folder / "schedule.json", "new"))
    tracking.sync(EXPERIMENT, PARENT, [changed])
    assert artifact(tracking, only(tracking, "c0ffee-0")) == '{"k": 0}'
    tracking.sync(EXPERIMENT, PARENT, [replace(changed, files_version="2")])
    assert artifact(tracking, only(tracking, "c0ffee-0")) == "new"


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": {}, "status": "FAILED"},
        {"params": {"rank": "downward"}},
        {"artifacts": lambda folder: write(folder / "output.txt", "x"), "files_version": "2"},
    ],
)
def test_what_mlflow_cannot_change_becomes_a_new_run(
    tracking: Tracking, changes: dict[str, object]
) -> None:
    """A false bound found later leaves no objective: a metric cannot be taken back, nor a parameter
    or a file.
    """
    tracking.sync(EXPERIMENT, PARENT, [child(0)])
    old = only(tracking, "c0ffee-0")
    new = child(0, **changes)
    tracking.sync(EXPERIMENT, PARENT, [new])
    run = only(tracking, "c0ffee-0")
    assert run.info.run_id != old.info.run_id
    assert (run.data.metrics, run.data.params, run.info.status) == (
        new.metrics,
        new.params,
        new.status,
    )
    assert tracking.sync(EXPERIMENT, PARENT, [new]).unchanged == 2
    assert len(runs(tracking, ViewType.ALL)["c0ffee-0"]) == 2


def test_doubles_are_removed_and_the_complete_one_stays(
    tracking: Tracking, workspace: Path
) -> None:
    report = tracking.sync(EXPERIMENT, PARENT, [child(0)])
    whole = only(tracking, "c0ffee-0").info.run_id
    for _ in range(2):
        tracking.client.create_run(
            report.experiment_id,
            start_time=1,
            tags={"optbench.cell": "c0ffee-0", "optbench.group": PARENT.cell},
        )
    report = Tracking(workspace=workspace).sync(EXPERIMENT, PARENT, [child(0)])
    assert report.removed == 2
    assert only(tracking, "c0ffee-0").info.run_id == whole


def test_what_somebody_deleted_stays_deleted_until_it_is_asked_back(
    tracking: Tracking, workspace: Path
) -> None:
    tracking.sync(EXPERIMENT, PARENT, [child(0), child(1)])
    run_id = only(tracking, "c0ffee-0").info.run_id
    tracking.client.delete_run(run_id)
    again = Tracking(workspace=workspace)
    report = again.sync(EXPERIMENT, PARENT, [child(0), child(1)])
    assert (report.deleted, report.unchanged) == (1, 2)
    assert "c0ffee-0" not in runs(tracking)
    again.sync(EXPERIMENT, PARENT, [child(0), child(1)], restore=True)
    assert only(tracking, "c0ffee-0").info.run_id == run_id


def test_without_its_parent_nothing_is_sent(tracking: Tracking, workspace: Path) -> None:
    report = tracking.sync(EXPERIMENT, PARENT, [child(0)])
    tracking.client.delete_run(report.parent_run_id)
    again = Tracking(workspace=workspace).sync(EXPERIMENT, PARENT, [child(0), child(1)])
    assert (again.deleted, again.total) == (3, 3)
    assert set(runs(tracking)) == {"c0ffee-0"}


def test_a_deleted_experiment_is_named(tracking: Tracking, workspace: Path) -> None:
    report = tracking.sync(EXPERIMENT, PARENT, [child(0)])
    tracking.client.delete_experiment(report.experiment_id)
    with pytest.raises(TrackingError, match=f"'{EXPERIMENT}' was deleted"):
        Tracking(workspace=workspace).sync(EXPERIMENT, PARENT, [child(0)])
    Tracking(workspace=workspace).sync(EXPERIMENT, PARENT, [child(0)], restore=True)
    assert set(runs(tracking)) == {PARENT.cell, "c0ffee-0"}


def test_two_at_once_make_one_run_each(tracking: Tracking, workspace: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=send_many, args=(workspace,)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    expected = {PARENT.cell: 1} | {f"c0ffee-{k}": 1 for k in range(6)}
    assert {cell: len(found) for cell, found in runs(tracking).items()} == expected


def send_many(workspace: Path) -> None:
    tracking = Tracking(workspace=workspace)
    for k in range(6):
        tracking.sync(EXPERIMENT, PARENT, [child(j) for j in range(k + 1)])


def test_many_parameters_and_long_values_fit(tracking: Tracking) -> None:
    run = child(
        0,
        params={f"p{k}": "x" * 7000 for k in range(230)},
        metrics={f"m{k}": float(k) for k in range(900)},
    )
    tracking.sync(EXPERIMENT, PARENT, [run])
    found = only(tracking, run.cell)
    assert (len(found.data.params), len(found.data.metrics)) == (230, 900)
    assert len(found.data.params["p229"]) == 6000


def test_a_metric_that_is_no_number_is_left_out(tracking: Tracking) -> None:
    tracking.sync(EXPERIMENT, PARENT, [child(0, metrics={"gap": float("nan"), "objective": 3.0})])
    assert only(tracking, "c0ffee-0").data.metrics == {"objective": 3.0}


def test_the_variable_wins_over_the_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert Tracking(workspace=workspace).place.uri == "http://127.0.0.1:9"
    with pytest.raises(TrackingError, match=r"http://127\.0\.0\.1:9"):
        Tracking(workspace=workspace, attempts=1).sync(EXPERIMENT, PARENT, [])


def test_an_address_that_is_none_is_named(workspace: Path) -> None:
    with pytest.raises(TrackingError, match="nonsense://x"):
        Tracking("nonsense://x", workspace=workspace).sync(EXPERIMENT, PARENT, [])
