"""`optbench quickstart`: one command to results, in whatever folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.store.run_store import Store
from tests.cli.conftest import Cli

# The workspace's own study of that name takes the place of the built-in one, which takes half a
# minute.
TINY = (
    'problems = ["jobshop:jobs=3,machines=3"]\nsolvers = ["cpsat", "fcfs"]\ntime_limit = '
    '"5s"\nbound_limit = "1s"\n'
)
FOLDER = "optbench-quickstart"


def with_study(root: Path, extra: str = "") -> Path:
    (root / "studies").mkdir(parents=True)
    (root / "studies" / "quickstart.toml").write_text(TINY + extra)
    return root


def test_in_a_workspace_its_results_stay_there(cli: Cli, tmp_path: Path) -> None:
    (with_study(tmp_path) / "optbench.toml").touch()
    done = cli("quickstart", "--no-track")
    assert done.code == 0
    assert (
        "3 of 3 cells done" in done.out
        and "where to look next" in done.out
        and "optbench ui" in done.out
    )
    assert len(Store(tmp_path / ".optbench").records()) == 3
    assert not (tmp_path / FOLDER).exists() and "no workspace was found here" not in done.out


def test_outside_of_a_workspace_one_is_made_and_found_again(cli: Cli, tmp_path: Path) -> None:
    root = with_study(tmp_path / FOLDER)
    first = cli("quickstart", "--no-track")
    assert first.code == 0
    assert (
        f"no workspace was found here; a new one is in {root}" in first.out
        and f"cd {FOLDER}" in first.out
    )
    again = cli("quickstart", "--no-track", "--json")
    assert again.code == 0 and again.json["skipped"] == 3 and "no workspace" not in again.err
    assert len(Store(root / ".optbench").records()) == 3


def test_a_gate_that_does_not_hold_shows_in_the_exit_code(cli: Cli, tmp_path: Path) -> None:
    (with_study(tmp_path, '[gates]\nfcfs = "objective <= 1"\n') / "optbench.toml").touch()
    assert cli("quickstart", "--no-track", "--json").code == 6


@pytest.mark.slow
def test_the_built_in_study(cli: Cli, tmp_path: Path) -> None:
    done = cli("quickstart", "--json")
    assert done.code == 0 and done.json["failed"] == 0 and done.json["cells"] == 84
    assert (
        Path(done.json["report"]).is_file()
        and (tmp_path / FOLDER / "mlflow" / "mlflow.db").is_file()
    )
