"""The table ``[statistics]`` of a study: the hypothesis tests that its report shows.

    [statistics]
    metric = "step_s"
    regress_on = ["num_nodes", "num_edges", "num_devices"]

A column of ``regress_on`` is a number of the instance (``Shape.fact_words``), a parameter of a
problem that the study gives as a number, ``threads``, or a number of the machine of the cell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from optbench.errors import FileFormatError, OptbenchError, naming, nearest
from optbench.plugins import specs
from optbench.plugins.discovery import load_class, problem_named_by
from optbench.shapes.protocol.shape import Shape
from optbench.study.declared import BEST, SolverEntry, Statistics, Study
from optbench.study.expectations import figure, read_reference, scope
from optbench.study.fields import real, refuse, text, word
from optbench.study.formula_binding import cell_number
from optbench.typed_values import check_keys

STATISTICS_KEYS = tuple(entry.name for entry in fields(Statistics))
SCALES = ("linear", "log")
# Columns of every cell: its budget, and the machine on which it ran.
OF_CELLS = {
    "threads": "threads of the cell",
    "machine_cores": "cores of the cell's machine",
    "machine_memory_gb": "memory of the cell's machine",
}


def read_statistics(value: Any, solvers: Sequence[SolverEntry]) -> Statistics | None:
    """Return the tests that a study asks for; None where it asks for none."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        refuse("statistics", value, 'a table, such as [statistics] with metric = "objective"')
    check_keys(value, STATISTICS_KEYS, within="statistics.")
    if "metric" not in value:
        example = 'a formula of one number per cell, such as "objective" or "step_s"'
        raise FileFormatError(f"statistics.metric is missing; it must be {example}")
    with naming("statistics"):
        reference = read_reference(value.get("reference"), solvers)
    scale: Literal["linear", "log"] = word(  # type: ignore[assignment]  # one of SCALES
        value.get("scale", Statistics.scale), "statistics.scale", SCALES
    )
    by_problem = value.get("by_problem", Statistics.by_problem)
    if not isinstance(by_problem, bool):
        refuse("statistics.by_problem", by_problem, "true or false")
    return Statistics(
        metric=text(value["metric"], "statistics.metric", "a formula of one number per cell"),
        reference="" if reference == BEST else reference,
        regress_on=_names(value.get("regress_on", [])),
        scale=scale,
        margin=_margin(value.get("margin")),
        by_problem=by_problem,
    )


def _margin(value: Any) -> float | None:
    """A difference; of a logarithm a share, which may be written in percent."""
    if value is None:
        return None
    found = figure(value, "statistics.margin")
    if not found > 0:
        refuse("statistics.margin", value, 'a number above 0, such as 0.01 or "1%"')
    return found


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        refuse("statistics.regress_on", value, 'a list of names, such as ["num_nodes"]')
    twice = [name for k, name in enumerate(value) if name in value[:k]]
    if twice:
        raise FileFormatError(f"statistics.regress_on names {twice[0]!r} twice")
    return tuple(value)


def check_statistics(study: Study) -> None:
    """Check the formula and the names of columns."""
    section = study.statistics
    if section is None:
        return
    with naming("statistics.metric"):
        cell_number(section.metric, scope(study, study.solvers[0].label))
    if not section.regress_on:
        return
    known = {*OF_CELLS, *_numbers_given(study.problems), *_facts(study.problems)}
    for k, name in enumerate(section.regress_on):
        if name not in known:
            raise FileFormatError(
                f"statistics.regress_on[{k}] is {name!r}, which is neither a number of the "
                f"instances nor one of a problem's parameters; {nearest(name, known)}"
            )


def numbers_in(target: str) -> dict[str, float]:
    """Return the parameters in a text of the form ``name:key=value,...`` that are numbers."""
    try:
        given = specs.parse(target)[1]
    except OptbenchError:  # the path of a file
        return {}
    return {name: number for name, value in given.items() if (number := real(value)) == number}


def _numbers_given(targets: Iterable[str]) -> Iterator[str]:
    for target in targets:
        yield from numbers_in(target)


def _facts(targets: Iterable[str]) -> Iterator[str]:
    """Yield the numbers that the shapes in the problems' files declare, and those of schedules."""
    from optbench.plugins.schedule_shape import ScheduleShape

    yield from ScheduleShape.fact_words
    for name in dict.fromkeys(filter(None, map(problem_named_by, targets))):
        module = sys.modules[load_class("problem", name).__module__]
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Shape):
                yield from each.fact_words
