"""The functions ``solve``, ``bound`` and ``load_target``, for Python users and the command line.

A lexicographic objective is solved level by level: level k is minimised and bounded while limits
hold the metrics of the levels before it at their incumbents' values.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import EllipsisType
from typing import Any

from optbench.arguments import check_limit, check_whole, keywords_of, known_keywords
from optbench.bounds.auto import METHODS
from optbench.compiling.compile_meter import compiled_s
from optbench.compiling.kernel_table import prepare
from optbench.errors import ContradictionError, OptbenchError, ParameterError, UnknownNameError
from optbench.model.result import Bound, Result, Status, Termination, TrajectoryPoint
from optbench.model.verify import Verdict
from optbench.outcome import Outcome, outcome_of
from optbench.plugins.author_errors import crash_words, is_built_in, located, refuse_result, shown
from optbench.plugins.discovery import names
from optbench.plugins.given import Target, read_target, solver_given
from optbench.plugins.overtime import PluginStop, is_watched, solve_in_time
from optbench.plugins.protocol import Run, Solver, check_supported
from optbench.plugins.schedule_shape import shape_of
from optbench.shapes.protocol.shape import AnyInstance, Decision, Shape
from optbench.units import BYTES_PER_MB, KB_PER_MB

DEFAULT_TIME_LIMIT_S = 60.0
# Seconds for bounding: the least, even after the budget is spent, so that every result has a bound;
# and the most, so that a minute of bounding does not follow a rule that takes a millisecond (for
# up to a thousand tasks, and for thousands of tasks).
LEAST_BOUNDING_S, MOST_BOUNDING_S, MOST_LARGE_S = 0.5, 10.0, 30.0
# Bounding that took less time is not mentioned.
FELT_S = 0.1


def load_target(target: Target, seed: int = 0) -> AnyInstance:
    """The instance that a target names: a file of any known format, a public data set
    (``jobshop/ft06``), a problem spec (``gpu_dag:tasks=20``), a problem, or itself."""
    instance: AnyInstance = read_target(target, seed)[0]
    return instance


def solve(
    target: Target,
    solver: str | Solver | None = None,
    *,
    time_limit_s: float | EllipsisType | None = ...,
    work_limit: float | None = None,
    seed: int = 0,
    threads: int = 1,
    warm_start: Decision | None = None,
    on_progress: Callable[[TrajectoryPoint], None] | None = None,
    stop: threading.Event | None = None,
    bound: bool = True,
    bank: str | Path | None = None,
    **params: Any,
) -> Result:
    """Solve, verify and bound: ``ob.solve(instance, "cpsat", time_limit_s=10).gap``.

    Without a solver, cpsat takes schedules, highs what has a formulation, or else the first that
    takes the shape. The default time limit is 60 s, or none with a work limit (the same seed must
    give the same result). Kernels are compiled before the clock starts (``compile_s``), which a
    line on stderr reports. ``params`` are the solver's parameters. With ``bound=False`` the only
    bounds are those that the solver reports. A ``bank`` is a file (created if missing) that stores
    bounds and schedules from call to call; leave it out when you compare solvers.
    """
    instance = load_target(target, seed)
    if isinstance(time_limit_s, EllipsisType):
        time_limit_s = DEFAULT_TIME_LIMIT_S if work_limit is None else None
    budget = Budget(time_limit_s, work_limit, seed, threads)
    if solver is None:
        from optbench.plugins.solver_choice import usual_solver

        solver = usual_solver(instance)
    name, method = solver_given(solver, params, keywords_of(solve))
    return _Solving(
        instance,
        name,
        method,
        budget,
        warm_start,
        on_progress,
        stop or threading.Event(),
        bound,
        bank,
    ).result()


@known_keywords("ob.bound")
def bound(
    target: Target,
    method: str = "auto",
    *,
    time_limit_s: float = 10.0,
    seed: int = 0,
    threads: int = 1,
) -> list[Bound]:
    """Certified lower bounds, best first, per level of the objective; ``method`` may also name a
    solver.

    There is no incumbent at which earlier levels could be held. A later level is therefore bounded
    over all schedules, which is valid but weaker than the bound that ``solve`` computes. The levels
    share the time.
    """
    check_limit("time_limit_s", time_limit_s, "a number of seconds, such as 10")
    instance = load_target(target, seed)
    solvers = names("solver")
    if isinstance(method, str) and method in solvers:
        result = solve(instance, method, time_limit_s=time_limit_s, seed=seed, threads=threads)
        sign = 1 if shape_of(instance).sense(instance) == "min" else -1
        return sorted(result.bounds, key=lambda b: (b.level, -sign * b.value))
    if method not in METHODS:
        raise UnknownNameError("bounding method", str(method), [*METHODS, *solvers])
    out: list[Bound] = []
    shape = shape_of(instance)
    prepare(shape.kernels(instance, method))
    levels = shape.num_levels(instance)
    for k in range(levels):
        level = shape.alone(instance, k)
        found = shape.bounds(level, method, time_limit_s / levels, None)
        if shape.name != "schedule":
            from optbench.shapes.milp.core_labels import relabelled

            found = relabelled(level, found)
        out += [replace(b, level=k) for b in found]
    return out


def load_compiled_code(solver: Solver, instance: AnyInstance, bounding: bool) -> float:
    """Load the kernels that a solver, and with ``bounding`` the bounds, need on any level of the
    objective, compile those that are missing; return the seconds of compiling.
    """
    before = compiled_s()
    shape = shape_of(instance)
    needed = [solver.kernels(level) for level in shape.may_be_levels(instance)]
    prepare(frozenset().union(*needed, shape.kernels(instance) if bounding else ()))
    solver.warm_up(instance)
    return compiled_s() - before


@dataclass(frozen=True)
class Budget:
    """The limits and the seed of a run."""

    time_limit_s: float | None = 60.0
    work_limit: float | None = None
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_limit("time_limit_s", self.time_limit_s, "a number of seconds, such as 10")
        check_limit("work_limit", self.work_limit, "a number, in the solver's own units")
        check_whole("threads", self.threads, 1)
        check_whole("seed", self.seed, 0)


@dataclass
class _Solving:
    """One call of ``solve``."""

    instance: AnyInstance
    name: str
    method: Solver
    budget: Budget
    warm_start: Decision | None
    on_progress: Callable[[TrajectoryPoint], None] | None
    stop: threading.Event
    bounding: bool
    bank: str | Path | None
    runs: list[Run] = field(default_factory=list)
    stuck: str | None = None  # what is said of a method of the shape that was stopped
    bounding_s: float = 0.0
    compile_s: float = 0.0

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.instance)

    @property
    def solving_s(self) -> float:
        return sum(run.elapsed_s() for run in self.runs)

    def result(self) -> Result:
        if not is_built_in(self.shape) and is_watched(self.shape):
            from optbench.plugins.shape_watch import solve_watched

            return solve_watched(self, self.instance, self.budget.time_limit_s)
        return self.assemble(self.solved())

    def solved(self) -> Decision | None:
        """Solve and bound all levels; return the last decision."""
        if self.warm_start is not None:
            if not isinstance(self.warm_start, self.shape.decision_type):
                raise ParameterError(
                    f"warm_start is {shown(self.warm_start)}; it must be "
                    f"{self.shape.decision_words}, such as that of a result"
                )
            made = self.shape.accept(self.instance, self.warm_start)
            if not made.verdict.feasible:
                raise ParameterError(
                    "the warm start is not feasible: "
                    f"{'; '.join(map(str, made.verdict.violations[:3]))}"
                )
            self.warm_start = made.decision
        check_supported(self.method, self.name, self.instance)
        self.compile_s = load_compiled_code(self.method, self.instance, self.bounding)
        best, reached = self.warm_start, list[float]()
        for k in range(self.shape.num_levels(self.instance)):
            run = self._level(self.shape.at_level(self.instance, k, reached), k, best)
            best = run.best if run.best is not None else best
            if run.best is None or run.verdict is None or run.crash is not None:
                break
            reached.append(run.verdict.objectives[0])
        return best

    def begin_run(self, instance: AnyInstance, k: int, start: Decision | None) -> Run:
        """Begin the run of level k, with an equal share of the time that is left."""
        budget, share = self.budget, self.budget.time_limit_s
        if share is not None:
            left_s = share - self.solving_s - self.bounding_s
            share = max(0.1, left_s / (self.shape.num_levels(self.instance) - k))
        run = Run(
            instance,
            budget.seed,
            budget.threads,
            share,
            budget.work_limit,
            start,
            self.on_progress,
            k,
            self.stop,
            self.solving_s,
        )
        self.runs.append(run)
        return run

    def _level(self, instance: AnyInstance, k: int, start: Decision | None) -> Run:
        run = self.begin_run(instance, k, start)
        schedule: Any = None
        if start is not None:
            run.report(start)
        if self.bank is not None:
            from optbench.plugins.run_bank import take_banked

            take_banked(self.bank, run)
        try:
            with located(self.method):
                solve_by = type(self.method).solve if is_built_in(self.method) else solve_in_time
                schedule = solve_by(self.method, instance, run)
        except KeyboardInterrupt:
            self.stop.set()
        except OptbenchError:
            raise
        except Exception as error:
            # The only place that handles a crashed solver; its incumbents are kept.
            run.termination = "crashed"
            run.crash, run.crash_words = error, crash_words(error, self.method)
        if self.stuck is not None:  # in the thread of the solver; this one has to end, too
            raise PluginStop
        wanted: Any = self.shape.decision_type
        if schedule is not None and not isinstance(schedule, wanted):
            remedy = f"return {self.shape.decision_words}, or None if none was found"
            raise refuse_result(self.method, "solve", schedule, remedy)
        if schedule is not None and schedule is not run.best:
            run.report(schedule)
        if run.contradiction is not None:
            raise run.contradiction
        if run.proven_infeasible and run.best is not None:
            raise ContradictionError(
                f"{self.name} called {instance.name!r} infeasible (reported by "
                f"{run.infeasibility_words()}), but a verified schedule exists"
            )
        run.close()  # Bounding does not count as the solver's work.
        began = time.perf_counter()
        seconds = max(LEAST_BOUNDING_S, min(run.time_left(), MOST_BOUNDING_S))
        run.certify_infeasibility(seconds)
        ray = self.shape.certify_unbounded(instance, seconds) if run.proven_unbounded else None
        run.info |= {} if ray is None else {"unbounded": ray}
        if self.bounding and not run.proven_infeasible and not run.proven_unbounded:
            _add_bounds(run)
        self.bounding_s += time.perf_counter() - began
        if self.stop.is_set() and run.crash is None:
            run.termination = "interrupted"
        if self.bank is not None:
            from optbench.plugins.run_bank import bank_run, origin_of

            bank_run(self.bank, run, origin_of(self.method, self.name, asdict(self.budget)))
        return run

    def assemble(self, schedule: Decision | None) -> Result:
        runs = self.runs
        verdict = self.shape.verdict_of(self.instance, schedule) if schedule is not None else None
        bounds = tuple(b for run in runs for b in run.labelled_bounds())
        outcome = outcome_of(self.instance, verdict, bounds, floors=self.bounding)
        rejected = next((run.rejected[-1] for run in runs if run.rejected), None)
        return Result(
            instance=self.instance.name,
            instance_hash=self.instance.hash,
            problem=self.instance.problem,
            solver=self.name,
            seed=self.budget.seed,
            threads=self.budget.threads,
            status=_status(runs, outcome),
            termination=_termination(runs),
            objective=outcome.objective,
            bound=outcome.bound,
            gap=outcome.gap,
            verified=verdict is not None and verdict.feasible,
            violations=_violations(verdict, rejected),
            metrics=outcome.metrics,
            bounds=bounds,
            wall_s=round(self.solving_s, 6),
            compile_s=round(self.compile_s, 3),
            time_to_first_s=_first(runs),
            peak_memory_mb=peak_memory_mb(),
            trajectory=_trajectory(runs),
            schedule=schedule,
            message=_crash(runs[-1]) or (runs[-1].message if schedule is None else None),
            info={key: value for run in runs for key, value in run.info.items()} | self._bounding(),
            infeasibility=runs[-1].infeasibility if schedule is None else None,
            repaired=next((run.repaired for run in reversed(runs) if run.best is not None), None),
            instance_data=self.instance,
        )

    def _bounding(self) -> dict[str, Any]:
        """The remark on the time of bounding, if it was long enough to be noticed."""
        return {"bounding_s": round(self.bounding_s, 2)} if self.bounding_s >= FELT_S else {}


def _add_bounds(run: Run) -> None:
    """Compute a certified bound, in what is left of the budget, where the solver gave none.

    ``wall_s`` counts the solver's time alone."""
    closed = run.shape.is_closed(run.instance, run.objective, run.bound)
    if closed or run.stop_requested.is_set():
        return
    if any(bound.proof != "solver" for bound in run.labelled_bounds()):
        return
    most = run.shape.bounding_s(run.instance, MOST_BOUNDING_S, MOST_LARGE_S)
    seconds = max(LEAST_BOUNDING_S, min(run.time_left(), most))
    run.prove_bounds(seconds)


def _crash(run: Run) -> str | None:
    """The exception of a crashed solver, and the line that raised it."""
    if run.crash is None:
        return None
    run.info["traceback"] = "".join(traceback.format_exception(run.crash))
    return run.crash_words


def _status(runs: list[Run], outcome: Outcome) -> Status:
    run = runs[-1]
    if run.crash is not None:
        return "error"
    if outcome.objectives and not run.proven_unbounded:
        return "optimal" if outcome.is_optimal else "feasible"
    if run.proven_infeasible:
        return "infeasible"
    return "unbounded" if run.proven_unbounded else "unknown"


def _termination(runs: list[Run]) -> Termination:
    return next((run.termination for run in runs if run.termination != "finished"), "finished")


def _violations(verdict: Verdict | None, rejected: Verdict | None) -> tuple[str, ...]:
    """Violations of the final schedule or, without one, of the last rejected schedule."""
    source = verdict if verdict is not None else rejected
    return () if source is None else tuple(str(violation) for violation in source.violations)


def _first(runs: list[Run]) -> float | None:
    return next((point.t_s for point in runs[0].trajectory if point.objective is not None), None)


def _trajectory(runs: list[Run]) -> tuple[TrajectoryPoint, ...]:
    return tuple(
        replace(point, t_s=round(point.t_s + run.earlier_s, 6))
        for run in runs
        for point in run.trajectory
    )


def peak_memory_mb() -> float:
    """Highest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (BYTES_PER_MB if sys.platform == "darwin" else KB_PER_MB), 1)
