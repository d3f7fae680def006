"""The table of formats, detection by parsing, and conversion."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from optbench.errors import FileFormatError, ModelError, UnknownNameError
from optbench.model.files.reading import looks_like_json, read_text
from optbench.model.formats.classical import Project, Shop, project_instance, shop_instance
from optbench.model.formats.flexible import parse_flexible
from optbench.model.formats.jobshop import parse_standard, parse_taillard
from optbench.model.formats.rcpsp import parse_patterson, parse_psplib
from optbench.model.formats.text import MisfitError
from optbench.model.instance import Instance
from optbench.model.validate import validate


@dataclass(frozen=True)
class Format:
    """One format; ``read`` takes the text and a name for the instance and raises MisfitError where they do not agree."""

    name: str
    summary: str
    read: Callable[[str, str], Instance]
    write: Callable[[Instance], str] | None = None

    def detect(self, text: str) -> bool:
        """Whether the text can be read in this format from beginning to end."""
        try:
            self.read(text, "")
        except FileFormatError:
            return False
        return True


def shop_reader(parse: Callable[[str], Shop], problem: str) -> Callable[[str, str], Instance]:
    return lambda text, name: shop_instance(parse(text), name, problem)


def project_reader(parse: Callable[[str], Project]) -> Callable[[str, str], Instance]:
    return lambda text, name: project_instance(parse(text), name)


TEXT_FORMATS = (
    Format("jobshop", "job shop, standard layout", shop_reader(parse_standard, "jobshop")),
    Format("taillard", "job shop, Taillard layout", shop_reader(parse_taillard, "jobshop")),
    Format("fjsp", "flexible job shop", shop_reader(parse_flexible, "flexible_jobshop")),
    Format("rcp", "project, Patterson .rcp", project_reader(parse_patterson)),
    Format("psplib", "project, PSPLIB .sm", project_reader(parse_psplib)),
)
FORMATS = MappingProxyType({entry.name: entry for entry in TEXT_FORMATS})


def load(path: str | Path, format: str | None = None) -> Instance:
    """The valid instance in a file of any known format, or a FileFormatError that says why not."""
    path = Path(os.fspath(path))
    text = read_text(path)
    try:
        return validate(parse(text, path.stem, format))
    except (FileFormatError, ModelError) as error:
        raise FileFormatError(f"{path}: {error}") from None


def parse(text: str, name: str, format: str | None = None) -> Instance:
    """The instance in a text, not yet validated."""
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    return FORMATS[format].read(text, name) if format is not None else parse_any(text, name)


def parse_any(text: str, name: str) -> Instance:
    found, misfits = {}, {}
    for entry in TEXT_FORMATS:
        try:
            found[entry.name] = entry.read(text, name)
        except MisfitError as error:
            misfits[entry.name] = error
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise FileFormatError(f"reads as any of {', '.join(found)}; say which is meant with the format option")
    raise FileFormatError(explain(misfits))


def explain(misfits: dict[str, MisfitError]) -> str:
    """What each format found wrong, the one that got furthest first."""
    order = sorted(misfits, key=lambda name: -misfits[name].line)
    return "in no known format\n" + "\n".join(f"  {FORMATS[name].summary} ({name}): {misfits[name]}" for name in order)


def detect(text: str) -> str:
    """Name of the one format the text is in."""
    names = [entry.name for entry in FORMATS.values() if entry.detect(text)]
    if len(names) != 1:
        raise FileFormatError(f"in {len(names)} known formats ({', '.join(names) or 'none fits'}); known: {', '.join(FORMATS)}")
    return names[0]
