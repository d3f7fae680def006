"""Readers of Slurm's fields: times, durations, resources, node lists.

A reader returns None for text that is empty or that it cannot parse.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product

# Texts that sacct prints for an empty field.
NOTHING = frozenset({"", "unknown", "none", "none assigned", "(null)", "n/a", "invalid"})
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d+)?", re.ASCII)
EPOCH = re.compile(r"\d{9,11}", re.ASCII)
DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)(?:\.\d+)?", re.ASCII)
SECONDS = re.compile(r"\d{1,11}", re.ASCII)
TRES_GPU = re.compile(r"gres/gpu(?::([^=,:]+))?=(\d{1,9})", re.ASCII)
TRES_CPU = re.compile(r"(?:^|,)cpu=(\d{1,9})(?:,|$)", re.ASCII)
GRES_PLACE = re.compile(r"\([^)]*\)")
NODE_PART = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")
UNNAMED = "gpu"
# A list of more nodes than any cluster has is a mistake or an attack.
MAX_NODES = 1 << 16
SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
NUMBER = re.compile(r"(\d{1,20}(?:\.\d{1,12})?)([KMGT]?)", re.ASCII)


def is_nothing(text: str) -> bool:
    return text.strip().lower() in NOTHING


def time_s(text: str) -> int | None:
    """Seconds since 1970 of ``2024-03-01T12:34:56``, taken as UTC, or of an epoch number."""
    match = TIME.fullmatch(text)
    if match is None:
        return int(text) if EPOCH.fullmatch(text) else None
    midnight = day_s(match[1])
    hour, minute, second = int(match[2]), int(match[3]), int(match[4])
    if midnight is None or hour > 23 or minute > 59 or second > 60:
        return None
    return midnight + (hour * 60 + minute) * 60 + second


@lru_cache(maxsize=4096)
def day_s(day: str) -> int | None:
    """Midnight of a day; None for the 31st of February."""
    try:
        return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def duration_s(text: str) -> int | None:
    """Seconds of ``1-02:03:04``, ``02:03:04``, ``03:04`` or a bare number of seconds."""
    match = DURATION.fullmatch(text)
    if match is None:
        return int(text) if SECONDS.fullmatch(text) else None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def gpus_of(text: str) -> tuple[tuple[str, int], ...]:
    """(type, GPUs) of TRES (``cpu=8,gres/gpu:a100=2,gres/gpu=2``) or GRES
    (``gpu:a100:2(IDX:0-1)``), types ascending.

    TRES lists a total beside the types; the rest of it has no type and is called ``gpu``.
    """
    tres = "=" in text
    by_type: dict[str, int] = {}
    for kind, count in TRES_GPU.findall(text.lower()) if tres else gres_of(text.lower()):
        by_type[kind] = by_type.get(kind, 0) + int(count)
    total = by_type.pop("", 0)
    rest = total - sum(by_type.values()) if tres else total
    if rest > 0:
        by_type[UNNAMED] = by_type.get(UNNAMED, 0) + rest
    return tuple(sorted((kind, count) for kind, count in by_type.items() if count))


def gres_of(text: str) -> list[tuple[str, str]]:
    """(type, count) of ``gpu:a100:2(IDX:0,1)``, ``gpu:2``; no type is "", no count is one."""
    out = []
    for word in GRES_PLACE.sub("", text).split(","):
        name, *rest = word.strip().removeprefix("gres:").removeprefix("gres/").split(":")
        count = (
            rest.pop()
            if rest and rest[-1].isascii() and rest[-1].isdigit() and len(rest[-1]) < 10
            else "1"
        )
        if name == "gpu" and len(rest) < 2:
            out.append((rest[0] if rest else "", count))
    return out


def cores_of(text: str) -> int:
    """Cores in a TRES, 0 where it names none."""
    match = TRES_CPU.search(text.lower())
    return int(match[1]) if match else 0


def energy_j(text: str) -> float | None:
    """Joules of ``ConsumedEnergy`` (``12.5M``); 2^64 - 2 stands for "not known"."""
    match = NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    value = float(match[1]) * SCALE[match[2]]
    return value if 0 < value < 1e15 else None


def nodes_of(text: str) -> tuple[str, ...] | None:
    """Names in ``gpu[01-03,07],cpu5``; several brackets multiply; None if unreadable."""
    names: list[str] = []
    for word in split_outside(text.strip()):
        parts: list[list[str]] = []
        covered = 0
        for match in NODE_PART.finditer(word):
            covered += len(match[0])
            values = [match[2]] if match[1] is None else expand(match[1])
            if values is None:
                return None
            parts.append(values)
        size = 1
        for part in parts:
            size *= len(part)
        if covered != len(word) or not word or size + len(names) > MAX_NODES:
            return None
        names += ["".join(pieces) for pieces in product(*parts)]
    return tuple(names)


def split_outside(text: str) -> list[str]:
    """Parts between commas that are not in brackets."""
    words, begin, depth = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            words.append(text[begin:at])
            begin = at + 1
    return [*words, text[begin:]]


def expand(inside: str) -> list[str] | None:
    """``01-03,07`` as 01, 02, 03, 07, leading zeros kept."""
    out: list[str] = []
    for part in inside.split(","):
        low, dash, high = part.partition("-")
        if not (low.isascii() and low.isdigit() and len(low) <= 9):
            return None
        if not dash:
            out.append(low)
            continue
        if (
            not (high.isascii() and high.isdigit() and len(high) <= 9)
            or not 0 <= int(high) - int(low) < MAX_NODES
        ):
            return None
        out += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
        if len(out) > MAX_NODES:
            return None
    return out
