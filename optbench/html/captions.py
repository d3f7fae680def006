"""One line each on a result, an instance, a model and a simulation: their repr."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optbench.html.quantities import duration, levels, percents, plain
from optbench.model.instance import Instance
from optbench.model.measures import Value, metric_unit
from optbench.model.objective import METRICS, Objective
from optbench.model.result import Result

if TYPE_CHECKING:
    from optbench.model.builder import Model
    from optbench.process_simulation import ProcessSimulation
    from optbench.simulation import Simulation

# Between the levels of an objective, as in ``Objective.label``.
THEN = " then "


def result_line(result: Result) -> str:
    """``<Result 'a' by cpsat: optimal, energy_j = 1,000 J, bound 1,000 J, gap 0 %, ...>``."""
    data = result.instance_data
    facts: list[str] = [result.status]
    if result.termination != "finished":
        facts.append(result.termination.replace("_", " "))
    # Other shapes than schedules have no objective of named metrics.
    objective = data.objective if isinstance(data, Instance) else None
    names = [] if objective is None else _level_names(objective)
    facts += _value_facts(names, result.objective, result.bound, result.gap)
    if result.verified:
        facts.append("verified")
    elif result.violations:
        facts.append(f"refused by the verifier ({counted(len(result.violations), 'violation')})")
    facts.append(duration(result.wall_s))
    return f"<Result {result.instance!r} by {result.solver}: {', '.join(facts)}>"


def simulation_line(done: Simulation) -> str:
    """``<Simulation 'two jobs' by fcfs: complete at 5 s, 2 of 2 tasks completed, ...>``."""
    facts = [
        f"{done.end.replace('_', ' ')} at {number(done.now_s)} s",
        f"{done.completed:,} of {done.arrivals:,} tasks completed",
    ]
    if done.objective is None:
        facts.append(f"energy {number(done.energy_j)} J")
    names = done.objective_name.split(THEN)
    facts += _value_facts(names, done.objective, done.bound, done.gap)
    facts.append("verified" if done.verified else counted(len(done.violations), "violation"))
    return f"<Simulation {done.instance!r} by {done.policy}: {', '.join(facts)}>"


def process_line(done: ProcessSimulation) -> str:
    """``<ProcessSimulation 'serving-8-0' by frugal: complete after 8 actions, ...>``."""
    facts = [f"{done.end} after {counted(done.actions, 'action')}"]
    facts += _value_facts([done.objective_name], done.objective, done.bound, done.gap)
    facts.append("verified" if done.verified else counted(len(done.violations), "violation"))
    return f"<ProcessSimulation {done.instance!r} by {done.policy}: {', '.join(facts)}>"


def instance_line(instance: Instance) -> str:
    """``<Instance 'two jobs': 2 tasks, 1 precedence, 1 device in 1 pool, minimise energy_j>``."""
    return f"<Instance {instance.name!r}: {', '.join(instance_facts(instance))}>"


def instance_facts(instance: Instance) -> list[str]:
    """Sizes and objective."""
    return [
        *sizes(
            instance.num_tasks,
            len(instance.edges.source),
            int(instance.pools.count.sum()),
            instance.num_pools,
        ),
        _minimise(instance.objective),
    ]


def model_line(model: Model) -> str:
    """``<Model 'two jobs': 2 tasks, 1 precedence, 1 device in 1 pool, no objective yet>``."""
    return f"<Model {model.name!r}: {', '.join(model_facts(model))}>"


def model_facts(model: Model) -> list[str]:
    """What is declared so far."""
    devices = sum(pool.count for pool in model.pools)
    facts = sizes(len(model.columns["units"]), len(model.edges[0]), devices, len(model.pools))
    limits = len(model.caps) + len(model.metric_max)
    further = (
        (len(model.links), "link"),
        (limits, "limit"),
        (len(model.tariffs), "tariff"),
    )
    facts += [counted(count, noun) for count, noun in further if count]
    return [*facts, "no objective yet" if model.objective is None else _minimise(model.objective)]


def sizes(tasks: int, precedences: int, devices: int, pools: int) -> list[str]:
    return [
        counted(tasks, "task"),
        counted(precedences, "precedence"),
        f"{counted(devices, 'device')} in {counted(pools, 'pool')}",
    ]


def counted(count: int, noun: str) -> str:
    """``1 task``, ``2,000 tasks``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def number(value: float) -> str:
    return plain(value) if math.isfinite(value) else str(value)


def _minimise(objective: Objective) -> str:
    return f"minimise {objective.label}"


def _level_names(objective: Objective) -> list[str]:
    return [objective.level(k).label for k in range(objective.num_levels)]


def _value_facts(
    names: list[str], value: Value | None, bound: Value | None, gap: Value | None
) -> list[str]:
    """The objective with its unit, the bound and the gap of each level, as far as they are
    known.
    """
    facts = []
    if value is not None:
        shown = _amounts(names, value)
        pairs = [f"{_name(names, k)} = {each}" for k, each in enumerate(shown)]
        facts.append(THEN.join(pairs))
    if bound is not None:
        facts.append(f"bound {THEN.join(_amounts(names, bound))}")
    if gap is not None:
        facts.append(f"gap {THEN.join(percents(each) for each in levels(gap))}")
    return facts


def _name(names: list[str], k: int) -> str:
    """The name of a level; a result without its instance has none."""
    return names[k] if k < len(names) else "objective"


def _amounts(names: list[str], value: Value) -> list[str]:
    """The value of each level, with its unit where the level is one metric."""
    shown = []
    for k, each in enumerate(levels(value)):
        name = _name(names, k)
        unit = metric_unit(name) if name in METRICS else ""
        shown.append(f"{number(each)} {unit}".strip())
    return shown
