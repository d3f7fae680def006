"""The ``[tune]`` section of a study: what is varied, on which instances, for which goals, and how
long.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from optbench.errors import FileFormatError, OptbenchError, nearest
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, problem_named_by
from optbench.study.formula_binding import condition, number
from optbench.study.formula_lexer import FormulaError
from optbench.study.formula_names import Scope
from optbench.study.solver_entries import BUDGET_KEYS, entries_of
from optbench.typed_values import check_keys

KEYS = (
    "solver",
    "problems",
    "seeds",
    "validation",
    "space",
    "minimize",
    "maximize",
    "constraints",
    "trials",
    "startup",
    "sampler",
    "pruner",
    "seed",
    "storage",
    *BUDGET_KEYS,
)
KINDS = ("float", "int", "choice")
# Requirements and purpose of each sampler and pruner: docs/tuning.md.
SAMPLERS = ("tpe", "random", "nsga2", "cmaes")
PRUNERS = ("median", "wilcoxon", "none")
OF_PROBLEM = "problem."
# Measures that depend on the other solvers of a study or on the bounding of its instances: in a
# search a gap would be 1 for every configuration.
NOT_OF_A_CONFIGURATION = ("bound", "study_gap", "rpd", "regret", "optimal")
TRIALS, STARTUP = 50, 10


@dataclass(frozen=True)
class SpaceAxis:
    """One varied parameter: a field of the solver or of the problems. ``choices`` are text or plain
    values.
    """

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
    """A metric, ``objective``, or a formula over the cells of a configuration, and its direction.
    """

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
    """``problems`` None: those of the study. ``validation`` None: the seeds of the study, which the
    search does not use.

    ``solver`` is a spec without grids; its budget keys (time_limit, ...) hold for each cell,
    ``budget`` where it has none.
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


def with_budget(table: Any, study: Mapping[str, Any]) -> Any:
    """Return the section as a study stores it: with the study's own budget keys where it has none.
    """
    return {**{key: study[key] for key in BUDGET_KEYS if key in study}, **table} if isinstance(table, Mapping) else table


def read_tune(
    table: Mapping[str, Any], *, seeds: Sequence[int] = (), problems: Sequence[str] = (), metrics: Sequence[str] = ()
) -> TuneSection:
    """Read the section; ``seeds``, ``problems`` and ``metrics`` are those of the study, and tuning
    seeds must not be among its own.
    """
    if not isinstance(table, Mapping):
        raise FileFormatError(f"tune is {table!r}; it must be a table, [tune]")
    check_keys(table, KEYS, "tune: ")
    for key in ("solver", "space", "seeds"):
        if key not in table:
            raise FileFormatError(f"tune.{key} is missing")
    try:
        load_class("solver", specs.name_of(_text(table, "solver")))
    except OptbenchError as error:
        raise FileFormatError(f"tune.solver: {error}") from None
    goals = (*_goals(table, "minimize"), *_goals(table, "maximize"))
    if not goals:
        raise FileFormatError('tune.minimize is missing; write minimize = ["objective"], or metrics such as "energy_j"')
    one_metric = len(goals) == 1 and goals[0].is_metric
    own = _texts(table, "problems") if "problems" in table else None
    section = TuneSection(
        solver=_text(table, "solver"),
        space=_space(table["space"], specs.name_of(_text(table, "solver")), own or tuple(problems)),
        goals=goals,
        seeds=_seeds(table, "seeds"),
        validation=_seeds(table, "validation") if "validation" in table else None,
        problems=own,
        constraints=_texts(table, "constraints") if "constraints" in table else (),
        trials=_count(table, "trials", TRIALS, 2),
        startup=_count(table, "startup", STARTUP, 1),
        sampler=_word(table, "sampler", SAMPLERS, "tpe" if len(goals) == 1 else "nsga2"),
        pruner=_word(table, "pruner", PRUNERS, "median" if one_metric else "none"),
        seed=_count(table, "seed", 0, 0),
        storage=_text(table, "storage") if "storage" in table else None,
        budget={key: table[key] for key in BUDGET_KEYS if key in table},
    )
    _check(section, seeds, problems)
    _check_formulas(section, tuple(metrics))
    return section


def own_scope(own: str, metrics: Sequence[str]) -> Scope:
    """Return the names that formulas of a search may use: one configuration's cells, and the
    defaults' cells for comparisons.
    """
    return Scope(tuple((label, label) for label in dict.fromkeys((own, "defaults"))), own, tuple(metrics))


def _check_formulas(section: TuneSection, metrics: tuple[str, ...]) -> None:
    """Check every name and sign before anything is run."""
    scope = Scope((("tuned", "tuned"),), "tuned", metrics)
    for kind, texts in (("minimize", [goal.expression for goal in section.goals]), ("constraints", section.constraints)):
        for text in texts:
            try:
                formula = condition(text, scope) if kind == "constraints" else number(text, scope)
            except FormulaError as error:
                raise FileFormatError(f"tune.{kind}: {error}") from None
            words = set(re.findall(r"[A-Za-z_]\w*", text)) & set(NOT_OF_A_CONFIGURATION)
            if words:
                raise FileFormatError(
                    f"tune.{kind}: {formula.source!r} reads {min(words)}, which a search does not have: instances are not "
                    "bounded and no other solver is run; take objective, a metric, or gap where the solver reports bounds"
                )


def _check(section: TuneSection, seeds: Sequence[int], problems: Sequence[str]) -> None:
    """Check constraints between keys."""
    try:
        entries = entries_of(section.solver, section.budget)
    except OptbenchError as error:
        raise FileFormatError(f"tune: {str(error).replace('solvers[0]', 'solver')}") from None
    if len(entries) != 1:
        raise FileFormatError(f"tune.solver is {section.solver!r}: {len(entries)} configurations; it takes one, without lists")
    several = len(section.goals) > 1
    if section.pruner != "none" and (several or not section.goals[0].is_metric):
        raise FileFormatError(f"tune.pruner is {section.pruner!r}; pruning needs one goal that is a metric: leave it out")
    if several and section.sampler == "cmaes":
        raise FileFormatError("tune.sampler 'cmaes' takes one goal; use tpe, nsga2 or random")
    expressions = [goal.expression for goal in section.goals]
    for expression in expressions:
        if expressions.count(expression) > 1:
            raise FileFormatError(f"tune: {expression!r} is named twice among minimize and maximize")
    if "objective" in expressions and any(axis.of == "problem" for axis in section.space):
        raise FileFormatError(
            "tune.minimize names 'objective' while the space varies the problem, which may change what the objective means; "
            "name metrics instead, such as energy_j"
        )
    report = section.validation if section.validation is not None else tuple(seeds)
    shared = sorted(set(section.seeds) & set(report))
    generated = _generators(section.problems or problems)
    if shared and generated:
        what = "tune.validation" if section.validation is not None else "the study's seeds"
        raise FileFormatError(
            f"tune.seeds and {what} share {', '.join(map(str, shared[:5]))}: parameters would be judged on the instances "
            f"that they were tuned on; choose others, such as seeds = [{max(report) + 1}, {max(report) + 2}]"
        )


def _space(table: Any, solver: str, problems: Sequence[str]) -> tuple[SpaceAxis, ...]:
    if not isinstance(table, Mapping) or not table:
        raise FileFormatError(f"tune.space is {table!r}; it must name parameters, such as {{ k = {{ int = [1, 64] }} }}")
    return tuple(_axis(key, entry, solver, problems) for key, entry in _flat(table))


def _flat(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return parameters by name; TOML reads ``problem.gang = ...`` without quotes as a nested
    table.
    """
    out = []
    for key, entry in table.items():
        nested = key == OF_PROBLEM[:-1] and isinstance(entry, Mapping) and not set(entry) & set(KINDS)
        out += [(f"{OF_PROBLEM}{name}", value) for name, value in entry.items()] if nested else [(key, entry)]
    return out


def _axis(key: str, entry: Any, solver: str, problems: Sequence[str]) -> SpaceAxis:
    where = f"tune.space.{key}"
    if not isinstance(entry, Mapping):
        allowed = "{ float = [low, high] }, { int = [low, high] } or { choice = [...] }"
        raise FileFormatError(f"{where} is {entry!r}; write {allowed}")
    kinds = [kind for kind in KINDS if kind in entry]
    words = KINDS if kinds == ["choice"] else (*KINDS, "log", "step")
    check_keys(entry, words, f"{where}: ")
    if len(kinds) != 1:
        raise FileFormatError(f"{where} has {' and '.join(kinds) or 'no range'}; it takes one of float, int and choice")
    axis = _choice(key, where, entry["choice"]) if kinds == ["choice"] else _range(key, where, kinds[0], entry)
    plugins = [("solver", solver)] if axis.of == "solver" else [("problem", name) for name in _generators(problems)]
    if axis.of == "problem" and not plugins:
        raise FileFormatError(f"{where}: none of the problems is generated, so that no parameter can be varied")
    for kind, name in plugins:
        _check_field(axis, kind, name, where)
    return axis


def _split(key: str) -> dict[str, Any]:
    of_problem = key.startswith(OF_PROBLEM)
    return {"field": key.removeprefix(OF_PROBLEM), "of": "problem" if of_problem else "solver"}


def _range(key: str, where: str, kind: str, entry: Mapping[str, Any]) -> SpaceAxis:
    bounds = entry[kind]
    numbers = isinstance(bounds, list) and len(bounds) == 2 and all(_is_number(each) for each in bounds)
    if not numbers or not bounds[0] < bounds[1]:
        raise FileFormatError(f"{where}.{kind} is {bounds!r}; it must be [low, high] with low below high")
    if kind == "int" and not all(isinstance(each, int) for each in bounds):
        raise FileFormatError(f"{where}.int is {bounds!r}; both must be whole numbers")
    log, step = entry.get("log", False), entry.get("step")
    if not isinstance(log, bool):
        raise FileFormatError(f"{where}.log is {log!r}; it must be true or false")
    if log and bounds[0] <= 0:
        raise FileFormatError(f"{where} is logarithmic from {bounds[0]!r}; it must begin above 0")
    if step is not None and not (_is_number(step) and 0 < step <= bounds[1] - bounds[0]):
        raise FileFormatError(f"{where}.step is {step!r}; it must be above 0 and at most {bounds[1] - bounds[0]:g}")
    if kind == "int" and step is not None and not isinstance(step, int):
        raise FileFormatError(f"{where}.step is {step!r}; it must be a whole number")
    if log and step is not None:
        raise FileFormatError(f"{where} has both log and step; only one of them is possible")
    return SpaceAxis(**_split(key), kind="int" if kind == "int" else "float", low=bounds[0], high=bounds[1], log=log, step=step)


def _choice(key: str, where: str, values: Any) -> SpaceAxis:
    plain = isinstance(values, list) and all(isinstance(each, (str, int, float, bool)) for each in values)
    if not plain or len(values) < 2 or len({repr(each) for each in values}) < len(values):
        raise FileFormatError(f"{where}.choice is {values!r}; it must be a list of at least two different values")
    return SpaceAxis(**_split(key), kind="choice", choices=tuple(values))


def _check_field(axis: SpaceAxis, kind: Any, plugin: str, where: str) -> None:
    """Check that the plug-in has the field and accepts the ends of the range or each of the
    choices.
    """
    cls = load_class(kind, plugin)
    known = [each.name for each in specs.parameters(cls)]
    if axis.field not in known:
        raise FileFormatError(f"{where}: {kind} {plugin!r} has no parameter {axis.field!r}; {nearest(axis.field, known)}")
    hint = specs.hints_of(cls, f"{kind} {plugin!r}")[axis.field]
    try:
        for value in axis.choices or (axis.low, axis.high):
            specs.convert(value, hint, axis.field, f"{kind} {plugin!r}")
    except OptbenchError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _generators(problems: Sequence[str]) -> list[str]:
    """Names of the problems that make instances, each once."""
    found = map(problem_named_by, problems)
    return list(dict.fromkeys(name for name in found if name is not None))


def _goals(table: Mapping[str, Any], key: str) -> tuple[Goal, ...]:
    return tuple(Goal(text, key == "maximize") for text in _texts(table, key)) if key in table else ()


def _text(table: Mapping[str, Any], key: str) -> str:
    if not isinstance(table[key], str) or not table[key].strip():
        raise FileFormatError(f"tune.{key} is {table[key]!r}; it must be text")
    return str(table[key]).strip()


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a text, or a list of them, as a tuple."""
    given = [table[key]] if isinstance(table[key], str) else table[key]
    if not isinstance(given, list) or not given or not all(isinstance(each, str) and each.strip() for each in given):
        raise FileFormatError(f"tune.{key} is {table[key]!r}; it must be a list of texts")
    return tuple(each.strip() for each in given)


def _seeds(table: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Return a list of seeds; a single number is refused, since it would mean a number of seeds,
    which the study reports on.
    """
    given = table[key]
    whole = isinstance(given, list) and all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in given)
    if not whole or not given or len(set(given)) < len(given):
        raise FileFormatError(f"tune.{key} is {given!r}; it must be a list of different whole numbers, such as [100, 101, 102]")
    return tuple(given)


def _count(table: Mapping[str, Any], key: str, default: int, least: int) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise FileFormatError(f"tune.{key} is {value!r}; it must be a whole number of at least {least}")
    return value


def _word(table: Mapping[str, Any], key: str, allowed: Collection[str], default: str) -> str:
    value = table.get(key, default)
    if value not in allowed:
        raise FileFormatError(f"tune.{key} is {value!r}; {nearest(str(value), allowed)}")
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
