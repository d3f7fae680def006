"""Recorded arrivals for a geo-distributed data centre: a CSV file, a Gavel trace, Alibaba's pods.

Where a record gives no sizes in units, they are computed from GPU-seconds: a GPU of the record is
taken to be one of the *reference* site at its top clock, so that w GPU-seconds are w / T(1, 1)
units. Where a record names no ingresses, they are drawn with the instance's seed. The report
counts what was dropped or assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from optbench.data.registry import data_path, data_sets
from optbench.errors import FileFormatError
from optbench.formats.imported import ImportFindings
from optbench.formats.text_tables import TextTable, read_table, require_columns
from optbench.formats.traces import (
    TraceJobs,
    looks_like_gavel,
    looks_like_pods,
    read_gavel,
    read_pods,
)
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Bools, Floats
from optbench.units import DAY_S

from ._geo_arrivals import Arrivals
from ._geo_sites import KINDS, Network, Site

NEEDED = (
    "the first line must name ingress, arrival_s, and size_units or duration_s, and may "
    "name gpus, job, type, site"
)
KNOWN = (
    "ingress",
    "arrival_s",
    "size_units",
    "duration_s",
    "gpus",
    "job",
    "type",
    "site",
    "enqueue_s",
)
THROUGHPUTS = "simulation_throughputs.json"
WORKER = "v100"


@dataclass(frozen=True)
class TraceRecord:
    """How to read a record: all sites, the sites that are kept, and the type of a recorded GPU."""

    network: Network
    all_sites: tuple[str, ...]
    reference: Site
    seed: int

    @property
    def unit_s(self) -> float:
        """Seconds that a unit of training takes on one GPU of the reference site, at its
        top clock.
        """
        return self.reference.laws["training"].time_per_unit_s(1, max(self.reference.clocks))

    @property
    def said(self) -> str:
        site = self.reference
        kind = f" ({site.gpu_type})" if site.gpu_type else ""
        return (
            f"a GPU is one of {site.name}{kind} at its top clock: 1 GPU-second is "
            f"{1 / self.unit_s:.4g} units"
        )


def local_file(file: str) -> Path:
    """The path as given if it exists, else the file of that name in a public data set."""
    path = Path(file)
    return data_path(file) if file.partition("/")[0] in data_sets() and not path.exists() else path


def read_record(
    path: Path, record: TraceRecord, findings: ImportFindings
) -> tuple[Arrivals, str, int]:
    """Arrivals, what kind of file they are from, and how many rows it has."""
    text, where = read_text(path, table=True), shown(path)
    if looks_like_gavel(text):
        jobs = read_gavel(text, where, throughputs_beside(path), findings, WORKER)
        return _of_trace(jobs, record, findings, WORKER), "Gavel trace", len(text.splitlines())
    table = read_table(text, where)
    if looks_like_pods(table.columns):
        return (
            _of_trace(read_pods(table, findings), record, findings, "the trace"),
            "Alibaba GPU 2023 pods",
            table.size,
        )
    return _own(table, record, findings), "CSV of arrivals", table.size


def throughputs_beside(path: Path) -> object:
    """Gavel's table of throughputs: the one beside the trace, else the one of the public
    data set.
    """
    beside = path.with_name(THROUGHPUTS)
    return parse_json(read_text(beside if beside.is_file() else data_path(f"gavel/{THROUGHPUTS}")))


def _of_trace(
    jobs: TraceJobs, record: TraceRecord, findings: ImportFindings, whose: str
) -> Arrivals:
    """Arrivals of a Gavel or Alibaba trace: training jobs, their ingresses drawn at random."""
    n = len(jobs.arrival_s)
    serves = np.array(["training" in site.laws for site in record.network.sites])
    doors = np.flatnonzero((np.isfinite(np.array(record.network.latency_s)) & serves).any(axis=1))
    ingress = (
        np.random.default_rng([record.seed, 17]).choice(doors, n)
        if len(doors)
        else np.zeros(n, dtype=np.int64)
    )
    findings.add_rows("assumed", f"GPUs of {whose}: {record.said}", (), n)
    findings.add_rows(
        "assumed", "no ingress on record: drawn by the seed, all equally likely", (), n
    )
    findings.add_rows(
        "assumed",
        "the number of GPUs on record does not bind: policies choose",
        (),
        int((jobs.gpus != 1).sum()),
    )
    units, nowhere = jobs.gpu_s / record.unit_s, np.full(n, -1, dtype=np.int64)
    return Arrivals(
        jobs.arrival_s, ingress, np.zeros(n, dtype=np.int64), units, nowhere, jobs.names
    )


def _own(table: TextTable, record: TraceRecord, findings: ImportFindings) -> Arrivals:
    require_columns(table, ("ingress", "arrival_s"), NEEDED)
    size = (
        "size_units"
        if "size_units" in table.columns or "duration_s" not in table.columns
        else "duration_s"
    )
    require_columns(table, (size,), NEEDED)
    for name in table.columns:
        if name not in KNOWN:
            findings.add("assumed", "a column that is not used", name)
    table.in_order("arrival_s")
    table = _dropped(table, ~table.filled(size), f"{size} is empty", findings)
    units = table.numbers(size)
    table = _dropped(table, units == 0, f"{size} is 0: nothing to do", findings)
    units = units[units > 0]
    if size == "duration_s":
        gpus = table.numbers("gpus") if "gpus" in table.columns else np.ones(table.size)
        none = gpus == 0
        table = _dropped(table, none, "gpus is 0", findings)
        units = (units * gpus / record.unit_s)[~none]
        findings.add_rows("assumed", record.said, (), table.size)
    if table.size == 0:
        raise FileFormatError(f"{table.where}: no row is left: {'; '.join(_reasons(findings))}")
    ingress = table.choices("ingress", {name: g for g, name in enumerate(record.network.ingresses)})
    kind = np.zeros(table.size, dtype=np.int64)
    if "type" in table.columns:
        kind = table.choices("type", {name: k for k, name in enumerate(KINDS)})
    else:
        findings.add_rows("assumed", "no column 'type': training", (), table.size)
    return Arrivals(
        table.numbers("arrival_s"),
        ingress,
        kind,
        units,
        _sent_to(table, record, findings),
        _names(table, findings),
    )


def _sent_to(
    table: TextTable, record: TraceRecord, findings: ImportFindings
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The index of the site that a row names, among the sites that are kept."""
    if "site" not in table.columns:
        return np.full(table.size, -1, dtype=np.int64)
    at = table.choices("site", {name: k for k, name in enumerate(record.all_sites)} | {"": -1})
    kept = [site.name for site in record.network.sites]
    number = np.array(
        [kept.index(name) if name in kept else -1 for name in record.all_sites] + [-1]
    )
    gone = (at >= 0) & (number[at] < 0)
    findings.add_rows(
        "assumed", "its site is left out: it may go anywhere", _lines(table, gone), int(gone.sum())
    )
    return np.asarray(number[at], dtype=np.int64)


def _names(table: TextTable, findings: ImportFindings) -> tuple[str, ...] | None:
    if "job" not in table.columns:
        return None
    names = tuple(table.columns["job"])
    if len(set(names)) == len(names):
        return names
    findings.add(
        "warnings",
        f"{len(names) - len(set(names)):,} names of jobs stand twice: jobs are numbered instead",
    )
    return None


def _dropped(table: TextTable, which: Bools, why: str, findings: ImportFindings) -> TextTable:
    findings.add_rows("dropped", why, _lines(table, which), int(which.sum()))
    return table.rows(~which) if which.any() else table


def _lines(table: TextTable, which: Bools) -> list[str]:
    return [f"line {line}" for line in table.line[which][:3].tolist()]


def _reasons(findings: ImportFindings) -> list[str]:
    return [str(finding) for finding in findings.report("", {}).dropped]


def select_window(
    work: Arrivals,
    begin_s: float,
    pace: float,
    end_s: float,
    most: int | None,
    findings: ImportFindings,
) -> Arrivals:
    """Arrivals from ``begin_s`` on, ``pace`` times as fast, before ``end_s``, at most ``jobs``."""
    time: Floats = (work.time_s - begin_s) / pace
    if pace != 1:
        findings.add(
            "assumed",
            f"arrivals come {pace:g} times as fast as on record; their work is that on record",
        )
    for why, which in (
        (f"arrives before begin_days ({begin_s:,.0f} s)", time < 0),
        (
            f"arrives after the horizon ({begin_s + pace * end_s:,.0f} s of the record)",
            time >= end_s,
        ),
    ):
        findings.add_rows(
            "dropped",
            why,
            (f"at {t:,.0f} s" for t in work.time_s[which].tolist()),
            int(which.sum()),
        )
    here = np.flatnonzero((time >= 0) & (time < end_s))
    if most is not None and len(here) > most:
        findings.add("dropped", f"beyond the first {most:,} jobs", count=len(here) - most)
        here = here[:most]
    return replace(work, time_s=time).rows(here)


def load_share(network: Network, work: Arrivals, span_s: float) -> float:
    """Arriving work as a share of what all GPUs can do, each alone at its top clock."""
    share = 0.0
    for k, kind in enumerate(KINDS):
        able = [site for site in network.sites if kind in site.laws]
        speed = sum(
            site.count / site.laws[kind].time_per_unit_s(1, max(site.clocks)) for site in able
        )
        units = float(work.units[work.kind == k].sum())
        share += units / speed / span_s if speed else 0.0
    return share


def summary(
    network: Network, work: Arrivals, rows: int, span_s: float
) -> dict[str, int | float | str]:
    """The figures of a report."""
    return {
        "rows": rows,
        "jobs": len(work.time_s),
        "inference jobs": int((work.kind == 1).sum()),
        "first arrival (s)": float(work.time_s[0]),
        "last arrival (s)": float(work.time_s[-1]),
        "units of work": float(work.units.sum()),
        "mean load": f"{100 * load_share(network, work, span_s):.3g} % of all GPUs",
    }


def empty_window_message(path: str, work: Arrivals, begin_s: float, end_s: float) -> str:
    """The message for a time window that holds no job of the record, with the remedy."""
    first = float(work.time_s[0]) if len(work.time_s) else 0.0
    last = float(work.time_s[-1]) if len(work.time_s) else 0.0
    return (
        f"{path}: no job arrives in the {end_s:,.0f} s from {begin_s:,.0f} s on; the record goes "
        f"from {first:,.0f} s to "
        f"{last:,.0f} s. Choose begin_days={first / DAY_S:.6g}, or more days"
    )
