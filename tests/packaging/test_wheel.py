"""The wheel carries the framework and the built-in plug-ins, and works far from the source tree."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from benchmarks import wheel as trial

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]


def test_it_holds_the_plugins_inside_the_package_and_nothing_beside_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    top = {name.partition("/")[0] for name in names}
    assert top == {"optbench", f"{wheel.name.split('-')[0]}-{wheel.name.split('-')[1]}.dist-info"}
    for kind in ("problems", "solvers"):
        expected = {
            f"optbench/plugins/{kind}/{path.relative_to(ROOT / kind)}"
            for path in (ROOT / kind).rglob("*.py")
        }
        assert expected and expected <= names
    assert {
        "optbench/py.typed",
        "optbench/templates/solver.py.txt",
        "optbench/plugins/solvers/__init__.py",
    } <= names


def test_it_carries_the_data_files_of_the_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    kinds = (".css", ".csv", ".html", ".js", ".json", ".txt")
    files = [path for path in (ROOT / "optbench").rglob("*.*") if path.suffix in kinds]
    assert files and {str(path.relative_to(ROOT)) for path in files} <= names
    for shipped in ("_geo_paper", "_gavel_tables", "_gavel_traces"):
        assert f"optbench/plugins/problems/{shipped}.json" in names


def test_it_carries_licence_entry_point_and_requirements(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    read = {name.rpartition("/")[2]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "Apache License" in archive.read(read["LICENSE"]).decode()
    assert "optbench = optbench.cli.main:main" in archive.read(read["entry_points.txt"]).decode()
    metadata = archive.read(read["METADATA"]).decode()
    assert "Requires-Dist: highspy==1.14.0" in metadata and "Requires-Python: >=3.11" in metadata


def test_it_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    """Only the heavy libraries are borrowed from this environment; benchmarks/wheel.py installs
    those too.
    """
    outcome = trial.try_out(installed, tmp_path, trial.clean_environment())
    solve = "optbench solve jobshop:jobs=6,machines=4 --time-limit 20s --json -s"
    assert [said.partition(",")[0] for command, said in outcome if command.startswith(solve)] == [
        "optimal",
        "optimal",
    ]
    assert [said for command, said in outcome if "from the workspace, hiding" in said]
