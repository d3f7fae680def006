"""The solvers of a study: configurations with parameters, a budget and a short label each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, UnknownNameError, naming
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, make
from optbench.plugins.params import PARAMS
from optbench.study import fields
from optbench.study.canonical import canonical
from optbench.study.declared import BEST, CellBudget, SolverEntry
from optbench.study.grids import expand_grid, spec_text
from optbench.typed_values import check_keys
from optbench.workspace import activate

EXAMPLE = '["cpsat:time_limit=10s", "heft"]'
# By key of a solver's spec, its field of CellBudget and the reader of its values.
LIMITS: dict[str, tuple[str, Callable[[Any, str], float]]] = {
    "time_limit": ("time_limit_s", fields.duration),
    "work_limit": ("work_limit", fields.positive),
    "wall_limit": ("wall_limit_s", fields.duration),
    "cpu_limit": ("cpu_limit_s", fields.duration),
    "memory_limit": ("memory_limit_mb", fields.memory),
}
# The other keys, whole numbers: the field of each, and its least value.
NUMBERS = {"threads": ("threads", 1), "reserved_gpus": ("gpus", 0), "measure": ("readings", 0)}
BUDGET_KEYS = (*LIMITS, *NUMBERS)
TABLE_KEYS = ("name", "solver", *BUDGET_KEYS)
Budgets = Mapping[str, Any]


@dataclass(frozen=True)
class _EntryDraft:
    """A configuration that takes its ``short`` label if no other has that."""

    field: str
    short: str
    entry: SolverEntry


def read_entries(value: Any, defaults: Budgets) -> tuple[SolverEntry, ...]:
    """Return every configuration of ``solvers``; ``defaults`` are the budget keys of the study."""
    budget_of(defaults, {}, "")  # a mistake in the study's own keys is reported as such
    drafts = [
        draft
        for k, entry in enumerate(fields.elements(value, "solvers", EXAMPLE))
        for draft in _drafts(entry, f"solvers[{k}]", defaults)
    ]
    _refuse_twice(drafts)
    return tuple(_labelled(drafts))


def entries_of(spec: str, defaults: Budgets | None = None) -> list[SolverEntry]:
    """Return the configurations of one spec, its grids expanded."""
    return list(read_entries([spec], defaults or {}))


def budget_keys(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the budget keys of a table with their values."""
    return {key: table[key] for key in BUDGET_KEYS if key in table}


def _drafts(entry: Any, field: str, defaults: Budgets) -> list[_EntryDraft]:
    where = field
    label: str | None = None
    given: Budgets = {}
    if isinstance(entry, Mapping):
        check_keys(entry, TABLE_KEYS, within=f"{field}.")
        if "solver" not in entry:
            example = 'write { name = "tuned", solver = "heft" }'
            raise FileFormatError(f"{field}.solver is missing; {example}")
        where, given = f"{field}.solver", budget_keys(entry)
        spec = fields.text(entry["solver"], where)
        label = fields.text(entry["name"], f"{field}.name") if "name" in entry else None
    else:
        spec = fields.text(entry, field, f"text or a table, such as one of {EXAMPLE}")
    if label is not None and (label == BEST or not label.isprintable()):
        fields.refuse(f"{field}.name", label, f"a printable label other than {BEST!r}")
    with naming(where):
        name, params = specs.parse(spec)
        grid = expand_grid(name, params, load_class("solver", name))
    if label is not None and len(grid) > 1:
        many = f"the solver's lists make {len(grid)} configurations; a name is for one of them"
        raise FileFormatError(f"{field}.name is {label!r}, but {many}")
    return [_draft(field, where, name, each, label, given, defaults) for each in grid]


def _draft(
    field: str,
    where: str,
    name: str,
    params: Mapping[str, str],
    label: str | None,
    given: Budgets,
    defaults: Budgets,
) -> _EntryDraft:
    own = budget_keys(params)
    rest = {key: value for key, value in params.items() if key not in own}
    for key in own:
        if key in given:
            both = f"{own[key]!r} in the spec, and {given[key]!r} beside it"
            raise FileFormatError(f"{field} gives {key} twice: {both}")
    with naming(where):
        _check_known(name, rest)
        values = specs.values_of(make("solver", name, rest))
        values = {key: _resolved_path(value) for key, value in values.items()}
    budget = budget_of(defaults, {**own, **given}, f"{field}.")
    beside = {key: specs.as_text(value) for key, value in given.items()}
    full = label or spec_text(name, {**rest, **own, **beside})
    return _EntryDraft(
        field, label or spec_text(name, rest), SolverEntry(full, name, values, budget)
    )


def _check_known(name: str, given: Iterable[str]) -> None:
    """Refuse a key that is neither a parameter nor a budget key, with the nearest name of both."""
    known = [entry.name for entry in specs.parameters(load_class("solver", name))]
    for key in given:
        if key not in known and f"{key}_s" not in known and key != PARAMS:
            what = f"parameter or limit of solver {name!r}"
            raise UnknownNameError(what, key, [*known, *BUDGET_KEYS])


def _resolved_path(value: Any) -> Any:
    """Resolve a path as the cells' processes will: in the current folder or in the workspace."""
    if not isinstance(value, Path) or value.is_absolute():
        return value
    places = [Path.cwd() / value, *(root / value for root in (activate(),) if root is not None)]
    return next((place for place in places if place.exists()), value)


def budget_of(defaults: Budgets, own: Budgets, where: str) -> CellBudget:
    """Return the budget of a solver, whose own keys take precedence over those of the study.

    A work limit replaces a time limit unless one of the two sets both: then the first one reached
    ends the solve.
    """
    places = {**dict.fromkeys(defaults, ""), **dict.fromkeys(own, where)}
    given = {**defaults, **own}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in LIMITS:
            name, reader = LIMITS[key]
            values[name] = None if fields.is_none(value) else reader(value, places[key] + key)
        else:
            number, least = NUMBERS[key]
            values[number] = fields.whole(value, places[key] + key, least, from_text=True)
    if values.get("work_limit") is not None:
        values.setdefault("time_limit_s", None)
    budget = CellBudget(**values)
    wall_s, time_s = budget.wall_limit_s, budget.time_limit_s
    if wall_s is not None and time_s is not None and wall_s < time_s:
        allowed = f"at least the time limit of {time_s:g} s: at the wall limit the cell is killed"
        fields.refuse(places["wall_limit"] + "wall_limit", given["wall_limit"], allowed)
    return budget


def _refuse_twice(drafts: list[_EntryDraft]) -> None:
    seen: dict[str, _EntryDraft] = {}
    for each in drafts:
        other = seen.setdefault(canonical(each.entry.content), each)
        if other is not each:
            same = f"the same configuration as {other.field} ({other.entry.label!r})"
            raise FileFormatError(
                f"{each.field} is {each.entry.label!r}, {same}: same parameters, same budget; "
                "leave one out, or use `repetitions`"
            )


def _labelled(drafts: list[_EntryDraft]) -> list[SolverEntry]:
    """Return the entries, with short labels where these are unique."""
    shorts = Counter(each.short for each in drafts)
    first: dict[str, str] = {}
    out = []
    for each in drafts:
        label = each.short if shorts[each.short] == 1 else each.entry.label
        if label in first:
            both = f"{each.field} and {first[label]} both have the label {label!r}"
            raise FileFormatError(f"{both}; set the name of one of them")
        first[label] = each.field
        out.append(replace(each.entry, label=label))
    return out
