"""The solvers of a study: specs with grids, separated into parameters and budgets, each
configuration with a short label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, OptbenchError, UnknownNameError
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, make
from optbench.plugins.params import PARAMS
from optbench.study.canonical import canonical
from optbench.study.declared import BEST, CellBudget, SolverEntry
from optbench.study.fields import duration, elements, is_none, limit, memory, positive, refuse, text, whole
from optbench.study.grids import expand_grid, spec_text
from optbench.typed_values import check_keys
from optbench.workspace import activate

EXAMPLE = '["cpsat:time_limit=10s", "heft"]'
# Keys of a solver's spec that belong to its budget and not to its parameters.
BUDGET_KEYS = ("time_limit", "work_limit", "wall_limit", "cpu_limit", "memory_limit", "threads")
TABLE_KEYS = ("name", "solver", *BUDGET_KEYS)
Budgets = Mapping[str, Any]


@dataclass(frozen=True)
class _EntryDraft:
    """A configuration before its label is known to be unique."""

    field: str
    short: str
    full: str
    own: bool
    name: str
    params: Mapping[str, Any]
    budget: CellBudget


def read_entries(value: Any, defaults: Budgets) -> tuple[SolverEntry, ...]:
    """Return every configuration of ``solvers``; ``defaults`` are the budget keys of the study."""
    budget_of(defaults, {}, "")  # a mistake in the study's own keys is reported as such
    drafts = [
        draft
        for k, entry in enumerate(elements(value, "solvers", EXAMPLE))
        for draft in _drafts(entry, f"solvers[{k}]", defaults)
    ]
    _refuse_twice(drafts)
    return tuple(SolverEntry(label, each.name, each.params, each.budget) for each, label in _labelled(drafts))


def entries_of(spec: str, defaults: Budgets | None = None) -> list[SolverEntry]:
    """Return the configurations of one spec, its grids expanded."""
    return list(read_entries([spec], defaults or {}))


def _drafts(entry: Any, field: str, defaults: Budgets) -> list[_EntryDraft]:
    if isinstance(entry, Mapping):
        check_keys(entry, TABLE_KEYS, within=f"{field}.")
        if "solver" not in entry:
            raise FileFormatError(f'{field}.solver is missing; write {{ name = "tuned", solver = "heft" }}')
        spec, where = text(entry["solver"], f"{field}.solver"), f"{field}.solver"
        label = text(entry["name"], f"{field}.name") if "name" in entry else None
        given = {key: entry[key] for key in BUDGET_KEYS if key in entry}
    else:
        spec, where, label, given = text(entry, field, f"text or a table, such as one of {EXAMPLE}"), field, None, {}
    if label is not None and (label == BEST or not label.isprintable()):
        refuse(f"{field}.name", label, f"a printable label other than {BEST!r}")
    try:
        name, params = specs.parse(spec)
        grid = expand_grid(name, params, load_class("solver", name))
    except OptbenchError as error:
        raise FileFormatError(f"{where}: {error}") from None
    if label is not None and len(grid) > 1:
        many = f"the solver's lists make {len(grid)} configurations"
        raise FileFormatError(f"{field}.name is {label!r}, but {many}; a name is for one configuration configuration")
    return [_draft(field, where, name, each, label, given, defaults) for each in grid]


def _draft(
    field: str, where: str, name: str, params: Mapping[str, str], label: str | None, given: Budgets, defaults: Budgets
) -> _EntryDraft:
    own = {key: value for key, value in params.items() if key in BUDGET_KEYS}
    rest = {key: value for key, value in params.items() if key not in BUDGET_KEYS}
    for key in own:
        if key in given:
            raise FileFormatError(f"{field} gives {key} twice: {own[key]!r} in the spec, and {given[key]!r} beside it")
    try:
        _known(name, rest)
        values = {key: _resolved_path(value) for key, value in specs.values_of(make("solver", name, rest)).items()}
    except OptbenchError as error:
        raise FileFormatError(f"{where}: {error}") from None
    budget = budget_of(defaults, {**own, **given}, f"{field}.")
    full = spec_text(name, {**rest, **own, **{key: specs.as_text(value) for key, value in given.items()}})
    return _EntryDraft(field, label or spec_text(name, rest), label or full, label is not None, name, values, budget)


def _known(name: str, given: Iterable[str]) -> None:
    """Refuse a key that is neither a parameter nor a budget key, with the nearest name of both."""
    fields = [entry.name for entry in specs.parameters(load_class("solver", name))]
    for key in given:
        if key not in fields and f"{key}_s" not in fields and key != PARAMS:
            raise UnknownNameError(f"parameter or limit of solver {name!r}", key, [*fields, *BUDGET_KEYS])


def _resolved_path(value: Any) -> Any:
    """Resolve a path as the cells' processes will: in the current folder or in the workspace."""
    if not isinstance(value, Path) or value.is_absolute():
        return value
    places = [Path.cwd() / value, *(root / value for root in (activate(),) if root is not None)]
    return next((place for place in places if place.exists()), value)


def budget_of(defaults: Budgets, own: Budgets, where: str) -> CellBudget:
    """Return the budget of a solver: its own keys take precedence over those of the study. A work
    limit replaces a time limit unless one of the two sets both: then the first one reached ends
    the solve.
    """
    fields = {**dict.fromkeys(defaults, ""), **dict.fromkeys(own, where)}
    given = {**defaults, **own}
    values: dict[str, Any] = {}
    for key, value in given.items():
        field = fields[key] + key
        if key in ("time_limit", "wall_limit", "cpu_limit"):
            values[f"{key}_s"] = limit(value, field)
        elif key == "work_limit":
            values[key] = None if is_none(value) else positive(value, field)
        elif key == "memory_limit":
            values["memory_limit_mb"] = None if is_none(value) else memory(value, field)
        else:
            values[key] = whole(value, field, 1)
    if values.get("work_limit") is not None:
        values.setdefault("time_limit_s", None)
    budget = CellBudget(**values)
    if budget.wall_limit_s is not None and budget.time_limit_s is not None and budget.wall_limit_s < budget.time_limit_s:
        field = fields.get("wall_limit", where) + "wall_limit"
        allowed = f"at least the time limit of {budget.time_limit_s:g} s: at the wall limit the cell is killed"
        refuse(field, given["wall_limit"], allowed)
    return budget


def bound_limit(value: Any) -> float:
    return duration(value, "bound_limit")


def _refuse_twice(drafts: list[_EntryDraft]) -> None:
    seen: dict[str, _EntryDraft] = {}
    for each in drafts:
        what = canonical({"name": each.name, "params": dict(each.params), "budget": asdict(each.budget)})
        if what in seen:
            words = f"{each.field} is {each.full!r}, the same configuration as {seen[what].field} ({seen[what].full!r})"
            raise FileFormatError(f"{words}: same parameters, same budget; leave one out, or use `repetitions`")
        seen[what] = each


def _labelled(drafts: list[_EntryDraft]) -> list[tuple[_EntryDraft, str]]:
    """Return short labels where they are unique, and labels with the budget where only that
    differs.
    """
    shorts = Counter(each.short for each in drafts)
    labels = [each.short if shorts[each.short] == 1 else each.full for each in drafts]
    for k, label in enumerate(labels):
        if label in labels[:k]:
            other = drafts[labels.index(label)].field
            raise FileFormatError(f"{drafts[k].field} and {other} both have the label {label!r}; set the name of one of them")
    return list(zip(drafts, labels, strict=True))
