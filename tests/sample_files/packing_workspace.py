"""A workspace with a shape of its own: services packed onto GPUs, and a solver of ten lines."""

from __future__ import annotations

from pathlib import Path

PACKING = '''"""Inference services packed onto GPUs of several sizes, as cheaply as possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

import optbench as ob
from optbench.shapes import Findings, Metric, PyomoShape


@dataclass(frozen=True)
class Services:
    """Memory of each service; memory and price of each GPU that can be rented."""

    memory_gb: tuple[float, ...]
    gpu_gb: tuple[float, ...]
    price_usd: tuple[float, ...]

    def __post_init__(self):
        if len(self.gpu_gb) != len(self.price_usd):
            raise ValueError("gpu_gb and price_usd must have one length")
        if min((*self.memory_gb, *self.gpu_gb, *self.price_usd), default=-1) < 0:
            raise ValueError("there must be numbers, and none below 0")


@dataclass(frozen=True)
class Placement:
    """The GPU of each service."""

    gpu: tuple[int, ...]


class Packing(PyomoShape):
    """Every service runs on one GPU, whose memory holds all services on it."""

    name = "packing"
    data, solution = Services, Placement
    metrics = {"cost_usd": Metric("USD", "price of the GPUs in use"), "gpus": Metric("", "in use")}
    constraints = {"placed": "each service has a GPU", "memory": "the services on a GPU fit"}
    minimize = "cost_usd"

    def model(self, data):
        m = pyo.ConcreteModel()
        m.S, m.G = range(len(data.memory_gb)), range(len(data.gpu_gb))
        m.on = pyo.Var(m.S, m.G, domain=pyo.Binary)
        m.used = pyo.Var(m.G, domain=pyo.Binary)
        m.cost = pyo.Objective(expr=sum(data.price_usd[g] * m.used[g] for g in m.G))
        m.placed = pyo.Constraint(m.S, rule=lambda m, s: sum(m.on[s, g] for g in m.G) == 1)
        m.memory = pyo.Constraint(m.G, rule=lambda m, g: sum(
            data.memory_gb[s] * m.on[s, g] for s in m.S) <= data.gpu_gb[g] * m.used[g])
        return m

    def encode(self, data, decision, m):
        for g in m.G:
            m.used[g].set_value(int(g in decision.gpu))
            for s in m.S:
                m.on[s, g].set_value(int(decision.gpu[s] == g))

    def decode(self, data, m):
        return Placement(tuple(next(g for g in m.G if m.on[s, g].value == 1) for s in m.S))

    def verify(self, data, decision):
        used, count, found = set(decision.gpu), len(data.gpu_gb), Findings()
        placed = len(decision.gpu) == len(data.memory_gb) and all(0 <= g < count for g in used)
        found.require(placed, "placed", "a service has no GPU")
        for g in used if placed else ():
            load = sum(m for m, at in zip(data.memory_gb, decision.gpu) if at == g)
            found.require(load <= data.gpu_gb[g], "memory", f"GPU {g} holds {load} GB", load)
        if placed:
            found.metrics = {"cost_usd": sum(data.price_usd[g] for g in used), "gpus": len(used)}
        return found


@dataclass
class Problem(ob.Problem):
    """Random services, and as many GPUs of 24, 40 and 80 GB as are needed."""

    services: int = 8

    def instance(self, seed: int = 0):
        rng = np.random.default_rng(seed)
        memory = tuple(float(x) for x in rng.integers(4, 36, self.services))
        sizes = (24.0, 40.0, 80.0) * (self.services // 3 + 1)
        prices = tuple({24.0: 0.5, 40.0: 1.1, 80.0: 2.0}[gb] for gb in sizes)
        data = Services(memory, sizes, prices)
        return Packing().instance(f"packing-{self.services}-{seed}", data)
'''

FIRST_FIT = '''import optbench as ob


class FirstFit(ob.Solver):
    """Each service to the first GPU that still has room."""

    shapes = {"packing"}

    def solve(self, instance, run):
        data, left, gpus = instance.data, list(instance.data.gpu_gb), []
        for memory in data.memory_gb:
            gpus.append(next(g for g, room in enumerate(left) if room >= memory))
            left[gpus[-1]] -= memory
        return instance.shape.solution(tuple(gpus))
'''


def write_workspace(root: Path) -> Path:
    """Make the workspace in a folder."""
    for folder, name, text in (
        ("problems", "packing", PACKING),
        ("solvers", "first_fit", FIRST_FIT),
    ):
        (root / folder).mkdir()
        (root / folder / f"{name}.py").write_text(text)
    (root / "optbench.toml").touch()
    return root
