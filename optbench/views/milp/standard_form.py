"""Any linear Pyomo model as arrays, and as a bipartite graph of its variables and constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.model.instance import Floats
from optbench.shapes.milp.program import Milp
from optbench.views.milp.arrays import Index

# The sense of a constraint: the code of the row attribute ``sense``.
SENSES = {-1: ">=", 0: "=", 1: "<="}


@dataclass(frozen=True, eq=False)
class StandardForm:
    """sign · (cost x + constant) minimised over the bounds and rows; A by rows. ``sign`` is −1 for
    a model that maximises.
    """

    column_names: list[str]
    row_names: list[str]
    lower: Floats
    upper: Floats
    integer: NDArray[np.bool_]
    cost: Floats
    constant: float
    sign: int
    matrix: tuple[Index, Index, Floats]
    sense: NDArray[np.int64]
    rhs: Floats

    @property
    def row_lower(self) -> Floats:
        return np.where(self.sense <= 0, self.rhs, -np.inf)

    @property
    def row_upper(self) -> Floats:
        return np.where(self.sense >= 0, self.rhs, np.inf)


def standard_form(model: Any) -> StandardForm:
    """Return a model compiled by Pyomo; a constraint with two different sides becomes two rows, a
    variable that occurs nowhere is left out.
    """
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    compiled = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    bounds = np.asarray([variable.bounds for variable in compiled.columns], dtype=float).reshape(
        -1, 2
    )
    rows = compiled.A.tocsr()
    objective = compiled.objectives[0] if compiled.objectives else None
    cost = compiled.c.toarray()[0] if objective is not None else np.zeros(len(compiled.columns))
    return StandardForm(
        [variable.name for variable in compiled.columns],
        [row.constraint.name for row in compiled.rows],
        np.where(np.isnan(bounds[:, 0]), -np.inf, bounds[:, 0]),
        np.where(np.isnan(bounds[:, 1]), np.inf, bounds[:, 1]),
        np.asarray([not variable.is_continuous() for variable in compiled.columns], dtype=bool),
        cost,
        float(compiled.c_offset[0]) if objective is not None else 0.0,
        int(objective.sense) if objective is not None else 1,
        (rows.indptr.astype(np.int32), rows.indices.astype(np.int32), rows.data),
        np.asarray([row.bound_type for row in compiled.rows], dtype=np.int64),
        np.asarray(compiled.rhs, dtype=float),
    )


def form_of_program(program: Milp) -> StandardForm:
    """Return the programme of an MPS file or of a shape: a row with two different sides becomes two
    rows, one without a finite side is left out.
    """
    equal = program.row_lower == program.row_upper
    above = np.isfinite(program.row_lower) & ~equal
    below = np.isfinite(program.row_upper) & ~equal
    # The rows one after another: of a row with two sides first >=, then <=.
    row = np.concatenate([np.flatnonzero(which) for which in (equal, above, below)])
    sense = np.repeat([0, -1, 1], [equal.sum(), above.sum(), below.sum()])
    order = np.lexsort((sense, row))
    row, sense = row[order], sense[order]
    count = np.diff(program.row_ptr)[row]
    ptr = np.concatenate(([0], np.cumsum(count)))
    entry = np.repeat(program.row_ptr[row] - ptr[:-1], count) + np.arange(ptr[-1])
    return StandardForm(
        list(program.columns),
        [program.rows[r] for r in row],
        program.lower,
        program.upper,
        program.integer,
        program.cost,
        program.constant,
        1 if program.sense == "min" else -1,
        (ptr.astype(np.int32), program.index[entry].astype(np.int32), program.value[entry]),
        sense.astype(np.int64),
        np.where(sense > 0, program.row_upper[row], program.row_lower[row]),
    )


def bipartite(model: Any) -> Any:
    """Return the variable–constraint graph of any linear Pyomo model."""
    return bipartite_graph(standard_form(model))


def bipartite_graph(form: StandardForm, double: bool = False) -> Any:
    """Return the variable–constraint graph of a programme, a ``torch_geometric.data.HeteroData``.

    ``variable.x``: cost (of the minimisation), lower, has lower, upper, has upper, integer.
    ``constraint.x``: right-hand side and one column for each of >=, =, <=. One edge per
    coefficient, ``edge_attr`` the coefficient, in both directions.
    """
    import torch
    from torch_geometric.data import HeteroData

    dtype = torch.float64 if double else torch.float32
    ptr, col, value = form.matrix
    row = np.repeat(np.arange(len(form.rhs)), np.diff(ptr))
    low, high = np.isfinite(form.lower), np.isfinite(form.upper)
    variable = np.stack(
        (
            form.sign * form.cost,
            np.where(low, form.lower, 0.0),
            low,
            np.where(high, form.upper, 0.0),
            high,
            form.integer,
        ),
        axis=1,
    )
    constraint = np.stack((form.rhs, *(form.sense == code for code in SENSES)), axis=1)
    graph = HeteroData()
    graph["variable"].x = torch.as_tensor(variable, dtype=dtype)
    graph["variable"].name = form.column_names
    graph["constraint"].x = torch.as_tensor(constraint, dtype=dtype)
    graph["constraint"].name = form.row_names
    coefficient = torch.as_tensor(value, dtype=dtype)[:, None]
    for source, relation, target, ends in (
        ("variable", "in", "constraint", (col, row)),
        ("constraint", "has", "variable", (row, col)),
    ):
        graph[source, relation, target].edge_index = torch.as_tensor(
            np.stack(ends).astype(np.int64)
        )
        graph[source, relation, target].edge_attr = coefficient
    return graph
