"""The saved view of a study, and the page that `optbench ui` opens."""

from __future__ import annotations

import base64
import json
import os
import zlib
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from optbench.errors import OptbenchError
from optbench.store.run_store import Store
from optbench.store.snapshots import last_study
from optbench.track.first_page import EXPERIMENTS, first_page
from optbench.track.saved_view import page_of, view_of
from optbench.track.study_runs import StudyRuns
from optbench.track.study_sync import push
from optbench.track.tracking import Tracking
from tests.track.runs_by_hand import PLAN, STUDY, keep


def state_of(value: str) -> dict[str, Any]:
    """What MLflow's page reads from the tag."""
    envelope = json.loads(value)
    assert isinstance(envelope["name"], str) and isinstance(envelope["createdAt"], int)
    head, _, packed = envelope["state"].partition(";")
    assert head == "deflate"
    state: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return state


def test_the_view_is_sorted_by_study_gap_with_the_columns_that_runs_have(store: Store) -> None:
    view = view_of(PLAN, *StudyRuns(PLAN, store).runs(store.records()))
    state = state_of(view.value)
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`study_gap`", True)
    assert STUDY.config_hash in state["searchFilter"] and "'solve'" in state["searchFilter"]
    # A rule reports no bound: the runs have no gap of their own, but the bounding has a bound.
    columns = ("study_gap", "objective", "bound", "study_bound", "wall_s", "energy_j")
    assert state["selectedColumns"] == [
        *(f"metrics.`{name}`" for name in columns),
        "tags.`optbench.status`",
    ]
    charts = [card.get("metricKey") for card in state["compareRunCharts"]]
    assert charts == ["study_gap", "objective", "wall_s", None]
    assert len(view.value) < 5000  # the limit of MLflow


def test_a_study_that_ranks_by_the_last_level_is_sorted_by_its_gap(store: Store) -> None:
    plan = replace(PLAN, study=replace(STUDY, rank="gap_last_level"))
    parent, children = StudyRuns(plan, store).runs(store.records())
    levels = {"gap": 1.0, "gap_0": 1.0, "gap_1": 0.25}
    several = [replace(each, metrics={**each.metrics, **levels}) for each in children]
    state = state_of(view_of(plan, parent, several).value)
    assert state["orderByKey"] == "metrics.`gap_1`"
    assert state["selectedColumns"][:2] == ["metrics.`gap_1`", "metrics.`study_gap`"]
    charts = [card.get("metricKey") for card in state["compareRunCharts"]]
    assert charts == ["gap_1", "study_gap", "gap", "objective", "wall_s", None]
    # Where no run has levels, the runs stay sorted by the study gap.
    assert state_of(view_of(plan, parent, children).value)["orderByKey"] == "metrics.`study_gap`"


def test_a_sync_leaves_the_view_of_what_it_sent(store: Store) -> None:
    tracking = Tracking(workspace=store.folder.parent)
    report = push(keep(store), store, tracking)
    view = view_of(PLAN, *StudyRuns(PLAN, store).runs(store.records()))
    tags = tracking.client.get_experiment(report.experiment_id).tags
    assert tags[view.tag] == view.value
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    found = tracking.client.search_runs(
        [report.experiment_id],
        state_of(view.value)["searchFilter"],
        order_by=[f"{state_of(view.value)['orderByKey']} ASC"],
    )
    assert [run.data.metrics["study_gap"] for run in found] == [0.2, 0.5]


def test_the_first_page_is_that_of_the_study_run_last(store: Store) -> None:
    tracking = Tracking(workspace=store.folder.parent)
    assert first_page(tracking, store, None) == EXPERIMENTS  # nothing was run
    snapshot = keep(store)
    assert first_page(tracking, store, None) == EXPERIMENTS  # nothing was sent
    with pytest.raises(OptbenchError, match="optbench sync hand"):
        first_page(tracking, store, "hand")
    report = push(snapshot, store, tracking)
    page, _, query = first_page(tracking, store, None).partition("?")
    assert page == f"/#/experiments/{report.experiment_id}/runs"
    key = f"optbench-{STUDY.config_hash[:12]}"
    assert parse_qs(query) == {"viewStateShareKey": [key], "workflowType": ["machine_learning"]}
    assert "compareRunsMode=CHART" in first_page(tracking, store, "hand", charts=True)


def test_runs_that_an_earlier_version_sent_get_their_view(store: Store) -> None:
    tracking = Tracking(workspace=store.folder.parent)
    report = push(keep(store), store, tracking)
    view = view_of(PLAN, *StudyRuns(PLAN, store).runs(store.records()))
    tracking.client.delete_experiment_tag(report.experiment_id, view.tag)
    fresh = Tracking(workspace=store.folder.parent)
    assert first_page(fresh, store, None) == page_of(report.experiment_id, view.key)
    assert fresh.client.get_experiment(report.experiment_id).tags[view.tag] == view.value


def test_the_last_study_is_the_one_that_ran_last(store: Store) -> None:
    assert last_study(store) is None
    keep(store)
    other = store.study_folder("other")
    (other / "latest").write_text("x.json")
    os.utime(other / "latest", (1, 1))
    assert last_study(store) == "hand"
    os.utime(other / "latest", (9e9, 9e9))
    assert last_study(store) == "other"
