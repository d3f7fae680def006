"""The local store in ``.optbench/``: an append-only file of records, the cells' files, and the
instances by their hash.

A record is one line, written under a lock and flushed to disk before it is reported. A line
truncated by a crash is not a record: readers skip it, the next writer removes it. The last record
of a key counts. A cell's files are in place before its record; the files of a record that is being
replaced are kept aside until the new record is written, and are restored if it never is.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, OptbenchError
from optbench.files import end_of_whole_lines, write_whole
from optbench.model.files.instance_json import instance_from_dict
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.sandbox.job_folder import read_bounded_file
from optbench.shapes.protocol.shape_facts import CellShape
from optbench.store.locks import exclusive_lock, study_lock, work_folder
from optbench.store.migration import is_current, mark_current, migrate
from optbench.store.record_index import Records
from optbench.store.records import Record
from optbench.workspace import store

# Exceptions when loading damaged pickles.
UNLOADABLE = (
    EOFError,
    pickle.UnpicklingError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ImportError,
)
RECORDS, CELLS, INSTANCES, STUDIES, WORK, ASIDE = (
    "results.jsonl",
    "cells",
    "instances",
    "studies",
    "work",
    "aside",
)


class StoreError(OptbenchError):
    """The store cannot be read or written."""


class Store:
    """Results of one workspace. Several processes may read and append at the same time."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else store()
        self.file = self.folder / RECORDS
        self._lock = self.folder / "lock"
        self._records = Records(self.file)
        self._is_current = False

    def make(self) -> Store:
        """Create missing folders; complete or undo what a killed runner was replacing."""
        with self.writing():
            for name in (CELLS, INSTANCES, STUDIES, WORK, ASIDE):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            self._bring_up_to_date()
            self.file.touch()
            mark_current(self.folder)
            with exclusive_lock(self._lock):
                self._repair()
        return self

    def records(self) -> Records:
        """Return the last record of every key, including lines appended since the last call."""
        self._bring_up_to_date()
        self._records.refresh()
        return self._records

    def _bring_up_to_date(self) -> None:
        """Migrate a store of an earlier version before it is read, and print what changed."""
        if self._is_current:
            return
        if not is_current(self.folder):
            with self.writing(), exclusive_lock(self._lock):
                if not is_current(self.folder):
                    print(
                        f"{self.folder}: written by an earlier optbench; migrating it",
                        file=sys.stderr,
                    )
                    print("\n".join(migrate(self.folder).lines()), file=sys.stderr)
        self._is_current = True

    def add(
        self, record: Record, files: Mapping[str, bytes], replaces: Record | None = None
    ) -> Record:
        """Store a cell's record and files. The record is on disk when this returns; the files
        survive a crash of any process.

        ``replaces`` is the record that the cell is known to have. If another runner has replaced it
        in the meantime, that record stays and is returned.
        """
        with self.writing(), exclusive_lock(self._lock):
            known = self.records().get(record.key)
            if known is not None and (replaces is None or known.began_at != replaces.began_at):
                return known
            aside = self._place(record.key, files, known)
            try:
                self._append(record)
            except OSError:
                self._repair()
                raise
            shutil.rmtree(aside, ignore_errors=True)
        return record

    def cell(self, key: str) -> Path:
        """Return the folder of a cell's files: the schedule or decision, the trajectory, output."""
        return self.folder / CELLS / key

    def study_folder(self, name: str) -> Path:
        """Return the folder of a study's plans and reports."""
        folder = self.folder / STUDIES / name
        with self.writing():
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def study_lock(self, study: str) -> AbstractContextManager[None]:
        """Hold a study, or raise with the process that holds it."""
        return study_lock(study, self.study_folder(study) / "lock")

    def work_folder(self) -> AbstractContextManager[Path]:
        """Create a folder for the jobs of one runner; those of dead runners are removed."""
        return work_folder(self.folder / WORK, self._lock)

    def instance_file(self, instance_hash: str, shape: CellShape | None = None) -> Path:
        """Return the file of an instance, which cells may read but not write: the pickle of a
        schedule's, the canonical form of any other.
        """
        name = f"{instance_hash}.pickle" if shape is None else shape.file_name(instance_hash)
        return self.folder / INSTANCES / name

    def add_instance(self, instance: Instance) -> Path:
        """Store an instance; a damaged or older file is written again."""
        path = self.instance_file(instance.hash)
        content = pickle.dumps(instance, protocol=5)
        if not path.exists() or path.read_bytes() != content:
            with self.writing():
                write_whole(path, content)
        return path

    def add_shaped_instance(self, instance_hash: str, shape: CellShape, content: bytes) -> Path:
        """Store the canonical form of an instance whose shape this process does not load."""
        path = self.instance_file(instance_hash, shape)
        if not path.exists() or path.read_bytes() != content:
            with self.writing():
                write_whole(path, content)
        return path

    def instance(self, instance_hash: str) -> Instance:
        """Load the instance of a schedule that a plan has made."""
        path = self.instance_file(instance_hash)
        try:
            return _load_instance(path)
        except UNLOADABLE as error:  # a power cut, or another version of a library
            what = f"{path}: the instance cannot be loaded ({type(error).__name__}: {error})"
            raise StoreError(
                f"{what}; remove this file, and the same command makes it again"
            ) from None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn errors of a full or read-only disk into one message with the remedy."""
        try:
            yield
        except OSError as error:
            where = error.filename or self.folder
            raise StoreError(
                f"{where}: cannot be written: {error.strerror or error}. Every record so far is "
                "kept; "
                "correct this (free space, permissions, or another $OPTBENCH_WORKSPACE) and run "
                "the same command again"
            ) from None

    def _place(self, key: str, files: Mapping[str, bytes], known: Record | None) -> Path:
        """Move a cell's files into place; return the folder that keeps those they replace."""
        new = self.folder / ASIDE / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for name, content in files.items():
            (new / name).write_bytes(content)
        aside = self.folder / ASIDE / _aside_name(key, "" if known is None else known.began_at)
        if self.cell(key).exists():
            os.replace(self.cell(key), aside)
        os.replace(new, self.cell(key))
        return aside

    def _append(self, record: Record) -> None:
        line = json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n"
        with self.file.open("r+b", buffering=0) as file:
            end = end_of_whole_lines(file)
            file.seek(end)
            file.truncate()
            try:
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise

    def _repair(self) -> None:
        """Restore the files of records whose replacement was not completed."""
        records = self.records()
        for aside in sorted((self.folder / ASIDE).iterdir()):
            known = records.get(aside.name.partition("~")[0])
            if known is not None and _aside_name(known.key, known.began_at) == aside.name:
                shutil.rmtree(self.cell(known.key), ignore_errors=True)
                os.replace(aside, self.cell(known.key))
            else:
                shutil.rmtree(aside, ignore_errors=True)


@lru_cache(maxsize=8)
def _load_instance(path: Path) -> Instance:
    instance: Instance = pickle.loads(path.read_bytes())
    return instance


def read_foreign_instance(path: Path) -> Instance:
    """Read an instance that a child process wrote, as data and never as code."""
    return instance_from_dict(parse_json(read_bounded_file(path).decode("utf-8")))


def read_foreign_document(path: Path) -> dict[str, Any]:
    """Read a JSON object that a child process wrote."""
    data = parse_json(read_bounded_file(path).decode("utf-8"))
    if not isinstance(data, dict):
        raise FileFormatError(f"{path.name} is a {type(data).__name__}, not a JSON object")
    return data


def _aside_name(key: str, began_at: str) -> str:
    return f"{key}~{began_at.replace(':', '')}"
