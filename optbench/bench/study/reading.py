"""Reading a study file: TOML with known keys only, grids written out, every mistake named with file and field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optbench.bench.study.declared import CellBudget, Claim, SolverEntry, Study
from optbench.bench.study.grids import spec_text, spread
from optbench.errors import FileFormatError, OptbenchError, nearest
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, names, study_file

KEYS = (
    "question",
    "problems",
    "solvers",
    "seeds",
    "repetitions",
    "time_limit",
    "work_limit",
    "wall_limit",
    "cpu_limit",
    "memory_limit",
    "threads",
    "bound_limit",
    "metrics",
    "gates",
    "claims",
    "tune",
)
# Keys of a solver's spec that are its budget, not its parameters.
BUDGET_KEYS = ("time_limit", "work_limit", "wall_limit", "cpu_limit", "memory_limit", "threads")


def load_study(name: str | Path) -> Study:
    """A study by its name, or by its file."""
    path = Path(name) if str(name).endswith(".toml") else study_file(str(name))
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return read(table, path)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise FileFormatError(f"{path}: {error}") from None
    except OptbenchError as error:
        raise FileFormatError(f"{path}: {error}") from None


def read(table: Mapping[str, Any], path: Path) -> Study:
    for key in table:
        if key not in KEYS:
            raise FileFormatError(f"unknown key {key!r}; {nearest(key, KEYS)}")
    budget = _budget({key: table[key] for key in BUDGET_KEYS if key in table}, CellBudget())
    seeds = table.get("seeds", 1)
    return Study(
        name=path.stem,
        question=table.get("question", ""),
        problems=tuple(target for spec in table["problems"] for target in _targets(spec)),
        solvers=tuple(entry for spec in table["solvers"] for entry in _entries(spec, budget)),
        seeds=tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds),
        repetitions=table.get("repetitions", 1),
        bound_limit_s=specs.duration_s(str(table.get("bound_limit", "10s"))),
        metrics=tuple(table.get("metrics", ())),
        gates=dict(table.get("gates", {})),
        claims=tuple(Claim(**claim) for claim in table.get("claims", ())),
        tune=table.get("tune"),
        path=path,
    )


def _targets(spec: str) -> list[str]:
    """Problem specs with their grids; files and public instances as they stand."""
    name = spec.partition(":")[0].partition("[")[0]
    if name not in names("problem"):
        return [spec]
    _, params = specs.parse(spec)
    return [spec_text(name, each) for each in spread(name, params, load_class("problem", name))]


def _entries(spec: str, budget: CellBudget) -> list[SolverEntry]:
    name, params = specs.parse(spec)
    cls = load_class("solver", name)
    entries = []
    for each in spread(name, params, cls):
        own = {key: value for key, value in each.items() if key in BUDGET_KEYS}
        given = {key: value for key, value in each.items() if key not in BUDGET_KEYS}
        solver = specs.build(cls, f"solver {name!r}", given)
        entries.append(SolverEntry(spec_text(name, each), name, specs.values_of(solver), _budget(own, budget)))
    return entries


def _budget(given: Mapping[str, Any], default: CellBudget) -> CellBudget:
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key in ("time_limit", "wall_limit", "cpu_limit"):
            values[f"{key}_s"] = specs.duration_s(str(value))
        elif key == "work_limit":
            values.setdefault("time_limit_s", None)
            values[key] = float(value)
        elif key == "memory_limit":
            values["memory_limit_mb"] = float(value)
        else:
            values[key] = int(value)
    return CellBudget(**{**{name: getattr(default, name) for name in default.__dataclass_fields__}, **values})
