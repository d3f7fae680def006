"""Files of any shape and the verdict on decisions: the header of a file picks its codec.

| ``format`` of the header | shape |
| --- | --- |
| ``optbench-instance`` | schedules |
| ``optbench-milp`` | mixed-integer linear programmes |
| ``optbench-shaped`` | the one that the header names, ``"shape": "packing"`` |

MPS and LP files are known by their suffix; other files are read by ``formats``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from optbench.errors import (
    FileFormatError,
    ModelError,
    ParameterError,
    UnknownNameError,
    UnsupportedError,
    clipped,
    with_article,
)
from optbench.model.files import json_columns as col
from optbench.model.files.instance_json import FORMAT as SCHEDULE_FORMAT
from optbench.model.files.json_fields import byte_limit, looks_like_json, read_text, shown
from optbench.model.files.strict_json import parse_json, render, write_text
from optbench.model.validate import validate
from optbench.model.verify import Verdict
from optbench.model.verify import verify as schedule_verdict
from optbench.plugins.schedule_shape import SCHEDULES, shape_of
from optbench.shapes.protocol.measurements import Measurements, MeasuringMachine
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.shapes.protocol.shaped_json import FORMAT as SHAPED_FORMAT

# The first characters of a file, where optbench writes the header.
HEAD = 400
HEADER = re.compile(rb'"format"\s*:\s*"([^"]*)"')
MILP_FORMAT = "optbench-milp"
OTHERS = (SHAPED_FORMAT.encode(), MILP_FORMAT.encode())
NATIVE = "optbench"
# Formats of mixed-integer linear programmes.
PROGRAMMES = ("mps", "lp", "milp")


def load(path: str | Path, format: str | None = None) -> Any:
    """Read a valid instance of any shape from a file of any known format."""
    found = load_other(Path(path), format)
    if found is not None:
        return found
    from optbench.formats import format_registry

    return format_registry.load(path, format)


def load_other(path: Path, format: str | None = None) -> Any:
    """Read an instance of another shape than the schedules'; None for any other file."""
    if format in (None, NATIVE) and has_shape_header(path):
        return read_shaped(path)
    suffix = path.suffix.lower()
    if format not in PROGRAMMES and (format is not None or suffix not in (".mps", ".lp")):
        return None
    from optbench.shapes.milp import milp_files
    from optbench.shapes.milp.milp_shape import MILPS

    return MILPS.instance(milp_files.load(path, format or milp_files.SUFFIXES[suffix]))


def read_instance(path: str | Path) -> Any:
    """Read the instance in an optbench JSON file, of any shape."""
    from optbench.model.files import instance_json

    path = Path(path)
    return read_shaped(path) if has_shape_header(path) else instance_json.read_instance(path)


def write_instance(instance: Any, path: str | Path) -> None:
    """Write an instance of any shape as optbench JSON."""
    write_text(Path(path), instance_text(instance))


def instance_text(instance: Any) -> str:
    """Return the optbench JSON of an instance of any shape."""
    shape = shape_of(instance)
    document = shape.write(instance)
    if shape is not SCHEDULES and instance.problem is not None:
        document["problem"] = instance.problem
    return render(document)


def shaped_files(instance: Any, path: Path, format: str = NATIVE) -> dict[Path, str]:
    """The text of ``instance.save(path, format)``."""
    return {path: text_as(instance, format)}


def convert(
    source: str | Path, target: str | Path, to: str = NATIVE, format: str | None = None
) -> Any:
    """Write the instance of one file to another in format ``to``; returns the instance."""
    instance = load(source, format)
    write_text(Path(target), text_as(instance, to))
    return instance


def text_as(instance: Any, to: str) -> str:
    """Return an instance of any shape in a format; programmes are those of its model."""
    shape = shape_of(instance)
    if shape is SCHEDULES:
        from optbench.formats.format_registry import writer

        return writer(to)(instance)
    if to == NATIVE:
        return instance_text(instance)
    if to not in PROGRAMMES:
        known = ", ".join((NATIVE, *PROGRAMMES))
        raise UnsupportedError(f"{to!r} is no format of {with_article(shape.name)}; known: {known}")
    if "formulate" not in shape.capabilities:
        raise UnsupportedError(
            f"{to!r}: {with_article(shape.name)} has no model; write {NATIVE!r} instead"
        )
    from optbench.shapes.milp.milp_files import FORMATS

    return FORMATS[to].write(instance.formulation.program)


def write_decision(decision: Any, path: str | Path, instance: Any) -> None:
    """Write a decision of an instance of any shape as optbench JSON."""
    write_text(Path(path), render(shape_of(instance).write_decision(instance, decision)))


def has_shape_header(path: Path) -> bool:
    """Whether a file is the JSON of an instance of another shape than the schedules'."""
    try:
        if not path.is_file():  # the reader of instances says what a pipe or a device is
            return False
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not looks_like_json(head):
                return False
            known = HEADER.search(head)
            if known is not None:
                return known[1] in OTHERS
            rest = file.read(byte_limit(head))
    except (OSError, ValueError):
        return False
    return any(b'"%s"' % each in part for part in (head, rest) for each in OTHERS)


def read_shaped(path: Path) -> Any:
    """Read an instance by the shape that its header names; an error names file and field."""
    with named(path):
        return shaped_instance(parse_json(read_text(path)))


def shaped_instance(data: Any) -> Any:
    """Return the valid instance of a document, by the shape that its header names."""
    if not isinstance(data, dict):
        raise FileFormatError("not a JSON object")
    given = dict(data)
    if given.get("format") == SCHEDULE_FORMAT:
        return validate(SCHEDULES.read(given))
    problem = given.pop("problem", None)
    if problem is not None:
        col.text(problem, "problem")
    name = "milp" if given.get("format") == MILP_FORMAT else header_shape(given)
    from optbench.plugins.shape_search import REMEDY, shape_named

    try:
        shape = shape_named(name)
    except UnknownNameError as error:
        raise FileFormatError(f"shape is {clipped(name)!r}: {error}; {REMEDY}") from None
    return replace(shape.read(given), problem=problem)


def header_shape(data: dict[str, Any]) -> str:
    """Return the name in the header of an instance of a shape of one's own."""
    col.header(data, SHAPED_FORMAT, 1)
    if "shape" not in data:
        raise FileFormatError('shape is missing; it names the shape, such as "packing"')
    return col.text(data["shape"], "shape")


def verify(instance: Any, decision: Any) -> Verdict:
    """Check every constraint and recompute every metric of a decision of any shape."""
    if isinstance(instance, ShapedInstance):
        return instance.shape.verdict_of(instance, decision)
    return schedule_verdict(instance, decision)


def measure(
    instance: Any, decision: Any, repeats: int = 5, folder: str | Path | None = None
) -> Measurements:
    """Take readings of the measured metrics of a valid decision on this machine; files that come of
    it, such as the weights of a training, are written to ``folder``.
    """
    if not isinstance(repeats, int) or repeats < 1:
        raise ParameterError(f"repeats is {repeats!r}; it must be a whole number from 1 on")
    verdict = verify(instance, decision)
    if not verdict.feasible:
        raise ParameterError(f"the decision is not feasible: {verdict.violations[0]}")
    machine = MeasuringMachine.here(repeats, None if folder is None else Path(folder))
    return shape_of(instance).measured(instance, decision, machine)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Put the file before what is wrong in it, once."""
    try:
        yield
    except (FileFormatError, ModelError) as error:
        words, place = str(error), shown(path)
        raise FileFormatError(words if words.startswith(place) else f"{place}: {words}") from None
