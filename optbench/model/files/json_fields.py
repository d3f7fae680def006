"""From a path to text: regular files of UTF-8 and bounded size; all else is refused by name."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from pathlib import Path

from optbench.errors import FileFormatError
from optbench.units import BYTES_PER_MB

# A million tasks are about 50 MB. Parsed JSON may need 25 times its size in memory, split plain
# text 35 times; a log of jobs four times (a million rows are about 150 MB, and only a few columns
# are kept).
MAX_JSON_BYTES = 64 << 20
MAX_LOG_BYTES = 256 << 20
MAX_TEXT_BYTES = 16 << 20
HEAD_BYTES = 4096
LIMIT_VARIABLE = "OPTBENCH_MAX_FILE_MB"

GZIP = b"\x1f\x8b"
MAGIC = {
    GZIP: "gzip-compressed; unpack it first",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"BZh": "bzip2-compressed; unpack it first",
    b"\xfd7zXZ\x00": "xz-compressed; unpack it first",
    b"%PDF": "a PDF document",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


def read_text(path: Path, *, table: bool = False) -> str:
    """The text of a file; the size is checked before anything but its head is read.

    A ``table`` is a log whatever it begins with, and may be compressed by gzip.
    """
    try:
        with open(path, "rb", opener=open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileFormatError(f"{shown(path)}: not a regular file; give the path of a file")
            head = file.read(HEAD_BYTES)
            packed = table and head.startswith(GZIP)
            if not packed:
                check_head(path, head)
            limit = byte_limit(head, MAX_LOG_BYTES if table else None)
            if status.st_size > limit:
                raise too_large(path, status.st_size, limit)
            data = head + file.read(limit + 1 - len(head))
    except IsADirectoryError:
        raise FileFormatError(
            f"{shown(path)}: a directory; give the path of a file in it"
        ) from None
    except FileNotFoundError:
        raise FileFormatError(f"{shown(path)}: no such file") from None
    except OSError as error:
        raise FileFormatError(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a path with a NUL character
        raise FileFormatError(f"{str(path)!r}: not a path: {error}") from None
    if len(data) > limit:
        raise too_large(path, len(data), limit)
    return decode(path, unpacked(path, data, limit) if packed else data)


def unpacked(path: Path, data: bytes, limit: int) -> bytes:
    """What gzip has packed, of no more than the size that is read."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            out = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(f"{shown(path)}: damaged gzip data: {error}") from None
    if len(out) > limit:
        raise too_large(path, len(out), limit)
    check_head(path, out[:HEAD_BYTES])
    return out


def open_at_once(path: str, flags: int) -> int:
    """Open without waiting for the other end of a named pipe, which is then refused."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def shown(path: Path) -> str:
    """A path as it may stand in a message, even where its bytes are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def check_head(path: Path, head: bytes) -> None:
    """Refuse what can be seen in the first bytes not to be text."""
    if len(head) < HEAD_BYTES and not head.strip():
        raise FileFormatError(f"{shown(path)}: the file is empty")
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise FileFormatError(f"{shown(path)}: {what}")
    if b"\0" in head:
        raise FileFormatError(
            f"{shown(path)}: binary data: a NUL byte at offset {head.index(0)}; instances are "
            "text or JSON"
        )


def byte_limit(head: bytes, known: int | None = None) -> int:
    """Largest size that is read: as known, by the head, or as the environment says."""
    override = os.environ.get(LIMIT_VARIABLE)
    if override is None and known is not None:
        return known
    if override is None and looks_like_log(head):
        return MAX_LOG_BYTES
    if override is None:
        return MAX_JSON_BYTES if looks_like_json(head) else MAX_TEXT_BYTES
    if not (override.isascii() and override.isdigit() and len(override) < 9 and int(override) > 0):
        raise FileFormatError(
            f"environment variable {LIMIT_VARIABLE} is {override!r}; it must be a positive whole "
            "number of MB"
        )
    return int(override) << 20


def looks_like_json(head: bytes) -> bool:
    """Whether the first character is one that only JSON begins with."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[", b'"')


def looks_like_log(head: bytes) -> bool:
    """Whether the first line heads a log of jobs, as Slurm's ``sacct`` prints it."""
    return b"jobid" in head.lstrip(b"\xef\xbb\xbf\r\n ").partition(b"\n")[0].lower()


def too_large(path: Path, size: int, limit: int) -> FileFormatError:
    needed = -(-size // BYTES_PER_MB)
    return FileFormatError(
        f"{shown(path)}: {size / BYTES_PER_MB:.1f} MB; files up to {limit >> 20} MB are read. "
        f"If the size is right and memory allows, set {LIMIT_VARIABLE}={needed}"
    )


def decode(path: Path, data: bytes) -> str:
    """UTF-8 with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFormatError(
            f"{shown(path)}, line {line}: byte 0x{data[error.start]:02x} at offset {error.start} "
            "is not UTF-8; "
            "save the file as UTF-8 text"
        ) from None
