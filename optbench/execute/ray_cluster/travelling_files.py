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


@dataclass(frozen=True)
class FileContent:
    """The content of a file, with its hash and name."""

    digest: str
    name: str
    content: bytes

    @classmethod
    def of(cls, path: Path) -> FileContent:
        content = path.read_bytes()
        return cls(_digest(content), path.name, content)

    @property
    def reference(self) -> dict[str, str]:
        """What stands in the payload instead of the path."""
        return {REFERENCE: self.digest, "name": self.name}


def with_references(job: Job) -> tuple[dict[str, Any], list[FileContent]]:
    """Return a job's payload without paths, and the contents of the files that it names, in the
    order of ``references``.
    """
    found: list[FileContent] = []

    def refer(path: Path) -> dict[str, str]:
        found.append(FileContent.of(path))
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

    def keep(self, digest: str, name: str, content: bytes) -> Path:
        """Return the path of a content; it is written, and its hash checked, if it is missing."""
        place = self.folder / "files" / digest / Path(name).name
        if place.exists() and place.stat().st_size == len(content):
            with contextlib.suppress(OSError):
                os.utime(place.parent)
            return place
        if _digest(content) != digest:
            raise OptbenchError(f"{name}: what arrived on this node is not what was sent")
        write_whole(place, content)
        return place

    def remove_unused(self) -> None:
        """Remove what has not been used for a month."""
        before, files = time.time() - KEPT_DAYS * SECONDS_PER_DAY, self.folder / "files"
        for kept in list(files.iterdir()) if files.is_dir() else ():
            with contextlib.suppress(OSError):
                if kept.stat().st_mtime < before:
                    shutil.rmtree(kept)


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
