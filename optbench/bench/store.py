"""The local store in ``.optbench/``: an append-only file of records, the cells' files, and the instances by their hash.

A record is one line, written whole under a lock and flushed to the disk before anybody is told of it. What a crash cut off at
the end is no record: readers pass it, the next writer removes it. The last record of a key counts.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from optbench.bench.records import Record
from optbench.errors import FileFormatError
from optbench.model.files import instance_from_dict
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.workspace import store

RECORDS, CELLS, INSTANCES, STUDIES, WORK = "results.jsonl", "cells", "instances", "studies", "work"


class Store:
    """Results of one workspace. Several processes may read and append at a time."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else store()
        self.file = self.folder / RECORDS
        self._records: dict[str, Record] = {}
        self._read_to = 0

    def make(self) -> Store:
        """The folders, where they are missing."""
        for name in (CELLS, INSTANCES, STUDIES, WORK):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.file.touch()
        return self

    def records(self) -> dict[str, Record]:
        """Every record by its key, the last one where a cell was run again; reads what was appended since the last call."""
        if not self.file.exists():
            return {}
        with self.file.open("rb") as file:
            file.seek(self._read_to)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        for line in text[:whole].splitlines():
            record = self._parse(line)
            self._records[record.key] = record
        self._read_to += whole
        return self._records

    def _parse(self, line: bytes) -> Record:
        try:
            return Record.from_dict(json.loads(line))
        except (ValueError, KeyError, TypeError, FileFormatError) as error:
            raise FileFormatError(f"{self.file}: a line that is no record ({error}): {line[:80]!r}; move the file away") from None

    def append(self, record: Record) -> None:
        """Write a record; it is on the disk when this returns."""
        line = json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n"
        with self.locked(), self.file.open("r+b") as file:
            end = _end_of_whole_lines(file)
            file.seek(end)
            file.truncate()
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone among writers, whatever the process."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def cell(self, key: str) -> Path:
        """Folder of a cell's files: schedule.json, trajectory.json, output.txt."""
        return self.folder / CELLS / key

    def keep(self, key: str, files: dict[str, bytes]) -> None:
        """The files of a cell, all at once; those of an earlier run of the cell give way."""
        temporary = self.folder / WORK / f"{key}.{os.getpid()}.keep"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        shutil.rmtree(self.cell(key), ignore_errors=True)
        os.replace(temporary, self.cell(key))

    def instance_file(self, instance_hash: str) -> Path:
        """Written by this process's own kind only, therefore a pickle: children may read but not write it."""
        return self.folder / INSTANCES / f"{instance_hash}.pickle"

    def add_instance(self, instance: Instance) -> Path:
        path = self.instance_file(instance.hash)
        if not path.exists():
            write_whole(path, pickle.dumps(instance, protocol=5))
        return path

    def instance(self, instance_hash: str) -> Instance:
        """An instance that a plan has made."""
        return _load_instance(self.instance_file(instance_hash))


@lru_cache(maxsize=8)
def _load_instance(path: Path) -> Instance:
    instance: Instance = pickle.loads(path.read_bytes())
    return instance


def read_foreign_instance(path: Path) -> Instance:
    """An instance that a child wrote: data to be checked, never code to be run."""
    return instance_from_dict(parse_json(path.read_text(encoding="utf-8")))


def write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    os.replace(temporary, path)


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
