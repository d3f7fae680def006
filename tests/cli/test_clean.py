"""`optbench clean` on a small study: shown, asked, freed, and made again."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, environment

STUDY = """\
question = "Which rule is shorter?"
problems = ["jobshop:jobs=2,machines=2"]
solvers = ["fcfs", "heft"]
work_limit = 10
bound_limit = "1s"
"""


@pytest.fixture
def study(cli: Cli, tmp_path: Path) -> Path:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "tiny.toml").write_text(STUDY)
    assert cli("run", "tiny", "--no-track", "--json").json["done"] == 3
    return tmp_path


def schedules(folder: Path) -> int:
    return len(list(folder.glob(".optbench/cells/*/schedule.json")))


def on_terminal(folder: Path, answer: bytes, *words: str) -> str:
    """Run ``optbench clean WORDS`` on a terminal whose user types ``answer``."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [*COMMAND, "clean", *words],
        cwd=folder,
        env=environment(),
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    os.close(ours)
    os.close(theirs)
    return done.stdout


def test_it_shows_and_frees_nothing_by_itself(cli: Cli, study: Path) -> None:
    before = sorted(study.rglob("*"))
    shown = cli("clean")
    assert shown.code == 0 and "tiny" in shown.out and "schedules" in shown.out
    told = cli("clean", "--json").json
    (tiny,) = told["studies"]
    assert (tiny["study"], tiny["cells"], told["freed"]) == ("tiny", 3, None)
    records = (study / ".optbench" / "results.jsonl").stat().st_size
    assert tiny["records_b"] == records
    assert tiny["schedules_b"] > 0 and told["total_b"] >= tiny["schedules_b"] + records
    assert sorted(study.rglob("*")) == before


def test_nothing_is_freed_without_a_word_of_the_user(cli: Cli, study: Path) -> None:
    refused = cli("clean", "--free", "schedules")
    assert refused.code == 2 and "--yes" in refused.err
    alone = cli("clean", "--yes")
    assert alone.code == 2 and "--free caches" in alone.err
    every = cli("clean", "--free", "records", "--yes")
    assert every.code == 2 and "name the studies" in every.err
    wrong = cli("clean", "tiyn", "--free", "records", "--yes")
    assert wrong.code == 2 and "did you mean 'tiny'" in wrong.err
    assert schedules(study) == 2
    assert "nothing was freed" in on_terminal(study, b"no\n", "--free", "schedules")
    assert schedules(study) == 2
    asked = on_terminal(study, b"y\n", "tiny", "--free", "schedules")
    assert "Free this of tiny? [y/N]" in asked and "freed schedules" in asked
    assert schedules(study) == 0


def test_what_was_freed_is_made_again_as_it_says(cli: Cli, study: Path) -> None:
    done = cli("clean", "--free", "schedules", "--free", "caches", "--yes", "--json")
    freed = done.json["freed"]
    assert freed["schedules"]["files"] == 2 and freed["schedules"]["records"] == 0
    assert freed["schedules"]["size_b"] > 0 and "--force" in freed["schedules"]["cost"]
    assert done.json["studies"][0]["schedules_b"] == 0
    assert not list(study.glob(".optbench/instances/*.pickle"))
    # Every result is still there, and the report too.
    assert cli("run", "tiny", "--no-track", "--json").json["skipped"] == 3
    assert list(study.glob(".optbench/instances/*.pickle"))
    assert cli("report", "tiny", "--json").code == 0
    assert cli("run", "tiny", "--no-track", "--force", "--json").json["done"] == 3
    assert schedules(study) == 2


def test_records_go_only_where_they_are_named(cli: Cli, study: Path) -> None:
    freed = cli("clean", "tiny", "--free", "records", "--yes", "--json").json["freed"]
    assert freed["records"]["records"] == 3
    assert (study / ".optbench" / "results.jsonl").read_bytes() == b""
    assert "nothing has been run here yet" in cli("sync").out
    again = cli("run", "tiny", "--no-track", "--json").json
    assert (again["done"], again["skipped"]) == (3, 0)


def test_without_a_store_there_is_nothing_to_show(cli: Cli) -> None:
    refused = cli("clean")
    assert refused.code == 2 and "nothing is kept here" in refused.err
