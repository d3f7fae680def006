"""The systemd units that ship: a service that restores by the journals, and a timer that starts it.

The service runs at boot and does nothing without a journal; the timer runs it again and again, for
an apply and a watchdog that are both killed while the host goes on.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib import resources
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.files import replacing
from optbench.hardware.clock_control.state_folder import OF_ROOT, VARIABLE

UNITS = ("service", "timer")
NAME = "optbench-gpu-restore"
UNIT_FOLDER = Path("/etc/systemd/system")
# What a pattern of paths reads as more than itself.
PATTERN_MARKS = "\\*?["


class UnitFileError(OptbenchError):
    """A unit cannot be written, or a path cannot be said in one."""


def systemd_unit(kind: str) -> str:
    """The text of a unit for this installation: its Python, and the folder of journals of root, who
    runs it.
    """
    file = resources.files("optbench.hardware.clock_control") / f"{NAME}.{kind}"
    text = file.read_text(encoding="utf-8")
    folder = os.path.abspath(os.environ.get(VARIABLE) or OF_ROOT)
    for path in (folder, sys.executable):
        if not path.isprintable():
            raise UnitFileError(f"the path {path!r} cannot be said in a unit of systemd; move it")
    values = {
        "@FOLDER@": _escaped(folder),
        "@PATTERN@": _as_pattern(folder),
        "@PYTHON@": _escaped(sys.executable),
    }
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


def write_units(folder: Path) -> tuple[Path, ...]:
    """Write the units, each whole or not at all: an empty one would be a masked one."""
    texts = {folder / f"{NAME}.{kind}": systemd_unit(kind) for kind in UNITS}
    for path, text in texts.items():
        try:
            with replacing(path) as fresh:
                fresh.write_text(text, encoding="utf-8")
                fresh.chmod(0o644)
        except OSError as error:
            raise UnitFileError(
                f'the unit {path} cannot be written: {error.strerror}. Run: sudo "$(command -v '
                f'optbench)" gpu restore --write-units {folder}'
            ) from None
    return tuple(texts)


def risks_of_units() -> tuple[str, ...]:
    """Why root should not run what the units run: others than root can change it."""
    package = Path(__file__).parents[2]
    paths = dict.fromkeys([Path(sys.executable), Path(sys.executable).resolve(), package])
    found = (risk_of(path) for path in paths)
    return tuple(dict.fromkeys(risk for risk in found if risk is not None))


def risk_of(path: Path) -> str | None:
    """Who else than root can change what lies at a path, in words; None if nobody can."""
    for each in (path, *path.parents):
        try:
            facts = each.stat()
        except OSError as error:
            return f"{each}: {error.strerror}"
        if facts.st_uid != 0:
            return f"{each} belongs to user {facts.st_uid}, who can change what root runs there"
        if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not facts.st_mode & stat.S_ISVTX:
            return f"{each} may be written by others than root, who can change what root runs there"
    return None


def _as_pattern(path: str) -> str:
    """A path in a pattern of paths, which systemd reads without quotation marks."""
    for mark in PATTERN_MARKS:
        path = path.replace(mark, f"\\{mark}")
    return path.replace("%", "%%")


def _escaped(value: str) -> str:
    """A path between quotation marks, where systemd expands % and reads backslashes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
