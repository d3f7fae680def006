"""``optbench data``: public instances, fetched once, their checksums always verified."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import BAD, GOOD, emit, emit_json, escape, show, table
from optbench.cli.terminal.parser import Parser, add_json
from optbench.data.registry import DataFile, DataSet, data_path, data_sets, locate, select
from optbench.errors import UnknownNameError

DESCRIPTION = (
    "Public instances with checksums: those below $OPTBENCH_DATA where it is set, otherwise "
    "fetched once into a cache\n"
    "($OPTBENCH_CACHE, or ~/.cache/optbench)."
)
EXAMPLES = (
    "optbench data list",
    "optbench data list jobshop",
    "optbench data fetch jobshop/ft06",
    "optbench solve $(optbench data path jobshop/ft06)",
)
STATES = {
    "data": f"[{GOOD}]in $OPTBENCH_DATA[/]",
    "cache": f"[{GOOD}]in the cache[/]",
    "damaged": f"[{BAD}]damaged[/]",
    "missing": "not here",
}


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, title="actions", parser_class=Parser
    )
    shown = actions.add_parser("list", help="the sets, or the files of one set, and where they are")
    shown.positional("sets SET", "show the files of these sets", "*")
    fetched = actions.add_parser("fetch", help="fetch sets or files into the cache")
    path = actions.add_parser(
        "path", help="print the path of a file or set, with its checksum verified"
    )
    for action in (fetched, path):
        action.positional("names NAME", "a set (jobshop) or a file (jobshop/ft06)", "+")
    for action in (shown, fetched, path):
        # A default here would override `optbench data --json list`.
        add_json(action, default=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    return {"list": _list, "fetch": _fetch, "path": _path}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    known = data_sets()
    for name in args.sets:
        if name not in known:
            raise UnknownNameError("data set", name, known)
    if args.json:
        emit_json([_as_json(known[name], bool(args.sets)) for name in (args.sets or known)])
    elif args.sets:
        for name in args.sets:
            _show_files(known[name])
    else:
        rows = [
            (
                f"[bold]{entry.name}[/]",
                escape(entry.summary),
                str(len(entry.files)),
                _here(entry),
                escape(entry.licence),
            )
            for entry in known.values()
        ]
        show("", table(("set", "", "files", "here", "licence"), rows, right=("files", "here")))
    return exits.DONE


def _here(entry: DataSet) -> str:
    """The number of files that are present and intact."""
    return str(sum(locate(file)[0] in ("data", "cache") for file in entry.files))


def _as_json(entry: DataSet, with_files: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": entry.name, "summary": entry.summary, "licence": entry.licence}
    out |= {"num_files": len(entry.files), "here": int(_here(entry))}
    if with_files:
        out["files"] = []
        for file in entry.files:
            state, path = locate(file)
            row = {
                "name": file.name,
                "size": file.size,
                "sha256": file.sha256,
                "url": file.url,
                "state": state,
            }
            out["files"].append({**row, "path": str(path) if path else None})
    return out


def _show_files(entry: DataSet) -> None:
    rows = [(escape(file.name), f"{file.size:,}", STATES[locate(file)[0]]) for file in entry.files]
    show(
        f"\n[bold]{escape(entry.name)}[/]: {escape(entry.summary)}",
        table(("file", "bytes", "where"), rows, right=("bytes",)),
    )


def _fetch(args: argparse.Namespace) -> int:
    from optbench.data.fetch import fetch, unfetchable

    def progress(file: DataFile, size: int) -> None:
        if not args.json and size >= file.size:
            sys.stderr.write(f"  {file.path}  {size:,} bytes\n")

    paths = fetch(args.names, progress)
    left = unfetchable(args.names)
    if args.json:
        emit_json(
            {"files": [str(path) for path in paths], "not_fetchable": [file.name for file in left]}
        )
        return exits.DONE
    show(f"[{GOOD}]{len(paths)}[/] files are here, checksums verified")
    if left:
        names = ", ".join(file.name for file in left[:5]) + (" ..." if len(left) > 5 else "")
        show(
            f"{len(left)} cannot be fetched, being extracts: {escape(names)}. Set OPTBENCH_DATA "
            "to a folder that holds them."
        )
    return exits.DONE


def _path(args: argparse.Namespace) -> int:
    paths = [data_path(file.path) for file in select(args.names)]
    if args.json:
        emit_json({"paths": [str(path) for path in paths]})
    else:
        emit("\n".join(map(str, paths)))
    return exits.DONE
