"""The classes of plug-ins: Problem makes instances, Solver schedules, Run takes its reports."""

from __future__ import annotations

import numbers
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from optbench.errors import AnswerError, ContradictionError, UnsupportedError, nearest, with_article
from optbench.model.features import FEATURES
from optbench.model.measures import check_bound
from optbench.model.result import Bound, Infeasibility, Proof, Termination, TrajectoryPoint
from optbench.model.verify import Verdict
from optbench.plugins.author_errors import author_code, calling_line, defined_at, shown
from optbench.plugins.overtime import PluginStop
from optbench.plugins.schedule_shape import shape_of
from optbench.rendering import resolve
from optbench.shapes.protocol.shape import AnyInstance, Decision, Shape

if TYPE_CHECKING:
    from optbench.formats.imported import Import

# Prefix of the source of a bound that an earlier run proved.
BANKED = "bank:"
SOLVERS_OF_SHAPE = "optbench.plugins.solver_choice:solvers_of_shape"


class Problem:
    """A family of instances. Subclasses are dataclasses whose fields are the parameters.

    The defaults of the fields must give a sensible instance."""

    # Methods of which a subclass defines at least one; messages name the first.
    to_define: ClassVar[tuple[str, ...]] = ("instance",)

    def instance(self, seed: int = 0) -> AnyInstance:
        """Make the instance of a seed; the same seed gives the same instance."""
        raise NotImplementedError

    def imported(self, seed: int = 0) -> Import | None:
        """The instance with a report of what was read, dropped and assumed; None if nothing is."""
        return None


class Solver:
    """A method. Subclasses are dataclasses whose fields are the parameters.

    ``supports`` names entries of FEATURES."""

    to_define: ClassVar[tuple[str, ...]] = ("solve",)
    supports: ClassVar[frozenset[str] | set[str]] = frozenset()
    # Constraints (``model.checks.CONSTRAINTS``, or ``limit``) that its schedules may break.
    may_break: ClassVar[frozenset[str] | set[str]] = frozenset()
    # Shapes of instances that it takes, by name or by capability ("formulate").
    shapes: ClassVar[frozenset[str] | set[str]] = frozenset({"schedule"})
    # Names of ``compiling.kernel_table.KERNELS``: compiled code of optbench that it runs.
    needs: ClassVar[frozenset[str] | set[str]] = frozenset()

    def solve(self, instance: AnyInstance, run: Run) -> Decision | None:
        """Return a schedule, or None if none was found; report incumbents and bounds to ``run``."""
        raise NotImplementedError

    def kernels(self, instance: AnyInstance) -> frozenset[str] | set[str]:
        """The part of ``needs`` that this instance uses.

        These kernels are loaded, and compiled where necessary, before the clock starts."""
        return self.needs

    def warm_up(self, instance: AnyInstance) -> None:
        """Load and compile the plug-in's own code before the clock starts, outside of any
        budget.
        """

    def refuse(self, instance: AnyInstance) -> str | None:
        """The reason to refuse this instance (its size, for example) with a remedy, or None."""
        return None


@dataclass
class Run:
    """One run of a solver on an instance: seed, budget, clock, incumbents and bounds.

    The clock is stopped while an incumbent is verified, so that checking does not count as solving.
    ``report`` and ``report_bound`` may be called from any thread.
    """

    instance: AnyInstance
    seed: int = 0
    threads: int = 1
    time_limit_s: float | None = 60.0
    work_limit: float | None = None
    warm_start: Decision | None = None
    on_progress: Callable[[TrajectoryPoint], None] | None = None
    level: int = 0
    stop_requested: threading.Event = field(default_factory=threading.Event)
    earlier_s: float = 0.0  # Seconds of solving the levels before, which points of progress count.

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._paused = 0.0
        self.closed_at: float | None = None
        self.reporter: int | None = None  # the thread that reported last
        self._lock = threading.RLock()
        self.best: Decision | None = None
        self.verdict: Verdict | None = None
        self.repaired: dict[str, float] | None = None
        self._bounds: list[Bound] = []
        self.trajectory: list[TrajectoryPoint] = []
        self.rejected: list[Verdict] = []
        self.infeasibility: Infeasibility | None = None
        self.proven_unbounded = False
        self.termination: Termination = "finished"
        self.contradiction: ContradictionError | None = None
        self.crash: Exception | None = None
        self.crash_words: str | None = None
        self.message: str | None = None
        self.info: dict[str, Any] = {}
        self._expelled: threading.Thread | None = None

    @cached_property
    def shape(self) -> Shape:
        """The shape of the run's instance."""
        return shape_of(self.instance)

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator of this run's seed."""
        return np.random.default_rng(self.seed)

    def elapsed_s(self) -> float:
        """Seconds of solving so far; constant once the run is closed."""
        return (
            (time.perf_counter() if self.closed_at is None else self.closed_at)
            - self._began
            - self._paused
        )

    def close(self) -> None:
        """Stop the clock."""
        self.closed_at = time.perf_counter()

    def time_left(self) -> float:
        """Seconds left of the budget: inf without one, 0 once it is spent or the user
        interrupts.
        """
        if self.stop_requested.is_set():
            return 0.0
        return (
            float("inf")
            if self.time_limit_s is None
            else max(0.0, self.time_limit_s - self.elapsed_s())
        )

    @property
    def objective(self) -> float | None:
        """Best verified objective so far (of the level being solved)."""
        return None if self.verdict is None else self.verdict.objectives[0]

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds so far, ascending by value: the best one is last."""
        return tuple(self._bounds)

    @property
    def proven_infeasible(self) -> bool:
        """Whether the solver or the core has reported that no schedule exists."""
        return self.infeasibility is not None

    @property
    def bound(self) -> float | None:
        """Best bound so far."""
        return self._bounds[-1].value if self._bounds else None

    def report(self, schedule: Decision) -> Verdict:
        """Verify a schedule and keep it if it is the best; an infeasible one never counts.

        A schedule that is infeasible by rounding alone is repaired first (``model.repair``); the
        repaired schedule is verified and kept.
        """
        if not isinstance(schedule, self.shape.decision_type):
            raise AnswerError(
                f"{calling_line()}: run.report() was given {shown(schedule)}; it takes "
                f"{self.shape.decision_words}"
            )
        self._refuse_expelled()
        with self._lock:
            self.reporter, began = threading.get_ident(), time.perf_counter()
            now = began - self._began - self._paused
            made = self.shape.accept(self.instance, schedule)
            verdict = made.verdict
            if not verdict.feasible:
                self.rejected.append(verdict)
            elif self._is_better(verdict.objectives[0]):
                self.best, self.verdict = made.decision, verdict
                self.repaired = made.repaired
                self._check()
                self._record(now)
            self._paused += time.perf_counter() - began
        return verdict

    def report_bound(self, value: float, source: str, proof: Proof = "solver") -> None:
        """Take the solver's own bound on this run's objective: a lower one of a minimum, an upper
        one of a maximum. One that improves nothing is dropped, as is an infinity that bounds
        nothing.

        Its label is ``solver`` whatever ``proof`` says: certified bounds come from ``prove_bounds``
        and ``report_certificate`` only.
        """
        del proof
        if not isinstance(value, numbers.Real) or isinstance(value, bool):
            raise AnswerError(
                f"{calling_line()}: run.report_bound() was given {value!r}; it takes a number, and "
                "the name of its source"
            )
        proves_all = np.inf if self.shape.sense(self.instance) == "min" else -np.inf
        if np.isnan(value) or value == proves_all:
            remedy = (
                "run.report_infeasible() says that no decision exists"
                if value == proves_all
                else "leave it out where there is no bound"
            )
            raise AnswerError(f"{calling_line()}: run.report_bound() was given {value!r}; {remedy}")
        self._keep(Bound(value, source, "solver"))

    def report_certificate(self, certificate: str) -> Bound:
        """Take a bound with a certificate, which the core proves again on this run's instance.

        Value, source and label are those that the core computes. A certificate that it cannot
        prove raises a CertificateError.
        """
        proven = self.shape.prove(self.instance, certificate)
        self._keep(proven)
        return proven

    def prove_bounds(self, time_limit_s: float, method: str = "auto") -> None:
        """Let the core bound this run's instance, and take the best bound that it proves.

        With ``cheap`` this takes about a second at most."""
        for bound in self.shape.bounds(self.instance, method, time_limit_s, self.best)[:1]:
            self._keep(bound)

    def take_bound(self, bound: Bound, prefix: str = "") -> None:
        """Take a bound of another origin, with a prefix to its source.

        It is certified if its certificate proves it; else it counts as a solver's bound."""
        found = self.shape.labelled(self.instance, bound)
        source = found.source if found.source.startswith(prefix) else prefix + found.source
        self._keep(replace(found, source=source))

    def labelled_bounds(self) -> list[Bound]:
        """The bounds so far, best first, each under the label that the core finds for it."""
        found = []
        for bound in reversed(self.bounds):
            again = self.shape.labelled(self.instance, bound)
            banked = bound.source.startswith(BANKED) and not again.source.startswith(BANKED)
            found.append(replace(again, source=BANKED + again.source) if banked else again)
        return found

    def _keep(self, bound: Bound) -> None:
        self._refuse_expelled()
        if not np.isfinite(bound.value):  # it bounds nothing
            return
        value = max(float(bound.value), self.shape.smallest_value(self.instance))
        bound = replace(bound, value=value, level=self.level)
        sign = 1 if self.shape.sense(self.instance) == "min" else -1
        with self._lock:
            before = self.bound
            # A certified bound is kept beside a better uncertified one: other runs of a study use
            # it.
            rivals = [
                each for each in self._bounds if bound.proof == "solver" or each.proof != "solver"
            ]
            if any(sign * each.value >= sign * value for each in rivals):
                return
            insort(
                self._bounds, bound, key=lambda each: (sign * each.value, each.proof != "solver")
            )
            self._check()
            if before is None or sign * value > sign * before:
                self._record(self.elapsed_s())

    def report_infeasible(self, source: str = "solver") -> None:
        """Report that no schedule exists; ``api.solve`` then looks for a certified proof."""
        self.infeasibility = Infeasibility(source, "solver")

    def certify_infeasibility(self, time_limit_s: float) -> None:
        """Let the core look for its own proof where the solver reports that no schedule exists."""
        if self.infeasibility is None:
            return
        claim = replace(self.infeasibility, proof="solver", certificate=None)
        found = self.shape.certify_infeasible(self.instance, time_limit_s)
        self.infeasibility = found or claim

    def infeasibility_words(self) -> str:
        """Source and proof of the report that no schedule exists."""
        found = self.infeasibility
        return "no source" if found is None else f"{found.source} ({found.proof})"

    def report_unbounded(self) -> None:
        """Report that the solver has proved the objective to have no minimum."""
        self.proven_unbounded = True

    def report_termination(self, termination: Termination) -> None:
        """Report why the solver stopped before it had finished."""
        self.termination = termination

    def report_message(self, message: str) -> None:
        """Report a message for a run that ends without a schedule; it should name a next step."""
        self.message = message

    @property
    def reporting(self) -> threading.RLock:
        """The lock that is held while an incumbent or a bound is taken."""
        return self._lock

    def expel(self, thread: threading.Thread) -> None:
        """Take no more reports of a thread whose plug-in had to be stopped."""
        self._expelled = thread

    def _refuse_expelled(self) -> None:
        if self._expelled is not None and threading.current_thread() is self._expelled:
            raise PluginStop

    def _check(self) -> None:
        if self.objective is not None and self.bounds:
            top, sense = self._bounds[-1], self.shape.sense(self.instance)
            try:
                check_bound(self.objective, top.value, top.source, self.instance.name, sense)
            except ContradictionError as error:
                # It may be raised in a solver's own thread, where it would be lost.
                self.contradiction = error
                self.stop_requested.set()
                raise

    def _is_better(self, value: float) -> bool:
        known = self.objective
        return known is None or self.shape.is_better(self.instance, value, known)

    def _record(self, t_s: float) -> None:
        point = TrajectoryPoint(round(t_s, 6), self.objective, self.bound, self.level)
        self.trajectory.append(point)
        if self.on_progress is not None:
            self.on_progress(replace(point, t_s=point.t_s + self.earlier_s))


def _listed(shapes: Iterable[str]) -> str:
    words = {"formulate": "what has a formulation", "process": "what has a process"}
    return " or ".join(words.get(each, with_article(each)) for each in sorted(shapes, reverse=True))


def takes(solver: Solver | type[Solver], shape: Shape) -> bool:
    """Whether a solver takes instances of a shape."""
    return bool(solver.shapes & ({shape.name} | shape.capabilities))


def check_supported(solver: Solver, name: str, instance: AnyInstance) -> None:
    """Refuse an instance that the solver cannot express, with a remedy."""
    shape = shape_of(instance)
    if not takes(solver, shape):
        known = resolve(SOLVERS_OF_SHAPE)(shape)
        raise UnsupportedError(
            f"solver {name!r} cannot run {instance.name!r}: it takes {_listed(solver.shapes)}, and "
            f"this is {with_article(shape.name)}. "
            + (f"These take it: {', '.join(known)}." if known else "No solver takes it.")
        )
    unknown = set(solver.supports) - set(FEATURES)
    if unknown:
        first = sorted(unknown)[0]
        place = defined_at(type(solver))
        if unknown <= {"ticks", "seconds"}:
            raise UnsupportedError(
                f"{place}: solver {name!r} declares support for {first!r}: time is always whole "
                "ticks; leave it out"
            )
        raise UnsupportedError(
            f"{place}: solver {name!r} declares support for {first!r}, which is not a feature; "
            f"{nearest(first, FEATURES)}"
        )
    missing = sorted(shape.features(instance) - set(solver.supports))
    if missing:
        needs = "; ".join(f"{feature}: {FEATURES[feature]}" for feature in missing)
        raise UnsupportedError(
            f"solver {name!r} cannot run {instance.name!r} ({needs}). `optbench list` shows "
            "which solvers support what."
        )
    with author_code(solver, "refuse"):
        reason = solver.refuse(instance)
    if reason:
        raise UnsupportedError(f"solver {name!r} cannot run {instance.name!r}: {reason}")
