"""``optbench audit``: from a cluster's log to the certified saving potential and a policy."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.output import BAD, DIM, GOOD, emit_json, escape, show, table, table_of
from optbench.cli.terminal.parser import Parser, UsageError, add_seed, setting, settings_of
from optbench.cli.verbs.convert import add_counts, counts_of

if TYPE_CHECKING:
    from optbench.audit.audit_run import Audit, AuditRecord
    from optbench.audit.log import AuditOptions
    from optbench.audit.ranges import Ranges

DESCRIPTION = (
    "From a Slurm log (sacct --parsable2, or CSV) and GPU profiles: the verified energy of the "
    "recorded schedule; the certified least energy of any scheduler at the same mean time in "
    "the system; the energy that policies would have used; the sources of the excess; the value "
    "of one more GPU, watt or second; and the recommended policy and clocks."
)
EXAMPLES = (
    "optbench audit march.sacct --profile a100=A100-PCIe --html audit.html",
    "optbench audit march.sacct --profile a100=A100-PCIe --keep count --keep idle --json",
)


def configure(parser: Parser) -> None:
    fields = "JobID, Eligible, Start, End, AllocTRES, NodeList"
    parser.positional("log", f"a Slurm log: sacct --parsable2, with {fields}")
    kinds = "profile of a type of GPU in the log (a shipped one, or a file)"
    parser.repeated("--profile TYPE=NAME", kinds, setting)
    laws = "kind of work whose law of clocks holds (default training)"
    parser.option("--work KIND", laws, default="training")
    ran_at = "the clock that a type ran at, as a share of its top clock (default 1)"
    parser.repeated("--clock TYPE=F", ran_at, setting)
    fixed = "clock, count, placement (type of GPU), idle (idle GPUs stay awake)"
    parser.repeated("--keep WHAT", f"what no scheduler may change: {fixed}")
    only = "simulate only these (default: all that support the instance)"
    parser.repeated("--policy -s --solver POLICY", only)
    add_seed(parser, "of the policies (default 0)")
    parser.option("--html FILE", "write the report as one page")
    parser.option("--instance FILE", "write the runs as an instance for policies and solvers")
    parser.flag("-q --quiet", "no progress")
    parser.section("information that a log does not contain")
    printed = "as sinfo -N -h -o '%%N %%G' prints them, or CSV with sn, gpu, model"
    parser.option("--nodes FILE", f"the GPUs of each node, {printed}")
    nodes = "gpu[01-24], gpu*, * for all others"
    types = f"type of the GPUs of nodes ({nodes}), for runs that name none"
    parser.repeated("--node-type NODES=TYPE", types, node_type)
    for flags, what, side in (("--since -S", "from", "-S"), ("--until -E", "up to", "-E")):
        text = (
            f"audit {what} this time (2026-03-01 or 2026-03-01T12:00:00): sacct's {side}; "
            "without it, as the log shows"
        )
        parser.option(f"{flags} TIME", text, moment)
    add_counts(parser, "GPUs")


def run(args: argparse.Namespace) -> int:
    from optbench.audit.audit_json import document, of_ranges, refused
    from optbench.audit.audit_run import Audit, AuditRecord, audit
    from optbench.audit.ranges import Ranges
    from optbench.cli.terminal.work import interruptible

    for flag, path in (("--html", args.html), ("--instance", args.instance)):
        output.check_writable(flag, path)
    if [args.html, args.instance].count(output.STDOUT) + args.json > 1:
        raise UsageError(
            "--json and a file on stdout (-), or two of them, would mix; give one of them a path"
        )
    options = options_of(args)
    tell = no_progress if args.quiet or args.json else print_step
    done = interruptible(partial(audit, args.log, options, tell), keeps=False)
    if isinstance(done, AuditRecord):
        if args.json:
            emit_json(refused(done))
        else:
            show_refusal(done)
        return exits.NOT_VERIFIED
    written = None
    if args.html:
        from optbench.audit.audit_page import render
        from optbench.audit.range_page import render_ranges

        written = output.save(
            render_ranges(done) if isinstance(done, Ranges) else render(done), args.html
        )
    if args.instance and isinstance(done, Audit):
        from optbench.model.files.instance_json import instance_to_json

        output.save(instance_to_json(done.cluster.instance), args.instance)
    if args.json:
        emit_json(of_ranges(done) if isinstance(done, Ranges) else document(done))
    elif isinstance(done, Ranges):
        show_ranges(done, written)
    elif output.STDOUT not in (written, args.instance):
        show_audit(done, written)
    return exits.DONE


def no_progress(_: str) -> None:
    """No progress."""


def print_step(words: str) -> None:
    sys.stderr.write(f"  {words} ...\n")
    sys.stderr.flush()


def node_type(text: str) -> tuple[str, str]:
    """Parse ``NODES=TYPE``."""
    nodes, equals, kind = text.rpartition("=")
    if not equals or not nodes.strip():
        raise argparse.ArgumentTypeError(
            f"{text!r} names no type; write NODES=TYPE, such as gpu[01-24]=a100"
        )
    return nodes.strip(), kind.strip()


def moment(text: str) -> float:
    """Seconds since 1970 of a day, of a time in sacct's format, or of an epoch."""
    from optbench.formats.sacct_fields import time_s

    for tail in ("", "T00:00:00", ":00"):
        found = time_s(text.strip() + tail)
        if found is not None:
            return float(found)
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a time; write 2026-03-01 or 2026-03-01T12:00:00"
    )


def options_of(args: argparse.Namespace) -> AuditOptions:
    from optbench.audit.log import AuditOptions
    from optbench.formats.imported import ImportOptions
    from optbench.formats.node_map import map_of_pairs

    per_node = counts_of("--devices-per-node", args.devices_per_node)
    counts = counts_of("--count", args.count)
    clocks = {}
    for kind, text in settings_of(args.clock, "--clock").items():
        try:
            clocks[kind] = float(text)
        except ValueError:
            raise UsageError(
                f"--clock {kind}={text}: {text!r} is not allowed; it takes a share of the top "
                "clock, as 0.8"
            ) from None
    profiles = settings_of(args.profile, "--profile")
    node_map = map_of_pairs(args.node_type, "--node-type")
    if args.since is not None and args.until is not None and args.since >= args.until:
        raise UsageError("--since must be before --until")
    return AuditOptions(
        ImportOptions(profiles, args.work, per_node, counts, node_map=node_map), clocks,
        frozenset(word for each in args.keep for word in each.split(",")),
        tuple(word for each in args.policy for word in each.split(",")) or None,
        None if args.nodes is None else Path(args.nodes), args.since, args.until, args.seed,
    )  # fmt: skip


def show_refusal(record: AuditRecord) -> None:
    show(f"[{BAD}]the recorded schedule is not feasible[/], so that no saving can be computed")
    for violation in record.violations:
        show(f"  [{BAD}]violates[/] {escape(violation)}")
    show(
        "If the log is right, give the numbers of devices: --devices-per-node TYPE=N, --count "
        "TYPE=N, --nodes FILE"
    )


def show_audit(done: Audit, written: str | None) -> None:
    """For people."""
    from optbench.audit.coverage import ENOUGH
    from optbench.audit.findings import advice_of, headline, rows_of
    from optbench.html.quantities import amount, clock

    record, coverage, mean = done.record, done.log.coverage, clock(round(done.record.sojourn_s))
    how = "verified by node" if record.nodes_checked else "verified"
    facts = (
        f"{done.log.num_runs:,} runs on {int(done.log.counts.sum()):,} GPUs, {done.wall_s:.1f} s"
    )
    colour = "bold" if coverage.enough else BAD
    whose = "the record" if coverage.share >= ENOUGH else "the record of the runs that are covered"
    show(
        f"\n[bold]{escape(done.log.name)}[/]  [{DIM}]{facts}[/]",
        (
            f"{whose} used [bold]{amount(record.energy_j, 'J')}[/] ({how}), {mean} from release to "
            "end on the mean"
        ),
        (
            f"no scheduler uses less than [bold]{amount(done.least.energy_j, 'J')}[/] for them at "
            "that mean"
        ),
        f"[{colour}]{escape(headline(done))}[/]",
        f"[{DIM}]{escape(done.log.window.words)}[/]",
    )
    causes = [
        (name, amount(value, "J"), f"{100 * value / record.energy_j:.1f} %")
        for name, value in done.causes.items()
    ]
    show(
        "",
        table(("excess by", "energy", "of the record"), causes, right=("energy", "of the record")),
    )
    columns: dict[str, Callable[[Any], str]] = {
        "policy": lambda row: escape(row.played.label.replace(",", ", ")),
        "energy": lambda row: row.energy,
        "of the record": lambda row: row.share,
        "mean time": lambda row: row.mean,
        "gap at that time": lambda row: row.gap,
        "": lambda row: escape(row.note),
    }
    show("", table_of(rows_of(done), columns, left=("policy", "")))
    if any("(" in row.share for row in rows_of(done)):
        show(f"[{DIM}]in brackets: without GPUs that rest after the record's end[/]")
    worth = [
        f"one more {name}: {amount(abs(value), 'J')} {'less' if value > 0 else 'more'}"
        for name, value in done.prices.gpu_j.items()
    ]
    show("", f"[{DIM}]least energy with[/] {escape('; '.join(worth))}")
    advice = advice_of(done)
    show(f"[{GOOD if advice.take else 'bold'}]{escape(advice.words)}[/]")
    for finding in (*done.log.report.dropped, *done.log.report.warnings):
        show(f"[{DIM}]{escape(str(finding))}[/]")
    if written:
        show(f"written to [bold]{escape(written)}[/]")


def show_ranges(done: Ranges, written: str | None) -> None:
    """For people."""
    from optbench.audit.range_page import said

    facts = (
        f"{done.pods.num_pods:,} pods on {int(done.pods.counts.sum()):,} GPUs, {done.wall_s:.1f} s"
    )
    show(
        f"\n[bold]{escape(done.pods.name)}[/]  [{DIM}]{facts}[/]",
        *(escape(words) for words in said(done)),
    )
    for words in (*done.assumptions, *map(str, done.pods.report.dropped)):
        show(f"[{DIM}]{escape(words)}[/]")
    if written:
        show(f"written to [bold]{escape(written)}[/]")
