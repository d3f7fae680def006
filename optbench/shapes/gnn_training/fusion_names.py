"""Fusions by name, as commands and solvers take them: ``spmm1+spmm2``."""

from __future__ import annotations

import numpy as np

from optbench.errors import nearest
from optbench.shapes.gnn_training.operator_costs import has_cycle
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints


def words_of(names: str) -> list[str]:
    """The names of ``spmm1+spmm2``."""
    return [each.strip() for each in names.split("+")] if names.strip() else []


def fusion_numbers(data: GnnTraining, names: str) -> Ints:
    """The indices of named fusions, ascending."""
    known = [each.name for each in data.fusions]
    return np.array(sorted(known.index(word) for word in words_of(names)), dtype=np.int64)


def wrong_fusions(data: GnnTraining, names: str) -> str | None:
    """Why no plan executes these fusions together; None if it can."""
    known = [each.name for each in data.fusions]
    for word in words_of(names):
        if word not in known:
            return f"fusions: {word!r} is unknown; {nearest(word, known)}"
    groups = [data.fusions[k].replaces for k in fusion_numbers(data, names).tolist()]
    members = [i for each in groups for i in each]
    if len(set(members)) < len(members) or has_cycle(data.operators, groups):
        return f"fusions is {names!r}; two of these replace one operator, or wait for each other"
    return None
