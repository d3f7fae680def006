"""Files that a job needs travel by their content: once to each node, found there by their hash.

On the driver, the entries of a payload that name files are replaced by references; on the node
these become paths in a cache. A file keeps its name, which may be part of what it means.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.compiling.kernel_cache import cache_root
from optbench.errors import OptbenchError
from optbench.execute.base import Job
from optbench.files import write_whole

# Payload entries that are always the path of a file.
FILES = ("instance_file", "claims_file")
REFERENCE = "file with sha256"
# Content that has not been used for this many days is removed from a node.
KEPT_DAYS = 30
SECONDS_PER_DAY = 86_400
READ_ONLY = 0o444
# Files whose hash this process has found right.
CHECKED: set[Path] = set()


@dataclass(frozen=True)
class FileContent:
    """A file whose content travels, by its hash; it is read where it is needed."""

    digest: str
    path: Path

    @classmethod
    def of(cls, path: Path, digests: FileDigests | None = None) -> FileContent:
        return cls((digests or FileDigests()).of(path), path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def content(self) -> bytes:
        return self.path.read_bytes()

    @property
    def reference(self) -> dict[str, str]:
        """What stands in the payload instead of the path."""
        return {REFERENCE: self.digest, "name": self.name}


class FileDigests:
    """Hashes of files, which are read again when their size or time of change differs."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], str]] = {}

    def of(self, path: Path) -> str:
        facts = path.stat()
        state = facts.st_ino, facts.st_size, facts.st_mtime_ns
        known = self._known.get(path)
        if known is None or known[0] != state:
            known = self._known[path] = state, _digest(path.read_bytes())
        return known[1]


def with_references(
    job: Job, digests: FileDigests | None = None
) -> tuple[dict[str, Any], list[FileContent]]:
    """Return a job's payload without paths, and the contents of the files that it names, in the
    order of ``references``.
    """
    found: list[FileContent] = []

    def refer(path: Path) -> dict[str, str]:
        found.append(FileContent.of(path, digests))
        return found[-1].reference

    return {name: _referred(name, value, refer) for name, value in job.payload.items()}, found


def comparison_of(payload: Mapping[str, Any]) -> str:
    """Return the hash of the instance of a payload with references: cells that share it are
    compared with each other.
    """
    found = payload.get("instance_file")
    return str(found[REFERENCE]) if isinstance(found, Mapping) else ""


def _referred(name: str, value: Any, refer: Callable[[Path], dict[str, str]]) -> Any:
    if name in FILES:
        return refer(Path(value))
    if name == "params":
        return {key: _replaced(each, refer) for key, each in value.items()}
    return value


def _replaced(value: Any, refer: Callable[[Path], dict[str, str]]) -> Any:
    """Replace paths of files, and text that is the path of a file; a folder does not travel."""
    if isinstance(value, (list, tuple)):
        return [_replaced(each, refer) for each in value]
    if isinstance(value, Path):
        return refer(value) if value.is_file() else str(value)
    if isinstance(value, str) and ("/" in value or "." in value) and Path(value).is_file():
        return refer(Path(value))
    return value


class ContentCache:
    """Contents on one node, by hash. Files are complete or not there, whoever writes them."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_root() / "cluster"

    @property
    def compiled(self) -> Path:
        """Where code that numba compiles for plug-ins is kept on this node."""
        return self.folder / "compiled"

    def place(self, digest: str, name: str) -> Path:
        return self.folder / "files" / digest / Path(name).name

    def find(self, digest: str, name: str) -> Path | None:
        """Return the path of a content that is here; each process checks its hash once."""
        place = self.place(digest, name)
        with contextlib.suppress(OSError):
            os.utime(place.parent)  # before it is looked for: nobody removes it from now on
            if place not in CHECKED and _digest(place.read_bytes()) != digest:
                return None
            place.stat()
            CHECKED.add(place)
            return place
        return None

    def keep(self, digest: str, name: str, content: bytes) -> Path:
        """Return the path of a content; it is written, and its hash checked, if it is missing."""
        if (found := self.find(digest, name)) is not None:
            return found
        if _digest(content) != digest:
            raise OptbenchError(f"{name}: what arrived on this node is not what was sent")
        place = self.place(digest, name)
        write_whole(place, content)
        place.chmod(READ_ONLY)
        CHECKED.add(place)
        return place

    def remove_unused(self) -> None:
        """Remove what has not been used for a month."""
        before, files = time.time() - KEPT_DAYS * SECONDS_PER_DAY, self.folder / "files"
        for kept in list(files.iterdir()) if files.is_dir() else ():
            with contextlib.suppress(OSError):
                if kept.stat().st_mtime < before:
                    # Nobody finds it under its own name from now on, who has not begun to.
                    gone = kept.with_name(f"{kept.name}.{os.getpid()}.unused")
                    kept.rename(gone)
                    shutil.rmtree(gone)


def with_paths(value: Any, places: Mapping[tuple[str, str], Path]) -> Any:
    """Return a payload with the paths of its files on this node, by hash and name."""
    if isinstance(value, Mapping):
        if REFERENCE in value:
            return str(places[value[REFERENCE], value["name"]])
        return {name: with_paths(each, places) for name, each in value.items()}
    return [with_paths(each, places) for each in value] if isinstance(value, list) else value


def references(value: Any) -> Iterator[Mapping[str, str]]:
    """Yield the references in a payload."""
    if isinstance(value, Mapping):
        if REFERENCE in value:
            yield value
            return
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        yield from references(each)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
