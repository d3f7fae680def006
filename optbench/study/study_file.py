"""Read a study file: TOML with known keys; a mistake is reported with its file and field."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, naming
from optbench.plugins import specs
from optbench.plugins.discovery import study_file
from optbench.plugins.params import PARAMS, find_parameters, read_parameters
from optbench.sandbox.trial_import import try_imports
from optbench.study import expectations
from optbench.study.declared import Study
from optbench.study.fields import duration, refuse, whole
from optbench.study.instance_targets import read_targets
from optbench.study.solver_entries import BUDGET_KEYS, budget_keys, read_entries
from optbench.study.statistics_section import check_statistics, read_statistics
from optbench.study.tune_section import read_tune, with_budget
from optbench.typed_values import check_keys

OF_STUDY = {entry.name.removesuffix("_s") for entry in fields(Study)} - {
    "name",
    "path",
    "sources",
    "takes",
}
KEYS = (*sorted(OF_STUDY), *BUDGET_KEYS)
# What a parameter file says that a search has used.
USED = ("seeds", "problems")
MAX_SEEDS, MAX_CELLS = 100_000, 1_000_000


def load_study(name: str | Path) -> Study:
    """Load a study by its name or file."""
    path, table = read_file(name)
    with naming(path):
        try_imports(table)
        return read(table, path)


def read_file(name: str | Path) -> tuple[Path, Mapping[str, Any]]:
    """Return the file of a study and the table in it."""
    path = Path(name) if str(name).endswith(".toml") else study_file(str(name))
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        remedy = "`optbench list studies` shows studies"
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}; {remedy}") from None
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise FileFormatError(f"{path}: not UTF-8 text: {where}") from None
    except (ValueError, RecursionError) as error:  # ValueError: a number of thousands of digits
        raise FileFormatError(f"{path}: not TOML: {error}") from None


def read(table: Mapping[str, Any], path: Path) -> Study:
    """Return the study that a table declares; files are relative to ``path``."""
    check_keys(table, KEYS)
    for key in ("problems", "solvers"):
        if key not in table:
            raise FileFormatError(f"{key} is missing: a study names its problems and its solvers")
    question = table.get("question", "")
    if not isinstance(question, str):
        refuse("question", question, "text")
    solvers = read_entries(table["solvers"], budget_keys(table))
    problems = read_targets(table["problems"], path.absolute().parent)
    metrics = expectations.read_metrics(table.get("metrics", []))
    of_shapes = expectations.metrics_of_shapes(problems)
    study = Study(
        name=path.stem,
        question=question,
        problems=problems,
        solvers=solvers,
        seeds=_seeds(table.get("seeds", 1)),
        repetitions=whole(table.get("repetitions", 1), "repetitions", 1),
        bound_limit_s=duration(table.get("bound_limit", Study.bound_limit_s), "bound_limit"),
        metrics=tuple(dict.fromkeys((*metrics, *of_shapes))),
        reference=expectations.read_reference(table.get("reference"), solvers),
        trust=expectations.read_trust(table.get("trust", []), solvers),
        rank=expectations.read_rank(table.get("rank")),
        gates=expectations.read_gates(table.get("gates", {})),
        claims=expectations.read_claims(table.get("claims", [])),
        statistics=read_statistics(table.get("statistics"), solvers),
        tune=with_budget(table.get("tune"), table),
        path=path,
    )
    count, seeds, repetitions = len(study.problems), len(study.seeds), study.repetitions
    cells = count * len(solvers) * seeds * repetitions
    if cells > MAX_CELLS:
        product = f"{count} problems × {len(solvers)} solvers × {seeds} seeds × {repetitions}"
        most = f"at most {MAX_CELLS:,} are allowed"
        raise FileFormatError(f"{product} repetitions are {cells:,} cells; {most}")
    _warn_of_tuned_on(study, table["solvers"])
    expectations.check_expectations(study)
    check_statistics(study)
    if study.tune is not None:
        read_tune(study.tune, seeds=study.seeds, problems=study.problems, metrics=study.metrics)
    return study


def _warn_of_tuned_on(study: Study, solvers: Any) -> None:
    """Warn of solvers with parameters of a search that used seeds and problems of the study."""
    for entry in solvers:
        spec = str(entry["solver"] if isinstance(entry, dict) else entry)
        name, params = specs.parse(spec)
        if PARAMS not in params:
            continue
        origin = read_parameters(find_parameters(params[PARAMS], f"solver {name!r}")).provenance
        used = [each if isinstance(each, list) else [] for each in map(origin.get, USED)]
        seeds = sorted(set(study.seeds) & {seed for seed in used[0] if isinstance(seed, int)})
        problems = [problem for problem in study.problems if problem in used[1]]
        if seeds and problems:
            where = f"seeds {seeds} of {problems[0]}, which study {study.name!r} reports"
            warnings.warn(f"{spec} was tuned on {where}; report other seeds", stacklevel=2)


def _seeds(value: Any) -> tuple[int, ...]:
    """Return seeds from a number of seeds counted from 0, or from a list."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SEEDS:
        return tuple(range(value))
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SEEDS:
        listed = "a list of different seeds, none negative, such as [0, 1, 2]"
        refuse("seeds", value, f"a number of seeds from 1 to {MAX_SEEDS:,}, or {listed}")
    first: dict[int, int] = {}
    for k, seed in enumerate(value):
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            refuse(f"seeds[{k}]", seed, "a whole number of at least 0")
        if first.setdefault(seed, k) != k:
            again = f"which is seeds[{first[seed]}] again; each seed counts once"
            raise FileFormatError(f"seeds[{k}] is {seed}, {again}")
    return tuple(value)
