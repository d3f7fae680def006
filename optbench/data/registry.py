"""What public data there is: sets of files with their size, checksum, licence and origin, and where
they lie here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from optbench.errors import OptbenchError, UnknownNameError

# The one address that files are fetched from; $OPTBENCH_DATA_URL names a mirror in the same words.
URL = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"

State = Literal["data", "cache", "damaged", "missing"]


class DataError(OptbenchError):
    """Public data that is not here, is damaged, or cannot be fetched."""


@dataclass(frozen=True)
class DataFile:
    """One file: ``path`` is its name in the registry, ``source_path`` that in the repository (or a
    remark, if extracted).
    """

    path: str
    size: int
    sha256: str
    repository: str | None
    commit: str | None
    source_path: str

    @property
    def name(self) -> str:
        """The path without folders between set and file, and without suffix: ``rcpsp/j30_1_1``."""
        parts = self.path.split("/")
        return f"{parts[0]}/{Path(parts[-1]).stem}"

    @property
    def url(self) -> str | None:
        """Where it can be fetched; None for what was extracted and exists nowhere else in this
        form.
        """
        if self.repository is None or self.commit is None:
            return None
        template = os.environ.get("OPTBENCH_DATA_URL", URL)
        filled = template.replace("{repository}", self.repository).replace("{commit}", self.commit)
        return filled.replace("{path}", quote(self.source_path))


@dataclass(frozen=True)
class DataSet:
    """A folder of files under one licence."""

    name: str
    summary: str
    licence: str
    files: tuple[DataFile, ...]


@cache
def data_sets() -> dict[str, DataSet]:
    """Every set by name."""
    raw = json.loads(files("optbench.data").joinpath("registry.json").read_text(encoding="utf-8"))
    out = {}
    for name, entry in raw["sets"].items():
        rows = []
        for path, size, sha256, source, source_path in entry["files"]:
            origin = raw["sources"].get(source, {})
            rows.append(
                DataFile(
                    path, size, sha256, origin.get("repository"), origin.get("commit"), source_path
                )
            )
        out[name] = DataSet(name, entry["summary"], entry["licence"], tuple(rows))
    return out


def find(name: str) -> DataFile:
    """The file that a name stands for: ``jobshop/ft06``, ``jobshop/ft06.txt``,
    ``rcpsp/j30/j30_1_1.rcp``, ``rcpsp/j30_1_1``.
    """
    every = [file for entry in data_sets().values() for file in entry.files]
    matches = [file for file in every if file.path == name] or [
        file for file in every if name in (file.name, file.path.rsplit(".", 1)[0])
    ]
    if len(matches) > 1:
        raise DataError(f"{name!r} is any of {', '.join(file.path for file in matches)}; name one")
    if not matches:
        known = [file.name for file in every] + [file.path for file in every]
        folder = name.split("/")[0]
        in_set = (
            [file.name for file in data_sets()[folder].files] if folder in data_sets() else known
        )
        raise UnknownNameError("data file", name, in_set)
    return matches[0]


def select(names: Sequence[str]) -> list[DataFile]:
    """Files of the named sets and files."""
    out = []
    for name in names:
        out += list(data_sets()[name].files) if name in data_sets() else [find(name)]
    return list(dict.fromkeys(out))


def data_root() -> Path | None:
    """The folder that $OPTBENCH_DATA names, None when it is not set."""
    named = os.environ.get("OPTBENCH_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise DataError(
            f"environment variable OPTBENCH_DATA is {named!r}, which is no folder; correct or "
            "unset it"
        )
    return folder


def cache_root() -> Path:
    """Where fetched files are kept: $OPTBENCH_CACHE, else ~/.cache/optbench."""
    named = os.environ.get("OPTBENCH_CACHE")
    return (Path(named) if named else Path(os.path.expanduser("~/.cache/optbench"))) / "data"


def intact(path: Path, file: DataFile) -> bool:
    """Whether a file on disk is the one of the registry, by size and checksum."""
    try:
        if path.stat().st_size != file.size:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    except OSError:
        return False


def locate(file: DataFile) -> tuple[State, Path | None]:
    """Where a file lies: in $OPTBENCH_DATA, in the cache, damaged in one of them, or nowhere."""
    root = data_root()
    damaged = None
    for state, folder in (("data", root), ("cache", cache_root())):
        path = None if folder is None else folder / file.path
        if path is None or not path.exists():
            continue
        if intact(path, file):
            return ("data" if state == "data" else "cache"), path
        damaged = damaged or path
    return ("damaged", damaged) if damaged else ("missing", None)


def data_path(name: str) -> Path:
    """Path of a file of the registry that lies here, its checksum verified."""
    file = find(name)
    state, path = locate(file)
    if path is None:
        raise DataError(f"{file.path} is not here; {remedy(file)}")
    if state == "damaged":
        raise DataError(
            f"{path} is not the published file: its SHA-256 is not {file.sha256}; remove it, "
            f"then {remedy(file)}"
        )
    return path


def remedy(file: DataFile) -> str:
    """How to come by a file."""
    if file.url is None:
        return (
            "it was extracted from its source and cannot be fetched: set OPTBENCH_DATA to a "
            "folder that holds it"
        )
    return (
        f"fetch it with `optbench data fetch {file.name}`, or set OPTBENCH_DATA to a folder "
        "that holds it"
    )


def bounds_table(file: DataFile) -> dict[str, tuple[int, int]]:
    """Lower and upper bound per instance; empty where the table is not here."""
    state, path = locate(file)
    if path is None or state == "damaged":
        return {}
    table = json.loads(path.read_text(encoding="utf-8"))
    return {instance: (row["lower_bound"], row["upper_bound"]) for instance, row in table.items()}
