"""The bipartite graph of the programme behind an instance: an MPS file and a shape of a user's."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import optbench as ob
from optbench.views.milp.standard_form import bipartite
from tests.sample_files.jobs_shape import JobData, Jobs
from tests.sample_files.packing_workspace import PACKING

# Maximise 3 x - y + 7 with 1 <= 2 x + y <= 5, y = 4 z and a row `free` that has no side.
SPANNED = """NAME spanned
OBJSENSE
    MAX
ROWS
 N goal
 N free
 L span
 E tie
COLUMNS
    x goal 3 span 2
    y goal -1 span 1
    y tie 1
    MARKER MARKER INTORG
    z tie -4
    MARKER MARKER INTEND
RHS
    RHS goal -7 span 5
RANGES
    RNG span 4
BOUNDS
 UP BND x 9
 FR BND y
 MI BND z
 UP BND z 6
ENDATA
"""


def test_the_graph_of_an_mps_file(tmp_path: Path) -> None:
    (tmp_path / "spanned.mps").write_text(SPANNED)
    graph = ob.graph.graph_of(ob.load(tmp_path / "spanned.mps"), double=True)
    by_name = dict(zip(graph["variable"].name, graph["variable"].x.tolist(), strict=True))
    # Cost of the minimisation, lower, has lower, upper, has upper, whole.
    assert by_name == {"x": [-3, 0, 1, 9, 1, 0], "y": [1, 0, 0, 0, 0, 0], "z": [0, 0, 0, 6, 1, 1]}
    rows = list(zip(graph["constraint"].name, graph["constraint"].x.tolist(), strict=True))
    # Right-hand side, >=, =, <=.
    assert rows == [("span", [1, 1, 0, 0]), ("span", [5, 0, 0, 1]), ("tie", [0, 0, 1, 0])]
    edges = graph["variable", "in", "constraint"]
    assert edges.edge_attr.dtype == torch.float64
    found = {
        (graph["variable"].name[v], c, value)
        for (v, c), value in zip(
            edges.edge_index.T.tolist(), edges.edge_attr[:, 0].tolist(), strict=True
        )
    }
    assert found == {
        *(("x", 0, 2.0), ("y", 0, 1.0), ("x", 1, 2.0), ("y", 1, 1.0)),
        *(("y", 2, 1.0), ("z", 2, -4.0)),
    }
    back = graph["constraint", "has", "variable"]
    assert (back.edge_index.flip(0) == edges.edge_index).all()


def test_the_graph_of_a_shape_is_that_of_its_pyomo_model() -> None:
    module: Any = types.ModuleType("packing_of_the_graph_test")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    exec(compile(PACKING, "packing.py", "exec"), module.__dict__)
    instance: Any = module.Problem(services=3).instance()
    graph = ob.graph.graph_of(instance)
    wanted = bipartite(module.Packing().model(instance.data))
    # Three services, six GPUs: a binary for each pair and for each GPU; 3 + 6 rows.
    assert graph["variable"].x.shape == (24, 6) and graph["constraint"].x.shape == (9, 4)
    assert graph["variable"].name == wanted["variable"].name
    assert graph["constraint"].name == wanted["constraint"].name
    for key in ("variable", "constraint"):
        assert torch.equal(graph[key].x, wanted[key].x)
    for edge in wanted.edge_types:
        assert torch.equal(graph[edge].edge_index, wanted[edge].edge_index)
        assert torch.equal(graph[edge].edge_attr, wanted[edge].edge_attr)


def test_a_shape_without_a_formulation_is_refused() -> None:
    instance = Jobs().instance("two", JobData([1.0, 2.0]))
    with pytest.raises(
        ob.UnsupportedError, match="'two' is of shape 'job_order', which has no form"
    ):
        ob.graph.graph_of(instance)
