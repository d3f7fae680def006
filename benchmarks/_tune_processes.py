"""Processes of `optbench tune`, as ``/proc`` lists them: workers, and those left in a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def workers_of(command: subprocess.Popen[str]) -> list[int]:
    return (
        [pid for pid in children(command.pid) if "spawn_main" in command_of(pid)]
        if command.poll() is None
        else []
    )


def holds_trial(pid: int) -> bool:
    try:
        return any("/trial-" in os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, thread.read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def left_of(folder: Path) -> list[str]:
    """Processes that still work in a case's folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            here = (path / "environ").read_bytes()
            alive = (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if alive and f"OPTBENCH_WORKSPACE={folder}".encode() in here:
            found.append(f"{path.name} {command_of(int(path.name))[:80]}")
    return found
