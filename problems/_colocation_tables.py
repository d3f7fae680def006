"""Throughput tables of a user, from a CSV with one row per measurement.

    gpu_type,job_type,family,batch_size,gpus,partner,per_s,profile
    v100,bert (b 8),BERT,8,1,,31.5,V100
    v100,bert (b 8),BERT,8,1,gpt (b 4),17.2,V100

``per_s`` is the throughput of the job in units of its own (steps, requests) per second: alone where
``partner`` is empty, else beside a job of that type on the same GPU. ``family`` and ``batch_size``
are its features. ``gpus`` (default 1) makes a gang, which runs alone and is no partner. ``profile``
is a shipped power profile or a file; without it the GPU type must have the name of a shipped one.

Every GPU type needs a row for every job type alone and for every ordered pair of job types with one
GPU; a 0 says that it does not run there, or that the pair does not fit. A pair fits for both jobs
or for neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optbench.errors import FileFormatError, nearest
from optbench.formats.text_tables import TextTable, read_table, require_columns
from optbench.model.files.json_fields import read_text, shown
from optbench.shapes.colocation.colocation_data import Bools, Floats, JobType

from ._throughput_tables import ThroughputTables

NEEDED = ("gpu_type", "job_type", "family", "batch_size", "partner", "per_s")
OPTIONAL = ("gpus", "profile")
ALLOWED = f"a table of throughputs has {', '.join(NEEDED)}, and optionally {', '.join(OPTIONAL)}"
MISSING = "is missing; write per_s 0 for what does not run or does not fit"
# Throughputs that the tables of a file may hold, of which 20 million are 160 MB.
MOST_CELLS = 20_000_000
# Numbers other than 0 that a file may hold, and GPUs of a job: far beyond real ones, and such that
# no product or ratio of them overflows.
LEAST, MOST, MOST_GPUS = 1e-9, 1e12, 100_000
# Name and number of GPUs of a job type.
Key = tuple[str, int]


@dataclass(frozen=True)
class OwnTables:
    """Tables of a file, and the power profile that it names per GPU type."""

    tables: ThroughputTables
    profiles: dict[str, str]


def read_tables(file: str) -> OwnTables:
    """Read the throughput tables of a CSV file."""
    path = Path(file)
    table = read_table(read_text(path, table=True), shown(path))
    require_columns(table, NEEDED, ALLOWED)
    for name in table.columns:
        if name not in NEEDED + OPTIONAL:
            known = nearest(name, NEEDED + OPTIONAL)
            raise FileFormatError(f"{table.where}: there is no column {name!r}; {known}")
    keys = list(zip(_words(table, "job_type"), gpus_of(table), strict=True))
    job_types = _job_types(table, keys)
    gpu_names = tuple(dict.fromkeys(_words(table, "gpu_type")))
    tables = _filled(table, keys, gpu_names, job_types)
    return OwnTables(tables, _profiles(table))


def numbers_of(table: TextTable, name: str) -> Floats:
    """A column of numbers that are 0 or lie within ``LEAST`` and ``MOST``."""
    out = table.numbers(name)
    wrong = np.flatnonzero((out != 0) & ((out < LEAST) | (out > MOST)))
    if len(wrong):
        words = f"{name} is {out[wrong[0]]:g}; it must be 0, or from {LEAST:g} to {MOST:g}"
        raise table.wrong(int(wrong[0]), words)
    return out


def gpus_of(table: TextTable) -> list[int]:
    """The column of GPUs per job, 1 where there is none."""
    if "gpus" not in table.columns:
        return [1] * table.size
    gpus = table.numbers("gpus")
    wrong = np.flatnonzero((gpus < 1) | (gpus > MOST_GPUS))
    if len(wrong):
        words = f"gpus is {gpus[wrong[0]]:g}; it must be from 1 to {MOST_GPUS:,}"
        raise table.wrong(int(wrong[0]), words)
    whole: list[int] = table.whole("gpus").tolist()
    return whole


def _words(table: TextTable, name: str) -> list[str]:
    """A column of words, none of them empty."""
    words = [value.strip() for value in table.columns[name]]
    if "" in words:
        raise table.wrong(words.index(""), f"{name} is empty")
    return words


def _job_types(table: TextTable, keys: list[Key]) -> dict[Key, JobType]:
    """The job types in the order of the file; their rows agree."""
    families, batches = _words(table, "family"), numbers_of(table, "batch_size").tolist()
    out: dict[Key, JobType] = {}
    for row, (key, family, batch) in enumerate(zip(keys, families, batches, strict=True)):
        if batch <= 0:
            raise table.wrong(row, f"batch_size is {batch:g}; it must be above 0")
        stated = JobType(key[0], family, batch, key[1])
        before = out.setdefault(key, stated)
        if before != stated:
            raise table.wrong(
                row,
                f"job type {key[0]!r} has family {family!r} and batch_size {batch:g}; a row before "
                f"says {before.family!r} and {before.batch_size:g}",
            )
    return out


def _filled(
    table: TextTable, keys: list[Key], gpu_names: tuple[str, ...], job_types: dict[Key, JobType]
) -> ThroughputTables:
    index = {key: t for t, key in enumerate(job_types)}
    size = (len(gpu_names), len(index))
    single = np.array([gpus == 1 for _, gpus in index])
    needed = size[0] * (size[1] + int(single.sum()) ** 2)
    if size[0] * size[1] ** 2 > MOST_CELLS:
        raise FileFormatError(
            f"{table.where}: {size[1]:,} job types on {size[0]:,} GPU types need {needed:,} rows; "
            f"there are {table.size:,}, and at most {MOST_CELLS:,} throughputs can be read"
        )
    alone, beside = np.full(size, np.nan), np.full((*size, len(index)), np.nan)
    per_s = numbers_of(table, "per_s").tolist()
    gpu_index = {name: g for g, name in enumerate(gpu_names)}
    for row, (gpu, key) in enumerate(zip(_words(table, "gpu_type"), keys, strict=True)):
        partner = table.columns["partner"][row].strip()
        cells = beside if partner else alone
        at: tuple[int, ...] = (gpu_index[gpu], index[key])
        if partner:
            at += (index[_partner(table, row, key, partner, index)],)
        if not np.isnan(cells[at]):
            raise table.wrong(row, f"{_place(gpu, key[0], partner)} stands twice")
        cells[at] = per_s[row]
    types = tuple(job_types.values())
    _refuse(table, gpu_names, types, np.isnan(alone), MISSING)
    _refuse(table, gpu_names, types, np.isnan(beside) & single[:, None] & single, MISSING)
    beside = np.where(np.isnan(beside), 0.0, beside)
    lone = (beside > 0) & (np.swapaxes(beside, 1, 2) == 0)
    _refuse(table, gpu_names, types, lone, "is above 0, and that of its partner is 0")
    nowhere = np.flatnonzero(~(alone > 0).any(axis=0))
    if len(nowhere):
        raise FileFormatError(
            f"{table.where}: job type {types[nowhere[0]].title!r} runs on no GPU type alone; its "
            "per_s must be above 0 on one of them"
        )
    return ThroughputTables(gpu_names, types, alone, beside)


def _partner(table: TextTable, row: int, key: Key, partner: str, known: Mapping[Key, int]) -> Key:
    """The job type that a row names as partner: both have one GPU."""
    if key[1] > 1:
        words = f"job type {key[0]!r} has {key[1]} GPUs; gangs run alone, without partner"
        raise table.wrong(row, words)
    if (partner, 1) not in known:
        single = [name for name, gpus in known if gpus == 1]
        words = f"partner {partner!r} has no row of its own; {nearest(partner, single)}"
        raise table.wrong(row, words)
    return partner, 1


def _place(gpu: str, job_type: str, partner: str) -> str:
    beside = f"beside {partner!r}" if partner else "alone"
    return f"the throughput of {job_type!r} {beside} on {gpu!r}"


def _refuse(
    table: TextTable,
    gpu_names: tuple[str, ...],
    types: tuple[JobType, ...],
    wrong: Bools,
    what: str,
) -> None:
    """Name the first wrong cell (GPU type, job type, and partner where there is a third axis)."""
    places = np.argwhere(wrong)
    if len(places):
        g, t, *s = places[0].tolist()
        place = _place(gpu_names[g], types[t].title, types[s[0]].name if s else "")
        more = f" (and {len(places) - 1:,} more)" if len(places) > 1 else ""
        raise FileFormatError(f"{table.where}: {place} {what}{more}")


def _profiles(table: TextTable) -> dict[str, str]:
    """The power profile of each GPU type that a row names; rows agree."""
    out: dict[str, str] = {}
    if "profile" not in table.columns:
        return out
    for row, gpu in enumerate(_words(table, "gpu_type")):
        named = table.columns["profile"][row].strip()
        if named and out.setdefault(gpu, named) != named:
            words = f"profile of {gpu!r} is {named!r}; a row before says {out[gpu]!r}"
            raise table.wrong(row, words)
    return out
