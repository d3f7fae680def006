"""What a store keeps, by study and part, and freeing of it.

Nothing is freed while a runner is at work: its work folder is locked, and a new runner waits for
the store's lock, which is held while files are removed. Files are removed one by one, records by
replacing the file of records whole; a crash in between leaves some files that the next call frees.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from optbench.errors import FileFormatError, OptbenchError
from optbench.files import replacing
from optbench.sandbox.job_folder import remove_folder
from optbench.store.locks import exclusive_lock, has_live_folder
from optbench.store.run_store import CELLS, INSTANCES, STUDIES, WORK, Store
from optbench.store.snapshots import read_plan

Part = Literal[
    "records",
    "plans",
    "trajectories",
    "schedules",
    "instances",
    "compiled",
    "leftovers",
    "searches",
    "charts",
]
LOCK, LOGS = "lock", "ui-*.log"
# What a cell keeps of a schedule, and of the decision of any other shape.
DECISIONS = ("schedule.json", "decision.json")
# Instances are stored under their hashes, and the notes of their sources beside them.
STORED = ("*.pickle", "[0-9a-f]*.json")


class RunnerAtWorkError(OptbenchError):
    """Nothing can be freed while a study or a search is running."""


@dataclass
class Kept:
    """What one study keeps: keys of records, and files by part."""

    name: str
    keys: set[str] = field(default_factory=set)
    files: dict[Part, set[Path]] = field(default_factory=dict)

    def add(self, part: Part, paths: Iterable[Path]) -> None:
        self.files.setdefault(part, set()).update(paths)


@dataclass(frozen=True)
class Freed:
    """Number and bytes of what was removed, records among them."""

    files: int = 0
    records: int = 0
    size_b: int = 0


class Inventory:
    """The content of a store. ``folders`` gives further folders: by part, and there by study;
    ``searched`` gives the keys of cells that a study's search has run.
    """

    def __init__(
        self,
        store: Store,
        folders: Mapping[Part, Path],
        shared: Mapping[Part, Path] | None = None,
        searched: Callable[[str], set[str]] = lambda name: set(),
    ) -> None:
        self.store, self.folders, self.shared = store, folders, shared or {}
        self.searched = searched
        self.line_b = dict(store.records().sizes())
        self.studies = {name: self._study(name) for name in self._names()}

    def _names(self) -> list[str]:
        """Return the names of studies with a plan, or with a folder elsewhere in the store."""
        own = self.store.folder
        places = [own / STUDIES, *(p for p in self.folders.values() if p.is_relative_to(own))]
        found = {path.name for place in places for path in _folders(place) if _used(path)}
        return sorted(found)

    def _study(self, name: str) -> Kept:
        kept, own = Kept(name), self.store.folder / STUDIES / name
        instances = set()
        for path in own.glob("*.json"):
            with suppress(FileFormatError):  # a plan of an earlier version: its cells are others'
                for cell in read_plan(path).cells:
                    kept.keys.add(cell.key)
                    instances.add(self.store.instance_file(cell.instance_hash, cell.shape))
        kept.keys |= self.searched(name)
        kept.keys &= self.line_b.keys()
        for key in kept.keys:
            self._add_cell(kept, self.store.cell(key))
        kept.add("instances", (path for path in instances if path.is_file()))
        kept.add("plans", (path for path in _files(own) if path.name != LOCK))
        for part, folder in self.folders.items():
            kept.add(part, _files(folder / name))
        return kept

    @staticmethod
    def _add_cell(kept: Kept, folder: Path) -> None:
        for path in _files(folder):
            kept.add("schedules" if path.name in DECISIONS else "trajectories", [path])

    @cached_property
    def rest(self) -> Kept:
        """What belongs to no study: cells of searches, files without a record, compiled code."""
        rest = Kept("")
        named = set[str]().union(*(each.keys for each in self.studies.values()))
        rest.keys = self.line_b.keys() - named
        for folder in _folders(self.store.folder / CELLS):
            if folder.name not in self.line_b:
                rest.add("leftovers", _files(folder))
            elif folder.name not in named:
                self._add_cell(rest, folder)
        rest.add("leftovers", self.store.folder.glob(LOGS))
        rest.add("leftovers", _files(self.store.folder / WORK))
        used = set[Path]().union(*(e.files["instances"] for e in self.studies.values()))
        stored = {p for name in STORED for p in (self.store.folder / INSTANCES).glob(name)}
        rest.add("instances", stored - used)
        for part, folder in self.shared.items():
            rest.add(part, _files(folder))
        return rest

    def size_b(self, kept: Kept, part: Part) -> int:
        """Bytes of a part; what studies share counts for each of them."""
        if part == "records":
            return sum(self.line_b[key] for key in kept.keys)
        return sum(map(_size_b, kept.files.get(part, ())))

    @property
    def total_b(self) -> int:
        """Bytes of all parts; what studies share counts once."""
        every = [*self.studies.values(), self.rest]
        paths = set[Path]().union(*(files for each in every for files in each.files.values()))
        return sum(map(_size_b, paths)) + sum(self.line_b.values())

    def of(self, parts: Sequence[Part], studies: Sequence[str]) -> tuple[list[Path], set[str]]:
        """Return the files and keys of these parts, of the named studies or of all and the rest.

        What another study uses too is left out.
        """
        named = set(studies) or {*self.studies, ""}
        every = {**self.studies, "": self.rest}
        mine = [each for name, each in every.items() if name in named]
        others = [each for name, each in every.items() if name not in named]
        files = {path for each in mine for part in parts for path in each.files.get(part, ())}
        files -= {path for each in others for paths in each.files.values() for path in paths}
        keys = set[str]()
        if "records" in parts:
            keys = {key for each in mine for key in each.keys}
            keys -= {key for each in others for key in each.keys}
        return sorted(files), keys

    def measure(self, files: Iterable[Path], keys: Iterable[str]) -> Freed:
        """What removing these would free."""
        files, keys = list(files), list(keys)
        size_b = sum(map(_size_b, files)) + sum(self.line_b[key] for key in keys)
        return Freed(len(files), len(keys), size_b)


@contextmanager
def no_runner(store: Store) -> Iterator[None]:
    """Hold the store while nothing runs in it, or raise RunnerAtWorkError."""
    with store.writing(), exclusive_lock(store.folder / LOCK):
        if has_live_folder(store.folder / WORK):
            raise RunnerAtWorkError(
                f"a study or a search is running in {store.folder}; nothing was freed. Wait for it "
                "to end, or stop it: its finished cells are kept"
            )
        yield


def free(store: Store, files: Iterable[Path], keys: set[str]) -> None:
    """Remove records and files; the caller holds ``no_runner``."""
    if keys:
        _remove_records(store, keys)
    tops = {store.folder, *store.folder.iterdir()}
    for path in files:
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, tops)
    for key in keys:
        remove_folder(store.cell(key))


def _remove_empty(folder: Path, tops: set[Path]) -> None:
    """Remove a folder and those above it while they are empty; folders of the store stay, and so
    does the folder of a cell.
    """
    while folder not in tops and folder.parent.name != CELLS:
        try:
            folder.rmdir()
        except OSError:  # not empty
            return
        folder = folder.parent


def _remove_records(store: Store, keys: set[str]) -> None:
    """Replace the file of records by one without these keys."""
    places = store.records().places()
    gone = {place for key in keys for place in places.get(key, ())}
    with replacing(store.file) as fresh, store.file.open("rb") as old, fresh.open("wb") as new:
        offset = 0
        for line in old:
            if (offset, len(line)) not in gone:
                new.write(line)
            offset += len(line)
        new.flush()
        os.fsync(new.fileno())


def _folders(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.is_dir()] if place.is_dir() else []


def _used(folder: Path) -> bool:
    """Whether a folder has any file but a lock."""
    return any(path.name != LOCK for path in _files(folder))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]


def _size_b(path: Path) -> int:
    """Bytes that a file takes on disk."""
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0
