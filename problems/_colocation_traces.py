"""Recorded jobs for problem ``colocation``: three traces of Gavel, Alibaba's pods, a user's CSV.

Of Gavel's traces (shipped, an extract) job types, numbers of GPUs, steps and arrivals are used; two
of the 18 jobs of ``msr`` have a key that is in no table, and are left out. In
``artifact_evaluation`` all jobs arrive at 0: where a load is given, their arrivals are drawn.

Of Alibaba's GPU trace of 2023 only the times are used at which pods that ask for GPUs were created:
a window of as many pods as there are jobs, drawn by the seed. The first tenth of the pods is left
out, whose creation is spread over months. The file is one of the public data sets.

A user's CSV has a row per job, in order of arrival:

    job_type,arrival_s,gpus,work,stay_s,required_per_s
    bert (b 8),0,1,90000,,
    gpt (b 4),360,1,,7200,12.5

Exactly one of ``work`` (units of work) and ``stay_s`` (a service) is filled in a row; without
``required_per_s`` the requirement is drawn; ``gpus`` is 1 unless it is given.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from optbench.data.registry import data_path
from optbench.errors import FileFormatError, ParameterError, nearest
from optbench.formats.text_tables import TextTable, read_table, require_columns
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json
from optbench.shapes.colocation.colocation_data import Floats, JobType

from ._colocation_jobs import Wanted
from ._colocation_tables import gpus_of, numbers_of

SHIPPED = Path(__file__).with_name("_gavel_traces.json")
GAVEL_TRACES = ("max_min_fairness", "artifact_evaluation", "msr")
PODS = "alibaba-gpu-v2023/openb_pod_list_default.csv"
# Share of the pods, from the first, that no window begins in.
SPARSE_SHARE = 0.1
JOB_COLUMNS = ("job_type", "arrival_s", "gpus", "work", "stay_s", "required_per_s")
JOB_WORDS = (
    "a list of jobs has job_type, arrival_s and work or stay_s, and optionally gpus and "
    "required_per_s"
)


@cache
def _shipped() -> Any:
    return parse_json(read_text(SHIPPED))["traces"]


def gavel_trace(name: str, job_types: tuple[JobType, ...], most: int | None) -> Wanted:
    """Return the jobs of a trace of Gavel, at most so many, that have a job type in the tables."""
    index = {(each.name, each.gpus): t for t, each in enumerate(job_types)}
    rows = [row for row in _shipped()[name] if (row[0], row[1]) in index][:most]
    if len(rows) < 2:
        raise ParameterError(
            f"problem 'colocation': trace={name} has job types of Gavel's tables; use tables=gavel"
        )
    nothing = np.full(len(rows), np.nan)
    return Wanted(
        np.array([index[row[0], row[1]] for row in rows], dtype=np.int64),
        np.array([row[3] for row in rows], dtype=float),
        np.array([row[2] for row in rows], dtype=float),
        nothing,
        nothing,
    )


def alibaba_times(rng: np.random.Generator, number: int) -> Floats:
    """Return the creation times of consecutive pods that ask for GPUs, from a drawn one on."""
    path = data_path(PODS)
    table = read_table(read_text(path, table=True), shown(path))
    created = np.sort(table.numbers("creation_time")[table.whole("num_gpu") > 0])
    first = int(SPARSE_SHARE * len(created))
    if number > len(created) - first:
        raise ParameterError(
            f"problem 'colocation': jobs is {number:,}; trace=alibaba has {len(created) - first:,}"
        )
    begin = int(rng.integers(first, len(created) - number + 1))
    out: Floats = created[begin : begin + number]
    return out


def own_jobs(file: str, job_types: tuple[JobType, ...], most: int | None) -> Wanted:
    """Read the jobs of a user's CSV file."""
    path = Path(file)
    table = read_table(read_text(path, table=True), shown(path))
    require_columns(table, JOB_COLUMNS[:2], JOB_WORDS)
    for name in table.columns:
        if name not in JOB_COLUMNS:
            raise FileFormatError(
                f"{table.where}: there is no column {name!r}; {nearest(name, JOB_COLUMNS)}"
            )
    work, stay = _optional(table, "work"), _optional(table, "stay_s")
    unclear = np.flatnonzero(np.isnan(work) == np.isnan(stay))
    if len(unclear):
        raise table.wrong(int(unclear[0]), "exactly one of work and stay_s must be given")
    return Wanted(
        np.array(_types(table, job_types)[:most], dtype=np.int64),
        _arrivals(table)[:most],
        np.where(np.isnan(work), 0.0, work)[:most],
        np.where(np.isnan(stay), 0.0, stay)[:most],
        _optional(table, "required_per_s")[:most],
    )


def _arrivals(table: TextTable) -> Floats:
    """Times of arrival, in order."""
    numbers_of(table, "arrival_s")
    return table.in_order("arrival_s")


def _optional(table: TextTable, name: str) -> Floats:
    """A column of positive numbers; NaN where it is empty or not there."""
    if name not in table.columns:
        return np.full(table.size, np.nan)
    filled = table.filled(name)
    out = np.full(table.size, np.nan)
    if filled.any():
        out[filled] = numbers_of(table.rows(filled), name)
        if (out == 0).any():
            raise table.wrong(int(np.flatnonzero(out == 0)[0]), f"{name} is 0; it must be above 0")
    return out


def _types(table: TextTable, job_types: tuple[JobType, ...]) -> list[int]:
    """The job type of each row, by its name and number of GPUs."""
    index = {(each.name, each.gpus): t for t, each in enumerate(job_types)}
    out = []
    for row, (name, count) in enumerate(
        zip(table.columns["job_type"], gpus_of(table), strict=True)
    ):
        if (name.strip(), count) not in index:
            sizes = [each.gpus for each in job_types if each.name == name.strip()]
            words = (
                f"job_type {name.strip()!r} with {count} GPUs is in no table; it is there with "
                f"{', '.join(map(str, sizes))}"
                if sizes
                else f"job_type {name.strip()!r} is in no table; "
                f"{nearest(name.strip(), sorted({each.name for each in job_types}))}"
            )
            raise table.wrong(row, words)
        out.append(index[name.strip(), count])
    return out
