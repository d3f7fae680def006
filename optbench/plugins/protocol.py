"""What a plug-in is: a Problem makes instances, a Solver turns an instance into a schedule and reports to its Run."""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from optbench.errors import ContradictionError, UnsupportedError, nearest
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from optbench.model.measures import check_bound
from optbench.model.repair import verified_or_repaired
from optbench.model.result import Bound, Infeasibility, Proof, Termination, TrajectoryPoint
from optbench.model.schedule import Schedule
from optbench.model.verify import Verdict

if TYPE_CHECKING:
    from optbench.model.formats.imported import Import


class Problem:
    """A declared family. Subclasses are dataclasses: the fields are the parameters, their defaults a sensible instance."""

    def instance(self, seed: int = 0) -> Instance:
        """The instance of this seed: the same seed, the same instance."""
        raise NotImplementedError

    def imported(self, seed: int = 0) -> Import | None:
        """The instance with a report of what was read to make it, dropped and assumed; None where nothing is read."""
        return None


class Solver:
    """A method. Subclasses are dataclasses: the fields are the parameters. ``supports`` names entries of FEATURES."""

    supports: ClassVar[frozenset[str] | set[str]] = frozenset()
    # Constraints (``model.checks.CONSTRAINTS``, or ``limit``) that its schedules may break: it does not look that far ahead.
    may_break: ClassVar[frozenset[str] | set[str]] = frozenset()
    # Names of ``compiling.kernel_table.KERNELS``: compiled code of optbench that it runs.
    needs: ClassVar[frozenset[str] | set[str]] = frozenset()

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        """A schedule, or None when none was found; ``run`` takes incumbents and bounds as they come."""
        raise NotImplementedError

    def kernels(self, instance: Instance) -> frozenset[str] | set[str]:
        """``needs`` of this instance: loaded, and compiled where no process has done so before, before the clock starts."""
        return self.needs

    def warm_up(self, instance: Instance) -> None:
        """Load, and compile, code of the plug-in's own, before the clock starts; nothing is charged to a budget."""

    def refuse(self, instance: Instance) -> str | None:
        """Why this instance is not for this solver (its size, say), with the remedy; None when it is."""
        return None


@dataclass
class Run:
    """One solver at work on one instance: seed, budget, clock, and what was found so far.

    The clock stands still while an incumbent is verified, so that solving pays for no checking. ``report`` and
    ``report_bound`` may be called from any thread.
    """

    instance: Instance
    seed: int = 0
    threads: int = 1
    time_limit_s: float | None = 60.0
    work_limit: float | None = None
    warm_start: Schedule | None = None
    on_progress: Callable[[TrajectoryPoint], None] | None = None
    level: int = 0
    stop_requested: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._paused = 0.0
        self._closed: float | None = None
        self._lock = threading.RLock()
        self.best: Schedule | None = None
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
        self.message: str | None = None
        self.info: dict[str, Any] = {}

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator of this run's seed."""
        return np.random.default_rng(self.seed)

    def elapsed_s(self) -> float:
        """Seconds of work so far: all of them once the run is closed."""
        return (time.perf_counter() if self._closed is None else self._closed) - self._began - self._paused

    def close(self) -> None:
        """Stop the clock."""
        self._closed = time.perf_counter()

    def time_left(self) -> float:
        """Seconds left of the budget; inf without one, 0 once it is spent or the user has asked to stop."""
        if self.stop_requested.is_set():
            return 0.0
        return float("inf") if self.time_limit_s is None else max(0.0, self.time_limit_s - self.elapsed_s())

    @property
    def objective(self) -> float | None:
        """Best verified objective so far (of the level being solved)."""
        return None if self.verdict is None else self.verdict.objectives[0]

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds so far, in the order of their values, the best one last."""
        return tuple(self._bounds)

    @property
    def proven_infeasible(self) -> bool:
        """Whether the solver, or the core, says that no schedule exists."""
        return self.infeasibility is not None

    @property
    def bound(self) -> float | None:
        """Best bound so far."""
        return max((bound.value for bound in self.bounds), default=None)

    def report(self, schedule: Schedule) -> Verdict:
        """Verify a schedule and keep it when it is the best; an infeasible one is kept aside and never counted.

        One that is off by rounding is repaired first (``model.repair``): the repaired one is verified and kept.
        """
        with self._lock:
            began = time.perf_counter()
            now = began - self._began - self._paused
            made = verified_or_repaired(self.instance, schedule)
            verdict = made.verdict
            if not verdict.feasible:
                self.rejected.append(verdict)
            elif self.objective is None or verdict.objectives[0] < self.objective:
                self.best, self.verdict, self.repaired = made.schedule, verdict, made.to_dict(self.instance)
                self._check()
                self._record(now)
            self._paused += time.perf_counter() - began
        return verdict

    def report_bound(self, value: float, source: str, proof: Proof = "solver") -> None:
        """Take the solver's own lower bound on this run's objective; one that improves nothing is forgotten.

        Its label is ``solver`` whatever ``proof`` says: what is certified comes from ``prove_bounds`` and ``report_certificate``.
        """
        del proof
        self._keep(Bound(value, source, "solver"))

    def report_certificate(self, certificate: str) -> Bound:
        """Take a bound with a certificate, which the core proves again on this run's instance; CertificateError where it cannot.

        Whoever made the certificate: its value, source and label are what the core finds.
        """
        from optbench.bounds.proving import prove

        proven = prove(self.instance, certificate)
        self._keep(proven)
        return proven

    def prove_bounds(self, time_limit_s: float, method: str = "auto") -> None:
        """Have the core bound this run's instance, and take the best that it proves; ``cheap`` takes about a second at most."""
        from optbench.bounds.auto import lower_bounds

        best = self.best
        upper = float("inf") if best is None else float(best.end.max(initial=0))
        for bound in lower_bounds(self.instance, method, time_limit_s, upper)[:1]:
            self._keep(bound)

    def take_bound(self, bound: Bound, prefix: str = "") -> None:
        """Take a bound from elsewhere, with a prefix to its source: certified if its certificate proves it, else a solver's."""
        from optbench.bounds.proving import labelled

        found = labelled(self.instance, bound)
        source = found.source if found.source.startswith(prefix) else prefix + found.source
        self._keep(replace(found, source=source))

    def _keep(self, bound: Bound) -> None:
        if not np.isfinite(bound.value):
            return
        # No metric of a feasible schedule is negative, and weights are positive.
        bound = replace(bound, value=max(float(bound.value), 0.0), level=self.level)
        with self._lock:
            before = self.bound
            # A certified bound counts beside a better one that is not: other runs of a study go by it.
            rivals = [each for each in self._bounds if bound.proof == "solver" or each.proof != "solver"]
            if any(each.value >= bound.value for each in rivals):
                return
            insort(self._bounds, bound, key=lambda each: (each.value, each.proof != "solver"))
            self._check()
            if before is None or bound.value > before:
                self._record(self.elapsed_s())

    def report_infeasible(self, source: str = "solver") -> None:
        """The solver claims that no schedule exists; ``api.solve`` has the core look for a certified proof."""
        self.infeasibility = Infeasibility(source, "solver")

    def report_unbounded(self) -> None:
        """The solver has proved that the objective has no minimum."""
        self.proven_unbounded = True

    def report_termination(self, termination: Termination) -> None:
        """Why the solver stopped, when it was not because it had finished."""
        self.termination = termination

    def report_message(self, message: str) -> None:
        """What people should know about a run that ends without a schedule, with a next step."""
        self.message = message

    def _check(self) -> None:
        if self.objective is not None and self.bounds:
            top = max(self.bounds, key=lambda bound: bound.value)
            try:
                check_bound(self.objective, top.value, top.source, self.instance.name)
            except ContradictionError as error:  # may be raised in a solver's own thread, which would lose it
                self.contradiction = error
                self.stop_requested.set()
                raise

    def _record(self, t_s: float) -> None:
        point = TrajectoryPoint(round(t_s, 6), self.objective, self.bound, self.level)
        self.trajectory.append(point)
        if self.on_progress is not None:
            self.on_progress(point)


def check_supported(solver: Solver, name: str, instance: Instance) -> None:
    """Refuse an instance the solver cannot express, and say what to do instead."""
    unknown = set(solver.supports) - set(FEATURES)
    if unknown:
        first = sorted(unknown)[0]
        if unknown <= {"ticks", "seconds"}:
            raise UnsupportedError(f"solver {name!r} declares support for {first!r}: time is always whole ticks; leave it out")
        raise UnsupportedError(f"solver {name!r} declares support for {first!r}, which is no feature; {nearest(first, FEATURES)}")
    missing = sorted(instance.features - set(solver.supports))
    if missing:
        needs = "; ".join(f"{feature}: {FEATURES[feature]}" for feature in missing)
        raise UnsupportedError(
            f"solver {name!r} cannot run {instance.name!r} ({needs}). `optbench list` shows which solvers support what."
        )
    reason = solver.refuse(instance)
    if reason:
        raise UnsupportedError(f"solver {name!r} cannot run {instance.name!r}: {reason}")
