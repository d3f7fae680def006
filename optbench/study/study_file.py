"""Read a study file: TOML with known keys only and grids expanded; every mistake is reported with
file and field.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, OptbenchError
from optbench.plugins.discovery import study_file
from optbench.sandbox.trial_import import try_imports
from optbench.study.declared import Study
from optbench.study.expectations import (
    check_expectations,
    read_claims,
    read_gates,
    read_metrics,
    read_rank,
    read_reference,
    read_trust,
)
from optbench.study.fields import refuse, whole
from optbench.study.instance_targets import read_targets
from optbench.study.solver_entries import BUDGET_KEYS, bound_limit, read_entries
from optbench.study.tune_section import read_tune, with_budget
from optbench.study.tuned_parameters import warn_of_tuned_on
from optbench.typed_values import check_keys

KEYS = (
    "question",
    "problems",
    "solvers",
    "seeds",
    "repetitions",
    *BUDGET_KEYS,
    "bound_limit",
    "metrics",
    "reference",
    "trust",
    "rank",
    "gates",
    "claims",
    "tune",
)
MAX_SEEDS, MAX_CELLS = 100_000, 1_000_000
BOUND_LIMIT = "10s"


def load_study(name: str | Path) -> Study:
    """Load a study by its name or file."""
    path, table = read_file(name)
    with naming(path):
        try_imports(table)
        return read(table, path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the name of the study file to errors."""
    try:
        yield
    except OptbenchError as error:
        raise FileFormatError(f"{path}: {error}") from None


def read_file(name: str | Path) -> tuple[Path, Mapping[str, Any]]:
    """Return the file of a study and the table in it."""
    path = Path(name) if str(name).endswith(".toml") else study_file(str(name))
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}; `optbench list studies` shows studies") from None
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
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
    solvers = read_entries(table["solvers"], {key: table[key] for key in BUDGET_KEYS if key in table})
    metrics = read_metrics(table.get("metrics", []))
    study = Study(
        name=path.stem,
        question=question,
        problems=read_targets(table["problems"], path.absolute().parent),
        solvers=solvers,
        seeds=_seeds(table.get("seeds", 1)),
        repetitions=whole(table.get("repetitions", 1), "repetitions", 1, from_text=False),
        bound_limit_s=bound_limit(table.get("bound_limit", BOUND_LIMIT)),
        metrics=metrics,
        reference=read_reference(table.get("reference"), solvers),
        trust=read_trust(table.get("trust", []), solvers),
        rank=read_rank(table.get("rank")),
        gates=read_gates(table.get("gates", {})),
        claims=read_claims(table.get("claims", [])),
        tune=with_budget(table.get("tune"), table),
        path=path,
    )
    cells = len(study.problems) * len(study.solvers) * len(study.seeds) * study.repetitions
    if cells > MAX_CELLS:
        words = f"{len(study.problems)} problems × {len(study.solvers)} solvers × {len(study.seeds)} seeds × {study.repetitions}"
        raise FileFormatError(f"{words} repetitions are {cells:,} cells; at most {MAX_CELLS:,} are allowed")
    warn_of_tuned_on(study, table["solvers"])
    check_expectations(study)
    if study.tune is not None:
        read_tune(study.tune, seeds=study.seeds, problems=study.problems, metrics=study.metrics)
    return study


def _seeds(value: Any) -> tuple[int, ...]:
    """Return seeds from a number of seeds counted from 0, or from a list."""
    allowed = f"a number of seeds from 1 to {MAX_SEEDS:,}, or a list of different seeds, none negative, such as [0, 1, 2]"
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SEEDS:
        return tuple(range(value))
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_SEEDS:
        refuse("seeds", value, allowed)
    first: dict[int, int] = {}
    for k, seed in enumerate(value):
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            refuse(f"seeds[{k}]", seed, "a whole number of at least 0")
        if first.setdefault(seed, k) != k:
            raise FileFormatError(f"seeds[{k}] is {seed}, which is seeds[{first[seed]}] again; each seed counts once")
    return tuple(value)
