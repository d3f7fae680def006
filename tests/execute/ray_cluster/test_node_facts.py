"""What must agree between the driver and a node, and how a difference is described."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from optbench.execute.ray_cluster.node_facts import (
    MISSING,
    code_folders,
    compared_packages,
    differences,
    facts_of_this_machine,
)
from optbench.execute.ray_cluster.plugin_package import imported_modules

HERE: dict[str, Any] = {
    "python": "3.11.7",
    "packages": {"optbench": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
    "code": "aa",
}


def test_this_machine_agrees_with_itself() -> None:
    packages = compared_packages(["pytest"])
    assert {"optbench", "ray", "torch", "numpy", "llvmlite", "pytest"} <= set(packages)
    assert "flask" not in packages  # what mlflow requires computes nothing in a cell
    here = facts_of_this_machine(packages)
    assert differences(here, facts_of_this_machine(packages)) == []
    assert here["cores"] == sorted(os.sched_getaffinity(0)) and MISSING not in here.values()


def test_what_built_in_plugins_and_extras_need_is_compared(tmp_path: Path) -> None:
    """Three packages as pip leaves them: ``a`` asks for the extra ``fast`` of ``b``, which needs
    ``c`` for that; what ``b`` needs for its tests does not count.
    """
    for name, needs in (
        ("a", ["Ob_B[fast] >= 1"]),
        ("b", ['ob-c ; extra == "fast"', "pytest; extra == 'test'"]),
        ("c", []),
    ):
        folder = tmp_path / f"ob_{name}-1.0.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: ob-{name}", "Version: 1.0"]
        lines += [f"Requires-Dist: {each}" for each in needs]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
        (folder / "RECORD").write_text(f"ob_{name}.py,,\n")
    # In a process of its own: Python keeps what it knows of installed packages.
    code = f"from {compared_packages.__module__} import compared_packages as c; print(*c(['ob_a']))"
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-c", code]
    said = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    found = set(said.stdout.split())
    assert {"ob-a", "ob-b", "ob-c"} <= found and "pytest" not in found
    built_in = imported_modules(*(code_folders()[name] for name in ("problems", "solvers")))
    assert {"numpy", "torch"} <= built_in


def test_each_difference_names_both_versions() -> None:
    there = {
        "python": "3.12.1",
        "packages": {"optbench": "0.1.0", "torch": "2.9.0", "numpy": MISSING},
        "code": "bb",
    }
    assert differences(HERE, there) == [
        "Python 3.12.1; the driver has 3.11.7",
        "torch 2.9.0; the driver has 2.13.0",
        "numpy not installed; the driver has 2.4.6",
        "another state of optbench's code and built-in plug-ins (bb; the driver has aa)",
    ]


def test_a_node_without_optbench() -> None:
    packages = {**HERE["packages"], "optbench": MISSING}
    there = {**HERE, "packages": packages, "code": MISSING}
    assert differences(HERE, there) == ["optbench is not installed; the driver has 0.1.0"]
