"""``optbench list``: problems, solvers, studies, device profiles, and the solvers of a TARGET."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import (
    BAD,
    DIM,
    attributes,
    emit_json,
    escape,
    show,
    table,
    table_of,
)
from optbench.cli.terminal.parser import Parser, UsageError, add_seed
from optbench.cli.terminal.targets import TARGET_HELP, instance_of, is_file

if TYPE_CHECKING:
    from optbench.plugins.discovery import Entry, Kind
    from optbench.power.profiles import Profile

DESCRIPTION = (
    "List the plug-ins: your own of this workspace, and the built-in ones.\n"
    "Or the solvers that take a TARGET, by its shape and features.\n"
    "Or the profiles of devices: the shipped ones, or those you name, by name or file."
)
EXAMPLES = (
    "optbench list",
    "optbench list solvers -v",
    "optbench list gpu_dag:tasks=20",
    "optbench list profiles L4 mine.json",
    "optbench list --json",
)
PROFILES = ("profiles", "profile")
WHAT: dict[str, Kind] = {"problems": "problem", "solvers": "solver", "studies": "study"}


def configure(parser: Parser) -> None:
    kinds = f"only {', '.join(WHAT)} (default all three), or profiles; or a TARGET: {TARGET_HELP}"
    parser.positional("kind", kinds, "?")
    parser.positional("names NAME", "of profiles: names, or files of your own", "*")
    more = "also files, types of parameters, what solvers support, sources of profiles"
    parser.flag("-v --verbose", more)
    parser.option(
        "--format FORMAT", "format of a TARGET's file, where its content fits more than one"
    )
    add_seed(parser, "of a generated TARGET (default 0)")


def run(args: argparse.Namespace) -> int:
    from optbench.errors import ParameterError
    from optbench.plugins.discovery import catalogue

    if args.kind in PROFILES:
        return _profiles(args)
    if args.names:
        raise ParameterError(
            f"list {args.kind}: unexpected {args.names[0]!r}; names go with `optbench list "
            "profiles`"
        )
    if args.kind is not None and args.kind not in (*WHAT, *WHAT.values()):
        return _solvers_of(args)
    kind = WHAT.get(args.kind, args.kind) if args.kind else None
    entries = catalogue(kind)
    if args.json:
        emit_json([_as_json(entry) for entry in entries])
        return exits.DONE
    for title, each in WHAT.items():
        rows = [entry for entry in entries if entry.kind == each]
        if rows or kind == each:
            _show_kind(title, rows, args.verbose)
    for entry in entries:
        if entry.shadows:
            show(
                f"[{DIM}]{entry.kind} {escape(entry.name)}: {escape(entry.path)} shadows "
                f"{escape(entry.shadows)}[/]"
            )
    return exits.DONE


def _solvers_of(args: argparse.Namespace) -> int:
    """List the solvers that take a TARGET; with --verbose also why the others refuse it."""
    from optbench.errors import nearest
    from optbench.plugins.discovery import catalogue, problem_named_by
    from optbench.plugins.schedule_shape import shape_of
    from optbench.plugins.solver_choice import refusals, usual_solver

    target: str = args.kind
    if not is_file(target) and "/" not in target and problem_named_by(target) is None:
        close = nearest(target, (*WHAT, *PROFILES))
        if close.startswith("did you mean"):
            raise UsageError(f"unknown kind {target!r}; {close}")
    instance = instance_of(target, args.format, args.seed)
    found = refusals(instance)
    takers = [name for name, reason in found.items() if reason is None]
    entries = [entry for entry in catalogue("solver") if entry.name in takers]
    if args.json:
        emit_json([_as_json(entry) for entry in entries])
        return exits.DONE
    shape = shape_of(instance)
    features = ", ".join(sorted(shape.features(instance)))
    show(
        f"{escape(instance.name)}  {escape(shape.name)}, {escape(shape.describe(instance))}"
        + (f"  [{DIM}]needs {escape(features)}[/]" if features else "")
    )
    _show_kind("solvers", entries, args.verbose)
    if takers:
        show(f"without -s: {escape(usual_solver(instance))}")
    for name, reason in found.items() if args.verbose else ():
        if reason is not None:
            show(f"[{DIM}]{escape(name)} refuses it: {escape(reason)}[/]")
    return exits.DONE


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        **attributes(entry, "name", "kind", "summary"),
        "parameters": [
            {"name": p.name, "type": p.type, "default": p.default} for p in entry.parameters
        ],
        **attributes(entry, "available", "reason", "shadows", "path", "supports", "clairvoyant"),
        "origin": entry.origin,
        "shapes": entry.shapes,
    }


def _show_kind(title: str, entries: list[Entry], verbose: bool) -> None:
    if not entries:
        show(f"\n[bold]{title}[/]\n  none; `optbench new` makes one")
        return
    shown = 3 if any(entry.parameters for entry in entries) else 2
    rows = [
        (f"[bold]{escape(entry.name)}[/]", _summary(entry), _parameters(entry))[:shown]
        for entry in entries
    ]
    show(f"\n[bold]{title}[/]", table(("name", "", "parameters")[:shown], rows))
    if verbose:
        for entry in entries:
            _show_details(entry)


def _summary(entry: Entry) -> str:
    if not entry.available:
        return f"[{BAD}]unavailable[/]: {escape(entry.reason or '')}"
    origin = f" [{DIM}]({escape(entry.origin)})[/]" if entry.origin.startswith("package") else ""
    return escape(entry.summary) + (f" [{BAD}]clairvoyant[/]" if entry.clairvoyant else "") + origin


def _parameters(entry: Entry) -> str:
    return escape(
        ", ".join(
            p.name if p.default is None else f"{p.name}={p.default}" for p in entry.parameters
        )
    )


def _show_details(entry: Entry) -> None:
    show(f"[bold]{escape(entry.name)}[/]  [{DIM}]{escape(entry.path)}[/]")
    for p in entry.parameters:
        default = "must be given" if p.default is None else f"default {p.default}"
        show(f"  {escape(p.name)}: {escape(p.type)}, {escape(default)}")
    if entry.shapes:
        show(f"  takes: {escape(', '.join(entry.shapes))}")
    if entry.supports:
        show(f"  supports: {escape(', '.join(entry.supports))}")


def _profiles(args: argparse.Namespace) -> int:
    from optbench.power.profiles import BoardPowerWarning, profile, profile_names

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoardPowerWarning)  # Such profiles are shown with a flag.
        found = [profile(name) for name in args.names or profile_names()]
    if args.json:
        emit_json([_profile_json(shape) for shape in found])
        return exits.DONE
    columns: dict[str, Callable[[Profile], str]] = {
        "profile": lambda shape: f"[bold]{escape(shape.name)}[/]",
        "also": lambda shape: ", ".join(_aliases(shape)),
        "board W": lambda shape: _number(shape.tdp_w),
        "idle W": lambda shape: _number(shape.idle_w),
        "sleep W": lambda shape: _number(shape.sleep_w),
        "memory GB": lambda shape: _number(shape.memory_gb),
        "peak TFLOPS": lambda shape: _number(shape.peak_tflops),
        "GB/s": lambda shape: _number(shape.bandwidth_gb_s),
        "kinds of work": lambda shape: escape(", ".join(shape.kinds)),
    }
    show("\n[bold]profiles[/]", table_of(found, columns, left=("profile", "also", "kinds of work")))
    for shape in found:
        if args.verbose:
            show(f"[bold]{escape(shape.name)}[/]")
            for field, note in shape.sources.items():
                show(f"  {escape(field)}: {escape(note)}")
        for flag in shape.flags:
            show(f"[{BAD}]flagged[/] {escape(str(flag))}")
    return exits.DONE


def _aliases(shape: Profile) -> list[str]:
    from optbench.power.profiles import ALIASES

    return [short for short, full in ALIASES.items() if full == shape.name]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _profile_json(shape: Profile) -> dict[str, Any]:
    data = asdict(shape)
    if shape.measurement is None:
        del data["measurement"]
    return {
        **data,
        "aliases": _aliases(shape),
        "flags": [asdict(flag) for flag in shape.flags],
    }
