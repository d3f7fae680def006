"""Conversion to Pyomo: a ConcreteModel with a component for each block of the array form, of the
same name and labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.views.milp.arrays import Columns, MilpArrays, Rows


def to_pyomo(arrays: MilpArrays) -> Any:
    """Return the model; ``model.start[task, mode, tick]`` is the variable of that label,
    ``model.objective`` the objective.
    """
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    model: Any = pyo.ConcreteModel(name=arrays.name)
    variables: list[Any] = []
    for block in arrays.columns:
        component = _variables(block)
        model.add_component(block.name, component)
        variables.extend(component.values())
    for rows in arrays.rows:
        model.add_component(rows.name, _constraints(rows, variables))
    at = np.flatnonzero(arrays.cost)
    expression = LinearExpression(
        constant=arrays.constant,
        linear_coefs=arrays.cost[at].tolist(),
        linear_vars=[variables[c] for c in at.tolist()],
    )
    model.objective = pyo.Objective(expr=expression, sense=pyo.minimize)
    return model


def _keys(label: Any) -> list[Any]:
    if label.shape[1] == 1:
        return label[:, 0].tolist()  # type: ignore[no-any-return]
    return list(map(tuple, label.tolist()))


def _variables(block: Columns) -> Any:
    import pyomo.environ as pyo

    if block.integer and (block.lower == 0).all() and (block.upper == 1).all():
        return pyo.Var(_keys(block.label), domain=pyo.Binary)
    domain = pyo.Integers if block.integer else pyo.Reals
    bounds = list(zip(_finite(block.lower), _finite(block.upper), strict=True))
    if block.label.shape[1] == 0:
        return pyo.Var(domain=domain, bounds=bounds[0])
    by_key = dict(zip(_keys(block.label), bounds, strict=True))
    return pyo.Var(
        list(by_key), domain=domain, bounds=lambda _, *key: by_key[key if len(key) > 1 else key[0]]
    )


def _constraints(rows: Rows, variables: list[Any]) -> Any:
    import pyomo.environ as pyo
    from pyomo.core.expr.numeric_expr import LinearExpression

    ptr, value = rows.ptr.tolist(), rows.value.tolist()
    used = [variables[c] for c in rows.col.tolist()]
    sides = list(zip(_finite(rows.lower), _finite(rows.upper), strict=True))

    def of(r: int) -> tuple[Any, Any, Any]:
        begin, end = ptr[r], ptr[r + 1]
        return (
            sides[r][0],
            LinearExpression(linear_coefs=value[begin:end], linear_vars=used[begin:end]),
            sides[r][1],
        )

    if rows.label.shape[1] == 0:
        return pyo.Constraint(expr=of(0))
    keys = _keys(rows.label)
    row = {key: r for r, key in enumerate(keys)}
    return pyo.Constraint(keys, rule=lambda _, *key: of(row[key if len(key) > 1 else key[0]]))


def _finite(bound: Any) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in bound.tolist()]
