"""Instances of gpu_dag by their parameters, and their optima."""

from __future__ import annotations

import numpy as np

import optbench as ob
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem


def make(spec: str, seed: int = 0) -> Instance:
    made: Instance = load_problem(spec).instance(seed)
    return made


def best(instance: Instance) -> ob.Result:
    """The proven optimum."""
    result = ob.solve(instance, "cpsat", time_limit_s=60)
    assert result.status == "optimal"
    return result


def optimum(instance: Instance) -> float:
    value = best(instance).objective
    assert isinstance(value, float)
    return value


def on_cpu(instance: Instance) -> np.ndarray:
    """Which modes run on a CPU."""
    names = instance.pools.names
    return np.asarray([names[p].startswith("cpu") for p in instance.modes.primary.tolist()])
