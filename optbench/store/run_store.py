"""The local store in ``.optbench/``: an append-only file of records, the cells' files, and the instances by their hash.

A record is one line, written whole under a lock and flushed to the disk before anybody is told of it. What a crash cut off at
the end is no record: readers pass it, the next writer removes it. The last record of a key counts. A cell's files are in
place before its record is; those of a record that is being replaced are kept aside until the new record is written, and
come back when it never was.
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

from optbench.errors import OptbenchError
from optbench.model.files.instance_json import instance_from_dict
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.sandbox.job_folder import read_bounded_file
from optbench.store.locks import exclusive_lock, study_lock, work_folder
from optbench.store.migration import is_current, mark_current, migrate
from optbench.store.migration import write_whole as write_whole
from optbench.store.record_index import Records
from optbench.store.records import Record
from optbench.workspace import store

# What damaged pickles raise.
UNLOADABLE = (EOFError, pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, ImportError)
RECORDS, CELLS, INSTANCES, STUDIES, WORK, ASIDE = "results.jsonl", "cells", "instances", "studies", "work", "aside"


class StoreError(OptbenchError):
    """The store cannot be written, or read."""


class Store:
    """Results of one workspace. Several processes may read and append at a time."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else store()
        self.file = self.folder / RECORDS
        self._lock = self.folder / "lock"
        self._records = Records(self.file)
        self._is_current = False

    def make(self) -> Store:
        """The folders, where they are missing; what a killed runner was replacing is as it was, or as it should have become."""
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
        """Every record by its key, the last one where a cell was run again; notices what was appended since the last call."""
        self._bring_up_to_date()
        self._records.refresh()
        return self._records

    def _bring_up_to_date(self) -> None:
        """A store of an earlier optbench is re-keyed before anything is read of it; people are told what became of it."""
        if self._is_current:
            return
        if not is_current(self.folder):
            with self.writing(), exclusive_lock(self._lock):
                if not is_current(self.folder):
                    print(f"{self.folder}: written by an earlier optbench; bringing it up to date", file=sys.stderr)
                    print("\n".join(migrate(self.folder).lines()), file=sys.stderr)
        self._is_current = True

    def add(self, record: Record, files: Mapping[str, bytes], replaces: Record | None = None) -> Record:
        """Keep a cell's record and files; the record is on the disk when this returns, the files where a crash of any process
        leaves them.

        ``replaces`` is the record that the cell is known to have. Where it has got another one in the meantime, by a runner
        at work at the same time, that one stays and is returned.
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
        """Folder of a cell's files: schedule.json, trajectory.json, output.txt."""
        return self.folder / CELLS / key

    def study_folder(self, name: str) -> Path:
        """Plans and reports of a study."""
        folder = self.folder / STUDIES / name
        with self.writing():
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def only_runner(self, study: str) -> AbstractContextManager[None]:
        """Hold a study, or say which process does."""
        return study_lock(study, self.study_folder(study) / "lock")

    def work_folder(self) -> AbstractContextManager[Path]:
        """A folder for the jobs of one runner; those of dead runners are removed."""
        return work_folder(self.folder / WORK, self._lock)

    def instance_file(self, instance_hash: str) -> Path:
        """Written by this process's own kind only, therefore a pickle: children may read but not write it."""
        return self.folder / INSTANCES / f"{instance_hash}.pickle"

    def add_instance(self, instance: Instance) -> Path:
        """Written anew where the file is of another version of optbench, or damaged."""
        path = self.instance_file(instance.hash)
        content = pickle.dumps(instance, protocol=5)
        if not path.exists() or path.read_bytes() != content:
            with self.writing():
                write_whole(path, content)
        return path

    def instance(self, instance_hash: str) -> Instance:
        """An instance that a plan has made."""
        path = self.instance_file(instance_hash)
        try:
            return _load_instance(path)
        except UNLOADABLE as error:  # a power cut, or another version of a library
            what = f"{path}: no instance ({type(error).__name__}: {error})"
            raise StoreError(f"{what}; remove this file, and the same command makes it again") from None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A full or read-only disk as one message: what is stored is whole, and the same command goes on from it."""
        try:
            yield
        except OSError as error:
            where = error.filename or self.folder
            raise StoreError(
                f"{where}: cannot be written: {error.strerror or error}. Every record so far is kept; "
                "mend this (free space, permissions, or another $OPTBENCH_WORKSPACE) and run the same command again"
            ) from None

    def _place(self, key: str, files: Mapping[str, bytes], known: Record | None) -> Path:
        """Put a cell's files where they belong; returns where those of its known record are until it is replaced."""
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
            end = _end_of_whole_lines(file)
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
        """Bring back the files of records that were to be replaced and were not."""
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
    """An instance that a child wrote: data to be checked, never code to be run."""
    return instance_from_dict(parse_json(read_bounded_file(path).decode("utf-8")))


def _aside_name(key: str, began_at: str) -> str:
    return f"{key}~{began_at.replace(':', '')}"


def _end_of_whole_lines(file: Any, chunk: int = 1 << 16) -> int:
    """Where the last complete line ends."""
    end: int = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - chunk)
        file.seek(begin)
        found: int = file.read(end - begin).rfind(b"\n") + 1
        if found > 0:
            return begin + found
        end = begin
    return 0
