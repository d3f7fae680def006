"""Public traces of GPU clusters that record run times and numbers of GPUs of jobs.

**Gavel** (Narayanan et al., OSDI 2020): lines of 10 or 7 fields separated by tabs, without a
header. A job takes steps; its run time is steps / throughput, by a table of throughputs by type of
GPU, job type and number of GPUs.

**Alibaba GPU 2023** (Weng et al., ATC 2023): CSV of pods, each with a number of GPUs or a share of
one, and the times at which it was created, scheduled and deleted. The trace records neither the
node nor the power of a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, nearest
from optbench.formats.imported import ImportFindings
from optbench.formats.text_tables import TextTable, read_table, require_columns
from optbench.model.instance import Bools, Floats, Ints

GAVEL_COLUMNS = {
    10: (
        "job_type",
        "command",
        "directory",
        "steps_argument",
        "needs_data",
        "total_steps",
        "gpus",
        "priority",
        "slo",
        "arrival_time",
    ),
    7: (
        "job_type",
        "command",
        "steps_argument",
        "needs_data",
        "total_steps",
        "arrival_time",
        "gpus",
    ),
}
POD_COLUMNS = ("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time")


@dataclass(frozen=True, eq=False)
class TraceJobs:
    """Jobs in order of arrival; ``gpu_s`` is run time times GPUs, NaN an unknown start or end."""

    arrival_s: Floats
    gpus: Floats
    gpu_s: Floats
    start_s: Floats
    end_s: Floats
    names: tuple[str, ...] | None = None


def looks_like_gavel(text: str) -> bool:
    """Whether the first line has as many tabs as a line of a trace."""
    return text.partition("\n")[0].count("\t") + 1 in GAVEL_COLUMNS


def looks_like_pods(names: Iterable[str]) -> bool:
    """Whether the header is (almost) that of a list of pods."""
    return (
        len(
            {"gpu_milli", "creation_time", "scheduled_time", "num_gpu"}
            & {name.strip() for name in names}
        )
        >= 2
    )


def read_gavel(
    text: str, where: str, throughputs: Any, findings: ImportFindings, worker: str = "v100"
) -> TraceJobs:
    """A Gavel trace; jobs without a throughput on the ``worker`` are dropped."""
    width = text.partition("\n")[0].count("\t") + 1
    table = read_table(text, where, "\t", GAVEL_COLUMNS[width])
    arrival_s, gpus, steps = (
        table.in_order("arrival_time"),
        table.numbers("gpus", 1),
        table.numbers("total_steps"),
    )
    rates = _rates(throughputs, worker)
    rate = np.zeros(table.size)
    for row, (kind, count) in enumerate(zip(table.columns["job_type"], gpus.tolist(), strict=True)):
        key = f"('{kind}', {int(count)})"
        rate[row] = rates.get(key, 0.0)
        if rate[row] <= 0:
            what = "has none" if key in rates else "is not in the table"
            findings.add(
                "dropped", f"no throughput on {worker}: {key} {what}", f"line {table.line[row]}"
            )
    for row in np.flatnonzero((rate > 0) & (steps <= 0)).tolist():
        findings.add("dropped", "no steps to do", f"line {table.line[row]}")
    if width == 10:
        for name, unused in (("priority", "1"), ("slo", "-1.000000")):
            count = sum(value.strip() != unused for value in table.columns[name])
            findings.add_rows("assumed", f"{name} is not used", (), count)
    keep = (rate > 0) & (steps > 0)
    nothing = np.full(int(keep.sum()), np.nan)
    return TraceJobs(
        arrival_s[keep], gpus[keep], (steps * gpus)[keep] / rate[keep], nothing, nothing
    )


def _rates(throughputs: Any, worker: str) -> dict[str, float]:
    """Steps per second of each job alone on a type of GPU."""
    if not isinstance(throughputs, Mapping) or worker not in throughputs:
        known = list(throughputs) if isinstance(throughputs, Mapping) else []
        raise FileFormatError(
            f"table of throughputs: no type of GPU {worker!r}; {nearest(worker, map(str, known))}"
        )
    out = {}
    for key, partners in throughputs[worker].items():
        value = partners.get("null") if isinstance(partners, Mapping) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
            out[str(key)] = float(value)
    return out


@dataclass(frozen=True, eq=False)
class PodRows:
    """Pods with ``gpus`` whole GPUs or the ``share`` of one, of certain ``models`` (empty: any)."""

    table: TextTable
    gpus: Ints
    share: Floats
    created_s: Floats
    start_s: Floats
    end_s: Floats
    models: tuple[str, ...]


def pod_rows(table: TextTable, findings: ImportFindings) -> PodRows:
    """The pods of a list; those without GPU, never scheduled, or of zero length are dropped."""
    require_columns(table, POD_COLUMNS, f"a list of pods has {', '.join(POD_COLUMNS)}")
    table = _without(table, table.numbers("num_gpu") <= 0, "asks for no GPU", findings)
    for column in ("scheduled_time", "deletion_time"):
        table = _without(table, ~table.filled(column), f"never ran ({column} is empty)", findings)
    table = _without(
        table,
        table.numbers("deletion_time") <= table.numbers("scheduled_time"),
        "takes no time",
        findings,
    )
    end_s = table.numbers("deletion_time")
    at_end = _names(table, end_s == end_s.max(initial=0.0))
    findings.add_rows("assumed", "is there at the end of the trace: taken to end then", at_end)
    gpus, milli = table.whole("num_gpu"), np.minimum(table.numbers("gpu_milli"), 1000.0)
    return PodRows(
        table,
        gpus,
        np.where(gpus == 1, milli / 1000.0, 1.0),
        table.numbers("creation_time"),
        table.numbers("scheduled_time"),
        end_s,
        tuple(table.columns.get("gpu_spec", [""] * table.size)),
    )


def read_pods(table: TextTable, findings: ImportFindings) -> TraceJobs:
    """Read pods as arriving jobs."""
    require_columns(table, POD_COLUMNS, f"a list of pods has {', '.join(POD_COLUMNS)}")
    table.in_order("creation_time")
    pods = pod_rows(table, findings)
    gpus, name = pods.gpus * pods.share, pods.table.columns["name"]
    shared = _names(pods.table, gpus < 1)
    what = "shares a GPU; its work is that share of its run time"
    findings.add_rows("assumed", what, shared)
    phases = pods.table.columns.get("pod_phase", ())
    failed = _names(pods.table, np.array([each == "Failed" for each in phases]))
    findings.add_rows("assumed", "has failed; its work is what it ran", failed)
    names = tuple(name) if len(set(name)) == len(name) else None
    return TraceJobs(
        pods.created_s, gpus, (pods.end_s - pods.start_s) * gpus, pods.start_s, pods.end_s, names
    )


def _without(table: TextTable, which: Bools, why: str, findings: ImportFindings) -> TextTable:
    """The table without some of its rows, which are dropped for a reason."""
    findings.add_rows("dropped", why, _names(table, which))
    return table.rows(~which)


def _names(table: TextTable, which: Bools) -> list[str]:
    return [table.columns["name"][i] for i in np.flatnonzero(which).tolist()]
