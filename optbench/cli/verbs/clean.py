"""``optbench clean``: show what studies keep on disk, and free what is named."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import DIM, GOOD, emit, emit_json, escape, show, table
from optbench.cli.terminal.parser import Parser, UsageError
from optbench.errors import OptbenchError, UnknownNameError

if TYPE_CHECKING:
    from optbench.store.run_store import Store
    from optbench.store.upkeep import Inventory, Part

DESCRIPTION = (
    "Show what the studies of this workspace keep on disk. With --free, remove a part of it after "
    "a question, or with --yes without one: of the named studies, or of all. What another study "
    "uses too stays. Nothing is removed while a study is running."
)
EXAMPLES = (
    "optbench clean",
    "optbench clean --free caches",
    "optbench clean quickstart --free schedules --free charts --yes",
    "optbench clean quickstart --free records",
)
# Of each choice of --free: the parts of the store, and what it costs to be without them.
PARTS: dict[str, tuple[Part, ...]] = {
    "caches": ("instances", "compiled", "leftovers"),
    "schedules": ("schedules",),
    "charts": ("charts",),
    "searches": ("searches",),
    "records": ("records", "plans", "trajectories", "schedules"),
}
COSTS = {
    "caches": "the next `optbench run` makes instances and compiled code again",
    "schedules": "records, gaps and reports stay; `optbench run STUDY --force` makes schedules "
    "again",
    "charts": "MLflow's runs keep their figures and lose their files; `optbench sync` does not "
    "send them again",
    "searches": "`optbench tune` begins anew, with the cells that are on record",
    "records": "the results are lost: `optbench run` solves every cell again",
}
# Columns of the table, and the parts that each adds up.
COLUMNS: dict[str, tuple[Part, ...]] = {
    "records": ("records", "plans", "trajectories"),
    "schedules": ("schedules",),
    "instances": ("instances",),
    "searches": ("searches",),
    "charts": ("charts",),
    "other caches": ("compiled", "leftovers"),
}
REST = "(no study)"


def configure(parser: Parser) -> None:
    parser.positional("names STUDY", "names of studies (default: all)", "*")
    parser.repeated("--free PART", f"remove a part: {', '.join(PARTS)}", choices=tuple(PARTS))
    parser.flag("--yes", "free without asking")


def run(args: argparse.Namespace) -> int:
    from optbench.store.run_store import Store

    store = Store()
    if not store.folder.is_dir():
        raise OptbenchError(f"nothing is kept here: there is no {store.folder}")
    wanted = list(dict.fromkeys(args.free or ()))
    found = take_inventory(store)
    for name in args.names:
        if name not in found.studies:
            raise UnknownNameError("study", name, found.studies)
    _check(args, wanted)
    freed = None
    if wanted:
        if not args.yes and not _confirmed(found, wanted, args.names):
            show("nothing was freed")
            return exits.DONE
        freed = _free(store, wanted, args.names)
        found = take_inventory(store)
    if args.json:
        emit_json(_document(found, args.names) | {"freed": freed})
    else:
        _show(found, args.names, freed)
    return exits.DONE


def _check(args: argparse.Namespace, wanted: list[str]) -> None:
    """Refuse what does not say enough to remove anything."""
    if args.yes and not wanted:
        raise UsageError(f"--yes: name what to free: --free {' or --free '.join(PARTS)}")
    if "records" in wanted and not args.names:
        raise UsageError("--free records: name the studies whose results are to be removed")
    if wanted and not args.yes and (args.json or not sys.stdin.isatty()):
        raise UsageError("--free asks before it removes anything, which needs a terminal; or --yes")


def take_inventory(store: Store) -> Inventory:
    """What the store and MLflow's files keep."""
    from optbench.execute.numba_cache import COMPILED
    from optbench.store.upkeep import Inventory
    from optbench.track.tracking_address import ARTIFACTS, FOLDER
    from optbench.tune.storage import FOLDER as SEARCHES
    from optbench.tune.storage import folder_of
    from optbench.tune.trials import cells_of_search

    files = store.folder.parent / FOLDER / ARTIFACTS / "optbench"
    folders: dict[Part, Path] = {"searches": store.folder / SEARCHES, "charts": files}
    shared: dict[Part, Path] = {"compiled": store.folder / COMPILED}
    return Inventory(
        store, folders, shared, lambda name: cells_of_search(folder_of(store.folder, name))
    )


def _confirmed(found: Inventory, wanted: list[str], studies: list[str]) -> bool:
    for choice in wanted:
        freed = found.measure(*found.of(PARTS[choice], studies))
        what = f"{choice}: {megabytes(freed.size_b)} in {freed.files:,} files"
        show(f"{what}; [{DIM}]{escape(COSTS[choice])}[/]")
    emit(f"Free this of {', '.join(studies) or 'all studies'}? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _free(store: Store, wanted: list[str], studies: list[str]) -> dict[str, Any]:
    """Remove the parts, and return what was removed of each."""
    from optbench.store.upkeep import free, no_runner

    out = {}
    with no_runner(store):
        for choice in wanted:
            found = take_inventory(store)
            files, keys = found.of(PARTS[choice], studies)
            freed = found.measure(files, keys)
            free(store, files, keys)
            out[choice] = asdict(freed) | {"cost": COSTS[choice]}
    return out


def _document(found: Inventory, names: list[str]) -> dict[str, Any]:
    """What is kept, in bytes on disk."""
    studies = []
    for name, kept in found.studies.items():
        if not names or name in names:
            parts = {f"{part}_b": found.size_b(kept, part) for part in _parts()}
            studies.append({"study": name, "cells": len(kept.keys), **parts})
    rest = {f"{part}_b": found.size_b(found.rest, part) for part in _parts()}
    return {
        "store": str(found.store.folder),
        "studies": studies,
        "no_study": {"cells": len(found.rest.keys), **rest},
        "total_b": found.total_b,
    }


def _parts() -> Iterable[Part]:
    return (part for parts in COLUMNS.values() for part in parts)


def _show(found: Inventory, names: list[str], freed: dict[str, Any] | None) -> None:
    for choice, each in (freed or {}).items():
        what = f"{megabytes(each['size_b'])} in {each['files']:,} files"
        show(f"[{GOOD}]freed {choice}: {what}[/]; [{DIM}]{escape(each['cost'])}[/]")
    every = {**found.studies, REST: found.rest}
    rows = [
        (
            escape(name),
            f"{len(kept.keys):,}",
            *(megabytes(sum(found.size_b(kept, p) for p in parts)) for parts in COLUMNS.values()),
        )
        for name, kept in every.items()
        if not names or name in names
    ]
    heads = ("study", "cells", *COLUMNS)
    show("", table(heads, rows, right=heads[1:]), "")
    where = escape(str(found.store.folder))
    show(f"{megabytes(found.total_b)} in all in {where} and MLflow's files; what studies share ")
    show(f"[{DIM}]counts once in this sum; `optbench clean --free PART` frees a part[/]")


def megabytes(size_b: int) -> str:
    """A size on disk: ``-``, ``12 kB``, ``3.4 MB``."""
    if size_b == 0:
        return "-"
    return f"{size_b / 1e3:,.0f} kB" if size_b < 1e6 else f"{size_b / 1e6:,.1f} MB"
