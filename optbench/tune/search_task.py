"""What a study's search is, after its words have been resolved: solver, instances in their order,
parameters and defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optbench import __version__
from optbench.errors import FileFormatError, OptbenchError
from optbench.plugins import specs
from optbench.plugins.discovery import load_problem, problem_named_by
from optbench.study.canonical import canonical, digest
from optbench.study.code_version import code_hash, contents_of
from optbench.study.declared import SolverEntry, Study
from optbench.study.grids import spec_text
from optbench.study.instance_sources import source_keys
from optbench.study.instance_targets import read_targets
from optbench.study.solver_entries import entries_of
from optbench.study.tune_section import SpaceAxis, TuneSection, read_tune

# Values by the axes' names.
Configuration = Mapping[str, Any]
HASH_DIGITS = 12


@dataclass(frozen=True)
class SearchPoint:
    """An instance of the search: a target of the study and a seed."""

    target: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.target} | {self.seed}"


@dataclass(frozen=True)
class SearchTask:
    """One search. ``points`` is the order in which every configuration meets its instances, drawn
    once from the seed; ``code`` is of all files that a trial's cells depend on: plug-ins,
    instances, what parameters name.
    """

    study: Study
    section: TuneSection
    entry: SolverEntry
    targets: tuple[str, ...]
    points: tuple[SearchPoint, ...]
    defaults: Configuration
    code: str

    @property
    def name(self) -> str:
        """Of the Optuna study: another configuration of the search is another search."""
        return f"{self.study.name}-{self.hash[:HASH_DIGITS]}"

    @property
    def hash(self) -> str:
        """Of all that decides what a trial's values mean; the number of trials is not among it."""
        left_out = ("trials", "storage", "validation", "solver", "budget")
        section = asdict(self.section) | dict.fromkeys(left_out)
        content = {
            "section": section,
            "solver": self.entry.content,
            "targets": self.targets,
            "code": self.code,
            "version": __version__,
        }
        return digest(content)

    @property
    def validation(self) -> tuple[SearchPoint, ...]:
        """Instances that the search has not seen."""
        seeds = self.section.validation if self.section.validation is not None else self.study.seeds
        return tuple(SearchPoint(target, seed) for target in self.targets for seed in seeds)

    def solver_entry(self, configuration: Configuration) -> SolverEntry:
        """The solver with a configuration's parameters, as a column of a study."""
        varied = self.varied("solver", configuration)
        return replace(self.entry, params={**self.entry.params, **varied})

    def varied(self, of: str, configuration: Configuration) -> dict[str, Any]:
        """A configuration's parameters of the ``solver`` or the ``problem``."""
        axes = [axis for axis in self.section.space if axis.of == of]
        return {axis.field: configuration[axis.name] for axis in axes}

    def target(self, target: str, configuration: Configuration) -> str:
        """The problem with a configuration's parameters."""
        varied = self.varied("problem", configuration)
        if not varied or problem_named_by(target) is None:
            return target
        name, params = specs.parse(target)
        texts = {key: _spec_value(value) for key, value in varied.items()}
        return spec_text(name, {**params, **texts})

    def study_of(self, configuration: Configuration, points: tuple[SearchPoint, ...]) -> Study:
        """A study of one solver: what the runner makes instances and cells of."""
        targets = tuple(dict.fromkeys(self.target(point.target, configuration) for point in points))
        seeds = tuple(dict.fromkeys(point.seed for point in points))
        solvers = (self.solver_entry(configuration),)
        alone = replace(self.study, repetitions=1, tune=None)
        return replace(alone, problems=targets, solvers=solvers, seeds=seeds)


def task_of(study: Study) -> SearchTask:
    """The search of a study."""
    section = section_of(study)
    (entry,) = entries_of(section.solver, section.budget)
    folder = Path() if study.path is None else study.path.parent
    targets = study.problems
    if section.problems is not None:
        targets = read_targets(list(section.problems), folder.absolute())
    points = [SearchPoint(target, seed) for target in targets for seed in section.seeds]
    order = np.random.default_rng(section.seed).permutation(len(points))
    sources = source_keys(targets, (0,)).values()
    code = canonical([code_hash("solver", entry.name), contents_of(entry.params), *sources])
    in_order = tuple(points[k] for k in order)
    return SearchTask(
        study, section, entry, targets, in_order, _defaults(section, entry, targets), code
    )


def section_of(study: Study) -> TuneSection:
    if study.tune is None:
        raise FileFormatError(
            f"{study.path or study.name}: no [tune] section, so that there is nothing to search for"
        )
    return read_tune(study.tune, seeds=study.seeds, problems=study.problems, metrics=study.metrics)


def _defaults(section: TuneSection, entry: SolverEntry, targets: tuple[str, ...]) -> dict[str, Any]:
    """The parameters without tuning: those of the solver and of the first problem in the study."""
    out: dict[str, Any] = {}
    for axis in section.space:
        out[axis.name] = (
            entry.params[axis.field] if axis.of == "solver" else _problem_default(axis, targets)
        )
    return out


def _problem_default(axis: SpaceAxis, targets: tuple[str, ...]) -> Any:
    found = {}
    for target in targets:
        if problem_named_by(target) is not None:
            found[target] = getattr(load_problem(target), axis.field)
    if len(set(map(repr, found.values()))) > 1:
        raise FileFormatError(
            f"tune.space.{axis.name}: the problems set it already, to "
            f"{', '.join(sorted(map(str, found.values())))}; "
            "vary what they have in common"
        )
    if not found:
        raise OptbenchError(f"tune.space.{axis.name}: none of the problems is generated")
    return next(iter(found.values()))


def _spec_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
