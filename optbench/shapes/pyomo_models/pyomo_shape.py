"""A shape declared as data, a Pyomo model, ``encode``, ``decode`` and ``verify``.

    class Packing(PyomoShape):
        data, solution = Services, Placement      # two dataclasses
        minimize = "cost_usd"

        def model(self, services): ...            # a pyomo.environ.ConcreteModel
        def encode(self, services, placement, m): ...   # give the variables their values
        def decode(self, services, m): ...        # from the variables' values to a Placement
        def verify(self, services, placement): ...      # Findings: violations and every metric

Solvers work on the model, and what they find is decoded and verified. A bound proves the model, not
the words of ``verify``: so each verified decision is encoded again and must satisfy every row of
the model with the same objective. Where the two disagree the run stops and names the row.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.errors import DisagreementError
from optbench.model.result import Bound, Infeasibility
from optbench.model.verify import Verdict
from optbench.rendering import resolve
from optbench.shapes.milp.exact_point import Point, broken
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.milp.program import Milp, exact, milp
from optbench.shapes.protocol.data_shape import DataShape
from optbench.shapes.protocol.shape import Accepted
from optbench.shapes.protocol.shaped_instance import ShapedInstance

STANDARD_FORM = "optbench.views.milp:standard_form"
# The objectives of model and ``verify`` agree up to this share of the sum of absolute terms.
SAME = 2.0**-40


@dataclass
class PyomoFormulation:
    """The programme of a Pyomo model; points are given to its variables and read from them."""

    shape: PyomoShape
    data: Any
    model: Any
    variables: list[Any]
    program: Milp

    def encode(self, decision: Any) -> Point:
        for variable in self.variables:
            variable.set_value(None)
        with self.shape.authored("encode"):
            self.shape.encode(self.data, decision, self.model)
        values = []
        for variable in self.variables:
            if variable.value is None:
                words = f"encode gives variable {variable.name!r} no value"
                raise self.shape.mistake(words, "encode")
            values.append(exact(float(variable.value)))
        return tuple(values)

    def decode(self, point: Point) -> Any:
        for variable, value in zip(self.variables, point, strict=True):
            whole = value.denominator == 1
            variable.set_value(int(value) if whole else float(value), skip_validation=True)
        with self.shape.authored("decode"):
            decision = self.shape.decode(self.data, self.model)
        if not isinstance(decision, self.shape.solution):
            wanted = self.shape.solution.__name__
            words = f"decode returned {type(decision).__name__}; it must return a {wanted}"
            raise self.shape.mistake(words, "decode")
        return decision


class PyomoShape(DataShape):
    """Subclasses declare a kind of instance; an object of one makes instances."""

    capabilities = frozenset({"formulate"})

    @abstractmethod
    def model(self, data: Any) -> Any: ...

    @abstractmethod
    def encode(self, data: Any, decision: Any, model: Any) -> None: ...

    @abstractmethod
    def decode(self, data: Any, model: Any) -> Any: ...

    def accept(self, instance: ShapedInstance, decision: Any) -> Accepted:
        """Verify a decision, and hold it against the whole model."""
        verdict = self.verdict_of(instance, decision)
        if verdict.feasible:
            self._compare(instance, decision, verdict.objectives[0])
        return Accepted(decision, verdict)

    def _compare(self, instance: ShapedInstance, decision: Any, objective: float) -> None:
        formulation: PyomoFormulation = instance.formulation
        program = formulation.program
        point = formulation.encode(decision)
        wrong = broken(program, point, SAME)
        if wrong:
            raise DisagreementError(
                f"{instance.name}: verify accepts a decision that the model forbids: "
                f"{wrong[0].what} (constraint {wrong[0].constraint!r})"
            )
        terms = [exact(float(c)) * x for c, x in zip(program.cost, point, strict=True)]
        value = sum(terms, exact(program.constant))
        size = sum(map(abs, terms), abs(exact(program.constant)))
        if abs(Fraction(objective) - value) > Fraction(SAME) * size:
            raise DisagreementError(
                f"{instance.name}: verify computes {self.metric} = {objective!r}, and the model's "
                f"objective is {float(value)!r} for the same decision"
            )

    def check_decoded(self, instance: ShapedInstance, point: Point, verdict: Verdict) -> None:
        """Stop where ``verify`` refuses the decision of a point, or makes it dearer than the model:
        one of the two is wrong.
        """
        if not verdict.feasible:
            first = verdict.violations[0]
            raise DisagreementError(
                f"{instance.name}: the model allows a decision that verify refuses: "
                f"{first.message} (constraint {first.constraint!r}); the model lacks it, or decode "
                "is wrong"
            )
        program: Milp = instance.formulation.program
        value, reached = program.objective_at(point), Fraction(verdict.objectives[0])
        worse = reached - value if program.sense == "min" else value - reached
        if worse > Fraction(SAME) * max(abs(value), abs(reached)):
            raise DisagreementError(
                f"{instance.name}: the model allows {self.metric} = {float(value)!r} for a "
                f"decision of which verify computes {float(reached)!r}; the model lacks a "
                "constraint, or decode is wrong"
            )

    def formulate(self, instance: ShapedInstance) -> PyomoFormulation:
        metric = self.metric
        with self.authored("model"):
            model = self.model(instance.data)
        if model is None:
            raise self.mistake("model returned None; return the Pyomo model", "model")
        from pyomo.common.errors import InfeasibleConstraintException

        try:
            form = resolve(STANDARD_FORM)(model)
        except InfeasibleConstraintException:  # a row without variables that cannot hold
            return PyomoFormulation(self, instance.data, model, [], self._infeasible(instance))
        by_name = {each.name: each for each in model.component_data_objects(_variable_type())}
        program = program_of(form, instance.name)
        wanted = self.sense(instance)
        if program.sense != wanted:
            words = f"the model's objective is of sense {program.sense!r}, not {wanted!r}"
            words += f" as {metric!r} has it"
            raise self.mistake(words, "model")
        variables = [by_name[name] for name in form.column_names]
        return PyomoFormulation(self, instance.data, model, variables, program)

    def _infeasible(self, instance: ShapedInstance) -> Milp:
        """A programme without points, for a model with a row that cannot hold."""
        row = ((), (), ())
        sense = self.sense(instance)
        return milp(
            instance.name, sense, ["x"], [0], [0], [0], [True], ["row"], [1], [math.inf], row
        )

    def bounds(
        self, instance: ShapedInstance, method: str, time_limit_s: float, best: Any
    ) -> list[Bound]:
        return MILPS.bounds(_as_milp(instance), method, time_limit_s, None)

    def certify_infeasible(
        self, instance: ShapedInstance, time_limit_s: float
    ) -> Infeasibility | None:
        return MILPS.certify_infeasible(_as_milp(instance), time_limit_s)

    def certify_unbounded(
        self, instance: ShapedInstance, time_limit_s: float
    ) -> dict[str, Any] | None:
        return MILPS.certify_unbounded(_as_milp(instance), time_limit_s)

    def prove(self, instance: ShapedInstance, certificate: str) -> Bound:
        return MILPS.prove(_as_milp(instance), certificate)

    def labelled(self, instance: ShapedInstance, bound: Bound) -> Bound:
        return MILPS.labelled(_as_milp(instance), bound)


def _as_milp(instance: ShapedInstance) -> ShapedInstance:
    return MILPS.instance(instance.formulation.program)


def _variable_type() -> Any:
    import pyomo.environ as pyo

    return pyo.Var


def program_of(form: Any, name: str) -> Milp:
    """Return the programme of a standard form; blanks in names become underscores."""
    ptr, index, value = form.matrix
    row = np.repeat(np.arange(len(form.rhs)), np.diff(ptr))
    return milp(
        name,
        "min" if form.sign == 1 else "max",
        _distinct(form.column_names),
        form.cost,
        form.lower,
        form.upper,
        form.integer,
        _distinct(form.row_names),
        form.row_lower,
        form.row_upper,
        (row, index, value),
        form.constant,
    )


def _distinct(names: list[str]) -> list[str]:
    """Constraints with two sides are two rows of one name: the second one gets a number."""
    out, seen = [], dict[str, int]()
    for name in names:
        plain = "_".join(name.split())
        seen[plain] = seen.get(plain, 0) + 1
        out.append(plain if seen[plain] == 1 else f"{plain}~{seen[plain]}")
    return out
