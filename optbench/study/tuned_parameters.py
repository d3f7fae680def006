"""Warn of parameters that were tuned on instances that a study reports."""

from __future__ import annotations

import warnings
from typing import Any

from optbench.plugins import specs
from optbench.plugins.params import PARAMS, find_parameters, read_parameters
from optbench.study.declared import Study


def warn_of_tuned_on(study: Study, solvers: Any) -> None:
    """Warn of entries of ``solvers`` with parameters of a search that used seeds and problems of
    the study.
    """
    for entry in solvers:
        spec = str(entry["solver"] if isinstance(entry, dict) else entry)
        name, params = specs.parse(spec)
        if PARAMS not in params:
            continue
        file = read_parameters(find_parameters(params[PARAMS], f"solver {name!r}"))
        seeds = sorted(set(study.seeds) & {seed for seed in _listed(file.provenance.get("seeds")) if isinstance(seed, int)})
        problems = [problem for problem in study.problems if problem in _listed(file.provenance.get("problems"))]
        if seeds and problems:
            words = f"{spec} was tuned on seeds {seeds} of {problems[0]}, which study {study.name!r} reports; report other seeds"
            warnings.warn(words, stacklevel=2)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
