"""One random instance of the second verifier's generator: what the framework says of it that its
own brute force does not.

Verdicts and metrics of several schedules, every bound, and the exact solvers. Where there is no
brute force, the best schedule that the second verifier accepts stands in for the optimum.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from optbench.api import solve
from optbench.bounds.auto import METHODS, lower_bounds
from optbench.errors import OptbenchError, UnsupportedError
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_solver
from optbench.plugins.protocol import check_supported
from tests.reference.two_verifiers import disagreements, instance_of
from tests.second_verifier import brute_force, brute_preemptive
from tests.second_verifier.brute_force import Optimum, TooLarge
from tests.second_verifier.decoder import decode, perturbed
from tests.second_verifier.generator import Scale, random_instance
from tests.second_verifier.problem import Json, Problem
from tests.second_verifier.rules import TOLERANCE
from tests.second_verifier.verifier import judge_for

# What a fault may raise; anything that is raised is a disagreement.
RAISED = (
    OptbenchError,
    ArithmeticError,
    LookupError,
    ValueError,
    TypeError,
    AssertionError,
    RuntimeError,
    MemoryError,
    TimeoutError,
)
# What takes this many times its limit does not keep it.
GRACE = 5.0
SOLVERS = ("cpsat", "highs")
# A solver that says "optimal" is within this of the optimum.
PROVEN = Fraction(1, 10**6)
NUM_SCHEDULES, NUM_PERTURBED, NUM_IMPROVEMENTS = 3, 4, 30
# At the scale of single ticks, every third instance is for the brute force of preemptive ones, and
# every third has tariffs
# for formulations that count ticks.
PRICED = {"preemptive": False, "tariffs": True, "priced": True, "open": False, "limits": False}
SMALL_PREEMPTIVE = {
    "preemptive": True,
    "short_horizon": True,
    "far_releases": False,
    "limits": False,
}


@dataclass
class Outcome:
    """What one instance amounted to; ``solved`` has the features of the instance for each solver
    compared.
    """

    name: str
    features: frozenset[str] = frozenset()
    status: str = "not tried"
    num_schedules: int = 0
    num_feasible: int = 0
    num_bounds: int = 0
    num_unproven: int = 0
    solved: dict[str, frozenset[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def drawn(seed: int, scale: Scale) -> Json:
    """The instance of a seed at a scale."""
    if scale.factor == 1 and seed % 3 == 0:
        return random_instance(seed, scale, (1, 3), **SMALL_PREEMPTIVE)
    if scale.factor == 1 and seed % 3 == 1:
        return random_instance(seed, scale, (1, 2), **PRICED)
    if seed % 5 == 4:
        return random_instance(seed, scale, (4, 7))
    return random_instance(
        seed,
        scale,
        (1, 3),
        **({"preemptive": False, "open": seed % 10 == 0} if seed % 5 < 3 else {}),
    )


def compare(
    seed: int,
    scale: Scale,
    solvers: Sequence[str] = SOLVERS,
    domain: str = "seconds",
    time_limit_s: float = 10.0,
) -> Outcome:
    """Everything about the instance of a seed; ``domain`` is for a framework before exact time."""
    data = drawn(seed, scale)
    outcome, rng = Outcome(data["name"]), random.Random(f"{seed} schedules")
    try:
        instance = instance_of(data, domain)
    except RAISED as error:
        outcome.wrong.append(f"instance refused: {type(error).__name__}: {error}")
        return outcome
    outcome.features = frozenset(instance.features)
    best = compare_schedules(outcome, instance, data, rng)
    try:
        module = brute_preemptive if data["preemptive"] else brute_force
        exact: Optimum | None = module.optimum(data)
        outcome.status = "infeasible" if exact is None else "optimum"
    except TooLarge:
        exact, outcome.status = best, "no brute force"
    else:
        outcome.wrong += against_optimum(best, exact)
        if exact is not None:
            outcome.wrong += [
                f"optimal schedule: {line}"
                for line in disagreements(instance, data, exact.schedule)[1]
            ]
    compare_bounds(outcome, instance, exact, time_limit_s)
    for solver in solvers if outcome.status != "no brute force" else ():
        compare_solver(outcome, instance, data, solver, exact, time_limit_s)
    outcome.wrong = [f"{outcome.name}: {line}" for line in outcome.wrong]
    return outcome


def against_optimum(best: Optimum | None, exact: Optimum | None) -> Iterator[str]:
    """The brute force itself: no schedule is better than its optimum."""
    if best is not None and (exact is None or best.values < exact.values):
        found = None if exact is None else list(map(float, exact.values))
        yield f"brute force found {found}, a random schedule has {list(map(float, best.values))}"


def compare_schedules(
    outcome: Outcome, instance: Instance, data: Json, rng: random.Random
) -> Optimum | None:
    """Both verifiers on feasible and perturbed schedules; the best feasible one."""
    best: Optimum | None = None
    for _ in range(NUM_SCHEDULES):
        schedule = decode(data, rng)
        if schedule is None:
            continue
        for tried in (schedule, *(perturbed(data, schedule, rng) for _ in range(NUM_PERTURBED))):
            best = compare_schedule(outcome, instance, data, tried, best)
    for _ in range(NUM_IMPROVEMENTS if best is not None else 0):
        assert best is not None
        tried = perturbed(data, best.schedule, rng)
        values = judge_for(Problem(data), tried).objectives
        if values and values < best.values:
            best = compare_schedule(outcome, instance, data, tried, best)
    return best


def compare_schedule(
    outcome: Outcome, instance: Instance, data: Json, tried: Json, best: Optimum | None
) -> Optimum | None:
    outcome.num_schedules += 1
    try:
        verdict, wrong = disagreements(instance, data, tried)
    except RAISED as error:
        outcome.wrong.append(f"verifier: {type(error).__name__}: {error}")
        return best
    outcome.wrong += wrong
    if not verdict.feasible:
        return best
    outcome.num_feasible += 1
    if best is None or verdict.objectives < best.values:
        return Optimum(verdict.objectives, tried)
    return best


def compare_bounds(
    outcome: Outcome, instance: Instance, best: Optimum | None, time_limit_s: float
) -> None:
    """Every bounding method; an instance of which nothing feasible is known may have any bound."""
    first = instance.with_objective(instance.objective.level(0))
    for method in METHODS:
        try:
            with interrupted_after(GRACE * time_limit_s):
                bounds = lower_bounds(first, method=method, time_limit_s=time_limit_s)
        except RAISED as error:
            outcome.wrong.append(f"bound {method}: {type(error).__name__}: {error}")
            continue
        outcome.num_bounds += len(bounds)
        for bound in bounds if best is not None else ():
            assert best is not None
            if is_above(bound.value, best.values[0]):
                value = float(best.values[0])
                outcome.wrong.append(
                    f"bound {method}: {bound.value!r} from {bound.source} "
                    f"above {value!r} ({outcome.status})"
                )


def is_above(bound: float, value: Fraction) -> bool:
    return not Fraction(bound) <= value + TOLERANCE * abs(value)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes no notice of its own limit."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def takes(solver: str, instance: Instance) -> bool:
    name, method = load_solver(solver)
    try:
        check_supported(method, name, instance)
    except UnsupportedError:
        return False
    return True


def compare_solver(
    outcome: Outcome,
    instance: Instance,
    data: Json,
    solver: str,
    exact: Optimum | None,
    time_limit_s: float,
) -> None:
    """An exact solver beside the optimum: its verdict, its objective, its bounds."""
    if not takes(solver, instance):
        return
    try:
        with interrupted_after(GRACE * time_limit_s):
            result = solve(instance, solver, time_limit_s=time_limit_s, bound=False)
    except UnsupportedError:  # later levels bring features of their own
        return
    except RAISED as error:
        outcome.wrong.append(f"{solver}: {type(error).__name__}: {error}")
        return
    outcome.solved[solver] = outcome.features
    values = (
        ()
        if result.objective is None
        else result.objective
        if isinstance(result.objective, tuple)
        else (result.objective,)
    )
    if result.status == "error" or (exact is None) != (result.status == "infeasible"):
        if result.status in ("unknown", "feasible"):
            outcome.num_unproven += exact is not None and not values
        found = "infeasible" if exact is None else list(map(float, exact.values))
        if result.status != "unknown":
            outcome.wrong.append(
                f"{solver}: {result.status} {values} {result.message}; brute force: {found}"
            )
        return
    if exact is None:
        return
    for level, (value, least) in enumerate(zip(values, exact.values)):
        if Fraction(value) < least - TOLERANCE * abs(least) and values[:level] == tuple(
            map(float, exact.values[:level])
        ):
            outcome.wrong.append(
                f"{solver}: level {level} is {value!r}, below the optimum {float(least)!r}"
            )
        if result.status == "optimal" and Fraction(value) > least + PROVEN * abs(least):
            outcome.wrong.append(
                f"{solver}: level {level} is called optimal with {value!r}, "
                f"the optimum is {float(least)!r}"
            )
            break
    outcome.num_unproven += result.status != "optimal"
    for bound in result.bounds:
        if bound.level == 0 and is_above(bound.value, exact.values[0]):
            outcome.wrong.append(
                f"{solver}: bound {bound.value!r} from {bound.source} "
                f"above {float(exact.values[0])!r}"
            )
