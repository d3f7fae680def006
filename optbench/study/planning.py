"""Plan the cells of a study from its instances and configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from optbench.model.files.strict_json import jsonable
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.study.cells import BOUNDS, Cell, derived_seed
from optbench.study.code_version import code_hash, contents_of
from optbench.study.declared import CellBudget, SolverEntry, Study
from optbench.study.instance_sources import MadeInstance

FORMAT, VERSION = "optbench-plan", 1


@dataclass(frozen=True)
class Plan:
    """The cells of a study, those that bound an instance first.

    ``changed`` describes how the study file now differs from what was run; None for a new plan or
    an unchanged file.
    """

    study: Study
    made: tuple[MadeInstance, ...]
    cells: tuple[Cell, ...]
    changed: str | None = field(default=None, compare=False)

    @property
    def bounding(self) -> Mapping[str, Cell]:
        """The cell that bounds an instance, by the instance's hash."""
        return {cell.instance_hash: cell for cell in self.cells if cell.kind == "bound"}

    @property
    def shapes(self) -> Mapping[str, ShapeFacts]:
        """The shape of each instance that is no schedule, by the instance's hash."""
        return {
            each.instance_hash: each.shape
            for each in self.made
            if each.shape is not None and each.instance_hash is not None
        }

    @property
    def solving(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.kind == "solve")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; details of the study follow the fields that readers look for first."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "study": self.study.name,
            "question": self.study.question,
            "config_hash": self.study.config_hash,
            "path": str(self.study.path or ""),
            "declared": self.study.to_dict(),
            "made": [each.to_dict() for each in self.made],
            "cells": [jsonable(cell.to_dict()) for cell in self.cells],
            "errors": [
                {"target": each.target, "seed": each.seed, "message": each.error}
                for each in self.made
                if each.error
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Read a plan; no plug-in is loaded."""
        made = tuple(MadeInstance.from_dict(each) for each in data["made"])
        return cls(
            Study.from_dict(data["declared"]),
            made,
            tuple(Cell.from_dict(each) for each in data["cells"]),
        )


def plan(study: Study, made: tuple[MadeInstance, ...]) -> Plan:
    """Return the cells in the order in which they are run: all bounds, then by instance."""
    cells = [*_bounding(study, made), *_solving(study, made)]
    return Plan(study, made, tuple({cell.key: cell for cell in cells}.values()))


def _bounding(study: Study, made: tuple[MadeInstance, ...]) -> Iterator[Cell]:
    """Yield a bounding cell per instance with one level; each solve bounds later levels itself."""
    entry = SolverEntry(BOUNDS, BOUNDS, {}, CellBudget(time_limit_s=study.bound_limit_s))
    for each in made:
        if each.instance_hash is not None and each.levels == 1:
            yield _cell("bound", each, entry, "", 0)


def _solving(study: Study, made: tuple[MadeInstance, ...]) -> Iterator[Cell]:
    codes = {entry.label: code_of(entry) for entry in study.solvers}
    for each in made:
        for repetition in range(study.repetitions):
            seed = derived_seed(each.seed, repetition)
            for entry in study.solvers:
                if each.instance_hash is not None:
                    yield _cell("solve", each, entry, codes[entry.label], seed, repetition)


def code_of(entry: SolverEntry) -> str:
    """Return the hash of the solver's files and of those that its parameters name."""
    return code_hash("solver", entry.name) + contents_of(entry.params)


def _cell(
    kind: Literal["solve", "bound"],
    made: MadeInstance,
    entry: SolverEntry,
    code: str,
    seed: int,
    repetition: int = 0,
) -> Cell:
    assert made.instance_hash is not None
    instance = made.target, made.name, made.instance_hash, made.seed
    solver = entry.label, entry.name, entry.params, code
    shape = None if made.shape is None else made.shape.of_cell
    return Cell(kind, *instance, *solver, seed, entry.budget, repetition, shape)
