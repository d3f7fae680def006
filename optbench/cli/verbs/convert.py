"""``optbench convert``: convert file formats; recorded runs give an instance, schedule and
report.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.output import emit_json, escape, show
from optbench.cli.terminal.parser import Parser, UsageError, add_seed, setting, settings_of
from optbench.cli.terminal.targets import TARGET_HELP, is_file, read

if TYPE_CHECKING:
    from optbench.formats.imported import Import, ImportOptions, ImportReport

DESCRIPTION = (
    "Read an instance of any known format (or generate one) and write it in another; - is "
    "stdout. A Slurm log (sacct) or a WfFormat workflow also contains a recorded schedule. For "
    "these, and for problems that read a record, a report states what was read, dropped and "
    "assumed. Mixed-integer linear programmes are converted between MPS, LP and JSON, and so is "
    "the model of a shape of your own."
)
EXAMPLES = (
    "optbench convert jobshop:jobs=6,machines=4 instance.json",
    "optbench convert instance.json copy.json --to optbench",
    "optbench convert model.mps model.lp --to lp",
    "optbench convert geo_dc:arrivals=gavel/max_min_fairness.trace,days=2 week.json",
    (
        "optbench convert march.sacct march.json --profile a100=A100-SXM --devices-per-node a100=4 "
        "--schedule recorded.json"
    ),
)


def configure(parser: Parser) -> None:
    parser.positional("input IN", TARGET_HELP)
    parser.positional("output OUT", "the file to write; - for stdout")
    parser.option(
        "--to FORMAT", "format to write (default optbench, the native JSON)", default="optbench"
    )
    parser.option("--format FORMAT", "format of IN, where its content fits more than one")
    add_seed(parser, "of a generated instance (default 0)")
    parser.section("recorded runs (sacct, wfformat)")
    parser.option("--schedule FILE", "write the recorded schedule")
    profile = "profile of a type of device in the log (a shipped one, or a file)"
    without = "without it, recorded times and no power"
    parser.repeated("--profile TYPE=NAME", f"{profile}; {without}", setting)
    parser.option("--work KIND", "kind of work whose law of clocks holds (default training)")
    add_counts(parser, "devices")
    parser.flag("--by-node", "a pool per node of a Slurm log, not per type of device")


def add_counts(parser: Parser, devices: str) -> None:
    """Add the options for the numbers of devices, which a log shows only in part."""
    for flag, what in (("--devices-per-node", "on one node"), ("--count", "in all")):
        text = f"{devices} of a type {what}; without it, the most in use at once"
        parser.repeated(f"{flag} TYPE=N", text, setting)


def run(args: argparse.Namespace) -> int:
    from optbench.errors import nearest
    from optbench.formats.format_registry import FORMATS
    from optbench.model.instance import Instance
    from optbench.plugins.shape_files import PROGRAMMES

    writers = {name: entry.write for name, entry in FORMATS.items() if entry.write is not None}
    if args.to not in (*writers, *PROGRAMMES):
        problem = "can be read but not written" if args.to in FORMATS else "is no format"
        raise UsageError(f"--to {args.to!r} {problem}; {nearest(args.to, (*writers, *PROGRAMMES))}")
    if args.json and output.STDOUT in (args.output, args.schedule):
        raise UsageError("--json and OUT or --schedule on stdout (-) would mix; give a path")
    check_paths(args)
    found = import_of(args)
    instance = found.instance
    if not isinstance(instance, Instance):
        return _convert_other(args, instance, found.report)
    if args.to not in writers:
        known = ", ".join(writers)
        raise UsageError(f"--to {args.to!r}: a schedule is no programme; known: {known}")
    if args.schedule is not None and found.schedule is None:
        why = "; ".join(
            str(finding)
            for finding in found.report.warnings
            if "no schedule on record" in finding.what
        )
        raise UsageError(
            f"--schedule: {args.input} contains no recorded schedule" + (f": {why}" if why else "")
        )
    return _convert_schedule(args, found, writers[args.to](instance))


def _convert_schedule(args: argparse.Namespace, found: Import, text: str) -> int:
    """Write an instance of tasks, with the recorded schedule and a report of what was read."""
    from optbench.formats.format_registry import FORMATS

    instance = found.instance
    written = output.save(text, args.output)
    schedule_file = save_schedule(found, args.schedule)
    recorded = (
        found.report.format not in FORMATS or FORMATS[found.report.format].importer is not None
    )
    if args.json:
        emit_json(
            {
                "instance": instance.name,
                "instance_hash": instance.hash,
                "tasks": instance.num_tasks,
                "format": args.to,
                "file": written,
                "schedule_file": schedule_file,
                "report": found.report.to_dict() if recorded else None,
            }
        )
        return exits.DONE
    if recorded:
        sys.stderr.write("".join(f"{line}\n" for line in found.report.lines()))
    if args.output != output.STDOUT:
        show(
            f"{escape(instance.name)}: {instance.num_tasks:,} tasks written to "
            f"[bold]{escape(written)}[/] ({escape(args.to)})"
        )
    if schedule_file not in (None, output.STDOUT):
        show(
            f"{escape(instance.name)}: recorded schedule written to "
            f"[bold]{escape(str(schedule_file))}[/]"
        )
    return exits.DONE


def _convert_other(args: argparse.Namespace, instance: Any, report: ImportReport) -> int:
    """Write an instance of another shape than the schedules', or the programme of its model."""
    from optbench.errors import UnsupportedError

    if args.schedule is not None:
        raise UsageError("options of recorded runs need a file of recorded runs (sacct, wfformat)")
    from optbench.plugins.shape_files import PROGRAMMES, text_as

    shape, to = instance.shape, args.to
    if shape.name == "milp" and to == "optbench":
        to = "milp"
    try:
        text, words = text_as(instance, to), shape.describe(instance)
    except UnsupportedError as error:
        raise UsageError(f"--to: {error}") from None
    size: dict[str, int] = {}
    if to in PROGRAMMES:
        from optbench.shapes.milp.milp_shape import MILPS

        program = instance.formulation.program
        words = MILPS.describe(MILPS.instance(program))
        size = {"columns": program.num_columns, "rows": program.num_rows}
    written = output.save(text, args.output)
    left_out: tuple[str, ...] = getattr(instance.origin, "left_out", ())
    if left_out:
        remedy = f"solve {args.input!r} itself where they are needed"
        sys.stderr.write(f"left out of the file: {', '.join(left_out)}; {remedy}\n")
    if args.json:
        identity = {"instance": instance.name, "instance_hash": instance.hash}
        # A graph that was read has a report; a shape's own file has none.
        read: dict[str, Any] = {"report": report.to_dict()} if report.read else {}
        if left_out:
            read["left_out"] = list(left_out)
        emit_json({**identity, **size, "format": to, "file": written, **read})
        return exits.DONE
    if report.read:
        sys.stderr.write("".join(f"{line}\n" for line in report.lines()))
    if args.output != output.STDOUT:
        show(f"{escape(instance.name)}: {words} written to [bold]{escape(written)}[/] ({to})")
    return exits.DONE


def check_paths(args: argparse.Namespace) -> None:
    """Refuse paths that cannot be written, and those that would overwrite IN or each other."""
    output.check_writable("OUT", args.output)
    output.check_writable("--schedule", args.schedule)
    taken = {Path(args.input).resolve(): "IN"} if is_file(args.input) else {}
    for name, path in (("OUT", args.output), ("--schedule", args.schedule)):
        if path is None or (
            path != output.STDOUT and not Path(path).is_file() and Path(path).exists()
        ):
            continue  # Several texts may go to the same pipe or device.
        other = taken.setdefault(Path(path).resolve(), name)
        if other != name:
            raise UsageError(f"{name} {path!r} is {other} too; choose another path")


def import_of(args: argparse.Namespace) -> Import:
    """The content of IN: a file with the import options, or any other target without them."""
    from optbench.formats.format_registry import load_import
    from optbench.formats.imported import Import, ImportReport
    from optbench.model.instance import Instance
    from optbench.plugins.shape_files import load_other

    options = options_of(args)
    if is_file(args.input):
        other = load_other(Path(args.input), args.format)
        if other is not None and options is not None:
            flags = "options of recorded runs need a file of recorded runs (sacct, wfformat)"
            raise UsageError(flags)
        if other is not None:
            return Import(other, None, ImportReport("optbench", {}))
        return load_import(args.input, args.format, options)
    if options is not None:
        flags = "--profile, --work, --devices-per-node, --count and --by-node"
        raise UsageError(
            f"{flags} need a file of recorded runs (sacct, wfformat); {args.input!r} is no file"
        )
    instance, report = read(args.input, args.format, args.seed)
    tasks = {"tasks": instance.num_tasks} if isinstance(instance, Instance) else {}
    plain = ImportReport("optbench", tasks)
    return Import(instance, None, plain if report is None else report)


def options_of(args: argparse.Namespace) -> ImportOptions | None:
    """The given import options, or None."""
    from optbench.formats.imported import ImportOptions

    given = (args.profile, args.work, args.devices_per_node, args.count, args.by_node)
    if not any(given):
        return None
    profiles = settings_of(args.profile, "--profile")
    per_node = counts_of("--devices-per-node", args.devices_per_node)
    counts = counts_of("--count", args.count)
    return ImportOptions(profiles, args.work or ImportOptions.work, per_node, counts, args.by_node)


def counts_of(flag: str, pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    out = {}
    for key, value in settings_of(pairs, flag).items():
        if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) > 0):
            raise UsageError(
                f"{flag} {key}={value}: {value!r} is not allowed; it takes a whole number from 1 "
                "to 999,999,999"
            )
        out[key] = int(value)
    return out


def save_schedule(found: Import, path: str | None) -> str | None:
    from optbench.model.files.schedule_json import schedule_to_dict
    from optbench.model.files.strict_json import render

    if path is None or found.schedule is None:
        return None
    return output.save(render(schedule_to_dict(found.schedule, found.instance)), path)
