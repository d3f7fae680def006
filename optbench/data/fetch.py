"""Fetch public data into the cache: checked against the registry while it arrives, put in place
whole or not at all.
"""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from optbench.data.registry import DataError, DataFile, cache_root, locate, remedy, select
from optbench.files import replacing

CHUNK_BYTES = 1 << 16
TIMEOUT_S = 30.0

# (file, bytes of it so far)
Progress = Callable[[DataFile, int], None]


def fetch(names: Sequence[str], on_progress: Progress | None = None) -> list[Path]:
    """Paths of the files of these sets or file names, fetched where they are not here yet.

    Files that were extracted from their source cannot be fetched: naming one is an error, within a
    set they are left out.
    """
    out = []
    for file in select(names):
        state, path = locate(file)
        if path is not None and state != "damaged":
            out.append(path)
        elif file.url is not None:
            out.append(download(file, file.url, on_progress))
        elif file.name in names or file.path in names:
            raise DataError(f"{file.path}: {remedy(file)}")
    return out


def unfetchable(names: Sequence[str]) -> list[DataFile]:
    """Files of these sets that are not here and cannot be fetched."""
    return [
        file
        for file in select(names)
        if file.url is None and locate(file)[0] in ("missing", "damaged")
    ]


def download(file: DataFile, url: str, on_progress: Progress | None = None) -> Path:
    """Bring one file into the cache."""
    target = cache_root() / file.path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as fresh:
            with fresh.open("wb") as out:
                digest = receive(file, url, out.write, on_progress)
            if digest != file.sha256:
                wrong = f"SHA-256 is {digest}, that of {file.path} is {file.sha256}"
                raise DataError(f"{url}: {wrong}; nothing was kept")
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise DataError(
            f"cannot fetch {file.path} from {url}: {reason(error)}. Offline? {OFFLINE}"
        ) from None
    return target


OFFLINE = "Set OPTBENCH_DATA to a folder that holds the data, or OPTBENCH_DATA_URL to a mirror"


def receive(
    file: DataFile, url: str, write: Callable[[bytes], object], on_progress: Progress | None
) -> str:
    """Stream the file, no further than its known size; returns its SHA-256."""
    digest, size = hashlib.sha256(), 0
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
        while chunk := response.read(CHUNK_BYTES):
            size += len(chunk)
            if size > file.size:
                raise DataError(
                    f"{url}: more than the {file.size:,} bytes of {file.path}; nothing was kept"
                )
            digest.update(chunk)
            write(chunk)
            if on_progress is not None:
                on_progress(file, size)
    return digest.hexdigest()


def reason(error: Exception) -> str:
    """What went wrong, without the wrapping."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
