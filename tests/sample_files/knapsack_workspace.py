"""A workspace with a maximised shape: jobs chosen for one GPU, of which some lose money."""

KNAPSACK = '''"""Jobs chosen for one GPU, as profitable as possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

import optbench as ob
from optbench.shapes import Findings, Metric, PyomoShape


@dataclass(frozen=True)
class Jobs:
    """Memory and profit of each job; memory of the GPU; what the GPU costs."""

    memory_gb: tuple[float, ...]
    profit_usd: tuple[float, ...]
    gpu_gb: float
    rent_usd: float


@dataclass(frozen=True)
class Choice:
    """The numbers of the jobs that run."""

    jobs: tuple[int, ...]


class Knapsack(PyomoShape):
    """All chosen jobs fit on the GPU."""

    name = "knapsack"
    data, solution = Jobs, Choice
    metrics = {"earned_usd": Metric("USD", "profit of the jobs that run, minus the rent")}
    constraints = {"memory": "the chosen jobs fit"}
    maximize = "earned_usd"

    def model(self, data):
        m = pyo.ConcreteModel()
        m.J = range(len(data.memory_gb))
        m.x = pyo.Var(m.J, domain=pyo.Binary)
        profit = sum(data.profit_usd[j] * m.x[j] for j in m.J)
        m.earned = pyo.Objective(expr=profit - data.rent_usd, sense=pyo.maximize)
        m.memory = pyo.Constraint(
            expr=sum(data.memory_gb[j] * m.x[j] for j in m.J) <= data.gpu_gb
        )
        return m

    def encode(self, data, decision, m):
        for j in m.J:
            m.x[j].set_value(int(j in decision.jobs))

    def decode(self, data, m):
        return Choice(tuple(j for j in m.J if m.x[j].value == 1))

    def verify(self, data, decision):
        profit = sum(data.profit_usd[j] for j in set(decision.jobs))
        found = Findings({"earned_usd": profit - data.rent_usd})
        load = sum(data.memory_gb[j] for j in decision.jobs)
        found.require(load <= data.gpu_gb, "memory", f"{load} GB on {data.gpu_gb} GB")
        return found

    def pictures(self, instance, decision):
        if instance.data.rent_usd > 100:
            return {"memory": "not drawn"}
        wide = sum(instance.data.memory_gb[j] for j in decision.jobs)
        bar = f'<rect width="{wide:g}" height="4"/>'
        return {"memory": f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 4">{bar}</svg>'}


@dataclass
class Problem(ob.Problem):
    """Random jobs; with a high rent every choice loses money."""

    jobs: int = 8
    rent_usd: float = 5.0

    def instance(self, seed: int = 0):
        rng = np.random.default_rng(seed)
        memory = tuple(float(x) for x in rng.integers(2, 20, self.jobs))
        profit = tuple(float(x) for x in rng.integers(1, 30, self.jobs))
        data = Jobs(memory, profit, 40.0, self.rent_usd)
        return Knapsack().instance(f"knapsack-{self.rent_usd:g}-{seed}", data)
'''

GREEDY = '''"""The most profitable jobs first, as long as they fit."""

import optbench as ob


class Greedy(ob.Solver):
    shapes = {"knapsack"}

    def solve(self, instance, run):
        data, left, chosen = instance.data, instance.data.gpu_gb, []
        for j in sorted(range(len(data.memory_gb)), key=lambda j: -data.profit_usd[j]):
            if data.memory_gb[j] <= left:
                chosen.append(j)
                left -= data.memory_gb[j]
        run.report(instance.shape.solution(tuple(chosen[:1])))
        return instance.shape.solution(tuple(chosen))
'''

# At most 10 of weight: the best are y and z (8 + 5 = 13 of profit, 6 + 4 of weight).
MAXIMISED_MPS = """NAME          bag
OBJSENSE
    MAX
ROWS
 N  profit
 L  weight
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    x         profit            6.0   weight            5.0
    y         profit            8.0   weight            6.0
    z         profit            5.0   weight            4.0
    MARKER                 'MARKER'                 'INTEND'
RHS
    RHS       weight           10.0
BOUNDS
 UP BND       x                 1.0
 UP BND       y                 1.0
 UP BND       z                 1.0
ENDATA
"""
