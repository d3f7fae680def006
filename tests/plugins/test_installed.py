"""Plug-ins of installed packages: found by entry points, shadowed by a workspace, never silent."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import optbench as ob
from optbench.cli.main import main
from optbench.errors import PluginError
from optbench.plugins import discovery
from optbench.plugins.installed import installed
from optbench.study.code_version import code_hash

PROBLEM = '''"""A family of an installed package."""
from dataclasses import dataclass
import optbench as ob

@dataclass
class Row(ob.Problem):
    """Tasks of one second on one device."""

    tasks: int = 3

    def instance(self, seed=0):
        m = ob.Model("row")
        pool = m.pool("gpu", count=1)
        for _ in range(self.tasks):
            m.task(modes=[m.mode(pool, time_s=1)])
        m.minimize(makespan_s=1.0)
        return m.build()
'''
SOLVERS = '''"""Two solvers in one module."""
from optbench.rules import RulePolicy, list_rule

class Longest(RulePolicy):
    """Longest first."""

    def rule(self, instance, rng):
        return list_rule(instance, base=-instance.tasks.units, end_weight=1.0)

class Fcfs(Longest):
    """Would take the place of a built-in one."""
'''
STUDY = 'question = "Which is best?"\nproblems = ["zz_row"]\nsolvers = ["zz_longest"]\nseeds = 1\n'
POINTS = """[console_scripts]
zz = zz_pack.tool:main

[optbench.problems]
zz_row = zz_pack.row

[optbench.solvers]
zz_longest = zz_pack.rules:Longest
fcfs = zz_pack.rules:Fcfs
zz_absent = zz_pack.nowhere
zz_wrong = zz_pack.rules:list_rule
zz_missing = zz_missing_package:Solver

[optbench.studies]
zz_question = zz_pack.studies
zz_unwritten = zz_pack.studies
"""


@pytest.fixture()
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package ``zz-pack`` 1.5, installed into a folder on the search path."""
    site = tmp_path / "site"
    files = {
        "zz_pack/__init__.py": "",
        "zz_pack/row.py": PROBLEM,
        "zz_pack/rules.py": SOLVERS,
        "zz_pack/studies/zz_question.toml": STUDY,
        "zz_pack-1.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: zz-pack\nVersion: 1.5\n",
        "zz_pack-1.5.dist-info/entry_points.txt": POINTS,
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name in [name for name in sys.modules if name.partition(".")[0] == "zz_pack"]:
        del sys.modules[name]


def entry(kind: discovery.Kind, name: str) -> discovery.Entry:
    return next(found for found in discovery.catalogue(kind) if found.name == name)


def test_they_are_found_without_an_import_and_work_by_name(package: Path) -> None:
    assert {"zz_row"} <= set(discovery.names("problem"))
    assert {"zz_longest", "zz_absent", "zz_wrong"} <= set(discovery.names("solver"))
    assert not [name for name in sys.modules if name.startswith("zz_pack")]
    result = ob.solve("zz_row:tasks=2", "zz_longest")
    assert (result.objective, result.status, result.solver) == (2, "optimal", "zz_longest")
    assert ob.simulate("zz_row", "zz_longest").completed == 3


def test_list_says_where_each_comes_from(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "solvers", "--json"]) == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    found = listed["zz_longest"]
    assert (found["origin"], found["path"]) == (
        "package zz_pack 1.5",
        str(package / "zz_pack" / "rules.py"),
    )
    assert listed["fcfs"]["origin"] == "built-in" and list(listed["fcfs"])[-2:] == [
        "origin",
        "shapes",
    ]
    main(["list", "problems"])
    assert "zz_pack 1.5" in capsys.readouterr().out


def test_a_package_does_not_take_the_place_of_a_built_in_one(package: Path) -> None:
    """``list`` names the file that the built-in plug-in hides."""
    found = entry("solver", "fcfs")
    assert found.origin == "built-in" and found.shadows == str(package / "zz_pack" / "rules.py")
    assert ob.load_solver("fcfs")[1].__class__.__module__ == "optbench.plugins.solvers.fcfs"


def test_a_workspace_shadows_a_package(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "solvers"
    own.mkdir()
    (own / "zz_longest.py").write_text(SOLVERS.split("class Fcfs")[0])
    solvers = importlib.import_module("optbench.plugins.solvers")
    monkeypatch.setattr(solvers, "__path__", [str(own), *solvers.__path__])
    found = entry("solver", "zz_longest")
    assert (found.origin, found.path) == ("workspace", str(own / "zz_longest.py"))
    assert found.shadows == str(package / "zz_pack" / "rules.py")
    name = "optbench.plugins.solvers.zz_longest"
    assert discovery.load_class("solver", "zz_longest").__module__ == name
    del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("zz_absent", "ModuleNotFoundError: No module named 'zz_pack.nowhere'"),
        ("zz_missing", "ModuleNotFoundError: No module named 'zz_missing_package'"),
        ("zz_wrong", "'list_rule', which an entry point of zz_pack 1.5 names, is no subclass of"),
    ],
)
def test_a_broken_entry_point_is_unavailable(package: Path, name: str, reason: str) -> None:
    found = entry("solver", name)
    assert not found.available and reason in str(found.reason)
    assert found.origin == "package zz_pack 1.5"
    with pytest.raises(PluginError, match=f"solver '{name}' is unavailable"):
        discovery.load_class("solver", name)


def test_studies_are_files_beside_modules(package: Path) -> None:
    assert discovery.study_file("zz_question") == package / "zz_pack/studies/zz_question.toml"
    assert entry("study", "zz_question").summary == "Which is best?"
    found = entry("study", "zz_unwritten")
    assert "zz_pack 1.5 has no file zz_unwritten.toml" in str(found.reason)
    with pytest.raises(PluginError, match=r"has no file zz_unwritten\.toml"):
        discovery.study_file("zz_unwritten")


def test_the_version_of_a_package_is_part_of_the_hash_of_its_code(package: Path) -> None:
    before = code_hash("solver", "zz_longest")
    old = package / "zz_pack-1.5.dist-info"
    old.rename(package / "zz_pack-1.6.dist-info")
    installed.__globals__["_announced"].cache_clear()
    assert code_hash("solver", "zz_longest") != before


@pytest.mark.parametrize(
    "text",
    ["", "[optbench.solvers]\nno equals sign\n", "[optbench.nothing]\na = b\n", "\xff[optbench."],
)
def test_files_without_a_meaning_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder = tmp_path / "other-1.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(text, encoding="latin-1")
    (tmp_path / "file.zip").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "file.zip"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [name for name in installed("solver") if name.startswith(("a", "no"))] == []
