"""What `init` and `new` write works at once, passes its own conformance tests, and replaces
nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from optbench import scaffold
from optbench.errors import OptbenchError, ParameterError
from optbench.workspace import VARIABLE

SOLVE = """
import optbench as ob
result = ob.solve("two_pools:jobs=5", "list_rule:tries=3", seed=1)
print(result.verified, result.bound <= result.objective, result.problem)
"""


def run(*words: str, cwd: Path) -> str:
    """A Python process that knows of no workspace but the one it stands in."""
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_new_workspace_solves_its_example(tmp_path: Path) -> None:
    written = scaffold.init(tmp_path / "ws")
    assert tmp_path / "ws" / "optbench.toml" in written
    assert run("-c", SOLVE, cwd=tmp_path / "ws") == "True True two_pools:jobs=5\n"


def test_the_examples_pass_their_conformance_tests_and_the_checks_of_this_house(
    tmp_path: Path,
) -> None:
    scaffold.init(tmp_path)
    scaffold.new("solver", "my_rule", tmp_path)
    scaffold.new("problem", "my_jobs", tmp_path)
    assert " passed" in run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        "tests",
        cwd=tmp_path,
    )
    root = Path(__file__).parents[1]
    run(
        "-m",
        "ruff",
        "check",
        "--config",
        str(root / "pyproject.toml"),
        "--no-cache",
        ".",
        cwd=tmp_path,
    )


def test_a_new_plugin_is_listed_with_its_parameters(tmp_path: Path) -> None:
    scaffold.init(tmp_path)
    written = scaffold.new("solver", "my_rule", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "solvers/my_rule.py",
        "tests/solvers/test_my_rule.py",
    ]
    assert "class MyRule(ob.Solver)" in written[0].read_text()
    code = (
        "from optbench.plugins.discovery import catalogue\n"
        "print([[p.name for p in e.parameters] for e in catalogue('solver') if e.name == "
        "'my_rule'])"
    )
    assert run("-c", code, cwd=tmp_path) == "[['tries']]\n"


def test_the_example_study_and_new_ones_run(tmp_path: Path) -> None:
    """Cut short to one instance each, gates and claims as they stand; without the examples a study
    is of what is built in.
    """
    scaffold.init(tmp_path)
    scaffold.new("study", "about_ours", tmp_path)
    for example in ("problems/two_pools.py", "solvers/list_rule.py"):
        (tmp_path / example).rename(tmp_path / f"{example}.away")
    scaffold.new("study", "about_theirs", tmp_path)
    for example in ("problems/two_pools.py", "solvers/list_rule.py"):
        (tmp_path / f"{example}.away").rename(tmp_path / example)
    for name, label in (
        ("first_look", "list_rule:tries=20"),
        ("about_ours", "list_rule:tries=20"),
        ("about_theirs", "random_rules:k=20"),
    ):
        words = (
            "run",
            name,
            "--only",
            "seed=0",
            "--only",
            f"solver={label}",
            "--no-track",
            "--json",
        )
        code = (
            "import sys; from optbench.cli.main import main; sys.exit(0 if "
            f"main({list(words)!r}) in (0, 6) else 1)"
        )
        found = json.loads(run("-c", code, cwd=tmp_path))
        assert found["failed"] == 0 and found["done"] == found["cells"] == 4
        assert len(found["gates"]) == 2 and len(found["claims"]) == 1


def test_results_are_ignored_by_git(tmp_path: Path) -> None:
    scaffold.init(tmp_path)
    ignored = (tmp_path / ".gitignore").read_text().splitlines()
    assert {".optbench/", "mlflow/mlflow.db*", "mlflow/artifacts/"} <= set(ignored)


def test_init_keeps_what_is_there_and_adds_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    first = scaffold.init(tmp_path)
    assert tmp_path / "README.md" not in first and (tmp_path / "README.md").read_text() == "mine"
    assert scaffold.init(tmp_path) == []


def test_new_overwrites_nothing_and_then_writes_nothing(tmp_path: Path) -> None:
    test = tmp_path / "tests" / "solvers" / "test_my_rule.py"
    test.parent.mkdir(parents=True)
    test.write_text("mine")
    with pytest.raises(OptbenchError, match=r"test_my_rule\.py already exists"):
        scaffold.new("solver", "my_rule", tmp_path)
    assert test.read_text() == "mine" and not (tmp_path / "solvers").exists()


@pytest.mark.parametrize("name", ["", "My", "my-rule", "2x", "class", "a/b", "_hidden"])
def test_a_name_that_is_no_module_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match=f"'{name}' cannot name a solver"):
        scaffold.new("solver", name, tmp_path)


def test_an_unknown_kind_gets_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"'solvers'; did you mean 'solver'\?"):
        scaffold.new("solvers", "x", tmp_path)


def test_new_outside_a_workspace_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptbenchError, match="run `optbench init` first"):
        scaffold.new("solver", "my_rule")


def test_init_on_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptbenchError, match="is a file; name a folder"):
        scaffold.init(tmp_path / "file")
