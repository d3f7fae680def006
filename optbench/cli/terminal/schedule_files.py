"""A schedule file with its instance, which may lie beside the schedule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optbench.cli.terminal.parser import UsageError
from optbench.cli.terminal.targets import instance_of, require_schedules
from optbench.errors import FileFormatError, OptbenchError

if TYPE_CHECKING:
    from optbench.model.instance import Instance

MARK = b'"optbench-instance"'
# The format is named at the beginning of an instance file; larger ones are not looked into.
HEAD_BYTES, MOST_BYTES = 256, 1 << 28


def instance_of_schedule(words: list[str], format: str | None, seed: int) -> tuple[Instance, str]:
    """The instance and the path of the schedule, from ``[INSTANCE] SCHEDULE``."""
    if len(words) > 2:
        raise UsageError(
            f"{len(words)} arguments are given; it takes [INSTANCE] SCHEDULE, as `optbench verify`"
        )
    path = words[-1]
    if not Path(path).is_file():
        raise UsageError(f"no such file: {path!r}; give a schedule, as `optbench solve -o` writes")
    if len(words) == 1:
        return _beside(Path(path)), path
    instance = instance_of(words[0], format, seed)
    require_schedules(instance, "clocks")
    return instance, path


def _beside(schedule: Path) -> Instance:
    """The instance in the schedule's folder that the schedule names by its hash."""
    from optbench.model.files.instance_json import read_instance
    from optbench.model.files.json_fields import read_text
    from optbench.model.files.schedule_json import PHYSICS_DIGITS
    from optbench.model.files.strict_json import parse_json

    try:
        document = parse_json(read_text(schedule))
    except OptbenchError as error:
        raise FileFormatError(f"{schedule}: {error}") from None
    said = document.get("instance_hash") if isinstance(document, dict) else None
    if not isinstance(said, str):
        raise UsageError(
            f"{str(schedule)!r} names no instance (it has no instance_hash); give the instance in "
            f"front of it: INSTANCE {schedule}"
        )
    for path in sorted(schedule.absolute().parent.glob("*.json")):
        if not _is_instance(path):
            continue
        try:
            found = read_instance(path)
        except OptbenchError:
            continue
        if found.hash[:PHYSICS_DIGITS] == said[:PHYSICS_DIGITS]:
            return found
    name = document.get("instance")
    raise UsageError(
        f"no file in the folder of {str(schedule)!r} is its "
        f"instance{f' {name!r}' if isinstance(name, str) else ''}; give the instance in front of "
        f"it, a file or a problem as for `optbench verify`: INSTANCE {schedule}"
    )


def _is_instance(path: Path) -> bool:
    """Whether a file says that it is an instance."""
    try:
        with path.open("rb") as file:
            return path.stat().st_size <= MOST_BYTES and MARK in file.read(HEAD_BYTES)
    except OSError:
        return False
