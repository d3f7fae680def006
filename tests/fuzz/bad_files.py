"""Files with known mistakes, and some valid ones, each with the exit code of ``optbench
convert``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sample_files.inputs import originals

TEXTS = originals()
JOB_SHOP, NATIVE, LOG, WORKFLOW = (
    TEXTS[name] for name in ("jobshop", "optbench", "sacct", "wfformat")
)
HUGE_BYTES = 200 << 20
# A job that has not ended.
LOG_HEAD, LOG_ROW = (
    b"JobID|Start|End|AllocTRES\n",
    b"100|2024-03-01T00:00:00|Unknown|billing=4,cpu=4,gres/gpu:a100=4,mem=64G\n",
)


@dataclass(frozen=True)
class DamagedFile:
    """``make`` writes the file, or returns another path to give."""

    name: str
    make: Callable[[Path], Path | None]
    code: int = 2


def written(data: str | bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(data.encode() if isinstance(data, str) else data)

    return make


def native(*keys: str | int, value: Any) -> Callable[[Path], None]:
    """The native file with one value changed; a missing key is added."""
    data = json.loads(NATIVE)
    part = data
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    return written(json.dumps(data))


def with_text_replaced(text: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace a part of the text, which must occur in it."""
    assert old in text, old
    return written(text.replace(old, new))


def repeated(head: bytes, body: bytes, size: int = HUGE_BYTES) -> Callable[[Path], None]:
    """A number of equal bytes."""

    def make(path: Path) -> None:
        block = body * ((1 << 20) // len(body))
        with path.open("wb") as file:
            file.write(head)
            for _ in range(size // len(block)):
                file.write(block)

    return make


def many_nodes(path: Path) -> None:
    """A log of 100,000 runs on 65,536 nodes each."""
    rows = (
        f"{job}|1700000000|1700000001|gres/gpu=65536|n[00000-65535]\n" for job in range(100_000)
    )
    path.write_text("JobID|Start|End|AllocTRES|NodeList\n" + "".join(rows))


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE_BYTES)


def directory(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def locked(path: Path) -> None:
    path.write_text(JOB_SHOP)
    path.chmod(0)


CASES = (
    DamagedFile("job shop, undamaged", written(JOB_SHOP), 0),
    DamagedFile("job shop with byte order mark", written(b"\xef\xbb\xbf" + JOB_SHOP.encode()), 0),
    DamagedFile("native, undamaged", written(NATIVE), 0),
    DamagedFile("job shop, truncated", written(JOB_SHOP[: len(JOB_SHOP) // 2])),
    DamagedFile("native, truncated", written(NATIVE[: len(NATIVE) // 2])),
    DamagedFile("binary", written(bytes(range(256)) * 16)),
    DamagedFile("gzip", written(b"\x1f\x8b\x08\x00" + bytes(20))),
    DamagedFile("UTF-16", written(JOB_SHOP.encode("utf-16"))),
    DamagedFile("Latin-1 text", written("# Auftr\xe4ge\n".encode("latin-1") + JOB_SHOP.encode())),
    DamagedFile("empty", written("")),
    DamagedFile("blank", written(" \n\n")),
    DamagedFile("only comments", written("# nothing\n# here\n")),
    DamagedFile("prose", written("Dear sir or madam,\nplease find enclosed 3 jobs.\n")),
    DamagedFile("project, cyclic", written("4 1\n 2\n 0 0 1 2\n 3 1 1 3\n 2 1 2 2 4\n 0 0 0\n")),
    DamagedFile("native, cyclic", native("edges", "target", 2, value=0)),
    DamagedFile("job shop, negative duration", written("2 2\n0 3 1 -2\n1 2 0 4\n")),
    DamagedFile("job shop, NaN duration", written("2 2\n0 3 1 nan\n1 2 0 4\n")),
    DamagedFile("native, negative units", native("tasks", "units", 1, value=-5)),
    DamagedFile("native, NaN", written(NATIVE.replace("60.0", "NaN"))),
    DamagedFile("native, 1e999", written(NATIVE.replace("60.0", "1e999"))),
    DamagedFile("native, text for a number", native("pools", "idle_w", 0, value="50 W")),
    DamagedFile("native, unknown key", native("tasks", "deadlines", value=[])),
    DamagedFile("native, missing key", written(NATIVE.replace('"needs"', '"need"'))),
    DamagedFile(
        "native, key twice", written(NATIVE.replace('"horizon"', '"name": "again", "horizon"'))
    ),
    DamagedFile("native, wrong version", native("version", value=7)),
    DamagedFile("native, wrong format", native("format", value="optbench-result")),
    DamagedFile("native, unknown metric", native("objective", 0, "makespam_s", value=1.0)),
    DamagedFile("native, column too short", native("tasks", "weight", value=[1.0])),
    DamagedFile("native, kind out of range", native("tasks", "kind", 2, value=9)),
    DamagedFile(
        "native, more devices than the pool has", native("modes", "needs", 0, value=[[0, 99]])
    ),
    DamagedFile("native, memory that no pool has", native("tasks", "memory_gb", 0, value=1000)),
    DamagedFile("schedule instead of an instance", written(TEXTS["schedule"])),
    DamagedFile(
        "JSON of something else", written('{"name": "web", "dependencies": {"left-pad": "1.0"}}')
    ),
    DamagedFile("whole number of 10,000 digits", written(NATIVE.replace("60.0", "7" * 10_000))),
    DamagedFile("whole number of 30 digits", native("tasks", "release", 0, value=10**30)),
    DamagedFile("job shop, duration of 30 digits", written("1 1\n0 " + "9" * 30 + "\n")),
    DamagedFile("a million machines", written("1 1000000\n1 1 1 5\n")),
    DamagedFile("a billion jobs", written("1000000000 2\n0 1 1 2\n")),
    DamagedFile("log, undamaged", written(LOG), 0),
    DamagedFile("log, commas without quotes", written(LOG.replace("|", ","))),
    DamagedFile("log, without Start", with_text_replaced(LOG, "|Start|", "|Began|")),
    DamagedFile(
        "log, only steps",
        written("".join(line for line in LOG.splitlines(True) if "." in line or "JobID" in line)),
    ),
    DamagedFile(
        "log, a billion nodes", with_text_replaced(LOG, "gpu[01-02]", "gpu[000000000-999999999]"), 0
    ),
    DamagedFile(
        "log, a billion GPUs", with_text_replaced(LOG, "gres/gpu=1|", "gres/gpu=999999999|"), 0
    ),
    DamagedFile(
        "log, year 9999",
        with_text_replaced(LOG, "|2024-02-29T00:30:10|01:30", "|9999-12-31T23:59:59|01:30"),
        0,
    ),
    DamagedFile("log, fixed width", written(LOG.replace("|", "  "))),
    DamagedFile("workflow, undamaged", written(WORKFLOW), 0),
    DamagedFile(
        "workflow, cyclic", with_text_replaced(WORKFLOW, '"parents": []', '"parents": ["merge_1"]')
    ),
    DamagedFile(
        "workflow, negative runtime",
        with_text_replaced(WORKFLOW, '"runtimeInSeconds": 60', '"runtimeInSeconds": -60'),
    ),
    DamagedFile(
        "workflow, runtime 1e308",
        with_text_replaced(WORKFLOW, '"runtimeInSeconds": 60', '"runtimeInSeconds": 1e308'),
    ),
    DamagedFile(
        "workflow, a billion cores",
        with_text_replaced(WORKFLOW, '"coreCount": 8', '"coreCount": 1000000000'),
        0,
    ),
    DamagedFile(
        "workflow, without execution", with_text_replaced(WORKFLOW, '"execution"', '"executions"')
    ),
    DamagedFile("JSON nested 100,000 deep", written("[" * 100_000)),
    DamagedFile("200 MB of zero bytes", sparse),
    DamagedFile("200 MB of digits", repeated(b"10 10\n", b"1 2 3 4 5 6 7 8\n")),
    DamagedFile("200 MB on one line", repeated(b"10 10 ", b"12345678")),
    DamagedFile("200 MB of JSON", repeated(b'{"format": [', b"0,1,2,3,")),
    DamagedFile(
        "15 MB of digits, within the limit", repeated(b"10 10\n", b"1 2 3 4 5 6 7 8\n", 15 << 20)
    ),
    DamagedFile(
        "15 MB of digits on one line, within the limit", repeated(b"10 10 ", b"12345678 ", 15 << 20)
    ),
    DamagedFile("15 MB of empty lines, within the limit", repeated(b"x\n", b"\n", 15 << 20)),
    DamagedFile("250 MB of log, within the limit", repeated(LOG_HEAD, LOG_ROW, 250 << 20)),
    DamagedFile("log of six billion nodes, within the limit", many_nodes, 0),
    DamagedFile(
        "63 MB of JSON numbers, within the limit", repeated(b'{"format": [', b"0,1,2,3,", 63 << 20)
    ),
    DamagedFile("63 MB of JSON objects, within the limit", repeated(b"[", b"{},", 63 << 20)),
    DamagedFile("directory", directory),
    DamagedFile("missing file", lambda path: path.with_name("missing.json")),
    DamagedFile("named pipe", pipe),
    DamagedFile("endless device", lambda path: Path("/dev/zero")),
    # Root may read anything.
    *([DamagedFile("no permission", locked)] if os.geteuid() != 0 else []),
)
