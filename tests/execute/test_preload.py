"""What is loaded ahead: libraries and modules of optbench that plug-ins reach, and nothing of a
user's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.execute.preload import _is_shaped, reached


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import numpy as np", {"numpy"}),
        ("def f():\n    import scipy.sparse, os", {"scipy.sparse"}),
        (
            "from ortools.sat.python import cp_model",
            {"ortools.sat.python", "ortools.sat.python.cp_model"},
        ),
        (
            "if True:\n    from torch import (\n        nn as layers,\n        optim,\n    )",
            {"torch", "torch.nn", "torch.optim"},
        ),
        ("import mylab, requests\nfrom . import helper\nfrom .other import thing", set()),
        (
            "from optbench.units import x\nimport optbench as ob",
            {"optbench.units", "optbench.units.x"},
        ),
    ],
)
def test_imports_of_a_users_file(tmp_path: Path, source: str, expected: set[str]) -> None:
    (tmp_path / "plugin.py").write_text(source)
    assert set(reached([], [tmp_path / "plugin.py"])) == expected


def test_imports_of_optbench_are_followed() -> None:
    found = set(reached(["optbench.plugins.solvers.cpsat"], []))
    assert {
        "ortools.sat.python.cp_model",
        "optbench.model.instance",
        "optbench.plugins.solvers._cpsat_search",
        "numpy",
    } <= found
    assert not any(name.startswith(("torch", "mlflow", "optbench.cli")) for name in found)


def test_what_few_need_is_left_to_those_that_name_it() -> None:
    """The array form of a MILP can make a torch graph of itself, inside of a function; only a
    graph's own module is one.
    """
    assert not any(
        name.startswith("torch") for name in reached(["optbench.views.milp.standard_form"], [])
    )
    assert "torch" in reached(["optbench.views.graph.hetero"], [])


def test_what_other_shapes_need_is_loaded_where_a_study_has_one(tmp_path: Path) -> None:
    plain, shaped = tmp_path / "plain.py", tmp_path / "shaped.py"
    plain.write_text("import optbench as ob\n")
    shaped.write_text("from optbench.shapes import PyomoShape\n")
    assert not _is_shaped([plain, tmp_path / "missing.py"], ["gpu_dag", "jobshop/ft06"])
    assert _is_shaped([plain, shaped], ["gpu_dag"]) and _is_shaped([], ["models/bag.MPS"])
