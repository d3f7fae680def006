"""What is shown of a search: charts that are whole, a page, and MLflow runs that are there once."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from optbench.cli.terminal.tuning import verdict
from optbench.evaluate.stats import Estimate
from optbench.study.declared import Study
from optbench.tune.search_charts import standalone
from optbench.tune.search_page import all_charts, importance, render
from optbench.tune.search_task import task_of
from optbench.tune.storage import storage_url
from optbench.tune.tracked import send
from optbench.tune.trials import CELLS, FAILED, VALUES, Trials
from optbench.tune.validation import TunedComparison, Validation

SPACE = {
    "low_clock": {"float": [0.0, 1.0]},
    "load": {"float": [0.01, 1.0], "log": True},
    "problem.shape": {"choice": ["layered", "chains"]},
}


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    """20 trials of two goals, of which the first parameter alone decides the first; the last is
    pruned away elsewhere.
    """
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return filled(tmp_path / "search", ["energy_j", "makespan_s"], 20)


def filled(folder: Path, goals: list[str], count: int) -> Trials:
    section: dict[str, Any] = {
        "solver": "fixed_dvfs",
        "seeds": [1, 2],
        "space": SPACE,
        "minimize": goals,
    }
    study = Study("shown <&>", "Which is it?", ("gpu_dag:tasks=5",), (), seeds=(8, 9), tune=section)
    found = Trials(task_of(study), storage_url(None, folder), folder)
    add(found, count)
    return found


def add(known: Trials, total: int) -> None:
    while (claim := known.claim(total)) is not None:
        x, load = claim.configuration["low_clock"], claim.configuration["load"]
        claim.trial.set_user_attr(CELLS, [f"key-{claim.number}"])
        claim.trial.set_user_attr(FAILED, 0)
        claim.trial.set_user_attr(VALUES, {"energy_j": 100 * x})
        values = [x - 0.5, 0.5 * load - x][: len(known.task.section.goals)]
        if len(values) == 1 and claim.number == total - 1:
            claim.trial.report(values[0], 0)
            known.study.tell(claim.trial, state=TrialState.PRUNED)
        else:
            known.study.tell(claim.trial, values)
        claim.release()


def validated(known: Trials) -> Validation:
    better = TunedComparison("energy_j", False, 100.0, 90.0, Estimate(-0.1, -0.15, -0.05, 8))
    return Validation(known.all()[3], (better,), instances=8, front=tuple(known.all()[3:5]))


def test_charts_stand_alone(known: Trials) -> None:
    charts = all_charts(known, chosen=3)
    assert next(iter(charts)) == "Front" and any(
        name.startswith("Importance for energy_j") for name in charts
    )
    drawn = [chart for each in charts.values() for chart in standalone(each)]
    assert len(drawn) == 1 + 2 * (1 + len(SPACE))
    for chart in drawn:
        root = ET.fromstring(chart)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    points = list(ET.fromstring(drawn[0]).iter("{http://www.w3.org/2000/svg}circle"))
    assert len(points) == 20


def test_importance_finds_the_parameter_that_decides(known: Trials) -> None:
    shares, method = importance(known, 0)
    assert method == "fANOVA" and max(shares, key=lambda name: shares[name]) == "low_clock"
    assert sum(shares.values()) == pytest.approx(1.0)


def test_a_page_of_any_state(known: Trials, tmp_path: Path) -> None:
    page = render(known, validated(known))
    assert (
        "shown &lt;&amp;&gt;" in page
        and "-10.00 %" in page
        and "http" not in page.replace("http://www.w3.org", "")
    )
    single = filled(tmp_path / "single", ["energy_j"], 3)
    page = render(single, None)
    assert "History" in page and "pruned" in page and "Importance" not in page
    assert "<svg" not in render(filled(tmp_path / "none", ["energy_j"], 0), None)
    page = render(known, replace(validated(known), seen=3, broken=("tardiness_s <= 10",)))
    assert (
        "breaks tardiness_s &lt;= 10 here" in page and "3 of the 8 instances are the search" in page
    )


def test_runs_are_there_once(known: Trials, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    first = send(known, None, "RUNNING")
    assert (first.created, first.total) == (21, 21)
    send(known, validated(known), "FINISHED")
    assert send(known, validated(known), "FINISHED").unchanged == 21

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow' / 'mlflow.db'}")
    (experiment,) = client.search_experiments(
        filter_string=f"name = 'optbench/{known.task.study.name}'"
    )
    runs = client.search_runs([experiment.experiment_id], max_results=100)
    parents = [run for run in runs if run.data.tags["optbench.kind"] == "tune"]
    children = [run for run in runs if run.data.tags["optbench.kind"] == "trial"]
    assert len(parents) == 1 and len(children) == 20
    assert parents[0].data.metrics["validation/energy_j/change_high"] == -0.05
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parents[0].info.run_id}
    assert sorted(int(run.data.tags["optbench.trial"]) for run in children) == list(range(20))
    third = next(run for run in children if run.data.tags["optbench.trial"] == "3")
    assert third.data.params["low_clock"] == str(known.all()[3].params["low_clock"])
    assert third.data.metrics["change/energy_j"] == known.all()[3].values[0]
    names = {artifact.path for artifact in client.list_artifacts(parents[0].info.run_id)}
    assert {"tune.html", "front-1.svg", "importance.tsv"} <= names


def test_the_verdict_is_plain(known: Trials) -> None:
    def said(value: float, low: float, high: float, **more: Any) -> str:
        change = TunedComparison("energy_j", False, 100.0, 90.0, Estimate(value, low, high, 8))
        return verdict(Validation(known.all()[3], (change,), instances=8, **more))

    assert "better than the defaults on 8 instances" in said(-0.1, -0.15, -0.05)
    assert "not proven better" in said(-0.1, -0.25, 0.05) and "too few" in said(
        -0.1, float("-inf"), float("inf")
    )
    assert "WORSE" in said(0.1, 0.05, 0.15)
    assert "Not to be recommended: 2 failures" in said(-0.1, -0.15, -0.05, failed=2)
    assert "Not to be recommended" in said(-0.1, -0.15, -0.05, broken=("tardiness_s <= 10",))
    assert "it breaks tardiness_s <= 10" in said(-0.1, -0.15, -0.05, broken=("tardiness_s <= 10",))
    kept = said(0.1, 0.05, 0.15, broken_defaults=("tardiness_s <= 10",))
    assert (
        kept.startswith("The defaults break tardiness_s <= 10 on 8 instances")
        and "energy_j +10.00 %" in kept
    )
    assert "on the search's own 8 instances with other seeds" in said(-0.1, -0.15, -0.05, seen=8)
    assert "on 8 instances, 3 of which the search has seen" in said(-0.1, -0.25, 0.05, seen=3)
    assert "nothing better than the defaults" in verdict(
        Validation(known.all()[0], (), instances=8)
    )
