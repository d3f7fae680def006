"""A shape declared as data, a Pyomo model, ``encode``, ``decode`` and ``verify``.

    class Packing(PyomoShape):
        data, decision = Services, Placement      # two dataclasses
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
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from optbench.errors import ContradictionError, FileFormatError, ModelError, UnsupportedError
from optbench.model.checks import Violation
from optbench.model.result import Bound
from optbench.model.verify import Verdict
from optbench.rendering import resolve
from optbench.shapes.milp.exact_point import Point, broken
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.milp.program import Milp, exact, milp
from optbench.shapes.protocol.plain_data import from_plain, to_plain
from optbench.shapes.protocol.process import Process
from optbench.shapes.protocol.shape import Accepted, Sense, Shape
from optbench.shapes.protocol.shaped_instance import ShapedInstance

STANDARD_FORM = "optbench.views.milp:standard_form"
FORMAT, DECISION, VERSION = "optbench-shaped", "optbench-decision", 1
# The objectives of model and ``verify`` agree up to this share of the sum of absolute terms.
SAME = 2.0**-40


@dataclass
class Findings:
    """What ``verify`` finds: violated constraints by name, and the value of every metric."""

    metrics: dict[str, float] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def require(self, holds: bool, constraint: str, words: str, amount: float = 1.0) -> None:
        """Note that a constraint is violated unless it holds."""
        if not holds:
            self.violations.append(Violation(constraint, words, float(amount)))


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
        self.shape.encode(self.data, decision, self.model)
        values = []
        for variable in self.variables:
            if variable.value is None:
                words = f"encode gives variable {variable.name!r} no value"
                raise ModelError(f"shape {self.shape.name!r}: {words}")
            values.append(exact(float(variable.value)))
        return tuple(values)

    def decode(self, point: Point) -> Any:
        for variable, value in zip(self.variables, point, strict=True):
            whole = value.denominator == 1
            variable.set_value(int(value) if whole else float(value), skip_validation=True)
        return self.shape.decode(self.data, self.model)


class PyomoShape(Shape):
    """Subclasses declare a kind of instance; an object of one makes instances."""

    data: ClassVar[type]
    solution: ClassVar[type]
    minimize: ClassVar[str | None] = None
    maximize: ClassVar[str | None] = None
    capabilities = frozenset({"formulate"})

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        if cls.process is not PyomoShape.process:
            cls.capabilities = cls.capabilities | {"process"}

    @abstractmethod
    def model(self, data: Any) -> Any: ...

    @abstractmethod
    def encode(self, data: Any, decision: Any, model: Any) -> None: ...

    @abstractmethod
    def decode(self, data: Any, model: Any) -> Any: ...

    @abstractmethod
    def verify(self, data: Any, decision: Any) -> Findings: ...

    def process(self, data: Any, seed: int) -> Process:
        """Return what ``simulate`` plays; random outcomes are drawn by the seed."""
        raise UnsupportedError(f"shape {self.name!r} has no process; define process(data, seed)")

    def process_of(self, instance: ShapedInstance, seed: int) -> Process:
        return self.process(instance.data, seed)

    def instance(self, name: str, data: Any) -> ShapedInstance:
        """Return an instance with this data."""
        if not isinstance(data, self.data):
            found = type(data).__name__
            raise ModelError(f"shape {self.name!r}: data is a {found}, not a {self.data.__name__}")
        return ShapedInstance(self, name, data)

    @property
    def metric(self) -> str:
        """The metric that is minimised or maximised."""
        wanted = [name for name in (self.minimize, self.maximize) if name is not None]
        if len(wanted) != 1:
            words = "set one of `minimize` and `maximize` to the name of a metric"
            raise ModelError(f"shape {self.name!r}: {words}")
        return wanted[0]

    def label(self, instance: ShapedInstance, level: int = 0) -> str:
        return self.metric if self.minimize is not None else f"max {self.metric}"

    def sense(self, instance: ShapedInstance) -> Sense:
        return "min" if self.minimize is not None else "max"

    def verdict_of(self, instance: ShapedInstance, decision: Any) -> Verdict:
        found = self.verify(instance.data, decision)
        if not isinstance(found, Findings):
            words = f"verify returned {type(found).__name__}; it must return Findings"
            raise ModelError(f"shape {self.name!r}: {words}")
        metrics = {name: float(value) for name, value in found.metrics.items()}
        if self.metric not in metrics:
            raise ModelError(f"shape {self.name!r}: verify computes no metric {self.metric!r}")
        wrong = [
            Violation("finite", f"{name} is {value}")
            for name, value in metrics.items()
            if not math.isfinite(value)
        ]
        violations = (*found.violations, *wrong)
        objectives = () if violations else (metrics[self.metric],)
        return Verdict(not violations, violations, objectives, metrics)

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
            raise ContradictionError(
                f"{instance.name}: verify accepts a decision that the model forbids: "
                f"{wrong[0].what} (constraint {wrong[0].constraint!r})"
            )
        terms = [exact(float(c)) * x for c, x in zip(program.cost, point, strict=True)]
        value = sum(terms, exact(program.constant))
        size = sum(map(abs, terms), abs(exact(program.constant)))
        if abs(Fraction(objective) - value) > Fraction(SAME) * size:
            raise ContradictionError(
                f"{instance.name}: verify computes {self.metric} = {objective!r}, and the model's "
                f"objective is {float(value)!r} for the same decision"
            )

    def check_decoded(self, instance: ShapedInstance, point: Point, verdict: Verdict) -> None:
        """Stop where ``verify`` refuses the decision of a point, or makes it dearer than the model:
        one of the two is wrong.
        """
        if not verdict.feasible:
            first = verdict.violations[0]
            raise ContradictionError(
                f"{instance.name}: the model allows a decision that verify refuses: "
                f"{first.message} (constraint {first.constraint!r}); the model lacks it, or decode "
                "is wrong"
            )
        program: Milp = instance.formulation.program
        value, reached = program.objective_at(point), Fraction(verdict.objectives[0])
        worse = reached - value if program.sense == "min" else value - reached
        if worse > Fraction(SAME) * max(abs(value), abs(reached)):
            raise ContradictionError(
                f"{instance.name}: the model allows {self.metric} = {float(value)!r} for a "
                f"decision of which verify computes {float(reached)!r}; the model lacks a "
                "constraint, or decode is wrong"
            )

    def formulate(self, instance: ShapedInstance) -> PyomoFormulation:
        metric, model = self.metric, self.model(instance.data)
        if model is None:
            raise ModelError(f"shape {self.name!r}: model returned None; return the Pyomo model")
        from pyomo.common.errors import InfeasibleConstraintException

        try:
            form = resolve(STANDARD_FORM)(model)
        except InfeasibleConstraintException:  # a row without variables that cannot hold
            return PyomoFormulation(self, instance.data, model, [], self._infeasible(instance))
        by_name = {each.name: each for each in model.component_data_objects(_variable_type())}
        program = program_of(form, instance.name)
        if program.sense != self.sense(instance):
            words = f"the model's objective is of sense {program.sense!r}, {metric!r} is not"
            raise ModelError(f"shape {self.name!r}: {words}")
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

    def prove(self, instance: ShapedInstance, certificate: str) -> Bound:
        return MILPS.prove(_as_milp(instance), certificate)

    def labelled(self, instance: ShapedInstance, bound: Bound) -> Bound:
        return MILPS.labelled(_as_milp(instance), bound)

    def write(self, instance: ShapedInstance) -> dict[str, Any]:
        header = {"format": FORMAT, "version": VERSION, "shape": self.name, "name": instance.name}
        return {**header, "data": to_plain(instance.data)}

    def read(self, data: Mapping[str, Any]) -> ShapedInstance:
        return self.instance(str(data["name"]), from_plain(self.data, data.get("data"), "data"))

    def write_decision(self, instance: ShapedInstance, decision: Any) -> dict[str, Any]:
        header = {"format": DECISION, "version": VERSION, "shape": self.name}
        return {**header, "instance_hash": instance.hash, "decision": to_plain(decision)}

    def read_decision(self, instance: ShapedInstance, data: Mapping[str, Any]) -> Any:
        if data.get("format") != DECISION or data.get("shape") != self.name:
            raise FileFormatError(f"not an {DECISION} of shape {self.name!r}")
        if data.get("instance_hash") not in (None, instance.hash):
            raise FileFormatError("instance_hash: the file is of another instance")
        return from_plain(self.solution, data.get("decision"), "decision")


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
