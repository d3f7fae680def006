"""Pods of a shared GPU cluster (the layout of Alibaba's GPU trace of 2023): when they ran and what
they held, not where.

    name, num_gpu, gpu_milli, gpu_spec,
    creation_time, scheduled_time, deletion_time        one row per pod
    sn, gpu, model                                      one row per node

A pod holds ``num_gpu`` GPUs, or with ``gpu_milli`` below 1000 a share of one. ``gpu_spec`` lists
the models it may run on (none: any). No row says on which node a pod ran, and none has power.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optbench.audit.coverage import Coverage, LeftOut
from optbench.audit.log import AuditOptions, recorded_clocks
from optbench.errors import FileFormatError
from optbench.formats.imported import ImportFindings, ImportReport
from optbench.formats.text_tables import TextTable, read_table, require_columns
from optbench.formats.traces import pod_rows
from optbench.model.files.json_fields import read_text, shown
from optbench.model.instance import Floats, Ints
from optbench.power.profiles import Profile
from optbench.units import HOUR_S

# What the reader of pods says of one that was scheduled and has no end.
ENDLESS = "never ran (deletion_time is empty)"
NODE_COLUMNS = ("sn", "gpu", "model")


@dataclass(frozen=True)
class PodGroup:
    """Pods that held the same: ``gpus`` of one type out of ``types``, or the ``share`` of one;
    their seconds together.
    """

    gpus: int
    share: float
    types: tuple[int, ...]
    pods: int
    work_s: float


@dataclass(frozen=True, eq=False)
class Pods:
    """Times from the first release; ``last_s`` is the last end, ``last_release_s`` the last
    release.
    """

    name: str
    groups: tuple[PodGroup, ...]
    types: tuple[str, ...]
    counts: Ints
    profiles: tuple[Profile, ...]
    clock: Floats
    work: str
    sojourn_s: float
    last_s: float
    last_release_s: float
    report: ImportReport
    coverage: Coverage

    @property
    def num_pods(self) -> int:
        return sum(group.pods for group in self.groups)


def table_of(path: Path) -> TextTable:
    return read_table(read_text(path), shown(path))


def read_pods(path: Path, options: AuditOptions) -> Pods:
    nodes = options.nodes
    if nodes is None:
        raise FileFormatError(
            f"{shown(path)}: pods do not say which GPUs there are; give the list of nodes with "
            "--nodes FILE"
        )
    findings = ImportFindings()
    models: Counter[str] = Counter()
    widest: dict[str, int] = {}
    table = table_of(nodes)
    require_columns(table, NODE_COLUMNS, f"a list of nodes has {', '.join(NODE_COLUMNS)}")
    for gpus, model in zip(table.whole("gpu").tolist(), table.columns["model"], strict=True):
        if gpus:
            models[model] += gpus
            widest[model] = max(widest.get(model, 0), gpus)
    types = tuple(sorted(models))
    given = {kind.lower(): shape for kind, shape in options.records.loaded(findings).items()}
    for kind in types:
        if kind.lower() not in given:
            raise FileFormatError(
                f"{shown(nodes)}: model {kind!r} has no profile, and pods may have run on it; "
                f"give one with --profile {kind}=NAME"
            )
    profiles = {kind: given[kind.lower()] for kind in types}
    left_out: dict[str, tuple[int, float]] = {}
    held, sojourn_s, first, last, last_release = held_by(path, types, widest, findings, left_out)
    groups = tuple(PodGroup(*what, *sums) for what, sums in sorted(held.items()))
    nodeless = "pods do not say on which node they ran"
    intervals = "energies are intervals over all types that a pod may use"
    findings.add("warnings", f"{nodeless}: {intervals}")
    findings.add("warnings", "the trace has no power: energies are those of the profiles given")
    figures: dict[str, int | float | str] = {
        "pods": sum(group.pods for group in groups),
        "gpus": ", ".join(f"{models[kind]} {kind}" for kind in types),
        "span_s": last - first,
        "gpu_hours": sum(group.gpus * group.share * group.work_s for group in groups) / HOUR_S,
    }
    coverage = coverage_of(groups, left_out, findings)
    return Pods(
        shown(Path(path.stem)),
        groups,
        types,
        np.asarray([models[kind] for kind in types], dtype=np.int64),
        tuple(profiles.values()),
        recorded_clocks(types, profiles, options, findings),
        options.records.work,
        sojourn_s,
        last - first,
        last_release - first,
        findings.report("pods", figures),
        coverage,
    )


def coverage_of(
    groups: tuple[PodGroup, ...], left_out: dict[str, tuple[int, float]], findings: ImportFindings
) -> Coverage:
    """GPU-hours of all pods that ran; one without an end counts as a mean pod."""
    out = [LeftOut(f"pods: {why}", pods, hours) for why, (pods, hours) in left_out.items()]
    hours = sum(group.gpus * group.share * group.work_s for group in groups) / HOUR_S
    pods = sum(group.pods for group in groups)
    endless = sum(
        each.count for each in findings.report("pods", {}).dropped if each.what == ENDLESS
    )
    if endless:
        why = "pods without an end, each counted as a mean pod"
        out.append(LeftOut(why, endless, endless * hours / pods))
    return Coverage(hours + sum(each.gpu_hours for each in out), tuple(out))


Held = dict[tuple[int, float, tuple[int, ...]], tuple[int, float]]


def held_by(
    path: Path,
    types: tuple[str, ...],
    widest: dict[str, int],
    findings: ImportFindings,
    left_out: dict[str, tuple[int, float]],
) -> tuple[Held, float, float, float, float]:
    """Pods and seconds by what they held and may have run on; seconds in the system; first release,
    last end, last release.

    ``left_out`` is filled with pods and GPU-hours by why they are not in it.
    """
    held: Held = {}
    sojourn_s, releases, ends = 0.0, [], []

    def leave_out(why: str, name: str, hours: float) -> None:
        findings.add("dropped", why, name)
        count, before = left_out.get(why, (0, 0.0))
        left_out[why] = count + 1, before + hours

    pods = pod_rows(table_of(path), findings)
    columns = (pods.gpus, pods.share, pods.created_s, pods.start_s, pods.end_s)
    for row, (gpus, share, release, start, end) in enumerate(
        zip(*(each.tolist() for each in columns), strict=True)
    ):
        name = pods.table.columns["name"][row]
        hours = gpus * (share or 1.0) * (end - start) / HOUR_S
        if start < release:
            leave_out("starts before it is created", name, hours)
            continue
        listed = {word for word in pods.models[row].split("|") if word}
        usable = {kind for kind in listed or types if widest.get(kind, 0) >= gpus}
        on = tuple(t for t, kind in enumerate(types) if kind in usable)
        if not on:
            leave_out("no listed model can hold it", name, hours)
            continue
        key = gpus, share or 1.0, on
        count, work = held.get(key, (0, 0.0))
        held[key] = count + 1, work + end - start
        sojourn_s += end - release
        releases.append(release)
        ends.append(end)
    if not held:
        raise FileFormatError(f"{shown(path)}: no pod that held a GPU and has ended")
    return held, sojourn_s, min(releases), max(ends), max(releases)
