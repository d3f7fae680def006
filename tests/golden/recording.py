"""Recorded entries as JSON lines: one entry per line, found again by its name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.normalising import differences

FOLDER = Path(__file__).parent
Entry = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """What one part of the golden files holds: entries with a name, and texts apart from them."""

    entries: list[Entry]
    texts: list[Entry]


def read_lines(path: Path) -> list[Entry]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def write_lines(path: Path, entries: Iterable[Entry]) -> None:
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))


def read(part: str, folder: Path = FOLDER) -> Recording:
    return Recording(
        read_lines(folder / f"{part}.jsonl"), read_lines(folder / f"{part}_texts.jsonl")
    )


def write(part: str, recording: Recording, folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / f"{part}.jsonl", recording.entries)
    if recording.texts:
        write_lines(folder / f"{part}_texts.jsonl", recording.texts)


def compare(
    recorded: list[Entry], found: list[Entry], whole: bool = True, exact: bool = False
) -> list[str]:
    """Differences by name; where not the ``whole`` was found again, entries may be missing."""
    old, new = ({entry["name"]: entry for entry in entries} for entries in (recorded, found))
    out = [f"{name}: not recorded" for name in new if name not in old]
    if whole:
        out += [f"{name}: recorded, not found" for name in old if name not in new]
    for name in old.keys() & new.keys():
        out += differences(old[name], new[name], name, exact)
    return sorted(out)
