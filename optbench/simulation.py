"""``simulate`` runs a policy online in the event kernel; ``environment`` does so for a user's
agent.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from optbench.api import load_compiled_code, load_target, peak_memory_mb
from optbench.arguments import check_limit, check_whole, known_keywords
from optbench.bounds.auto import lower_bounds
from optbench.compiling.kernel_table import prepare
from optbench.errors import ParameterError, UnsupportedError, with_article
from optbench.model.instance import Floats, Instance
from optbench.model.measures import Value
from optbench.model.result import Bound
from optbench.model.schedule import Schedule
from optbench.model.task_progress import progress
from optbench.model.timegrid import HORIZON_TICKS, grid_down
from optbench.model.verify import Verdict, verify
from optbench.outcome import outcome_of
from optbench.plugins.author_errors import refuse_incomplete
from optbench.plugins.discovery import load_problem, load_solver, problem_named_by
from optbench.plugins.given import instance_made_by
from optbench.plugins.play_in_time import HowEnded, play_in_time
from optbench.plugins.policy import Policy
from optbench.plugins.protocol import Problem, check_supported
from optbench.plugins.python_policy import DecideFunction
from optbench.rendering import ShortRepr
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.state import (
    BUSY_J,
    DONE,
    LOST_J,
    NOW,
    NUM_PARTS,
    RELEASED,
    REST_J,
    RUNNING,
    TRANSFER_J,
    partial_schedule,
)
from optbench.sim.moments import TimedTrace
from optbench.sim.rules import Trace
from optbench.sim.sites.site_report import site_report

if TYPE_CHECKING:
    from optbench.plugins.process_policy import ProcessPolicy

Target = str | Path | Instance | Problem
End = Literal["complete", "horizon", "dead_end", "stopped"]
# What only a simulation with arrivals at sites has (``SiteReport``).
OF_SITES = ("queue_end_by_site", "queue_by_day", "routing")
PERCENTILES = {"p50": 50, "p95": 95, "p99": 99}


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(ShortRepr, kind="simulation"):
    """The result of a simulation.

    ``end`` says why it ended: everything is done, the horizon is reached, no remaining task can
    start, or it was stopped. ``objective`` is computed by the verifier, for a complete feasible
    schedule only. The energy of a run that was cut off counts up to the horizon. ``lost_j`` is the
    energy, above idle power, of work that faults destroyed; it is part of no metric.
    """

    instance: str
    instance_hash: str
    problem: str | None
    policy: str
    seed: int
    threads: int
    end: End
    now_s: float
    arrivals: int
    completed: int
    in_progress: int
    queue_end: int
    queue_end_by_site: dict[str, int] | None
    queue_by_day: tuple[int, ...] | None
    routing: dict[str, dict[str, float]] | None
    j_per_unit_logged: float | None
    slo_violation: float | None
    energy_j: float
    lost_j: float
    units_done: float
    j_per_unit: float | None
    latency_s: dict[str, dict[str, float | None]]
    objective: Value | None
    objective_name: str
    bound: Value | None
    gap: Value | None
    bounds: tuple[Bound, ...]
    verified: bool
    violations: tuple[str, ...]
    metrics: dict[str, float]
    wall_s: float
    peak_memory_mb: float
    decisions: int | None
    decision_ms: dict[str, float] | None
    schedule: Schedule
    compile_s: float = 0.0
    termination: HowEnded = "finished"
    clairvoyant: bool = False


@known_keywords("ob.simulate")
def simulate(
    target: Target,
    policy: str | Policy | ProcessPolicy | Callable[[Any], Any] | None = None,
    *,
    seed: int = 0,
    threads: int = 1,
    faults: Sequence[Fault] = (),
    horizon_s: float | None = None,
    bound: bool = True,
    bound_time_limit_s: float = 10.0,
    params: Mapping[str, Any] | None = None,
    time_limit_s: float | None = None,
    stop: threading.Event | None = None,
) -> Simulation:
    """Run a policy in the event kernel: ``ob.simulate("gpu_dag:tasks=40", "fcfs").gap``.

    A policy is a name, an object, or a function that takes each Moment and returns (task, mode) or
    None; for another shape with a process, each observation, and returns an action. Without one,
    schedules are played by fcfs, and other shapes by the first policy that takes them. ``params``
    are the parameters of a policy given by name. ``wall_s`` is the time of the simulation alone;
    kernels are loaded, or compiled in ``compile_s`` seconds, before it. Without ``horizon_s`` the
    run ends when all tasks have ended, and for an open instance at its horizon, which
    ``horizon_s`` replaces. A policy that has not ended after ``time_limit_s`` seconds, or when
    ``stop`` is set, is stopped: ``termination`` says so, and what a policy in Python has decided
    is reported.
    """
    check_limit("time_limit_s", time_limit_s, "a number of seconds, such as 60")
    check_whole("seed", seed, 0)
    check_whole("threads", threads, 1)
    check_limit("horizon_s", horizon_s, "a number of seconds, such as 3600")
    instance = load_target(target, seed)
    if not isinstance(instance, Instance):
        from optbench.process_simulation import simulate_process

        bounding_s, refused = bound_time_limit_s * bound, {"faults": faults, "horizon_s": horizon_s}
        given: Any = (params, seed, threads, bounding_s, time_limit_s, stop, refused)
        played: Any = simulate_process(instance, policy, *given)
        return cast(Simulation, played)  # a ProcessSimulation: what such a shape has of it
    if horizon_s is not None and instance.is_open:
        instance, horizon_s = watched_until(instance, horizon_s), None
    name, player = policy_of("fcfs" if policy is None else policy, dict(params or {}))
    check_supported(player, name, instance)
    until = math.inf if horizon_s is None else _in_ticks(instance, horizon_s)
    compile_s = load_compiled_code(player, instance, bound) + prepare({"end_of_run"})
    began = time.perf_counter()
    trace, how = play_in_time(player, instance, seed, faults, until, time_limit_s, stop)
    wall_s = time.perf_counter() - began
    done = _report(
        instance, name, seed, threads, trace, until, wall_s, bound_time_limit_s if bound else 0.0
    )
    end: End = done.end if how == "finished" else "stopped"
    told: dict[str, Any] = {"termination": how, "clairvoyant": player.clairvoyant}
    return replace(done, compile_s=round(compile_s, 3), end=end, **told)


def environment(target: Target, num_envs: int | None = None, **options: Any) -> Any:
    """A Gymnasium environment over a target (``SchedulingEnv``), or ``num_envs`` of them in
    lockstep (``FleetEnv``).

    A problem makes a new instance at each reset; a file or an instance is repeated.
    """
    from optbench.views.env import FleetEnv, SchedulingEnv

    found = problem_or_instance(target)
    source = partial(_made_by, found) if isinstance(found, Problem) else found
    return (
        SchedulingEnv(source, **options)
        if num_envs is None
        else FleetEnv(source, num_envs, **options)
    )


def _made_by(problem: Problem, seed: int) -> Instance:
    """The instance of a problem; mistakes in it are answered as everywhere."""
    made: Instance = instance_made_by(problem, seed)[0]
    return made


def problem_or_instance(target: Target) -> Instance | Problem:
    """The problem if the target is one, else the instance that it names."""
    if isinstance(target, str) and names_problem(target):
        return load_problem(target)
    return target if isinstance(target, Problem) else load_target(target)


def names_problem(target: str) -> bool:
    """Whether a target is the spec of a problem and not a file."""
    return problem_named_by(target) is not None and not Path(target).exists()


def policy_of(policy: Any, params: dict[str, Any]) -> tuple[str, Policy]:
    """Name and policy."""
    if isinstance(policy, str):
        name, solver = load_solver(policy, params)
        if "schedule" not in solver.shapes:
            takes = " or ".join(map(with_article, sorted(solver.shapes)))
            raise UnsupportedError(f"solver {name!r} takes {takes}, and this is a schedule")
        if not isinstance(solver, Policy):
            raise UnsupportedError(
                f"{name!r} is an offline solver and cannot decide online; use `optbench solve`"
            )
        return name, solver
    if params:
        raise ParameterError(
            f"{', '.join(params)}: parameters can only be given with the name of a policy, "
            "not with an object or a function"
        )
    if isinstance(policy, Policy):
        refuse_incomplete(type(policy))
        return type(policy).__name__, policy
    if isinstance(policy, type) or not callable(policy):
        remedy = (
            "a policy's name, an object of a subclass of ob.PythonPolicy, or a function of a moment"
        )
        raise ParameterError(f"the policy is {policy!r}; it must be {remedy}")
    return getattr(policy, "__name__", type(policy).__name__), DecideFunction(policy)


def _in_ticks(instance: Instance, horizon_s: float) -> int:
    if not 0 < horizon_s < math.inf:
        raise ParameterError(
            f"horizon_s is {horizon_s!r}; it must be a positive finite number of seconds, or None"
        )
    return int(min(float(grid_down(horizon_s / instance.tick_s)), HORIZON_TICKS))


def watched_until(instance: Instance, horizon_s: float) -> Instance:
    """The open instance with another horizon."""
    horizon = _in_ticks(instance, horizon_s)
    if horizon <= instance.opens:
        opens_s = instance.opens * instance.tick_s
        raise ParameterError(
            f"horizon_s is {horizon_s:g}; {instance.name} is observed from its first arrival at "
            f"{opens_s:g} s on; give a later horizon"
        )
    return instance if horizon == instance.horizon else replace(instance, horizon=horizon)


def _report(
    instance: Instance,
    name: str,
    seed: int,
    threads: int,
    trace: Trace,
    until: float,
    wall_s: float,
    bound_time_s: float,
) -> Simulation:
    state, schedule, complete = trace.state, trace.schedule, trace.schedule is not None
    if schedule is None:
        schedule = partial_schedule(instance, trace.plant, state)
    verdict = verify(instance, schedule)
    # In a partial schedule, tasks that are missing are no violation.
    counted = (v for v in verdict.violations if complete or v.constraint != "assignment")
    wrong = tuple(map(str, counted))
    arrivals, done, running = _counts(instance, trace, verdict)
    sites = site_report(instance, state, schedule, arrivals - done - running)
    of_sites: dict[str, Any] = {name: getattr(sites, name, None) for name in OF_SITES}
    known = complete and bool(verdict.metrics)
    energy_j = verdict.metrics["energy_j"] if known else _energy_so_far(instance, trace)
    units = float(progress(instance, schedule).units_done(instance).sum())
    bounds = _bounds(instance, bound_time_s) if complete else []
    # A partial schedule has no objective.
    outcome = outcome_of(instance, verdict if complete else None, bounds, floors=bound_time_s > 0)
    decision_s = trace.decision_s if isinstance(trace, TimedTrace) else None
    at_horizon = instance.is_open and complete
    now = float(instance.horizon or 0.0) if at_horizon else float(state.total[NOW])
    logged = verdict.metrics if complete else {}
    return Simulation(
        **_run_of(instance, name, seed, threads),
        end=_end(instance, trace, until),
        now_s=now * instance.tick_s,
        arrivals=arrivals,
        completed=done,
        in_progress=running,
        queue_end=arrivals - done - running,
        **of_sites,
        j_per_unit_logged=logged.get("j_per_unit_logged"),
        slo_violation=logged.get("slo_violation"),
        energy_j=energy_j,
        lost_j=float(state.total[LOST_J]),
        units_done=units,
        j_per_unit=energy_j / units if units > 0 else None,
        latency_s=_latencies(instance, trace),
        objective=outcome.objective,
        bound=outcome.bound,
        gap=outcome.gap,
        bounds=tuple(bounds),
        verified=not wrong,
        violations=wrong,
        metrics=outcome.metrics,
        wall_s=round(wall_s, 6),
        peak_memory_mb=peak_memory_mb(),
        decisions=None if decision_s is None else len(decision_s),
        decision_ms=_decision_ms(decision_s),
        schedule=schedule,
    )


def _run_of(instance: Instance, policy: str, seed: int, threads: int) -> dict[str, Any]:
    return {
        "instance": instance.name,
        "instance_hash": instance.hash,
        "problem": instance.problem,
        "policy": policy,
        "seed": seed,
        "threads": threads,
        "objective_name": instance.objective.label,
    }


def _end(instance: Instance, trace: Trace, until: float) -> End:
    if instance.is_open:
        return "horizon"
    if trace.schedule is not None:
        return "complete"
    return "horizon" if until < math.inf and trace.state.total[NOW] >= until else "dead_end"


def _decision_ms(decision_s: Floats | None) -> dict[str, float] | None:
    if decision_s is None or not len(decision_s):
        return None
    return _percentiles(1e3 * decision_s, ("p50", "p99"))


def _counts(instance: Instance, trace: Trace, verdict: Verdict) -> tuple[int, int, int]:
    """Numbers of tasks that have arrived, are completed, and are running.

    For an open instance they are those of the verifier at the horizon, unless it was stopped."""
    state, metrics = trace.state, verdict.metrics
    if instance.is_open and metrics and trace.schedule is not None:
        return int(metrics["arrivals"]), int(metrics["completed"]), int(metrics["in_progress"])
    here = np.asarray(instance.tasks.release, dtype=float) <= state.total[NOW]
    arrivals = int(state.tally[RELEASED]) if instance.stream is None else int(here.sum())
    return arrivals, int((state.status == DONE).sum()), int((state.status == RUNNING).sum())


def _energy_so_far(instance: Instance, trace: Trace) -> float:
    """Energy up to now.

    The kernel books the whole energy of a task at its start; running tasks count here for the
    share of their duration that has passed."""
    plant, state = trace.plant, trace.state
    total = state.total
    running = np.flatnonzero(state.status == RUNNING)
    left = state.end[running] - total[NOW]
    whole_j = plant.units[running] * plant.energy_j[state.mode[running]]
    whole = np.maximum(1.0, instance.duration(state.mode[running], plant.units[running]))
    ahead_j = float((whole_j * left / whole).sum())
    return float(total[BUSY_J] + total[TRANSFER_J] + total[REST_J]) - ahead_j


def _latencies(instance: Instance, trace: Trace) -> dict[str, dict[str, float | None]]:
    """Times of completed tasks: from release to end (sojourn), and in service."""
    state, step = trace.state, instance.tick_s
    done = np.flatnonzero(state.status == DONE)
    service = state.end - state.start
    parts = int(state.tally[NUM_PARTS])
    np.add.at(service, state.part_task[:parts], state.part_end[:parts] - state.part_start[:parts])
    sojourn = state.end[done] - np.asarray(instance.tasks.release, dtype=float)[done]
    return {"sojourn": _spread(sojourn * step), "service": _spread(service[done] * step)}


def _spread(values: Floats) -> dict[str, float | None]:
    if len(values) == 0:
        return dict.fromkeys(("mean", *PERCENTILES))
    return {"mean": float(values.mean()), **_percentiles(values, tuple(PERCENTILES))}


def _percentiles(values: Floats, which: tuple[str, ...]) -> dict[str, float]:
    return {name: float(np.percentile(values, PERCENTILES[name])) for name in which}


def _bounds(instance: Instance, time_limit_s: float) -> list[Bound]:
    """Bounds on every level of the objective over all schedules."""
    if time_limit_s <= 0:
        return []
    levels, out = instance.objective.num_levels, []
    for k in range(levels):
        level = instance.with_objective(instance.objective.level(k))
        for found in lower_bounds(level, method="auto", time_limit_s=time_limit_s / levels):
            out.append(Bound(found.value, found.source, found.proof, k))
    return sorted(out, key=lambda each: (each.level, -each.value))
