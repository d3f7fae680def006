"""Files of programmes: MPS, LP and JSON, the first two recognised by their suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from optbench.errors import FileFormatError, ModelError, UnknownNameError
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json, render
from optbench.shapes.milp.lp_format import read_lp
from optbench.shapes.milp.lp_writer import write_lp
from optbench.shapes.milp.milp_json import read_program, write_program
from optbench.shapes.milp.mps_format import read_mps
from optbench.shapes.milp.mps_writer import write_mps
from optbench.shapes.milp.program import Milp

SUFFIXES = {".mps": "mps", ".lp": "lp"}


@dataclass(frozen=True)
class MilpFormat:
    """How a format is read (text, name of the instance) and written."""

    summary: str
    read: Callable[[str, str], Milp]
    write: Callable[[Milp], str]


def _read_json(text: str, name: str) -> Milp:
    data = parse_json(text)
    if not isinstance(data, dict):
        raise FileFormatError("not a JSON object")
    return read_program(data)


def _write_json(program: Milp) -> str:
    return render(write_program(program, program.name))


FORMATS = {
    "mps": MilpFormat("MPS, fixed or free", read_mps, write_mps),
    "lp": MilpFormat("LP, the readable format of CPLEX and others", read_lp, write_lp),
    "milp": MilpFormat("optbench JSON of a programme", _read_json, _write_json),
}


def load(path: Path, format: str) -> Milp:
    """Read a programme; a FileFormatError names file, place and reason."""
    if format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    text = read_text(path)
    try:
        return FORMATS[format].read(text, path.stem)
    except (FileFormatError, ModelError) as error:
        raise FileFormatError(f"{shown(path)}: {error}") from None
