"""A shape whose ``verify`` has a mistake, and a solver that does not answer with a decision."""

SLIPS = '''"""Bills, and mistakes in their verify."""

from dataclasses import dataclass

import optbench as ob
from optbench.shapes import DataShape, Findings, Metric


@dataclass(frozen=True)
class Price:
    usd: float
    slip: str


@dataclass(frozen=True)
class Bill:
    usd: float


class Bills(DataShape):
    """A bill pays the price."""

    name = "bills"
    data, solution = Price, Bill
    metrics = {"usd": Metric("USD", "what is paid")}
    minimize = "usd"

    def verify(self, data, decision):
        if data.slip == "raises":
            raise KeyError("euro")
        if data.slip == "nothing":
            return None
        return Findings({"usd": decision.usd})


@dataclass
class Problem(ob.Problem):
    """One price."""

    slip: str = "none"

    def instance(self, seed=0):
        return Bills().instance(f"bill-{self.slip}", Price(2.0, self.slip))
'''

PAYS = '''"""Pays the price, or answers with something else."""

from dataclasses import dataclass

import optbench as ob


@dataclass
class Pays(ob.Solver):
    shapes = {"bills"}
    how: str = "bill"

    def solve(self, instance, run):
        if self.how == "list":
            return [1, 2]
        if self.how == "report":
            run.report([1, 2])
        return instance.shape.solution(instance.data.usd)
'''

SLIPPED = """\
problems = ["bills:slip=[none,raises,nothing]"]
solvers = ["pays:how=[bill,list,report]"]
time_limit = "5s"
bound_limit = "1s"
"""
