"""TARGET arguments: an instance file of any known format, or a problem with its parameters."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.cli.terminal.parser import UsageError

if TYPE_CHECKING:
    from optbench.model.formats.imported import Import, ImportReport
    from optbench.model.instance import Instance

TARGET_HELP = "an instance file of any known format, or a problem: NAME:key=value,... or NAME[key=value,...]"


def add_target(parser: argparse.ArgumentParser, name: str = "target", optional: bool = False) -> None:
    parser.add_argument(name, metavar=name.upper(), help=TARGET_HELP, nargs="?" if optional else None)
    parser.add_argument("--format", metavar="FORMAT", help="format of the file, where its content fits more than one")


def instance_of(target: str, format: str | None, seed: int) -> Instance:
    """The instance that a TARGET names; stderr reports how much of a record was dropped."""
    from optbench.api import load_target

    if not target.strip():
        raise UsageError("TARGET is empty; give an instance file or a problem such as jobshop:jobs=6,machines=4")
    if format is not None:
        from optbench.model.formats import format_registry

        return format_registry.load(target, format)
    found = import_of_problem(target, seed)
    return load_target(target, seed) if found is None else with_remarks(found)


def with_remarks(found: Import) -> Instance:
    """The instance; stderr reports what was dropped to make it."""
    sys.stderr.write("".join(f"{line}\n" for line in remarks(found.report)))
    return found.instance


def import_of_problem(target: str, seed: int) -> Import | None:
    """The instance of a problem that reads a record, with its report; None for any other TARGET."""
    from dataclasses import replace

    from optbench.plugins.discovery import load_problem, problem_named_by

    if is_file(target) or problem_named_by(target) is None:
        return None
    found = load_problem(target).imported(seed)
    return None if found is None else replace(found, instance=replace(found.instance, problem=target))


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
        lines.append(f"dropped {dropped:,} of {report.read.get('rows', dropped):,} rows ({report.format}): {why}")
    return lines
