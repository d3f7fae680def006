"""What the core needs of a kind of instance and of its decisions, and no more.

A shape has no state; its methods take the instance. What stands above this room is named by a
string such as ``"optbench.views.milp:standard_form"`` and resolved when it is needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from optbench.errors import OptbenchError, UnsupportedError, with_article
from optbench.model.measures import OPTIMAL_GAP, gap
from optbench.model.result import Bound, Infeasibility
from optbench.model.verify import Verdict

if TYPE_CHECKING:
    from optbench.shapes.protocol.measurements import Measurements, MeasuringMachine

Sense = Literal["min", "max"]
# What rooms that serve every shape call an instance, which has a name, a hash, features and the
# spec of its problem, and an object of ``Shape.decision_type``.
AnyInstance: TypeAlias = Any
Decision: TypeAlias = Any


@dataclass(frozen=True)
class Metric:
    """Unit and meaning of a metric; a measured one is no part of a verdict, gap or objective.

    An ``also_measured`` one is computed by ``verify``, and ``measure`` takes readings of it: an
    estimate and a stopwatch under one name.
    """

    unit: str
    words: str
    measured: bool = False
    also_measured: bool = False

    @property
    def has_readings(self) -> bool:
        return self.measured or self.also_measured


@dataclass(frozen=True)
class Accepted:
    """A decision with its verdict; ``repaired`` says what was moved before it was verified."""

    decision: Any
    verdict: Verdict
    repaired: dict[str, float] | None = None


class Shape(ABC):
    """A kind of instance; subclasses are named in files and in messages by ``name``."""

    name: ClassVar[str]
    # What a decision is called.
    decision: ClassVar[str] = "decision"
    metrics: ClassVar[Mapping[str, Metric]] = {}
    constraints: ClassVar[Mapping[str, str]] = {}
    # Numbers that describe an instance (``facts_of``), such as its size, and what they are.
    fact_words: ClassVar[Mapping[str, str]] = {}
    # Capabilities that solvers may ask for beside the name: "formulate", "process".
    capabilities: ClassVar[frozenset[str]] = frozenset()

    # A process that is not done after so many actions is stopped with an error.
    most_actions: ClassVar[int] = 1_000_000

    # The policy with which ``simulate`` compares all others; None where there is none.
    reference: ClassVar[str | None] = None

    # The solver that is taken where none is named; None leaves it to capabilities and features.
    usual_solver: ClassVar[str | None] = None

    # What a decision is, for messages to whoever gives something else.
    decision_words: ClassVar[str] = "a decision of the instance's shape"

    @property
    def decision_type(self) -> type:
        """The class of decisions; ``object`` where any will do."""
        return object

    # --- the instance ---

    def describe(self, instance: Any) -> str:
        """Return the size of the instance in words."""
        return self.name

    def facts_of(self, instance: Any) -> Mapping[str, float]:
        """Return the numbers that ``fact_words`` declares; results may be regressed on them."""
        return {}

    def num_levels(self, instance: Any) -> int:
        return 1

    def label(self, instance: Any, level: int = 0) -> str:
        """Return the objective of a level in words."""
        return "objective"

    def objective_label(self, instance: Any) -> str:
        """Return the whole objective in words."""
        levels = range(self.num_levels(instance))
        return " then ".join(self.label(instance, k) for k in levels)

    def sense(self, instance: Any) -> Sense:
        """Whether the first level is minimised or maximised."""
        return "min"

    def at_level(self, instance: Any, level: int, reached: Sequence[float]) -> Any:
        """Return the instance of one level, with those before it held at the values reached."""
        return instance

    def alone(self, instance: Any, level: int) -> Any:
        """Return the instance of one level, whatever those before it reach."""
        return instance

    def may_be_levels(self, instance: Any) -> list[Any]:
        """Return instances with the features of each level, as solvers will meet them."""
        return [instance]

    def features(self, instance: Any) -> frozenset[str]:
        return frozenset()

    # --- decisions ---

    @abstractmethod
    def verdict_of(self, instance: Any, decision: Any) -> Verdict:
        """Check every constraint and compute every metric, from the data alone."""

    def accept(self, instance: Any, decision: Any) -> Accepted:
        """Verify a decision; shapes whose decisions may be off by rounding repair them first."""
        return Accepted(decision, self.verdict_of(instance, decision))

    def formulate(self, instance: Any) -> Any:
        """Return the formulation of an instance: a programme with ``encode`` and ``decode``."""
        raise UnsupportedError(f"{with_article(self.name)} has no formulation")

    def process_of(self, instance: Any, seed: int) -> Any:
        """Return a new ``Process`` of an instance; shapes with one have the capability
        "process".
        """
        raise UnsupportedError(f"{with_article(self.name)} has no process; use `optbench solve`")

    def public_of(self, instance: Any) -> Any:
        """Return what every policy knows of an instance before its first observation, for what it
        prepares before the clock starts; None where that is nothing.
        """
        return None

    def regret(self, instance: Any, decision: Any, reference: Any) -> float | None:
        """Return the relative excess of a decision over that of the reference policy."""
        return None

    def check_decoded(self, instance: Any, point: Any, verdict: Verdict) -> None:
        """Compare a point of the formulation with the verdict on the decision it stands for."""
        del instance, point, verdict

    def pictures(self, instance: Any, decision: Any) -> Mapping[str, str]:
        """Return pictures of a decision for reports, as SVG by title."""
        return {}

    def decision_files(self, instance: Any, decision: Any) -> Mapping[str, str]:
        """Return the text of files that come with a decision, by name, such as tables."""
        return {}

    def measured_pictures(
        self, instance: Any, decision: Any, measured: Measurements
    ) -> Mapping[str, str]:
        """Return pictures of a decision of which readings were taken."""
        return self.pictures(instance, decision)

    def measured(self, instance: Any, decision: Any, machine: MeasuringMachine) -> Measurements:
        """Take readings of a decision's measured metrics on this machine."""
        raise UnsupportedError(f"{with_article(self.name)} has no measured metrics")

    # --- files ---

    @abstractmethod
    def write(self, instance: Any) -> dict[str, Any]:
        """Return the canonical form, from which the hash is computed."""

    @abstractmethod
    def read(self, data: Mapping[str, Any]) -> Any:
        """Return the instance of a canonical form; a FileFormatError names the field."""

    @abstractmethod
    def write_decision(self, instance: Any, decision: Any) -> dict[str, Any]: ...

    def schema(self, decision: bool = False) -> dict[str, Any]:
        """Return the JSON Schema of an instance's file, or of a decision's."""
        raise UnsupportedError(f"{with_article(self.name)} has no JSON Schema")

    @abstractmethod
    def read_decision(self, instance: Any, data: Mapping[str, Any]) -> Any: ...

    # --- bounds ---

    def kernels(self, instance: Any, method: str = "auto") -> frozenset[str]:
        """Return the compiled code that bounds need."""
        return frozenset()

    def bounds(self, instance: Any, method: str, time_limit_s: float, best: Any) -> list[Bound]:
        """Return certified bounds on the first level, best first."""
        return []

    def bounding_s(self, instance: Any, usual_s: float, most_s: float) -> float:
        """Return the seconds that bounding may take beyond a budget that is spent."""
        return usual_s

    def labelled(self, instance: Any, bound: Bound) -> Bound:
        """Return a bound with the label that its certificate justifies."""
        return Bound(bound.value, bound.source, "solver", bound.level)

    def labelled_by_proof(self, instance: Any, bound: Bound) -> Bound:
        """Return what the certificate of a bound proves, if that is at least as strong; else the
        bound with the label of a solver's.
        """
        plain = Bound(bound.value, bound.source, "solver", bound.level)
        if bound.proof == "solver" or bound.certificate is None:
            return plain
        try:
            proven = self.prove(instance, bound.certificate)
        except OptbenchError:  # the certificate proves nothing of this instance
            return plain
        weaker = self.is_better(instance, proven.value, bound.value)
        return plain if weaker else replace(proven, level=bound.level)

    def prove(self, instance: Any, certificate: str) -> Bound:
        """Return what a certificate proves."""
        raise UnsupportedError(f"shape {self.name!r} has no certificates")

    def certify_infeasible(self, instance: Any, time_limit_s: float) -> Infeasibility | None:
        """Return the core's own proof that no decision exists, if it finds one."""
        return None

    def certify_unbounded(self, instance: Any, time_limit_s: float) -> dict[str, Any] | None:
        """Return the core's own proof that no decision is best, if it finds one."""
        return None

    def smallest_value(self, instance: Any) -> float:
        """Return a value that no objective is below: lower bounds are raised to it."""
        return -math.inf

    def is_closed(self, instance: Any, objective: float | None, bound: float | None) -> bool:
        """Whether a bound proves the first level's objective."""
        reached = gap(objective, bound)
        return reached is not None and reached <= OPTIMAL_GAP

    def is_better(self, instance: Any, value: float, other: float) -> bool:
        """Whether an objective is better than another; of bounds, whether it is weaker."""
        return value < other if self.sense(instance) == "min" else value > other

    def more_metrics(self, instance: Any, metrics: Mapping[str, float]) -> dict[str, float]:
        """Return metrics that need bounds, such as floors of arriving work."""
        return {}
