"""Imports point downwards only: the layers of the design, read from the source of every module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the top: a module may import from its own package, and from packages in a line below.
LAYERS = (
    ("optbench.cli", "optbench.testing"),
    ("optbench.scaffold", "optbench.environment_report"),
    ("optbench.audit", "optbench.tune"),
    ("optbench.track",),
    ("optbench.report",),
    ("optbench.evaluate",),
    ("optbench.run",),
    ("optbench.execute",),
    ("optbench.store",),
    ("optbench.study",),
    ("optbench.sandbox",),
    ("optbench.fronts",),
    ("optbench.html",),
    ("optbench.blaming",),
    ("optbench.simulation",),
    ("optbench.process_simulation",),
    ("optbench.api",),
    ("optbench.outcome",),
    ("optbench.rules",),
    ("optbench.plugins",),
    ("optbench.learn",),
    ("optbench.gnn",),
    ("optbench.views", "optbench.bounds"),
    ("optbench.sim",),
    ("optbench.shapes",),
    ("optbench.compiling",),
    ("optbench.formats",),
    ("optbench.hardware",),
    ("optbench.model",),
    ("optbench.power",),
    ("optbench.workspace",),
    ("optbench.data", "optbench.typed_values", "optbench.rendering", "optbench.arguments"),
    ("optbench.errors", "optbench.files", "optbench.units"),
)
# Public modules re-export what stands below (and lazily what stands above) for plug-ins; optbench
# itself imports none of them.
PUBLIC = ("optbench", "optbench.rules", "optbench.testing")
NUMPY_ONLY = (
    *("optbench.formats", "optbench.model", "optbench.power", "optbench.workspace"),
    *("optbench.errors", "optbench.files", "optbench.typed_values", "optbench.units"),
    *("optbench.rendering", "optbench.arguments"),
)


def layer_of(module: str) -> tuple[int, str]:
    """Height (0 is the bottom) and package of a module."""
    for height, packages in enumerate(reversed(LAYERS)):
        for package in packages:
            if module == package or module.startswith(f"{package}."):
                return height, package
    raise AssertionError(f"{module} belongs to no layer; add it to LAYERS in {Path(__file__).name}")


def imports(source: str, module: str, is_package: bool) -> Iterator[str]:
    """Absolute names of everything imported, anywhere in the file; ``from a import b`` counts as
    ``a.b``.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*parents, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def forbidden(source: str, module: str, is_package: bool = False) -> list[str]:
    """Arrows of one module that point upwards or sideways, and libraries too heavy for its
    layer.
    """
    height, package = layer_of(module)
    wrong = []
    for target in imports(source, module, is_package):
        top = target.partition(".")[0]
        if top == "optbench":
            if target.startswith("optbench.__version__"):
                continue
            if target == "optbench" or reaches(target, package):  # public names reach every layer
                wrong.append(f"{module} imports {target}")
                continue
            goal, other = layer_of(target)
            if goal >= height and other != package:
                wrong.append(f"{module} imports {target}")
        elif package in NUMPY_ONLY and top not in sys.stdlib_module_names | {"numpy", "__future__"}:
            wrong.append(f"{module} imports {target}: only numpy is allowed here")
        elif (
            top == "mlflow"
            and not module.startswith("optbench.track.")
            and package != "optbench.environment_report"
        ):
            wrong.append(f"{module} imports mlflow: only optbench.track may")
        elif top in ("problems", "solvers", "studies", "tests"):
            wrong.append(
                f"{module} imports {target}: plug-ins are loaded by optbench.plugins.discovery"
            )
    return wrong


def reaches(target: str, package: str) -> bool:
    """Whether a module of another package imports from a public one."""
    public = [each for each in PUBLIC[1:] if target == each or target.startswith(f"{each}.")]
    return bool(public) and package not in public


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted((ROOT / "optbench").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name != "optbench":  # the lazy exports name every layer
            found.append((name, path))
    return found


def plugin_files() -> list[Path]:
    return sorted([*(ROOT / "problems").rglob("*.py"), *(ROOT / "solvers").rglob("*.py")])


def test_imports_point_downwards() -> None:
    wrong = [
        arrow
        for module, path in modules()
        for arrow in forbidden(path.read_text(), module, path.name == "__init__.py")
    ]
    assert wrong == []


# Rooms and modules that serve task schedules alone; everywhere else a decision is of any shape.
OF_SCHEDULES = (
    *("optbench.model", "optbench.sim", "optbench.views", "optbench.bounds", "optbench.learn"),
    *("optbench.simulation", "optbench.audit", "optbench.html", "optbench.fronts.front_search"),
    *("optbench.plugins.schedule_shape", "optbench.plugins.policy", "optbench.blaming"),
    *("optbench.report.operation_figures", "optbench.formats"),
)


def names_schedules(module: str, source: str) -> bool:
    return "optbench.model.schedule.Schedule" in imports(source, module, False)


def test_only_what_serves_schedules_names_their_class() -> None:
    found = [
        module
        for module, path in modules()
        if not any(module == each or module.startswith(f"{each}.") for each in OF_SCHEDULES)
        if names_schedules(module, path.read_text())
    ]
    assert found == []
    assert names_schedules("optbench.api", "from optbench.model.schedule import Schedule")


def test_plugins_import_each_other_relatively_and_nothing_of_the_command_line() -> None:
    outside = (
        "optbench.cli",
        "optbench.testing",
        "optbench.plugins.solvers",
        "optbench.plugins.problems",
    )
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in plugin_files()
        for name in absolute_imports(path)
        if name.startswith(outside) or name.partition(".")[0] in ("solvers", "problems", "tests")
    ]
    assert wrong == []


def absolute_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    ("source", "module", "culprit"),
    [
        ("from optbench.views import milp", "optbench.model.instance", "optbench.views.milp"),
        ("import optbench.cli.main", "optbench.study.cells", "optbench.cli.main"),
        (
            "def f():\n    from optbench.bounds.auto import best",
            "optbench.views.milp",
            "optbench.bounds.auto.best",
        ),
        ("from ..api import solve", "optbench.plugins.discovery", "optbench.api.solve"),
        ("import scipy.sparse", "optbench.model.windows", "scipy.sparse"),
        ("import mlflow", "optbench.run.runner", "mlflow"),
        ("from optbench.rules import Rule", "optbench.api", "optbench.rules.Rule"),
        ("import solvers.cpsat", "optbench.run.runner", "solvers.cpsat"),
    ],
)
def test_a_forbidden_arrow_is_seen(source: str, module: str, culprit: str) -> None:
    (found,) = forbidden(source, module)
    assert culprit in found


def test_a_downward_arrow_is_allowed() -> None:
    source = "import numpy as np\nfrom optbench.errors import ModelError\nfrom . import schedule"
    assert forbidden(source, "optbench.model.files") == []
