"""Shapes of one's own, in an empty folder with the installed wheel: everything that is promised."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.wheel import clean_environment
from tests.sample_files.packing_workspace import FIRST_FIT, PACKING
from tests.sample_files.serving_workspace import FIRST_ROOM, SERVING, TIGHTEST
from tests.sample_files.shaped_workspace import PACK, SERVE

pytestmark = pytest.mark.packaging

MOST_LINES = 90
SUITES = """\
from optbench.testing import ProblemConformance, ShapeConformance, SolverConformance, assert_gap


class TestPacking(ShapeConformance):
    problem = "packing:services=4"


class TestFamily(ProblemConformance):
    problem = "packing:services=4"


class TestFirstFit(SolverConformance):
    solver, problems = "first_fit", ("packing:services=4",)


def test_exact():
    assert_gap("highs", "packing:services=4", seeds=2, at_most=0.01)
"""
PROCESS_SUITE = """\
from dataclasses import replace

from optbench.testing import ProcessConformance


class TestTightest(ProcessConformance):
    solver, problem = "tightest", "serving"

    def other_future(self, data, observed):
        later = tuple(41.0 - gb for gb in data.gb[observed:])
        return replace(data, gb=data.gb[:observed] + later)
"""


class Folder:
    """A workspace in which the installed command runs."""

    def __init__(self, command: Path, root: Path, files: dict[str, str]) -> None:
        self.command, self.root = command, root
        for name, text in {"optbench.toml": "", **files}.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)

    def run(self, *words: str, code: int = 0) -> Any:
        done = self.start(str(self.command), *words, "--json")
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return json.loads(done.stdout)

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.root,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def suites(self) -> None:
        python = str(self.command.parent / "python")
        done = self.start(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
        assert done.returncode == 0, done.stdout


def test_the_files_are_short() -> None:
    assert len(PACKING.splitlines()) <= MOST_LINES and len(SERVING.splitlines()) <= MOST_LINES


def test_packing_services(installed: Path, tmp_path: Path) -> None:
    files = {
        "problems/packing.py": PACKING,
        "solvers/first_fit.py": FIRST_FIT,
        "studies/pack.toml": PACK,
        "test_mine.py": SUITES,
    }
    folder = Folder(installed, tmp_path, files)
    target = "packing:services=4"
    best = folder.run("solve", target, "-s", "highs", "-q", "-o", "best.json")
    own = folder.run("solve", target, "-s", "first_fit", "-q")
    assert best["status"] == "optimal" and best["objective"] <= own["objective"] and own["verified"]
    (bound,) = folder.run("bound", target)["bounds"]
    assert bound["proof"] == "exact-lp" and bound["value"] <= best["objective"]
    placement = json.loads((tmp_path / "best.json").read_text())
    placement["decision"]["gpu"] = [0, 0, 0, 0]
    (tmp_path / "best.json").write_text(json.dumps(placement))
    refused = folder.run("verify", target, "best.json", code=4)
    assert [each["constraint"] for each in refused["violations"]] == ["memory"]
    study = folder.run("run", "pack")
    assert [each["verdict"] for each in study["gates"]] == ["holds", "holds"]
    assert [each["verdict"] for each in study["claims"]] == ["holds"]
    with sqlite3.connect(tmp_path / "mlflow" / "mlflow.db") as database:
        tracked = database.execute("SELECT count(*) FROM metrics WHERE key = 'study_gap'")
        assert tracked.fetchone()[0] >= study["cells"] - 4  # not the cells of bounds
    page = folder.run("report", "pack", "-o", "report.html")
    assert page and "cost_usd" in (tmp_path / "report.html").read_text()
    folder.suites()


def test_serving_arrivals(installed: Path, tmp_path: Path) -> None:
    files = {
        "problems/serving.py": SERVING,
        "solvers/first_room.py": FIRST_ROOM,
        "solvers/tightest.py": TIGHTEST,
        "studies/serve.toml": SERVE,
        "test_mine.py": PROCESS_SUITE,
    }
    folder = Folder(installed, tmp_path, files)
    best = folder.run("solve", "serving", "-s", "highs", "-q")
    for policy in ("first_room", "tightest"):
        played = folder.run("simulate", "serving", "-s", policy)
        assert played["verified"] and played["objective"] <= best["objective"] <= played["bound"]
    study = folder.run("run", "serve")
    assert (study["cells"], study["failed"]) == (8, 0)
    assert [each["verdict"] for each in study["gates"]] == ["holds"]
    folder.suites()
