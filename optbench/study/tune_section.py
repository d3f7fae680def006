"""The ``[tune]`` section of a study: what is varied, on which instances, for which goals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from optbench.errors import FileFormatError, OptbenchError, naming, nearest
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, problem_named_by
from optbench.study.fields import refuse, text, texts, whole, word
from optbench.study.formula_binding import condition, number
from optbench.study.formula_names import Scope
from optbench.study.solver_entries import BUDGET_KEYS, budget_keys, entries_of
from optbench.typed_values import check_keys, is_number

KINDS = ("float", "int", "choice")
# Requirements and purpose of each sampler and pruner: docs/tuning.md.
SAMPLERS = ("tpe", "random", "nsga2", "cmaes")
PRUNERS = ("median", "wilcoxon", "none")
OF_PROBLEM = "problem."
# Types of the values of a choice.
PLAIN = (str, int, float, bool)
# Measures that depend on the other solvers of a study or on the bounding of its instances: in a
# search a gap would be 1 for every configuration.
NOT_OF_A_CONFIGURATION = ("bound", "study_gap", "rpd", "regret", "optimal")
TRIALS, STARTUP = 50, 10


@dataclass(frozen=True)
class SpaceAxis:
    """A parameter that is varied; ``field`` is one of the solver or of the problems."""

    field: str
    of: Literal["solver", "problem"]
    kind: Literal["float", "int", "choice"]
    low: float = math.nan
    high: float = math.nan
    log: bool = False
    step: float | None = None
    choices: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The name in the study: ``low_clock``, ``problem.gang``."""
        return f"{OF_PROBLEM}{self.field}" if self.of == "problem" else self.field


@dataclass(frozen=True)
class Goal:
    """A metric, ``objective``, or a formula over the cells of a configuration."""

    expression: str
    maximize: bool = False

    @property
    def is_metric(self) -> bool:
        """Whether it is a value of each cell, so that instances can be compared one by one."""
        return self.expression.isidentifier()

    @property
    def loss(self) -> str:
        """The name of a trial's value, which is minimised: a loss where the goal is maximised."""
        return "loss" if self.maximize else "change"


@dataclass(frozen=True)
class TuneSection:
    """Without ``problems`` and ``validation``, the problems and seeds of the study are meant.

    ``solver`` is a spec without grids; ``budget`` has the budget keys that hold where it has none.
    """

    solver: str
    space: tuple[SpaceAxis, ...]
    goals: tuple[Goal, ...]
    seeds: tuple[int, ...]
    validation: tuple[int, ...] | None = None
    problems: tuple[str, ...] | None = None
    constraints: tuple[str, ...] = ()
    trials: int = TRIALS
    startup: int = STARTUP
    sampler: str = "tpe"
    pruner: str = "median"
    seed: int = 0
    storage: str | None = None
    budget: Mapping[str, Any] = field(default_factory=dict)


def own_scope(own: str, metrics: Sequence[str]) -> Scope:
    """Return the names for formulas over one configuration's and the defaults' cells."""
    labels = dict.fromkeys((own, "defaults"))
    return Scope(tuple((label, label) for label in labels), own, tuple(metrics))


def with_budget(table: Any, study: Mapping[str, Any]) -> Any:
    """Return the section with the budget keys of the study where it has none."""
    return {**budget_keys(study), **table} if isinstance(table, Mapping) else table


def read_tune(
    table: Mapping[str, Any],
    *,
    seeds: Sequence[int] = (),
    problems: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> TuneSection:
    """Read the section; the arguments are of the study, on whose seeds nothing may be tuned."""
    if not isinstance(table, Mapping):
        refuse("tune", table, "a table, [tune]")
    check_keys(table, KEYS, "tune: ")
    for key in ("solver", "space", "seeds"):
        if key not in table:
            raise FileFormatError(f"tune.{key} is missing")
    given = {key: read(table[key], f"tune.{key}") for key, read in READERS.items() if key in table}
    solver = specs.name_of(given["solver"])
    with naming("tune.solver"):
        load_class("solver", solver)
    goals = (*_goals(table, "minimize"), *_goals(table, "maximize"))
    if not goals:
        example = 'write minimize = ["objective"], or metrics such as "energy_j"'
        raise FileFormatError(f"tune.minimize is missing; {example}")
    one_metric = len(goals) == 1 and goals[0].is_metric
    given.setdefault("sampler", "tpe" if len(goals) == 1 else "nsga2")
    given.setdefault("pruner", "median" if one_metric else "none")
    space = _space(table["space"], solver, given.get("problems", problems))
    section = TuneSection(**given, space=space, goals=goals, budget=budget_keys(table))
    _check(section, seeds, problems)
    _check_formulas(section, tuple(metrics))
    return section


def _goals(table: Mapping[str, Any], key: str) -> tuple[Goal, ...]:
    given = texts(table[key], f"tune.{key}") if key in table else ()
    return tuple(Goal(each, key == "maximize") for each in given)


def _seeds(value: Any, where: str) -> tuple[int, ...]:
    """Return a list of seeds; a single number would mean a number of seeds, as in a study."""
    listed = isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)
    if not listed or not value or len(set(value)) < len(value):
        refuse(where, value, "a list of different whole numbers, such as [100, 101, 102]")
    return tuple(value)


# The readers of the keys that are fields of a TuneSection.
READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "solver": text,
    "seeds": _seeds,
    "validation": _seeds,
    "problems": texts,
    "constraints": texts,
    "trials": partial(whole, least=2, most=math.inf),
    "startup": partial(whole, least=1, most=math.inf),
    "sampler": partial(word, known=SAMPLERS),
    "pruner": partial(word, known=PRUNERS),
    "seed": partial(whole, least=0, most=math.inf),
    "storage": text,
}
KEYS = (*READERS, "space", "minimize", "maximize", *BUDGET_KEYS)


def _check_formulas(section: TuneSection, metrics: tuple[str, ...]) -> None:
    """Check every name and sign before anything is run."""
    scope = Scope((("tuned", "tuned"),), "tuned", metrics)
    sources = [(number, "minimize", goal.expression) for goal in section.goals]
    sources += [(condition, "constraints", each) for each in section.constraints]
    for resolve, key, source in sources:
        with naming(f"tune.{key}"):
            formula = resolve(source, scope)
        words = set(re.findall(r"[A-Za-z_]\w*", source)) & set(NOT_OF_A_CONFIGURATION)
        if words:
            raise FileFormatError(
                f"tune.{key}: {formula.source!r} reads {min(words)}, which a search does not have: "
                "instances are not bounded and no other solver is run; take objective, a metric, "
                "or gap where the solver reports bounds"
            )


def _check(section: TuneSection, seeds: Sequence[int], problems: Sequence[str]) -> None:
    """Check constraints between keys."""
    try:
        entries = entries_of(section.solver, section.budget)
    except OptbenchError as error:
        raise FileFormatError(f"tune: {str(error).replace('solvers[0]', 'solver')}") from None
    if len(entries) != 1:
        count = f"{len(entries)} configurations; it takes one, without lists"
        raise FileFormatError(f"tune.solver is {section.solver!r}: {count}")
    several = len(section.goals) > 1
    if section.pruner != "none" and (several or not section.goals[0].is_metric):
        remedy = "pruning needs one goal that is a metric: leave it out"
        raise FileFormatError(f"tune.pruner is {section.pruner!r}; {remedy}")
    if several and section.sampler == "cmaes":
        raise FileFormatError("tune.sampler 'cmaes' takes one goal; use tpe, nsga2 or random")
    expressions = [goal.expression for goal in section.goals]
    for expression in expressions:
        if expressions.count(expression) > 1:
            twice = "is named twice among minimize and maximize"
            raise FileFormatError(f"tune: {expression!r} {twice}")
    if "objective" in expressions and any(axis.of == "problem" for axis in section.space):
        raise FileFormatError(
            "tune.minimize names 'objective' while the space varies the problem, which may change "
            "what the objective means; name metrics instead, such as energy_j"
        )
    report = section.validation if section.validation is not None else tuple(seeds)
    shared = sorted(set(section.seeds) & set(report))
    if shared and _generators(section.problems or problems):
        what = "tune.validation" if section.validation is not None else "the study's seeds"
        raise FileFormatError(
            f"tune.seeds and {what} share {', '.join(map(str, shared[:5]))}: parameters would be "
            "judged on the instances that they were tuned on; choose others, such as "
            f"seeds = [{max(report) + 1}, {max(report) + 2}]"
        )


def _space(table: Any, solver: str, problems: Sequence[str]) -> tuple[SpaceAxis, ...]:
    if not isinstance(table, Mapping) or not table:
        example = "it must name parameters, such as { k = { int = [1, 64] } }"
        raise FileFormatError(f"tune.space is {table!r}; {example}")
    return tuple(_axis(key, entry, solver, problems) for key, entry in _flat(table))


def _flat(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return parameters by name; TOML reads ``problem.gang = 1`` as a table in a table."""
    out = []
    for key, entry in table.items():
        nested = isinstance(entry, Mapping) and not set(entry) & set(KINDS)
        if key == OF_PROBLEM[:-1] and nested:
            out += [(f"{OF_PROBLEM}{name}", value) for name, value in entry.items()]
        else:
            out.append((key, entry))
    return out


def _axis(key: str, entry: Any, solver: str, problems: Sequence[str]) -> SpaceAxis:
    where = f"tune.space.{key}"
    if not isinstance(entry, Mapping):
        allowed = "{ float = [low, high] }, { int = [low, high] } or { choice = [...] }"
        raise FileFormatError(f"{where} is {entry!r}; write {allowed}")
    kinds = [kind for kind in KINDS if kind in entry]
    check_keys(entry, KINDS if kinds == ["choice"] else (*KINDS, "log", "step"), f"{where}: ")
    if len(kinds) != 1:
        found = " and ".join(kinds) or "no range"
        raise FileFormatError(f"{where} has {found}; it takes one of float, int and choice")
    name = key.removeprefix(OF_PROBLEM)
    of: Literal["solver", "problem"] = "solver" if name == key else "problem"
    if kinds == ["choice"]:
        axis = SpaceAxis(name, of, "choice", choices=_choices(where, entry["choice"]))
    else:
        axis = SpaceAxis(name, of, "int" if kinds == ["int"] else "float", **_range(where, entry))
    plugins = [solver] if of == "solver" else _generators(problems)
    if not plugins:
        why = "none of the problems is generated, so that no parameter can be varied"
        raise FileFormatError(f"{where}: {why}")
    for plugin in plugins:
        _check_field(axis, plugin, where)
    return axis


def _range(where: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Check a range with its step and scale."""
    kind = "int" if "int" in entry else "float"
    bounds = entry[kind]
    numbers = isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_finite, bounds))
    if not numbers or not bounds[0] < bounds[1]:
        refuse(f"{where}.{kind}", bounds, "[low, high] with low below high")
    if kind == "int" and not all(isinstance(each, int) for each in bounds):
        refuse(f"{where}.int", bounds, "two whole numbers")
    log, step, span = entry.get("log", False), entry.get("step"), bounds[1] - bounds[0]
    if not isinstance(log, bool):
        refuse(f"{where}.log", log, "true or false")
    if log and bounds[0] <= 0:
        raise FileFormatError(f"{where} is logarithmic from {bounds[0]!r}; it must begin above 0")
    if step is not None and not (_is_finite(step) and 0 < step <= span):
        refuse(f"{where}.step", step, f"above 0 and at most {span:g}")
    if kind == "int" and step is not None and not isinstance(step, int):
        refuse(f"{where}.step", step, "a whole number")
    if log and step is not None:
        raise FileFormatError(f"{where} has both log and step; only one of them is possible")
    return {"low": bounds[0], "high": bounds[1], "log": log, "step": step}


def _choices(where: str, values: Any) -> tuple[Any, ...]:
    plain = isinstance(values, list) and all(isinstance(each, PLAIN) for each in values)
    if not plain or len(values) < 2 or len(set(map(repr, values))) < len(values):
        refuse(f"{where}.choice", values, "a list of at least two different values")
    return tuple(values)


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _check_field(axis: SpaceAxis, plugin: str, where: str) -> None:
    """Check that the plug-in has the field and accepts the ends of the range, or each choice."""
    cls, what = load_class(axis.of, plugin), f"{axis.of} {plugin!r}"
    known = [each.name for each in specs.parameters(cls)]
    if axis.field not in known:
        hint = f"has no parameter {axis.field!r}; {nearest(axis.field, known)}"
        raise FileFormatError(f"{where}: {what} {hint}")
    hint = specs.hints_of(cls, what)[axis.field]
    with naming(where):
        for value in axis.choices or (axis.low, axis.high):
            specs.convert(value, hint, axis.field, what)


def _generators(problems: Sequence[str]) -> list[str]:
    """Names of the problems that make instances, each once."""
    found = map(problem_named_by, problems)
    return list(dict.fromkeys(name for name in found if name is not None))
