"""TARGET arguments: an instance file of any known format, or a problem with its parameters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.parser import Parser, UsageError
from optbench.errors import with_article

if TYPE_CHECKING:
    from optbench.formats.imported import ImportReport
    from optbench.model.instance import Instance

TARGET_HELP = (
    "an instance file of any known format, or a problem: NAME:key=value,... or NAME[key=value,...]"
)


def add_target(parser: Parser, name: str = "target", optional: bool = False) -> None:
    parser.positional(name, TARGET_HELP, "?" if optional else None)
    parser.option("--format FORMAT", "format of the file, where its content fits more than one")


def instance_of(target: str, format: str | None, seed: int) -> Instance:
    """The instance that a TARGET names; stderr reports how much of a record was dropped."""
    instance, report = read(target, format, seed)
    return instance if report is None else with_remarks(instance, report)


def read(target: str, format: str | None, seed: int) -> tuple[Instance, ImportReport | None]:
    """The instance that a TARGET names, with a report where a problem reads a record."""
    from optbench.plugins.given import read_target

    if not target.strip():
        raise UsageError(
            "TARGET is empty; give an instance file or a problem such as jobshop:jobs=6,machines=4"
        )
    return read_target(target, seed, format)


def require_schedules(instance: Any, what: str) -> None:
    """Refuse what only schedules have."""
    from optbench.plugins.schedule_shape import shape_of

    shape = shape_of(instance)
    if shape.name != "schedule":
        raise UsageError(
            f"{what}: this is {with_article(shape.name)}, and only schedules have that"
        )


def with_remarks(instance: Instance, report: ImportReport) -> Instance:
    """The instance; stderr reports what was dropped to make it."""
    sys.stderr.write("".join(f"{line}\n" for line in remarks(report)))
    return instance


def is_file(target: str) -> bool:
    try:
        return Path(target).exists()
    except (OSError, ValueError):  # It cannot be a path: it is too long, or contains a NUL.
        return False


def remarks(report: ImportReport) -> list[str]:
    """A line for each finding: what was dropped and why, and what is unusual."""
    dropped = sum(finding.count for finding in report.dropped)
    lines = [f"warning: {finding}" for finding in report.warnings]
    if dropped:
        why = "; ".join(f"{finding.count:,} {finding.what}" for finding in report.dropped)
        lines.append(
            f"dropped {dropped:,} of {report.read.get('rows', dropped):,} rows "
            f"({report.format}): {why}"
        )
    return lines
