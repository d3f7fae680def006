"""Plug-ins in a workspace beside the built-in ones: found, shadowed, broken, and told apart."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import optbench.plugins.problems
import optbench.plugins.solvers
import optbench.plugins.studies
from optbench.errors import OptbenchError, PluginError, UnknownNameError
from optbench.plugins import discovery
from optbench.workspace import FOLDERS, VARIABLE, activate, find_root, plugin_path, store
from tests.loaded_modules import forget_modules_of

GOOD = '''
from __future__ import annotations
from dataclasses import dataclass
import optbench as ob

@dataclass
class {name}(ob.Solver):
    """{summary}"""

    supports = frozenset({{"ticks"}})
    depth: int = 2

    def solve(self, instance, run):
        return None
'''
TWO = "import optbench as ob\nclass A(ob.Solver):\n    pass\nclass B(ob.Solver):\n    pass\n"
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files of a workspace that stands before the built-in folders."""
    for folder in ("problems", "solvers", "studies"):
        (tmp_path / folder).mkdir()
        package = importlib.import_module(f"optbench.plugins.{folder}")
        monkeypatch.setattr(package, "__path__", [str(tmp_path / folder), *package.__path__])

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        return path

    yield put
    forget_modules_of(tmp_path)


def entry(kind: discovery.Kind, name: str) -> discovery.Entry:
    return next(found for found in discovery.catalogue(kind) if found.name == name)


def test_a_dropped_in_file_is_a_plugin(write: Write) -> None:
    path = write("solvers/zz_mine.py", GOOD.format(name="Mine", summary="Does it my way."))
    found = entry("solver", "zz_mine")
    assert (found.summary, found.available, found.reason, found.shadows) == (
        "Does it my way.",
        True,
        None,
        None,
    )
    assert found.path == str(path) and found.supports == ("ticks",)
    assert [(p.name, p.type, p.default) for p in found.parameters] == [("depth", "int", "2")]


def test_a_solver_is_loaded_by_its_spec_and_later_values_win(write: Write) -> None:
    write("solvers/zz_mine.py", GOOD.format(name="Mine", summary="Mine."))
    name, solver = discovery.load_solver("zz_mine:depth=3", {"depth": "4"})
    assert name == "zz_mine" and vars(solver) == {"depth": 4}


def test_a_small_package_is_a_plugin_with_relative_imports(write: Write) -> None:
    write("solvers/zz_pack/inner.py", GOOD.format(name="Inner", summary="From inside."))
    write("solvers/zz_pack/__init__.py", "from .inner import Inner as Inner\n")
    write("solvers/_zz_shared.py", "LIMIT = 5\n")
    user = GOOD.format(name="User", summary="Uses.").replace(
        "\n@dataclass", "\nfrom ._zz_shared import LIMIT\n@dataclass"
    )
    write("solvers/zz_user.py", user)
    assert entry("solver", "zz_pack").summary == "From inside."
    assert entry("solver", "zz_user").available
    assert "_zz_shared" not in discovery.names("solver")


def test_listing_names_imports_nothing(write: Write) -> None:
    write("solvers/zz_bomb.py", "raise SystemExit('imported')\n")
    assert "zz_bomb" in discovery.names("solver")
    assert "optbench.plugins.solvers.zz_bomb" not in sys.modules


@pytest.mark.parametrize("kind", discovery.KINDS)
def test_one_name_is_found_as_among_all(write: Write, tmp_path: Path, kind: discovery.Kind) -> None:
    """Modules, packages, both of one name, code without source, helpers and what is neither."""
    ending = {"problem": ".py", "solver": ".py", "study": ".toml"}[kind]
    folder = FOLDERS[kind]
    for name in ("zz_one", "zz_both", "zz-hyphen", "_helper", "zz.dotted", ".hidden"):
        write(f"{folder}/{name}{ending}", "")
    for name in ("zz_both/__init__.py", "zz_pack/__init__.pyc", "zz_empty/inner.py", "zz_code.pyc"):
        write(f"{folder}/{name}", "")
    write(f"{folder}/zz_text.txt", "")
    listed = discovery._files_in_folders(kind)
    stems = {path.stem for path in (tmp_path / folder).iterdir()} | {"", ".", "..", "zz_none"}
    names = [*listed, *stems, f"../{folder}/zz_one", str(tmp_path / folder / "zz_one")]
    assert {name: discovery._files_of_one(kind, name) for name in names} == {
        name: listed.get(name, []) for name in names
    }
    assert len(set(names) - set(listed)) >= 5 and "zz_one" in listed


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        (
            "import optbench\nimport no_such_library\n",
            2,
            "ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("x = 1\ny = (\n", 2, "SyntaxError: '(' was never closed"),
        ("x = 1 / 0\n", 1, "ZeroDivisionError: division by zero"),
        ("\n\nimport sys\nsys.exit('bye')\n", 4, "SystemExit: bye"),
    ],
)
def test_a_broken_file_is_unavailable_with_its_place_and_reason(
    write: Write, source: str, line: int, reason: str
) -> None:
    path = write("solvers/zz_broken.py", source)
    found = entry("solver", "zz_broken")
    assert not found.available and found.reason == f"{path}:{line}: {reason}"
    with pytest.raises(
        PluginError, match=f"solver 'zz_broken' is unavailable: .*zz_broken.py:{line}"
    ):
        discovery.load_solver("zz_broken")


@pytest.mark.parametrize(
    ("source", "found"),
    [("x = 1\n", "found none"), (TWO, "found A, B")],
)
def test_a_file_must_define_exactly_one_public_class(write: Write, source: str, found: str) -> None:
    write("solvers/zz_count.py", source)
    with pytest.raises(
        PluginError, match=f"exactly one public subclass of optbench.Solver, {found}"
    ):
        discovery.load_class("solver", "zz_count")


def test_a_parameter_without_dataclass_is_caught(write: Write) -> None:
    write(
        "solvers/zz_forgot.py", GOOD.format(name="Forgot", summary="f").replace("@dataclass\n", "")
    )
    message = (
        r"zz_forgot.py:\d+: 'depth' is annotated like a parameter, but Forgot is not a dataclass"
    )
    with pytest.raises(PluginError, match=message):
        discovery.load_solver("zz_forgot")


def test_an_unknown_name_gets_the_nearest_one(write: Write) -> None:
    write("solvers/zz_mine.py", GOOD.format(name="Mine", summary="Mine."))
    with pytest.raises(UnknownNameError, match="unknown solver 'zz_mime'; did you mean 'zz_mine'"):
        discovery.load_solver("zz_mime")


def test_the_users_plugin_shadows_the_built_in_one(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = optbench.plugins.solvers
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / "built_in")])
    hidden = write("built_in/zz_both.py", GOOD.format(name="Both", summary="Built in."))
    assert entry("solver", "zz_both").shadows is None
    sys.modules.pop("optbench.plugins.solvers.zz_both")
    write("solvers/zz_both.py", GOOD.format(name="Both", summary="Mine."))
    found = entry("solver", "zz_both")
    assert (found.summary, found.shadows) == ("Mine.", str(hidden))


def test_studies_are_listed_by_their_question(write: Write) -> None:
    good = write("studies/zz_good.toml", 'question = "Which one?"\n')
    write("studies/zz_bad.toml", "question = \n")
    assert entry("study", "zz_good").summary == "Which one?"
    assert "zz_bad.toml" in (entry("study", "zz_bad").reason or "")
    assert discovery.study_file("zz_good") == good
    with pytest.raises(UnknownNameError, match="unknown study 'zz_goood'"):
        discovery.study_file("zz_goood")


def test_the_marker_is_found_from_below_and_the_variable_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "b" / "solvers").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "deep")
    assert find_root() == tmp_path
    monkeypatch.setenv(VARIABLE, str(tmp_path / "b"))
    assert activate() == tmp_path / "b" and store() == tmp_path / "b" / ".optbench"
    assert plugin_path("solvers", "/own")[0] == str(tmp_path / "b" / "solvers")
    assert plugin_path("solvers", "/own")[-1] == "/own"


def test_a_variable_that_names_no_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(OptbenchError, match="gone' is no folder"):
        activate()


def test_a_program_run_inside_a_workspace_sees_its_plugins(tmp_path: Path) -> None:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "zz_mine.py").write_text(GOOD.format(name="Mine", summary="Mine."))
    env = {key: value for key, value in os.environ.items() if key != VARIABLE}
    code = (
        "from optbench.plugins.discovery import names; print('zz_mine' in names('solver'), "
        "len(names('solver')) > 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout == "True True\n", done.stderr
