"""Outside of a workspace a command says where it will write, once and before it writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cli.conftest import COMMAND, Cli, environment

STUDY = """\
question = "Which rule is shorter?"
problems = ["jobshop:jobs=2,machines=2"]
solvers = ["fcfs"]
work_limit = 10
bound_limit = "1s"
"""
NOTICE = "no workspace is here or above"


def test_a_run_outside_of_a_workspace_says_where_it_writes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(STUDY)
    done = cli("run", "tiny.toml", "--no-track")
    assert done.code == 0
    first, *rest = done.err.splitlines()
    assert NOTICE in first and f"{tmp_path / '.optbench'};" in first and "optbench init" in first
    assert NOTICE not in "\n".join(rest) + done.out
    assert (tmp_path / ".optbench" / "results.jsonl").is_file()


def test_the_database_of_mlflow_is_named_where_it_is_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(STUDY)
    assert cli("run", "tiny.toml", "--no-track", "--json").code == 0
    local = cli("sync").err.splitlines()[0]
    assert NOTICE in local and f"{tmp_path / '.optbench'} and {tmp_path / 'mlflow'};" in local
    elsewhere = cli("sync", MLFLOW_TRACKING_URI="http://127.0.0.1:9").err.splitlines()[0]
    assert f"{tmp_path / '.optbench'};" in elsewhere and str(tmp_path / "mlflow") not in elsewhere


def test_it_is_said_before_anything_is_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(STUDY)
    (tmp_path / ".optbench").write_text("a file where the store would be")
    done = cli("run", "tiny.toml", "--no-track", "--json")
    assert done.code == 2
    assert done.err.splitlines()[0].startswith("optbench: no workspace is here or above")
    assert "error" in done.json


def test_a_study_that_does_not_exist_writes_nothing_and_says_so_alone(cli: Cli) -> None:
    done = cli("run", "no_such_study")
    assert done.code == 2 and NOTICE not in done.err


def test_the_bank_of_a_solve_is_named(cli: Cli, tmp_path: Path) -> None:
    words = ("solve", "jobshop:jobs=2,machines=2", "-s", "fcfs", "--json")
    assert NOTICE not in cli(*words).err and not (tmp_path / ".optbench").exists()
    assert NOTICE in cli(*words, "--bank").err and (tmp_path / ".optbench").is_dir()


def test_a_sub_folder_writes_to_its_workspace_and_says_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "tiny.toml").write_text(STUDY)
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    done = subprocess.run(
        [*COMMAND, "run", "tiny", "--no-track", "--json"],
        cwd=below,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout)["done"] == 2 and NOTICE not in done.stderr
    assert (tmp_path / ".optbench" / "results.jsonl").is_file()
    assert list(below.iterdir()) == []
