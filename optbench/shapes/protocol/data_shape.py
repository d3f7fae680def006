"""A shape declared as two dataclasses, for data and decision, and ``verify``.

    class Packing(DataShape):
        name = "packing"
        data, solution = Services, Placement
        metrics = {"cost_usd": Metric("USD", "price of the GPUs in use")}
        minimize = "cost_usd"

        def verify(self, services, placement): ...      # Findings: violations and every metric

Files follow from the fields of the dataclasses. ``PyomoShape`` adds a model, for exact solvers and
bounds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

from optbench.errors import (
    FileFormatError,
    ModelError,
    ShapeError,
    UnsupportedError,
    nearest,
)
from optbench.model.checks import Violation
from optbench.model.timegrid import exceeds
from optbench.model.verify import Verdict
from optbench.rendering import resolve
from optbench.shapes.protocol.measurements import Measurements, MeasuringMachine
from optbench.shapes.protocol.plain_data import from_plain, to_plain
from optbench.shapes.protocol.plain_schema import document_schema
from optbench.shapes.protocol.process import Process
from optbench.shapes.protocol.shape import Metric, Sense, Shape
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.shapes.protocol.shaped_json import (
    DECISION,
    FORMAT,
    decision_document,
    decision_part,
    instance_document,
    instance_parts,
)

AUTHOR_CODE = "optbench.plugins.author_errors:author_code"
MISTAKE = "optbench.plugins.author_errors:mistake"
LACKING = "optbench.plugins.author_errors:lacking_methods"
# What a class must declare, and how.
DECLARED = {
    "name": 'name = "packing"',
    "data": "data = Services, a dataclass",
    "solution": "solution = Placement, a dataclass",
}


@dataclass
class Findings:
    """What ``verify`` finds: violated constraints by name, and the value of every metric."""

    metrics: dict[str, float] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def require(self, holds: bool, constraint: str, words: str, amount: float = 1.0) -> None:
        """Note that a constraint is violated unless it holds."""
        if not holds:
            self.violations.append(Violation(constraint, words, float(amount)))


class DataShape(Shape):
    """Subclasses declare a kind of instance; an object of one makes instances."""

    data: ClassVar[type]
    solution: ClassVar[type]
    # A metric; or several to minimise in lexicographic order, the most important one first.
    minimize: ClassVar[str | tuple[str, ...] | None] = None
    maximize: ClassVar[str | None] = None

    def __init_subclass__(cls, **others: Any) -> None:
        super().__init_subclass__(**others)
        if cls.process is not DataShape.process:
            cls.capabilities = cls.capabilities | {"process"}

    def __new__(cls, *args: Any, **named: Any) -> Self:
        if cls.__abstractmethods__:
            raise resolve(LACKING)(cls)
        return super().__new__(cls)

    @abstractmethod
    def verify(self, data: Any, decision: Any) -> Findings:
        """Check every constraint and compute every metric, from data and decision alone."""

    def process(self, data: Any, seed: int) -> Process:
        """Return what ``simulate`` plays; random outcomes are drawn by the seed."""
        raise UnsupportedError(f"shape {self.name!r} has no process; define process(data, seed)")

    def facts(self, data: Any) -> Mapping[str, float]:
        """Return the numbers that ``fact_words`` declares, such as sizes."""
        return {}

    def facts_of(self, instance: ShapedInstance) -> Mapping[str, float]:
        with self.authored("facts"):
            found = dict(self.facts(instance.data))
        for name, value in found.items():
            known = name in self.fact_words and isinstance(value, (int, float))
            if not known or not math.isfinite(value):
                words = f"facts returned {name!r} = {value!r:.60}; it must return finite numbers"
                words += " under names that fact_words declares"
                raise self.mistake(f"{words}; {nearest(str(name), self.fact_words)}", "facts")
        return {name: float(value) for name, value in found.items()}

    def public(self, data: Any) -> Any:
        """Return what every policy knows from the start, if anything; see ``prepare`` of a
        policy.
        """
        return None

    def public_of(self, instance: ShapedInstance) -> Any:
        return self.public(instance.data)

    def process_of(self, instance: ShapedInstance, seed: int) -> Process:
        return self.process(instance.data, seed)

    @property
    def decision_words(self) -> str:  # type: ignore[override]
        return f"a {self.solution.__name__}, which instance.shape.solution(...) makes"

    @property
    def decision_type(self) -> type:
        return self.solution

    def mistake(self, words: str, method: str = "") -> ShapeError:
        """Return the error for a mistake of the shape's author, with his file and line."""
        error: ShapeError = resolve(MISTAKE)(self, words, method)
        return error

    def check_declared(self) -> None:
        """Refuse a class that lacks a declaration, or has one of another type."""
        for attribute, example in DECLARED.items():
            value = getattr(self, attribute, None)
            if attribute == "name" and isinstance(value, str) and value:
                continue
            if attribute == "name" or not (isinstance(value, type) and is_dataclass(value)):
                found = "is missing" if value is None else f"is {value!r:.60}"
                raise self.mistake(f"{attribute} {found}; write {example}")
        for name, metric in self.metrics.items():
            if not isinstance(metric, Metric):
                words = f"metric {name!r} is {metric!r:.60}; write Metric(unit, words)"
                raise self.mistake(words)

    @contextmanager
    def authored(self, method: str) -> Iterator[None]:
        """Give an error in a method of the shape its author's file and line."""
        with resolve(AUTHOR_CODE)(self, method, ShapeError):
            yield

    def instance(self, name: str, data: Any) -> ShapedInstance:
        """Return an instance with this data, its values as the fields' types have them."""
        self.check_declared()
        if not isinstance(data, self.data):
            given = type(data).__name__
            raise ModelError(f"shape {self.name!r}: data is a {given}, not a {self.data.__name__}")
        try:
            exact = from_plain(self.data, to_plain(data), "data")
        except FileFormatError as error:
            raise ModelError(f"shape {self.name!r}: {error}") from None
        return ShapedInstance(self, name, exact)

    @property
    def level_metrics(self) -> tuple[str, ...]:
        """The metric of each level of the objective; they are computed, not measured."""
        wanted = [name for name in (self.minimize, self.maximize) if name is not None]
        if len(wanted) != 1 or not wanted[0]:
            words = "set one of `minimize` and `maximize` to the name of a metric"
            raise self.mistake(words)
        names = (wanted[0],) if isinstance(wanted[0], str) else tuple(wanted[0])
        for name in names:
            declared = self.metrics.get(name)
            if declared is not None and declared.measured:
                words = f"metric {name!r} is measured; an objective must be computed by verify"
                raise self.mistake(words)
        return names

    def aims(self, data: Any) -> tuple[str, ...]:
        """Return the metric of each level for this data; a shape whose data choose what is
        minimised overrides it.
        """
        return self.level_metrics

    @property
    def metric(self) -> str:
        """The metric of an objective with one level."""
        names = self.level_metrics
        if len(names) > 1:
            words = f"`minimize` names {len(names)} metrics; a shape with a model has one"
            raise self.mistake(words)
        return names[0]

    def num_levels(self, instance: ShapedInstance) -> int:
        return len(self.aims(instance.data)) if instance.level is None else 1

    def at_level(
        self, instance: ShapedInstance, level: int, reached: Sequence[float]
    ) -> ShapedInstance:
        if self.num_levels(instance) == 1:
            return instance
        return replace(instance, level=level, held=tuple(map(float, reached[:level])))

    def alone(self, instance: ShapedInstance, level: int) -> ShapedInstance:
        return self.at_level(instance, level, ())

    def may_be_levels(self, instance: ShapedInstance) -> list[ShapedInstance]:
        return [self.alone(instance, k) for k in range(self.num_levels(instance))]

    def describe(self, instance: ShapedInstance) -> str:
        """Return the lengths of the data's fields."""
        named = ((each.name, getattr(instance.data, each.name)) for each in fields(self.data))
        sizes = [
            f"{len(value):,} {name}"
            for name, value in named
            if hasattr(value, "__len__") and not isinstance(value, str)
        ]
        return ", ".join(sizes) or self.name

    def label(self, instance: ShapedInstance, level: int = 0) -> str:
        name = self.aims(instance.data)[level if instance.level is None else instance.level]
        return name if self.minimize is not None else f"max {name}"

    def sense(self, instance: ShapedInstance) -> Sense:
        return "min" if self.minimize is not None else "max"

    def verdict_of(self, instance: ShapedInstance, decision: Any) -> Verdict:
        if not isinstance(decision, self.solution):
            given, wanted = type(decision).__name__, self.solution.__name__
            raise ModelError(f"shape {self.name!r}: the decision is a {given}, not a {wanted}")
        with self.authored("verify"):
            found = self.verify(instance.data, decision)
        aims = self.aims(instance.data)
        metrics = self._metrics_of(found, aims)
        self._check_names(found)
        wrong = [
            Violation("finite", f"{name} is {value}")
            for name, value in metrics.items()
            if not math.isfinite(value)
        ]
        violations = (*found.violations, *wrong, *self._over_held(instance, metrics))
        if instance.level is not None:
            aims = (aims[instance.level],)
        objectives = () if violations else tuple(metrics[name] for name in aims)
        return Verdict(not violations, violations, objectives, metrics)

    def _over_held(
        self, instance: ShapedInstance, metrics: Mapping[str, float]
    ) -> Iterator[Violation]:
        """Yield a violation for each level before the instance's that exceeds its held value."""
        for name, most in zip(self.aims(instance.data), instance.held, strict=False):
            value = metrics.get(name, math.nan)
            if exceeds(value, most):
                words = f"{name} is {value!r}; it is held at {most!r}"
                yield Violation(f"held:{name}", words, value - most)

    def _metrics_of(self, found: Any, aims: Sequence[str]) -> dict[str, float]:
        """Return the metrics of what ``verify`` returned."""
        if not isinstance(found, Findings):
            words = f"verify returned {type(found).__name__}; it must return Findings"
            raise self.mistake(words, "verify")
        metrics = dict[str, float]()
        for name, value in found.metrics.items():
            try:
                metrics[name] = float(value)
            except (TypeError, ValueError):
                words = f"verify computes {name} = {value!r:.60}; it must be a number"
                raise self.mistake(words, "verify") from None
        for wanted in aims if not found.violations else ():
            if wanted not in metrics:
                words = f"verify computes no metric {wanted!r}, the objective"
                near = f"; {nearest(wanted, metrics)}" if metrics else ""
                raise self.mistake(words + near, "verify")
        for name in metrics:
            if name in self.metrics and self.metrics[name].measured:
                words = f"verify computes {name!r}, which is measured; measure() returns it"
                raise self.mistake(words, "verify")
        return metrics

    def _check_names(self, found: Findings) -> None:
        """Refuse a violation of a constraint that the shape does not declare."""
        for violation in found.violations if self.constraints else ():
            if violation.constraint not in self.constraints:
                words = f"verify names a constraint {violation.constraint!r}, which is not declared"
                near = nearest(violation.constraint, self.constraints)
                raise self.mistake(f"{words} in constraints; {near}", "verify")

    def measure(self, data: Any, decision: Any, machine: MeasuringMachine) -> Measurements:
        """Return ``machine.repeats`` readings of each metric with readings."""
        raise UnsupportedError(
            f"shape {self.name!r}: define measure(self, data, decision, machine)"
        )

    def measure_instance(
        self, instance: ShapedInstance, decision: Any, machine: MeasuringMachine
    ) -> Measurements:
        """Return the same; a shape whose instances have an origin may override it."""
        return self.measure(instance.data, decision, machine)

    def measured(
        self, instance: ShapedInstance, decision: Any, machine: MeasuringMachine
    ) -> Measurements:
        names = {name for name, metric in self.metrics.items() if metric.has_readings}
        if not names:
            return super().measured(instance, decision, machine)
        with self.authored("measure"):
            found = self.measure_instance(instance, decision, machine)
        if not isinstance(found, Measurements):
            words = f"measure returned {type(found).__name__}; it must return Measurements"
            raise self.mistake(words, "measure")
        if {*found.readings, *found.withheld} != names:
            words = f"measure returned readings of {sorted(found.readings)}, not of {sorted(names)}"
            raise self.mistake(words, "measure")
        readings = {name: tuple(map(float, each)) for name, each in found.readings.items()}
        for name, values in readings.items():
            if not values or not all(map(math.isfinite, values)):
                words = f"measure returned {values!r:.60} for {name!r}; it must be finite numbers"
                raise self.mistake(words, "measure")
        provenance = {**machine.to_dict(), **found.provenance}
        return replace(found, readings=readings, provenance=provenance)

    def write(self, instance: ShapedInstance) -> dict[str, Any]:
        return instance_document(self.name, instance.name, to_plain(instance.data))

    def read(self, data: Mapping[str, Any]) -> ShapedInstance:
        name, given = instance_parts(data, self.name)
        return self.instance(name, from_plain(self.data, given, "data"))

    def write_decision(self, instance: ShapedInstance, decision: Any) -> dict[str, Any]:
        return decision_document(self.name, instance.hash, to_plain(decision))

    def schema(self, decision: bool = False) -> dict[str, Any]:
        header = {"format": DECISION if decision else FORMAT, "shape": self.name}
        if decision:
            title = f"decision of shape {self.name}"
            return document_schema(title, header, "decision", self.solution)
        return document_schema(f"instance of shape {self.name}", header, "data", self.data)

    def read_decision(self, instance: ShapedInstance, data: Mapping[str, Any]) -> Any:
        given = decision_part(data, self.name, instance.hash)
        return from_plain(self.solution, given, "decision")
