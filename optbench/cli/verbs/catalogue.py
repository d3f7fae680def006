"""``optbench list``: what there is to solve, and with what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from optbench.cli import exits
from optbench.cli.output import BAD, DIM, emit_json, escape, show, table

if TYPE_CHECKING:
    from optbench.plugins.discovery import Entry, Kind

SUMMARY = "problems, solvers and studies, with their parameters"
DESCRIPTION = "List the plug-ins: your own of this workspace, and the built-in ones."
EXAMPLES = ("optbench list", "optbench list solvers -v", "optbench list --json")
WHAT: dict[str, Kind] = {"problems": "problem", "solvers": "solver", "studies": "study"}


def configure(parser: argparse.ArgumentParser) -> None:
    what = (*WHAT, *WHAT.values())
    parser.add_argument("kind", metavar="KIND", nargs="?", choices=what, help=f"only {', '.join(WHAT)} (default all)")
    parser.add_argument("-v", "--verbose", action="store_true", help="also files, types of parameters, what solvers support")


def run(args: argparse.Namespace) -> int:
    from optbench.plugins.discovery import catalogue

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
            show(f"[{DIM}]{entry.kind} {escape(entry.name)}: {escape(entry.path)} shadows {escape(entry.shadows)}[/]")
    return exits.DONE


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "summary": entry.summary,
        "parameters": [{"name": p.name, "type": p.type, "default": p.default} for p in entry.parameters],
        "available": entry.available,
        "reason": entry.reason,
        "shadows": entry.shadows,
        "path": entry.path,
        "supports": list(entry.supports),
    }


def _show_kind(title: str, entries: list[Entry], verbose: bool) -> None:
    if not entries:
        show(f"\n[bold]{title}[/]\n  none; `optbench new` makes one")
        return
    shown = 3 if any(entry.parameters for entry in entries) else 2
    rows = [(f"[bold]{escape(entry.name)}[/]", _summary(entry), _parameters(entry))[:shown] for entry in entries]
    show(f"\n[bold]{title}[/]", table(("name", "", "parameters")[:shown], rows))
    if verbose:
        for entry in entries:
            _show_details(entry)


def _summary(entry: Entry) -> str:
    return escape(entry.summary) if entry.available else f"[{BAD}]unavailable[/]: {escape(entry.reason or '')}"


def _parameters(entry: Entry) -> str:
    return escape(", ".join(p.name if p.default is None else f"{p.name}={p.default}" for p in entry.parameters))


def _show_details(entry: Entry) -> None:
    show(f"[bold]{escape(entry.name)}[/]  [{DIM}]{escape(entry.path)}[/]")
    for p in entry.parameters:
        default = "must be given" if p.default is None else f"default {p.default}"
        show(f"  {escape(p.name)}: {escape(p.type)}, {escape(default)}")
    if entry.supports:
        show(f"  supports: {escape(', '.join(entry.supports))}")
