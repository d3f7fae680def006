"""Studies of shapes of a workspace's own: packing services, and a knapsack that is maximised."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from optbench.evaluate.rows import Row, table
from optbench.report.outline import outline
from optbench.report.study_page import render
from optbench.report.study_report import gather
from optbench.store.snapshots import load_plan
from optbench.track.study_runs import StudyRuns
from tests.cli.command_server import CommandServer
from tests.cli.conftest import environment
from tests.sample_files.packing_workspace import PACKING
from tests.sample_files.shaped_workspace import ASSERTED, Workspace, shaped_workspace


@pytest.fixture(scope="module")
def workspace(
    tmp_path_factory: pytest.TempPathFactory, command_server: CommandServer, empty_database: Path
) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("shapes")
    found = shaped_workspace(root, command_server)
    (root / "mlflow").mkdir()
    shutil.copy(empty_database, root / "mlflow" / "mlflow.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTBENCH_WORKSPACE", str(root))
        patch.chdir(root)
        yield found


@pytest.fixture(scope="module")
def packed(workspace: Workspace) -> tuple[int, Any]:
    return workspace.run("run", "pack")[:2]


@pytest.fixture(scope="module")
def bagged(workspace: Workspace) -> tuple[int, Any]:
    return workspace.run("run", "bag", "--no-track")[:2]


def page_of(workspace: Workspace, study: str) -> str:
    plan = load_plan(study, workspace.store)
    return render(gather(plan, workspace.store), workspace.root / "report.html")


def rows_of(workspace: Workspace, study: str) -> dict[str, Row]:
    plan, records = load_plan(study, workspace.store), workspace.store.records()
    return {row.cell.title: row for row in table(plan, records).rows}


def test_a_study_with_a_gate_and_a_claim(packed: tuple[int, Any], workspace: Workspace) -> None:
    code, summary = packed
    assert (code, summary["cells"], summary["failed"]) == (0, 12, 0)
    assert [each["verdict"] for each in summary["gates"]] == ["holds", "holds"]
    (claim,) = summary["claims"]
    assert claim["verdict"] == "holds" and claim["bound"] < claim["ours"]
    for record in workspace.records("first_fit"):
        assert record.verified and record.metrics["gpus"] >= 1
        assert record.objective == record.metrics["cost_usd"]
    best = {each.cell.instance_hash: each.objective for each in workspace.records("highs")}
    for record in workspace.records("bounds"):
        assert [row["proof"] for row in record.bounds] == ["exact-lp"]
        optimum = best[record.cell.instance_hash]
        assert isinstance(record.bound, float) and isinstance(optimum, float)
        assert 0 < record.bound <= optimum


def test_the_same_command_resumes(packed: tuple[int, Any], workspace: Workspace) -> None:
    code, summary, _ = workspace.run("run", "pack", "--no-track")
    assert (code, summary["ran"], summary["skipped"]) == (0, 0, 12)


def test_the_stored_decision_is_the_verified_one(
    packed: tuple[int, Any], workspace: Workspace
) -> None:
    for record in workspace.records("first_fit"):
        file = workspace.store.cell(record.key) / "decision.json"
        assert json.loads(file.read_text())["shape"] == "packing"
        seed = str(record.cell.instance_seed)
        code, verdict, _ = workspace.run("verify", "packing:services=4", str(file), "--seed", seed)
        assert code == 0 and verdict["objective"] == record.objective


def test_the_page_has_the_metrics_of_the_shape(
    packed: tuple[int, Any], workspace: Workspace
) -> None:
    page = page_of(workspace, "pack")
    assert "cost_usd (USD)</th>" in page and "price of the GPUs in use" in page
    assert "the decisions of highs, first by mean, are proven optimal over 4 instances" in page
    assert "no schedule" not in page and 'id="operation' not in page
    (row, *_) = rows_of(workspace, "pack").values()
    assert row.record is not None
    assert f"cost_usd {row.record.metrics['cost_usd']:g} USD, gpus" in page


def test_solve_report_pop_ups_mlflow_and_exports_agree(
    packed: tuple[int, Any], workspace: Workspace
) -> None:
    rows, plan = rows_of(workspace, "pack"), load_plan("pack", workspace.store)
    script = re.search(r'id="cells">(.*?)</script>', page_of(workspace, "pack"))
    assert script is not None
    pop_ups = {cell["t"]: cell["l"] for cell in json.loads(script.group(1))}
    _, children = StudyRuns(plan, workspace.store).runs(workspace.store.records())
    tracked = {run.name: run.all_metrics() for run in children}
    stored = _from_mlflow(workspace.root, "optbench/pack")
    for title, row in rows.items():
        assert row.record is not None and row.gap == row.record.gap
        assert tracked[title].get("gap") == row.gap
        assert tracked[title]["study_gap"] == row.study_gap
        assert tracked[title]["cost_usd"] == row.record.metrics["cost_usd"]
        assert stored[title] == tracked[title]
        assert any("study gap" in line for line in pop_ups[title])
    # The gap of a run is the same in `solve`, which reports what the run itself has proved.
    highs = rows["highs | packing-4-0 | 0"]
    solved = workspace.run("solve", "packing:services=4", "-s", "highs", "--seed", "0")[1]
    assert highs.record is not None
    assert (solved["objective"], solved["gap"]) == (highs.record.objective, highs.gap)
    ranking = {each["solver"]: each for each in outline(gather(plan, workspace.store))["ranking"]}
    summary = {each["solver"]: each for each in workspace.run("run", "pack")[1]["solvers"]}
    for label, each in ranking.items():
        assert summary[label]["mean_study_gap"] == each["study_gap"]["mean"]


def _from_mlflow(root: Path, experiment: str) -> dict[str, dict[str, float]]:
    """Metrics of the study's runs in the tracking store, by name."""
    from optbench.track.tracking import Tracking

    tracking = Tracking(f"sqlite:///{root / 'mlflow' / 'mlflow.db'}", workspace=root)
    found = tracking.client.get_experiment_by_name(experiment)
    assert found is not None
    runs = tracking.client.search_runs([found.experiment_id])
    return {str(run.info.run_name): dict(run.data.metrics) for run in runs}


def test_a_changed_verify_runs_its_cells_anew(
    packed: tuple[int, Any], workspace: Workspace
) -> None:
    file = workspace.root / "problems" / "packing.py"
    before = {record.key for record in workspace.store.records().values()}
    try:
        file.write_text(PACKING.replace('"cost_usd": sum(', '"cost_usd": 2 * sum('))
        code, summary, _ = workspace.run("run", "pack", "--no-track", "--only", "seed=0")
        # Model and verify now disagree: the model's price is half of what verify computes.
        assert code == 5 and summary["ran"] == 3
        kinds = {
            record.reason.kind
            for key, record in workspace.store.records().items()
            if key not in before and record.reason is not None
        }
        assert kinds == {"disagreement"}
    finally:
        file.write_text(PACKING)
    code, summary, _ = workspace.run("run", "pack", "--no-track")
    assert (code, summary["ran"]) == (0, 0)


def test_a_maximised_objective_has_upper_bounds(
    bagged: tuple[int, Any], workspace: Workspace
) -> None:
    code, summary = bagged
    assert code == 6 and summary["failed"] == 0 and summary["contradictions"] == []
    held, unknown = summary["gates"]
    assert held["verdict"] == "holds"
    assert unknown["verdict"] == "unknown" and "its objective is maximised" in unknown["why"][0]
    rows = rows_of(workspace, "bag")
    best = {row.cell.instance_hash: row.objective for row in rows.values() if row.proved}
    assert len(best) == 6 and any(value < 0 < 500 + value for value in best.values())  # type: ignore[operator]
    for row in rows.values():
        optimum = best[row.cell.instance_hash]
        assert isinstance(row.objective, float) and isinstance(optimum, float)
        assert row.low is not None and row.objective <= optimum <= row.low
        assert row.study_gap is not None and 0 <= row.study_gap < 1
        assert row.rpd is None
    (claim,) = summary["claims"]
    assert claim["bound"] > claim["ours"]
    order = [each["solver"] for each in summary["solvers"]]
    assert order[-1] == "greedy"


def test_the_page_says_what_does_not_apply_to_a_maximised_objective(
    bagged: tuple[int, Any], workspace: Workspace
) -> None:
    page = page_of(workspace, "bag")
    assert "It does not apply: an objective is maximised" in page
    assert "above best known</th>" not in page
    assert "18 cells: its objective is maximised" in page


def test_the_page_shows_the_pictures_of_the_shape(
    bagged: tuple[int, Any], packed: tuple[int, Any], workspace: Workspace
) -> None:
    page = page_of(workspace, "bag")
    pictures = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)" alt="memory"', page)
    assert len(pictures) == 3  # of the first instance, one per solver
    assert all(b"<rect" in base64.b64decode(each) for each in pictures)
    assert 'id="decisions"' not in page_of(workspace, "pack")
    drawn = {
        row.record.info.get("no_picture")
        for row in rows_of(workspace, "bag").values()
        if row.record
    }
    assert drawn == {None, "picture 'memory' is no SVG text that begins with <svg"}


def test_an_mps_file_is_a_problem(workspace: Workspace) -> None:
    code, summary, _ = workspace.run("run", "mps", "--no-track")
    assert (code, summary["failed"]) == (0, 0)
    plan = load_plan("mps", workspace.store)
    assert {(each.shape.name, each.shape.sense) for each in plan.made if each.shape} == {
        ("milp", "max")
    }
    decision = workspace.store.cell(plan.solving[0].key) / "decision.json"
    assert json.loads(decision.read_text())["values"] == {"y": 1, "z": 1}


def test_programmes_without_an_optimum_and_below_zero(workspace: Workspace) -> None:
    code, summary, _ = workspace.run("run", "lps", "--no-track")
    assert (code, summary["failed"], summary["contradictions"]) == (0, 0, [])
    rows = rows_of(workspace, "lps")
    states = {row.cell.instance: (row.state, row.objective, row.low) for row in rows.values()}
    assert states == {
        "infeasible": ("infeasible", None, None),
        "unbounded": ("unbounded", None, None),
        "negative": ("optimal", -7.0, -7.0),
    }


def test_gaps_are_asserted_for_any_shape(workspace: Workspace) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASSERTED],
        cwd=workspace.root,
        env={**environment(), "OPTBENCH_WORKSPACE": str(workspace.root)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "highs on 4 cells: mean gap 0 %" in done.stdout
    assert "highs on 1 cells: mean gap 0 %" in done.stdout
    assert "packing-4-0, seed 1: gap 45.1 %, objective 3.6" in done.stdout


def test_a_solver_that_does_not_take_the_shape_is_refused_at_once(workspace: Workspace) -> None:
    before = set(workspace.store.records())
    code, answer, _ = workspace.run("run", "unfit", "--no-track")
    assert code == 2 and set(workspace.store.records()) == before
    assert "solver 'heft' takes a schedule, and packing-4-0 is a packing" in answer["error"]
    assert "These take it: cpsat, first_fit, highs" in answer["error"]


@pytest.mark.skipif(sys.platform != "linux", reason="the confinement needs Linux")
def test_no_solver_forges_a_verdict(workspace: Workspace) -> None:
    before = (workspace.root / "problems" / "packing.py").read_text()
    code, _, _ = workspace.run("run", "liars", "--no-track", "--only", "seed=0")
    assert code == 5 and (workspace.root / "problems" / "packing.py").read_text() == before
    plan, records = load_plan("liars", workspace.store), workspace.store.records()
    reasons = {
        str(cell.params.get("how", "honest")): records[cell.key].reason for cell in plan.solving
    }
    kinds = {how: None if found is None else found.kind for how, found in reasons.items()}
    assert kinds == {
        "verify": "infeasible",
        "file": "crashed",
        "bound": None,
        "false": "false_bound",
        "stored": "crashed",
        "instance": "nonsense",
        "digits": None,
        "honest": None,
    }
    assert "GPU 0 holds" in str(reasons["verify"])
    by_how = {str(cell.params.get("how")): records[cell.key] for cell in plan.solving}
    for how in ("bound", "digits"):  # what it calls proven is its own word alone
        assert {row["proof"] for row in by_how[how].bounds} == {"solver"}


def test_a_verify_that_raises_gives_no_verdict(workspace: Workspace) -> None:
    code, summary, _ = workspace.run("run", "crash", "--no-track")
    assert code == 5
    (failure,) = summary["failures"].values()
    assert list(summary["failures"]) == ["unverified"] and failure["count"] == 1
    # The message has the file and line of the shape's own code.
    assert "problems/knapsack.py:" in failure["message"] and "IndexError" in failure["message"]


def test_mistakes_of_shape_and_solver_are_told_apart(workspace: Workspace) -> None:
    """Where the shape has no verdict, the solver's answer is not to blame, and the reverse."""
    code, summary, _ = workspace.run("run", "slips", "--no-track")
    assert code == 5 and summary["failed"] == 8
    records = [each for each in workspace.store.records().values() if each.cell.params.get("how")]
    found = {
        (each.cell.instance, str(each.cell.params["how"])): each.reason
        for each in records
        if each.cell.instance.startswith("bill-")
    }
    assert found.pop(("bill-none", "bill")) is None and len(found) == 8
    for (instance, how), reason in found.items():
        assert reason is not None
        assert reason.kind == ("unverified" if how == "bill" else "nonsense"), (instance, reason)
    raised, nothing = found["bill-raises", "bill"], found["bill-nothing", "bill"]
    assert "problems/bills.py:30: verify() raised KeyError: 'euro'" in str(raised)
    assert "problems/bills.py:28: verify returned NoneType" in str(nothing)
    returned, reported = found["bill-none", "list"], found["bill-none", "report"]
    assert "pays.py:13: solve() returned [1, 2], a list; return a Bill" in str(returned)
    assert "pays.py:17: run.report() was given [1, 2], a list" in str(reported)
