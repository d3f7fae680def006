"""The table of formats, detection by parsing, and conversion."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from optbench import errors
from optbench.errors import FileFormatError, ModelError, naming
from optbench.formats import sacct, wfformat
from optbench.formats.classical import project_instance, shop_instance
from optbench.formats.extract import project_of, shop_of
from optbench.formats.flexible import parse_flexible, write_flexible
from optbench.formats.imported import Import, ImportOptions, ImportReport
from optbench.formats.jobshop_format import (
    parse_standard,
    parse_taillard,
    write_standard,
    write_taillard,
)
from optbench.formats.rcpsp_format import (
    parse_patterson,
    parse_psplib,
    write_patterson,
    write_psplib,
)
from optbench.formats.sacct_runs import looks_like_sacct
from optbench.formats.text import MisfitError
from optbench.formats.wf_records import is_wfformat
from optbench.model.files.instance_json import instance_from_dict, instance_to_json
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json, write_text
from optbench.model.instance import Instance
from optbench.model.validate import validate

if TYPE_CHECKING:
    from optbench.model.builder import Model

T = TypeVar("T")


@dataclass(frozen=True)
class Format:
    """A file format.

    ``read`` takes the text and a name for the instance; it raises a FileFormatError if the text is
    in another format. ``write`` raises an UnsupportedError for an instance that the format cannot
    express; it is None if the format is read only. ``importer`` reads recorded runs; ``read`` then
    returns the instance of its result."""

    name: str
    summary: str
    read: Callable[[str, str], Instance]
    write: Callable[[Instance], str] | None
    importer: Callable[[str, str, ImportOptions | None], Import] | None = None

    def detect(self, text: str) -> bool:
        """Whether the text can be read in this format from beginning to end."""
        try:
            self.read(text, "")
        except FileFormatError:
            return False
        return True


def text_format(
    name: str,
    summary: str,
    content: tuple[Callable[[T, str], Instance], Callable[[Instance, str], T]],
    parse: Callable[[str], T],
    write: Callable[[T], str],
) -> Format:
    """A layout of shops or projects; ``content`` makes an instance of one, and the reverse."""
    instance_of, content_of = content
    return Format(
        name,
        summary,
        lambda text, title: instance_of(parse(text), title),
        lambda instance: write(content_of(instance, name)),
    )


def record_format(
    name: str, summary: str, importer: Callable[[str, str, ImportOptions | None], Import]
) -> Format:
    """A format of records, which is read only."""
    return Format(
        name, summary, lambda text, title: importer(text, title, None).instance, None, importer
    )


# The formats "jobshop" and "taillard" have no alternatives.
JOB_SHOP = partial(shop_instance, problem="jobshop"), partial(shop_of, flexible=False)
FLEXIBLE = partial(shop_instance, problem="flexible_jobshop"), partial(shop_of, flexible=True)
PROJECT = project_instance, project_of
TEXT_FORMATS = (
    text_format("jobshop", "job shop, standard layout", JOB_SHOP, parse_standard, write_standard),
    text_format("taillard", "job shop, Taillard layout", JOB_SHOP, parse_taillard, write_taillard),
    text_format("fjsp", "flexible job shop", FLEXIBLE, parse_flexible, write_flexible),
    text_format("rcp", "project, Patterson .rcp", PROJECT, parse_patterson, write_patterson),
    text_format("psplib", "project, PSPLIB .sm", PROJECT, parse_psplib, write_psplib),
)
NATIVE = Format(
    "optbench",
    "optbench JSON",
    lambda text, name: instance_from_dict(parse_json(text)),
    instance_to_json,
)
WFFORMAT = record_format("wfformat", "WfFormat JSON of WfCommons", wfformat.read)
SACCT = record_format("sacct", "Slurm accounting log", sacct.read)
FORMATS = MappingProxyType(
    {entry.name: entry for entry in (NATIVE, *TEXT_FORMATS, WFFORMAT, SACCT)}
)


def load(path: str | Path, format: str | None = None) -> Instance:
    """Read a valid instance from a file of any known format."""
    return load_import(path, format).instance


def load_import(
    path: str | Path, format: str | None = None, options: ImportOptions | None = None
) -> Import:
    """``load`` with the recorded schedule, and the report of what was read, dropped and assumed.

    ``options`` are for formats of recorded runs. Other files have no schedule, and their report
    only states their size.
    """
    path = Path(os.fspath(path))
    text = read_text(path)
    with naming(shown(path), FileFormatError, ModelError):
        found = parse_import(text, shown(Path(path.stem)), format, options)
        validate(found.instance)
    return found


def parse(text: str, name: str, format: str | None = None) -> Instance:
    """The instance in a text, not yet validated."""
    return parse_import(text, name, format).instance


def parse_import(
    text: str, name: str, format: str | None = None, options: ImportOptions | None = None
) -> Import:
    """The content of a text, its instance not yet validated."""
    if format is not None and format not in FORMATS:
        raise errors.UnknownNameError("format", format, FORMATS)
    if format is None and text.lstrip()[:1] in ("{", "[", '"'):
        return parse_any_json(text, name, options)
    if format is None and looks_like_sacct(text):
        format = SACCT.name
    if format is not None:
        entry = FORMATS[format]
        return (
            entry.importer(text, name, options)
            if entry.importer
            else plain(entry.read(text, name), format, options)
        )
    instance, format = parse_any(text, name)
    return plain(instance, format, options)


def plain(instance: Instance, format: str, options: ImportOptions | None) -> Import:
    """The content of a file that holds an instance and nothing else."""
    if options not in (None, ImportOptions()):
        records = ", ".join(entry.name for entry in FORMATS.values() if entry.importer)
        others = f"formats that do: {records}"
        raise errors.ParameterError(f"format {format!r} takes no import options; {others}")
    return Import(instance, None, ImportReport(format, {"tasks": instance.num_tasks}))


def parse_any_json(text: str, name: str, options: ImportOptions | None) -> Import:
    """Parse a workflow or an optbench file; None for other text."""
    data = parse_json(text)
    if is_wfformat(data):
        return wfformat.import_workflow(data, name, options)
    return plain(instance_from_dict(data), NATIVE.name, options)


def parse_any(text: str, name: str) -> tuple[Instance, str]:
    """Parse by the only plain format that fits the whole text; returns its name too."""
    found, misfits = {}, {}
    for entry in TEXT_FORMATS:
        try:
            found[entry.name] = entry.read(text, name)
        except MisfitError as error:
            misfits[entry.name] = error
    if len(found) == 1:
        format, instance = next(iter(found.items()))
        return instance, format
    if found:
        raise FileFormatError(
            f"reads as any of {', '.join(found)}; say which is meant with the format option"
        )
    raise FileFormatError(explain(misfits))


def explain(misfits: dict[str, MisfitError]) -> str:
    """The errors of all formats, beginning with the one that could read most of the text."""
    order = sorted(misfits, key=lambda name: -misfits[name].depth)
    return "in no known format\n" + "\n".join(
        f"  {FORMATS[name].summary} ({name}): {misfits[name]}" for name in order
    )


def detect(text: str) -> str:
    """Name of the one format the text is in."""
    names = [entry.name for entry in FORMATS.values() if entry.detect(text)]
    if len(names) != 1:
        raise FileFormatError(
            f"in {len(names)} known formats ({', '.join(names) or 'none fits'}); known: "
            f"{', '.join(FORMATS)}"
        )
    return names[0]


def convert(
    source: str | Path, target: str | Path, to: str = "optbench", format: str | None = None
) -> Instance:
    """Write the instance of one file to another in format ``to``; returns the instance."""
    write = writer(to)
    instance = load(source, format)
    write_text(Path(target), write(instance))
    return instance


def writer(format: str) -> Callable[[Instance], str]:
    """The function that writes a format."""
    if format not in FORMATS:
        raise errors.UnknownNameError("format", format, FORMATS)
    write = FORMATS[format].write
    if write is None:
        remedy = "write 'optbench' instead"
        raise errors.UnsupportedError(f"format {format!r} can be read but not written; {remedy}")
    return write


def instance_files(instance: Instance, path: Path, format: str = "optbench") -> dict[Path, str]:
    """The text of ``instance.save(path, format)``."""
    return {path: writer(format)(instance)}


def model_files(model: Model, path: Path, format: str = "optbench") -> dict[Path, str]:
    """The text of ``model.save(path, format)``: the instance that it declares."""
    return instance_files(model.build(), path, format)
