"""Pods of a shared GPU cluster (the layout of Alibaba's GPU trace of 2023): when they ran and what they held, not where.

    name, num_gpu, gpu_milli, gpu_spec, creation_time, scheduled_time, deletion_time         one row per pod
    sn, gpu, model                                                                            one row per node

A pod holds ``num_gpu`` GPUs, or with ``gpu_milli`` below 1000 a share of one. ``gpu_spec`` lists the models it may run on (none:
any). No row says on which node a pod ran, and none has power.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optbench.bench.audit.log import AuditOptions, recorded_clocks
from optbench.errors import FileFormatError
from optbench.model.files.reading import read_text, shown
from optbench.model.formats.imported import Findings, Report
from optbench.model.instance import Floats, Ints
from optbench.power.profiles import Profile

POD_COLUMNS = ("name", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time", "scheduled_time")
NODE_COLUMNS = ("sn", "gpu", "model")


@dataclass(frozen=True)
class Group:
    """Pods that held the same: ``gpus`` of one type out of ``types``, or the ``share`` of one; their seconds together."""

    gpus: int
    share: float
    types: tuple[int, ...]
    pods: int
    work_s: float


@dataclass(frozen=True, eq=False)
class Pods:
    """Times from the first release; ``last_s`` is the last end, ``last_release_s`` the last release."""

    name: str
    groups: tuple[Group, ...]
    types: tuple[str, ...]
    counts: Ints
    profiles: tuple[Profile, ...]
    clock: Floats
    work: str
    sojourn_s: float
    last_s: float
    last_release_s: float
    report: Report

    @property
    def num_pods(self) -> int:
        return sum(group.pods for group in self.groups)


def looks_like_pods(text: str) -> bool:
    head = text.lstrip("\ufeff\r\n ")[:4096].partition("\n")[0]
    return {"num_gpu", "gpu_milli"} <= {name.strip() for name in head.split(",")}


def rows_of(path: Path, wanted: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows by column; a missing column or a row of another length is an error with its line."""
    table = csv.reader(io.StringIO(read_text(path)))
    head = [name.strip().lstrip("\ufeff") for name in next(table, [])]
    missing = [name for name in wanted if name not in head]
    if missing:
        raise FileFormatError(f"{shown(path)}: column {missing[0]!r} is missing; needed: {', '.join(wanted)}")
    out = []
    for row in table:
        if row and len(row) != len(head):
            raise FileFormatError(f"{shown(path)}, line {table.line_num}: {len(row)} fields, the header has {len(head)}")
        if row:
            out.append(dict(zip(head, row, strict=True)))
    return out


def read_pods(path: Path, options: AuditOptions) -> Pods:
    nodes = options.nodes
    if nodes is None:
        raise FileFormatError(f"{shown(path)}: pods do not say which GPUs there are; give the list of nodes with --nodes FILE")
    findings = Findings()
    models: Counter[str] = Counter()
    widest: dict[str, int] = {}
    for row in rows_of(nodes, NODE_COLUMNS):
        gpus = whole(nodes, row, "gpu", "sn")
        if gpus:
            models[row["model"]] += gpus
            widest[row["model"]] = max(widest.get(row["model"], 0), gpus)
    types = tuple(sorted(models))
    given = {kind.lower(): shape for kind, shape in options.records.loaded(findings).items()}
    for kind in types:
        if kind.lower() not in given:
            raise FileFormatError(
                f"{shown(nodes)}: model {kind!r} has no profile, and pods may have run on it; give one with --profile {kind}=NAME"
            )
    profiles = {kind: given[kind.lower()] for kind in types}
    held, sojourn_s, first, last, last_release = held_by(path, types, widest, findings)
    if not held:
        raise FileFormatError(f"{shown(path)}: no pod that held a GPU and has ended")
    groups = tuple(Group(gpus, share, on, pods, work) for (gpus, share, on), (pods, work) in sorted(held.items()))
    findings.add("warnings", "pods do not say on which node they ran: energies are intervals over all types that a pod may use")
    findings.add("warnings", "the trace has no power: energies are those of the profiles given")
    figures: dict[str, int | float | str] = {
        "pods": sum(group.pods for group in groups), "gpus": ", ".join(f"{models[kind]} {kind}" for kind in types),
        "span_s": last - first,
        "gpu_hours": sum(group.gpus * group.share * group.work_s for group in groups) / 3600,
    }  # fmt: skip
    return Pods(
        shown(Path(path.stem)), groups, types, np.asarray([models[kind] for kind in types], dtype=np.int64),
        tuple(profiles.values()), recorded_clocks(types, profiles, options, findings), options.records.work, sojourn_s, last -
        first, last_release - first, findings.report("pods", figures),
    )  # fmt: skip


Held = dict[tuple[int, float, tuple[int, ...]], tuple[int, float]]


def held_by(
    path: Path, types: tuple[str, ...], widest: dict[str, int], findings: Findings
) -> tuple[Held, float, float, float, float]:
    """Pods and seconds by what they held and may have run on; seconds in the system; first release, last end, last release."""
    held: Held = {}
    sojourn_s, releases, ends = 0.0, [], []
    for row in rows_of(path, POD_COLUMNS):
        gpus, milli = whole(path, row, "num_gpu", "name"), whole(path, row, "gpu_milli", "name")
        if gpus == 0:
            findings.add("dropped", "pods without a GPU")
            continue
        if not row["scheduled_time"] or not row["deletion_time"]:
            findings.add("dropped", "pods that never started or have no end", row["name"])
            continue
        release, start, end = (
            whole(path, row, column, "name") for column in ("creation_time", "scheduled_time", "deletion_time")
        )
        if end <= start or start < release:
            findings.add("dropped", "pods that end before they start, or start before they are created", row["name"])
            continue
        listed = {word for word in row["gpu_spec"].split("|") if word}
        on = tuple(t for t, kind in enumerate(types) if widest[kind] >= gpus and (not listed or kind in listed))
        if not on:
            findings.add("dropped", "pods that no listed model can hold", row["name"])
            continue
        share = min(milli, 1000) / 1000 if gpus == 1 and milli else 1.0
        pods, work = held.get((gpus, share, on), (0, 0.0))
        held[gpus, share, on] = pods + 1, work + end - start
        sojourn_s += end - release
        releases.append(release)
        ends.append(end)
    censored = sum(end == max(ends) for end in ends)
    if censored > 1:
        findings.add("assumed", f"{censored:,} pods that run to the end of the trace end there")
    return held, sojourn_s, min(releases, default=0), max(ends, default=0), max(releases, default=0)


def whole(path: Path, row: dict[str, str], column: str, name: str) -> int:
    text = row[column].strip()
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise FileFormatError(
            f"{shown(path)}: {column} of {row[name]!r:.60} is {text!r:.40}; it must be a whole number, at least 0"
        )
    return int(text)
