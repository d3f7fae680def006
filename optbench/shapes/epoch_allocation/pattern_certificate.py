"""The duals of the relaxation over patterns as a certificate of the Pyomo model's programme."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.shapes.colocation.colocation_data import Floats
from optbench.shapes.milp.milp_shape import certificate_of
from optbench.shapes.milp.relaxation_proof import rounded_duals


def certificate_of_relaxation(formulation: Any, duals: Floats) -> str:
    """Return a certificate of an allocation's formulation from the duals of ``relax``."""
    numbers = {name: row for row, name in enumerate(formulation.model.row_names) if name}
    order = np.array([numbers[name] for name in formulation.program.rows], dtype=np.int64)
    return certificate_of(rounded_duals(formulation.program, duals[order].tolist()))
