"""Refuse a study whose solver does not take the shape of an instance, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optbench.errors import OptbenchError, UnsupportedError, with_article
from optbench.plugins.discovery import files_by_name, load_class
from optbench.sandbox.trial_import import is_part_of_optbench
from optbench.study.cells import Cell
from optbench.study.declared import Study
from optbench.study.planning import Plan

SCHEDULE = "schedule"
# Solvers that a message names.
MOST_NAMED = 12
CAPABILITIES = {"formulate": "what has a formulation", "process": "what has a process"}


def refuse_unfit(planned: Plan, cells: Iterable[Cell]) -> None:
    """Raise for the first cell whose solver does not take the instance's shape."""
    study, shapes = planned.study, planned.shapes
    known: dict[str, tuple[str, ...]] = {}
    for cell in cells:
        if cell.kind != "solve":
            continue
        if cell.solver not in known:
            known[cell.solver] = study.takes.get(cell.solver) or shapes_of(cell.solver)
        shape = shapes.get(cell.instance_hash)
        answers_to = (SCHEDULE,) if shape is None else shape.answers_to
        if not set(known[cell.solver]) & set(answers_to):
            raise UnsupportedError(
                f"study {study.name!r}: solver {cell.solver!r} takes {_words(known[cell.solver])}, "
                f"and {cell.instance} is {with_article(answers_to[0])}. "
                f"{_takers(study, answers_to)}"
            )


def shapes_of(solver: str) -> tuple[str, ...]:
    """Return what a solver takes; a user's solver is imported for it."""
    return tuple(sorted(getattr(load_class("solver", solver), "shapes", ())))


def _words(shapes: Iterable[str]) -> str:
    return " or ".join(
        CAPABILITIES.get(each, with_article(each)) for each in sorted(shapes, reverse=True)
    )


def _takers(study: Study, answers_to: Sequence[str]) -> str:
    """Name the solvers that take it: those of optbench, and those of the study."""
    found = {name for name, shapes in study.takes.items() if set(shapes) & set(answers_to)}
    for name, paths in files_by_name("solver").items():
        if not is_part_of_optbench(paths[0]):
            continue
        try:
            taken = shapes_of(name)
        except OptbenchError:  # `optbench list` says what is wrong with it
            continue
        if set(taken) & set(answers_to):
            found.add(name)
    if not found:
        return f"No solver of optbench takes it; write one with shapes = {{{answers_to[0]!r}}}."
    named = ", ".join(sorted(found)[:MOST_NAMED])
    more = len(found) - MOST_NAMED
    return f"These take it: {named}{f' and {more} more' if more > 0 else ''}."
