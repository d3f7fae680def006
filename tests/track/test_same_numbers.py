"""The same cell shows the same gap, study gap and time wherever a study is shown."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from optbench.cli.terminal import output
from optbench.cli.terminal.study_summary import Account
from optbench.evaluate.rows import Row, table
from optbench.html import quantities
from optbench.model.measures import OPTIMAL_GAP
from optbench.report import formatting
from optbench.report.outline import outline
from optbench.report.study_page import render
from optbench.report.study_report import gather
from optbench.run.runner import StudyRun, run_study
from optbench.store.run_store import Store
from optbench.study.study_file import load_study
from optbench.track.artifacts import study_files
from optbench.track.runs import TrackedRun
from optbench.track.study_runs import StudyRuns
from tests.sample_files.knapsack_workspace import MAXIMISED_MPS

STUDY = """\
question = "Which is shorter?"
problems = ["gpu_dag:tasks=7,gpus=2"]
solvers = ["cpsat", "heft", "fcfs"]
seeds = 2
time_limit = "2s"
bound_limit = "1s"
"""


# The same of a shape other than schedules, maximised: a programme in an MPS file.
PROGRAMME = STUDY.replace("gpu_dag:tasks=7,gpus=2", "bag.mps").replace('"heft", "fcfs"', '"highs"')


@pytest.fixture(scope="module", params=[STUDY, PROGRAMME], ids=["schedules", "mps"])
def ran(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StudyRun, Store]]:
    root = tmp_path_factory.mktemp("same")
    (root / "optbench.toml").touch()
    (root / "bag.mps").write_text(MAXIMISED_MPS)
    path = root / "small.toml"
    path.write_text(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTBENCH_WORKSPACE", str(root))
        store = Store(root / ".optbench")
        yield run_study(load_study(path), store=store), store


def rows_of(ran: tuple[StudyRun, Store]) -> dict[str, Row]:
    done, store = ran
    return {row.cell.title: row for row in table(done.plan, store.records()).rows}


def test_records_pop_ups_and_mlflow_agree_cell_by_cell(
    ran: tuple[StudyRun, Store], tmp_path: Path
) -> None:
    done, store = ran
    rows = rows_of(ran)
    assert len(rows) in (4, 6) and not any(row.failed for row in rows.values())
    assert any(row.gap is not None for row in rows.values())  # cpsat has bounds of its own
    page = render(gather(done.plan, store), tmp_path / "report.html")
    script = re.search(r'<script type="application/json" id="cells">(.*?)</script>', page)
    assert script is not None
    pop_ups = {cell["t"]: " | ".join(cell["l"]) for cell in json.loads(script.group(1))}
    _, children = StudyRuns(done.plan, store).runs(store.records())
    tracked = {run.name: run for run in children}
    for title, row in rows.items():
        assert row.record is not None
        metrics = tracked[title].metrics
        assert metrics["study_gap"] == row.study_gap
        assert metrics.get("gap") == row.gap == row.record.gap
        assert metrics["wall_s"] == row.record.wall_s
        assert f"study gap {quantities.percent(row.study_gap or 0.0)}" in pop_ups[title]
        assert f"solving {quantities.duration(row.record.wall_s or 0.0)}" in pop_ups[title]
        if row.gap is not None:
            assert f", gap {quantities.percent(row.gap)}" in pop_ups[title]
        check_files(tracked[title], row, tmp_path / row.cell.key)


def check_files(run: TrackedRun, row: Row, folder: Path) -> None:
    """The files that MLflow gets: the record, and the page with the chart."""
    folder.mkdir()
    assert run.artifacts is not None and row.record is not None
    run.artifacts(folder)
    kept = json.loads((folder / "record.json").read_text())
    assert (kept["gap"], kept["wall_s"]) == (row.record.gap, row.record.wall_s)
    if row.cell.shape is not None:
        assert kept["cell"]["shape"] == {
            "name": "milp",
            "sense": "max",
            "definition": "",
            "levels": 1,
        }
        assert {path.name for path in folder.iterdir()} == {
            "record.json",
            "decision.json",
            "trajectory.json",
        }
        return
    chart = (folder / "gantt.html").read_text()
    assert quantities.duration(row.record.wall_s or 0.0) in chart
    if row.gap is not None:
        assert f"{quantities.percent(row.gap)}<i" in chart


def test_the_order_of_the_report_is_that_of_mlflow_sorted_by_study_gap(
    ran: tuple[StudyRun, Store],
) -> None:
    done, store = ran
    best: dict[str, list[float]] = {}
    _, children = StudyRuns(done.plan, store).runs(store.records())
    for run in children:
        if "study_gap" in run.metrics:
            best.setdefault(run.tags["optbench.solver"], []).append(run.metrics["study_gap"])
    by_mean = sorted(best, key=lambda label: sum(best[label]) / len(best[label]))
    assert [each["solver"] for each in outline(gather(done.plan, store))["ranking"]] == by_mean


def test_sums_agree_between_run_report_mlflow_and_its_export(
    ran: tuple[StudyRun, Store], tmp_path: Path
) -> None:
    done, store = ran
    ranking = {each["solver"]: each for each in outline(gather(done.plan, store))["ranking"]}
    account = {each["solver"]: each for each in Account(done).solvers()}
    parent, _ = StudyRuns(done.plan, store).runs(store.records())
    study_files(table(done.plan, store.records()), store, tmp_path)
    with (tmp_path / "solvers.csv").open(newline="") as file:
        exported = {each["solver"]: each for each in csv.DictReader(file)}
    assert list(ranking) == list(account) == list(exported)
    for label, shown in ranking.items():
        means = (shown["study_gap"]["mean"], shown["gap"]["mean"])
        assert (account[label]["mean_study_gap"], account[label]["mean_gap"]) == means
        assert account[label]["time_s"] == shown["time_s"]
        keys = ("mean_study_gap", "mean_gap")
        assert tuple(parent.metrics[f"{key}/{label}"] for key in keys) == means
        assert tuple(float(exported[label][key]) for key in keys) == means


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (OPTIMAL_GAP, "0 %"),
        (4.2e-5, "0.0042 %"),
        (0.07, "7.0 %"),
        (0.3287, "32.9 %"),
        (0.9996, "100 %"),
        (-0.05, "−5.0 %"),
    ],
)
def test_a_gap_is_written_alike_on_terminals_and_pages(share: float, text: str) -> None:
    assert output.percent(share) == formatting.percent(share) == quantities.percent(share) == text


@pytest.mark.parametrize(
    ("value_s", "text"),
    [
        (0.00042, "0.42 ms"),
        (0.25, "250 ms"),
        (4.81, "4.8 s"),
        (123.4, "123 s"),
        (1234.0, "20 min 34 s"),
        (7260.0, "2 h 01 min"),
    ],
)
def test_a_time_is_written_alike_on_terminals_and_pages(value_s: float, text: str) -> None:
    assert formatting.seconds(value_s) == quantities.duration(value_s) == text


def test_the_gap_that_is_written_as_zero_is_the_one_that_counts_as_optimal() -> None:
    assert quantities.NO_GAP == OPTIMAL_GAP
