"""Plug-ins travel to the nodes; the store, hidden files and caches never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.errors import OptbenchError
from optbench.execute.ray_cluster import plugin_package
from optbench.execute.ray_cluster.plugin_package import imported_modules, package_plugins


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "ws"
    for name in (
        *("optbench.toml", "solvers/mine.py", "solvers/pack/__init__.py", "solvers/pack/table.csv"),
        *("solvers/.secret", "solvers/__pycache__/mine.pyc", "problems/shop.py"),
        *("studies/night.toml", ".optbench/results.jsonl", ".optbench/instances/i.pickle"),
        *("data/large.bin", "README.md"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("import numpy\nfrom lightgbm import x\n" * name.endswith(".py"))
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(root))
    return root


def names(folder: Path) -> list[str]:
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return sorted(found)


def test_plugins_and_the_marker_travel(workspace: Path, tmp_path: Path) -> None:
    (workspace / "solvers" / "results").symlink_to(workspace / ".optbench" / "results.jsonl")
    (workspace / "solvers" / "store").symlink_to(workspace / ".optbench")
    target = package_plugins(tmp_path / "package")
    assert names(target) == [
        "optbench.toml",
        "problems/shop.py",
        "solvers/mine.py",
        "solvers/pack/__init__.py",
        "solvers/pack/table.csv",
        "studies/night.toml",
    ]
    assert imported_modules(target) == {"numpy", "lightgbm"}


def test_every_way_to_import_is_seen(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(
        "import os, torch.nn as nn , z3\nfrom . import here\nfrom ._mine import x\n"
        "def solve():\n    import pandas as pd  # late\n    from scipy.sparse import eye\n"
    )
    assert imported_modules(tmp_path) == {"os", "torch", "z3", "pandas", "scipy"}


def test_too_much_is_refused(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_package, "MAX_PACKAGE_MB", 0.001)
    (workspace / "solvers" / "weights.bin").write_bytes(bytes(2000))
    with pytest.raises(OptbenchError, match=r"more than 0.001 MB.*solvers/weights.bin"):
        package_plugins(tmp_path / "package")


@pytest.mark.parametrize("name", ["solvers/secrets.txt", "studies/others"])
def test_a_link_that_leaves_the_workspace_is_refused(
    workspace: Path, tmp_path: Path, name: str
) -> None:
    """Of a file as of a folder; links within the workspace travel as what they lead to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret")
    (workspace / "solvers" / "again.py").symlink_to(workspace / "solvers" / "mine.py")
    assert "solvers/again.py" in names(package_plugins(tmp_path / "package"))
    (workspace / name).symlink_to(outside / "key" if "." in name else outside)
    with pytest.raises(OptbenchError, match="outside of the workspace"):
        package_plugins(tmp_path / "refused")


def test_without_plugins_an_empty_workspace_travels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(tmp_path))
    assert names(package_plugins(tmp_path / "package")) == ["optbench.toml"]
