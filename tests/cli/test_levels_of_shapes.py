"""Commands and a study on a user's shape whose objective has two levels.

Two batches of 4 units, due after 6 and 12 s. All slow they end at 8 and 16 s: 2 + 4 s late, for
8 units × 1 J. The first one fast they end at 4 and 12 s: in time, for 4 × 3 + 4 × 1 = 16 J. The
bounds are 0 s and 8 J, so that the gaps are 1 and 0, and 0 and (16 − 8) / 16. With seed 1 the
second batch has 5 units: all slow 2 + 6 s late for 9 J, the first one fast 2 s late for 17 J.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.sample_files.two_level_workspace import STUDY, write_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_workspace(tmp_path)


def test_solve_and_simulate_have_a_value_a_bound_and_a_gap_per_level(
    cli: Cli, workspace: Path
) -> None:
    solved = cli("solve", "batches", "-s", "all_slow", "-q", "--json").json
    assert (solved["objective"], solved["bound"], solved["gap"]) == ([6, 8], [0, 8], [1, 0])
    played = cli("simulate", "batches", "-s", "all_slow", "--json").json
    assert (played["objective"], played["bound"], played["gap"]) == ([6, 8], [0, 8], [1, 0])
    assert played["objective_name"] == "late_s then energy_j"
    assert (played["reference"], played["regret"]) == ("fast_first", -0.5)
    assert played["energy_j"] == 8
    other = cli("simulate", "batches", "-s", "fast_first", "--json").json
    assert (other["objective"], other["gap"], other["regret"]) == ([0, 16], [0, 0.5], 0)
    found = cli("bound", "batches", "--json").json
    assert [(row["level"], row["value"]) for row in found["bounds"]] == [(0, 0), (1, 8)]


def test_a_study_ranks_by_the_gap_of_the_last_level(cli: Cli, workspace: Path) -> None:
    study = workspace / "studies" / "lateness.toml"
    study.write_text(STUDY.replace("seeds = 2", "seeds = 1"))
    done = cli("run", "lateness", "--no-track", "--json", "-q")
    assert (done.code, done.json["failed"]) == (0, 0), done.out
    assert [each["verdict"] for each in done.json["gates"]] == ["holds", "holds"]
    assert [each["ours"] for each in done.json["claims"]] == [-0.5]
    told = cli("report", "lateness", "--json").json
    assert told["ranked_by"] == "gap_last_level"
    page = (workspace / ".optbench" / "studies" / "lateness" / "report.html").read_text()
    assert "gap of the last level, mean of each instance" in page
    assert "study gap, mean of each instance" not in page


def test_a_gate_on_the_first_level_fails_on_an_instance_that_is_late(
    cli: Cli, workspace: Path
) -> None:
    done = cli("run", "lateness", "--no-track", "--json", "-q")
    assert done.code == 6 and done.json["failed"] == 0
    assert [each["verdict"] for each in done.json["gates"]] == ["fails", "holds"]
