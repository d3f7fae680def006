"""The Pyomo target hands over the same matrix as the arrays; any Pyomo model has a bipartite graph;
the choice of formulation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import ParameterError, UnsupportedError
from optbench.views.milp import (
    MilpArrays,
    StandardForm,
    bipartite,
    choose,
    formulate,
    standard_form,
    to_pyomo,
)

from .milp_cases import tiny


def canonical(
    model: MilpArrays | StandardForm, columns: list[str], rows: list[str]
) -> dict[str, Any]:
    """Columns and rows by name."""
    ptr, col, value = model.matrix
    out: dict[str, Any] = {}
    for name, *facts in zip(
        columns, model.lower, model.upper, model.integer, model.cost, strict=True
    ):
        out[name] = facts
    for r, name in enumerate(rows):
        at = slice(ptr[r], ptr[r + 1])
        entries = {columns[c]: v for c, v in zip(col[at], value[at], strict=True)}
        out["row " + name] = (entries, model.row_lower[r], model.row_upper[r])
    return out


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("time_indexed", {}),
        ("time_indexed", {"capped": True, "limited": True}),
        ("time_indexed", {"varying": True, "limited": True}),
        ("disjunctive", {}),
        ("disjunctive", {"capped": True, "limited": True}),
        ("disjunctive", {"shared": False}),
    ],
)
def test_both_targets_hand_over_the_same_matrix(form: str, options: dict[str, Any]) -> None:
    for seed in range(3):
        arrays = formulate(tiny(seed, **options), form)[0].arrays
        compiled = standard_form(to_pyomo(arrays))
        ours = canonical(arrays, arrays.column_names(), arrays.row_names())
        theirs = canonical(compiled, compiled.column_names, compiled.row_names)
        missing = ours.keys() - theirs.keys()  # Pyomo leaves out a variable that occurs nowhere
        assert theirs == {name: facts for name, facts in ours.items() if name not in missing}
        assert all(not name.startswith("row ") and ours[name][3] == 0 for name in missing)
        assert compiled.constant == arrays.constant


def test_components_are_named_and_indexed_like_the_formulation() -> None:
    inst = tiny(0)
    formulation, _ = formulate(inst, "time_indexed")
    model = to_pyomo(formulation.arrays)
    block = formulation.arrays.block("start")
    assert block is not None
    task, mode, tick = block.label[-1].tolist()
    assert model.start[task, mode, tick].is_binary()
    assert (model.start[task, mode, tick].name, model.assign[task].name) == (
        f"start[{task},{mode},{tick}]",
        f"assign[{task}]",
    )
    assert model.makespan.ub == formulation.frame.end


def test_the_graph_of_any_pyomo_model() -> None:
    """maximise 3 x − y + 7 with 1 <= 2 x + y <= 5 (two rows), y = 4 z (one): six coefficients."""
    import pyomo.environ as pyo

    m: Any = pyo.ConcreteModel()
    m.x, m.y, m.z = (
        pyo.Var(bounds=(0, 9)),
        pyo.Var(),
        pyo.Var(domain=pyo.Integers, bounds=(None, 6)),
    )
    m.span = pyo.Constraint(expr=pyo.inequality(1, 2 * m.x + m.y, 5))
    m.tie = pyo.Constraint(expr=m.y - 4 * m.z == 0)
    m.goal = pyo.Objective(expr=3 * m.x - m.y + 7, sense=pyo.maximize)
    graph = bipartite(m)
    by_name = dict(zip(graph["variable"].name, graph["variable"].x.tolist(), strict=True))
    # cost of the minimisation, lower, has lower, upper, has upper, integer
    assert by_name == {"x": [-3, 0, 1, 9, 1, 0], "y": [1, 0, 0, 0, 0, 0], "z": [0, 0, 0, 6, 1, 1]}
    rows = sorted(zip(graph["constraint"].name, graph["constraint"].x.tolist(), strict=True))
    # right-hand side, >=, =, <=
    assert rows == [("span", [1, 1, 0, 0]), ("span", [5, 0, 0, 1]), ("tie", [0, 0, 1, 0])]
    there, back = graph["variable", "in", "constraint"], graph["constraint", "has", "variable"]
    found = {
        (graph["variable"].name[v], graph["constraint"].name[c], w)
        for (v, c), w in zip(
            there.edge_index.T.tolist(), there.edge_attr[:, 0].tolist(), strict=True
        )
    }
    assert found == {("x", "span", 2.0), ("y", "span", 1.0), ("y", "tie", 1.0), ("z", "tie", -4.0)}
    assert there.edge_index.shape == (2, 6) and (back.edge_index.flip(0) == there.edge_index).all()


def test_the_graph_of_a_formulation_has_a_node_per_name() -> None:
    arrays = formulate(tiny(2, capped=True), "disjunctive")[0].arrays
    graph = bipartite(to_pyomo(arrays))
    assert sorted(graph["constraint"].name) == sorted(arrays.row_names())
    assert set(graph["variable"].name) <= set(arrays.column_names())
    assert graph["variable", "in", "constraint"].edge_index.shape[1] == arrays.num_nonzeros


def test_the_choice_is_explained() -> None:
    assert choose(tiny(0, varying=True))[0] == "time_indexed"
    unary = tiny(1, shared=False)
    longer = replace(
        unary, tick_s=0.001
    )  # 2,000 times as many ticks: ordering variables are fewer than starts
    assert choose(longer)[0] == "disjunctive"
    assert "time-indexed" in choose(longer)[1]


def test_what_no_formulation_expresses_is_refused_with_the_remedy() -> None:
    with pytest.raises(UnsupportedError, match=r"preemption of 'tiny0'.*preemptive=False"):
        choose(tiny(0, preemptive=True))
    with pytest.raises(UnsupportedError, match="preemption of 'tiny0'"):
        formulate(tiny(0, preemptive=True), "disjunctive")
    with pytest.raises(
        UnsupportedError,
        match=r"time_indexed MILP of .* binaries, more than 200,000\. Use -s cpsat, or a",
    ):
        choose(replace(tiny(0, varying=True), tick_s=1e-5))
    with pytest.raises(UnsupportedError, match="form=time_indexed"):
        formulate(tiny(0, varying=True), "disjunctive")
    with pytest.raises(
        ParameterError, match="form is 'pulse'; it must be one of auto, time_indexed, disjunctive"
    ):
        formulate(tiny(0), "pulse")


def test_an_impossible_row_survives_both_targets() -> None:
    """A deadline no mode can meet leaves a task without a start; neither Pyomo nor HiGHS takes a
    row without variables.
    """
    inst = tiny(0)
    deadline = inst.tasks.deadline.copy()
    deadline[0] = 0.0
    hard = np.ones(inst.num_tasks, dtype=bool)
    release = np.ones(inst.num_tasks, dtype=np.int64)
    inst = replace(
        inst, tasks=replace(inst.tasks, deadline=deadline, deadline_hard=hard, release=release)
    )
    for form in ("time_indexed", "disjunctive"):
        arrays = formulate(inst, form)[0].arrays
        block = arrays.block("nothing")
        assert block is not None and (block.lower[0], block.upper[0]) == (0.0, 0.0)
        assert len(standard_form(to_pyomo(arrays)).rhs) == arrays.num_rows
