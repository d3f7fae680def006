"""``simulate`` for shapes with a process: a policy acts, its decision is verified and bounded."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from optbench.api import peak_memory_mb
from optbench.errors import ParameterError, PluginCrashError, UnsupportedError
from optbench.model.measures import Value
from optbench.model.result import Bound
from optbench.outcome import level_of, outcome_of
from optbench.plugins.author_errors import author_phases, refuse_incomplete
from optbench.plugins.discovery import load_solver
from optbench.plugins.overtime import Watched, is_watched
from optbench.plugins.process_policy import ActFunction, Playing, ProcessPolicy
from optbench.plugins.protocol import check_supported
from optbench.plugins.schedule_shape import shape_of
from optbench.plugins.solver_choice import shape_with_process, usual_policy
from optbench.rendering import ShortRepr
from optbench.shapes.protocol.shape import Shape

HowEnded = Literal["finished", "time_limit", "interrupted"]


@dataclass(frozen=True, eq=False, repr=False)
class ProcessSimulation(ShortRepr, kind="process_simulation"):
    """The result of playing a process; ``decision`` is None where it was stopped before its end."""

    instance: str
    instance_hash: str
    problem: str | None
    shape: str
    policy: str
    seed: int
    threads: int
    end: Literal["complete", "stopped"]
    actions: int
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
    decision_ms: dict[str, float] | None
    decision: Any
    compile_s: float = 0.0
    # What the policy loaded or trained before the clock started.
    prepare_s: float = 0.0
    termination: HowEnded = "finished"
    clairvoyant: bool = False
    reference: str | None = None
    regret: float | None = None
    reference_metrics: dict[str, float] | None = None


def simulate_process(
    instance: Any,
    policy: Any,
    params: Mapping[str, Any] | None,
    seed: int,
    threads: int,
    bound_time_limit_s: float,
    time_limit_s: float | None,
    stop: threading.Event | None,
    refused: Mapping[str, Any],
) -> ProcessSimulation:
    """Play the process of an instance by a policy: a name, an object, or a function."""
    for argument, value in refused.items():
        if value:
            raise ParameterError(f"{argument} is {value!r}; only schedules of tasks have that")
    shape = shape_with_process(instance)
    named = usual_policy(instance) if policy is None else policy
    name, player = policy_of_process(named, dict(params or {}), instance)
    playing = _prepared(player, instance, seed)
    began = time.perf_counter()
    stop = stop or threading.Event()
    how = _played(playing, time_limit_s, stop)
    wall_s = time.perf_counter() - began
    decision = playing.decision
    verdict = None if decision is None else shape.accept(instance, decision).verdict
    reached = () if verdict is None else verdict.objectives
    bounds = list(_bounds(instance, reached, bound_time_limit_s, decision))
    outcome = outcome_of(instance, verdict, bounds)
    compares = bound_time_limit_s > 0 and decision is not None and outcome.objectives
    beside = _compared(shape, instance, player, playing, stop) if compares else Compared()
    return ProcessSimulation(
        instance=instance.name,
        instance_hash=instance.hash,
        problem=instance.problem,
        shape=shape.name,
        policy=name,
        seed=seed,
        threads=threads,
        end="complete" if how == "finished" else "stopped",
        actions=playing.actions,
        objective=outcome.objective,
        objective_name=shape.objective_label(instance),
        bound=outcome.bound,
        gap=outcome.gap,
        bounds=tuple(bounds),
        verified=verdict is not None and verdict.feasible,
        violations=() if verdict is None else tuple(map(str, verdict.violations)),
        metrics=outcome.metrics,
        wall_s=round(wall_s, 6),
        peak_memory_mb=peak_memory_mb(),
        decision_ms=_percentiles_ms(playing.spent_s),
        decision=decision,
        prepare_s=round(playing.prepared_s or 0.0, 3),
        termination=how,
        clairvoyant=player.clairvoyant,
        reference=beside.reference,
        regret=beside.regret,
        reference_metrics=beside.metrics,
    )


def _prepared(player: ProcessPolicy, instance: Any, seed: int) -> Playing:
    """Return a run whose policy has loaded or trained what it needs."""
    playing = Playing(player, instance, seed)
    with author_phases(lambda: playing.phase, PluginCrashError):
        playing.prepare()
    return playing


def _percentiles_ms(spent_s: list[float]) -> dict[str, float] | None:
    """Return how long decisions took; None without any."""
    if not spent_s:
        return None
    return {f"p{q}": float(np.percentile(spent_s, q)) * 1e3 for q in (50, 99)}


def _bounds(
    instance: Any, reached: tuple[float, ...], time_limit_s: float, decision: Any
) -> Iterator[Bound]:
    """Yield bounds of each level, with the levels before it held at the values reached."""
    shape = shape_of(instance)
    for k in range(shape.num_levels(instance) if time_limit_s > 0 else 0):
        level = level_of(instance, k, reached)
        if level is not None:
            found = shape.bounds(level, "auto", time_limit_s, decision)
            yield from (replace(each, level=k) for each in found)


@dataclass(frozen=True)
class Compared:
    """What the reference policy reached, and the regret against it; None where there is none."""

    reference: str | None = None
    regret: float | None = None
    metrics: dict[str, float] | None = None


def _compared(
    shape: Shape, instance: Any, player: ProcessPolicy, playing: Playing, stop: threading.Event
) -> Compared:
    """Play the reference policy of the shape with its defaults, verify it, and compare."""
    if shape.reference is None:
        return Compared()
    reference = policy_of_process(shape.reference, {}, instance)[1]
    beside = playing
    if player != reference:
        beside = _prepared(reference, instance, playing.seed)
        if _played(beside, None, stop) != "finished":
            return Compared()
    verdict = shape.accept(instance, beside.decision).verdict
    if not verdict.feasible:  # an invalid decision is no reference
        return Compared(shape.reference)
    regret = shape.regret(instance, playing.decision, beside.decision)
    return Compared(shape.reference, regret, dict(verdict.metrics))


def policy_of_process(
    policy: Any, params: dict[str, Any], instance: Any
) -> tuple[str, ProcessPolicy]:
    """Name and policy; an instance that it cannot play is refused."""
    if params and not isinstance(policy, str):
        words = f"{', '.join(params)}: parameters can only be given with the name of a policy"
        raise ParameterError(words)
    if isinstance(policy, str):
        name, player = load_solver(policy, params)
    elif callable(policy) and not isinstance(policy, type):
        name, player = getattr(policy, "__name__", type(policy).__name__), ActFunction(policy)
    else:
        name, player = type(policy).__name__, policy
    if isinstance(policy, type) or not callable(getattr(player, "solve", None)):
        remedy = "the name of a policy, an object of a subclass of ob.ProcessPolicy, or a function"
        raise ParameterError(f"the policy is {policy!r}; it must be {remedy} of an observation")
    refuse_incomplete(type(player))
    check_supported(player, name, instance)
    if not isinstance(player, ProcessPolicy):
        raise UnsupportedError(
            f"{name!r} is an offline solver and cannot act online; use `optbench solve`"
        )
    return name, player


def _played(playing: Playing, time_limit_s: float | None, stop: threading.Event) -> HowEnded:
    """Play within the time; whose code raised an exception is named with file and line."""
    ends_at = math.inf if time_limit_s is None else time.monotonic() + time_limit_s

    def has_time() -> bool:
        return not stop.is_set() and time.monotonic() < ends_at

    with author_phases(lambda: playing.phase, PluginCrashError):
        finished = _watched(partial(playing.play, has_time), has_time, stop, playing)
    if finished:
        return "finished"
    return "interrupted" if stop.is_set() else "time_limit"


def _watched(
    play: Callable[[], bool], has_time: Callable[[], bool], stop: threading.Event, playing: Playing
) -> bool:
    if not (is_watched(playing.author) or is_watched(playing.shape)):
        return play()
    done = Watched(play, has_time, stop).wait()
    return done is not None and done.value
