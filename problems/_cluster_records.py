"""Recorded work for gpu_cluster: a WfFormat workflow, a Gavel trace or Alibaba's pods.

A recorded run time t is taken to be that on one *reference* device at its top clock. A task of a
kind that takes r times as long there as on the A100 of a unit has t / r units; GPU-seconds of a
trace count as the run time on one GPU. What records do not say is drawn by the instance's seed, as
in made work: matrix dimensions (one per program of a workflow, one per job of a trace), memory,
users, priorities, and which jobs have tight deadlines. The report counts all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optbench.errors import FileFormatError
from optbench.formats.imported import ImportFindings
from optbench.formats.text_tables import read_table
from optbench.formats.traces import (
    TraceJobs,
    looks_like_gavel,
    looks_like_pods,
    read_gavel,
    read_pods,
)
from optbench.formats.wf_edges import edges_of
from optbench.formats.wf_records import is_wfformat, read_workflow
from optbench.model.files.json_fields import read_text, shown
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Edges, Floats, topological_order
from optbench.power.profiles import profile

from ._cluster_jobs import Rng, Workload, draw_job, draw_memory_gb
from ._cluster_kinds import DIMENSIONS, ClusterKind
from ._geo_traces import WORKER, throughputs_beside

# Reference device and category where the parameters do not say (assumed). Gavel's throughputs are
# those of a V100, and most GPUs of Alibaba's trace are of its age; workflows run on CPUs.
TRACE_DEFAULTS, WORKFLOW_DEFAULTS = ("V100-PCIe", "training"), ("CPU", "matrix")
# A task without run time gets this many units, because work must take time.
LEAST_UNITS = 0.01
# The number of a task at the end of its name: mProject_ID0000012, blastall_00000003.
NUMBER = re.compile(r"[\W_]*(?:ID)?\d+$")


@dataclass(frozen=True)
class RecordOptions:
    """How to read a record; ``reference`` and ``category`` may be left to the format."""

    tasks: int
    users: int
    reference: str | None
    category: str | None
    room_gb: float


@dataclass(frozen=True, eq=False)
class Recorded:
    """Work, the arrival of each job, and what the report says of both."""

    work: Workload
    arrival_s: Floats
    format: str
    rows: int


@dataclass(frozen=True, eq=False)
class _Tasks:
    """Tasks of a record: name, program, run time, job, edges between them."""

    names: Sequence[str]
    programs: Sequence[str]
    run_s: Sequence[float]
    job: Sequence[int]
    edges: Sequence[tuple[int, int, float]]


def read_jobs(path: Path, options: RecordOptions, rng: Rng, findings: ImportFindings) -> Recorded:
    """The work of a file of one of the three formats."""
    text, where = read_text(path, table=True), shown(path)
    if text.lstrip().startswith("{"):
        tasks = _of_workflow(text, where, options, findings)
        work = _workload(tasks, WORKFLOW_DEFAULTS, options, rng, findings)
        return Recorded(work, np.zeros(1), "WfFormat workflow", len(tasks.names))
    if looks_like_gavel(text):
        rows, kind = len(text.splitlines()), "Gavel trace"
        trace = read_gavel(text, where, throughputs_beside(path), findings, WORKER)
    else:
        table = read_table(text, where)
        if not looks_like_pods(table.columns):
            raise FileFormatError(
                f"{where}: neither a WfFormat workflow (JSON), nor a Gavel trace (7 or 10 columns "
                "separated by tabs), nor Alibaba's list of pods (a CSV with num_gpu, gpu_milli, "
                "creation_time, scheduled_time); give one of these as jobs"
            )
        rows, kind = table.size, "Alibaba GPU 2023 pods"
        trace = read_pods(table, findings)
    tasks, arrival_s = _of_trace(trace, where, options, findings)
    return Recorded(_workload(tasks, TRACE_DEFAULTS, options, rng, findings), arrival_s, kind, rows)


def _of_workflow(text: str, where: str, options: RecordOptions, findings: ImportFindings) -> _Tasks:
    """One job: the workflow's tasks in a topological order, at most so many."""
    data = parse_json(text)
    if not is_wfformat(data):
        raise FileFormatError(f"{where}: this JSON is no WfFormat workflow; give one as jobs")
    workflow = read_workflow(data, findings)
    source, target, data_gb = edges_of(workflow, findings)
    before, after = np.array(source, dtype=np.int64), np.array(target, dtype=np.int64)
    graph = Edges(before, after, np.array(data_gb, dtype=float))
    order = topological_order(len(workflow.tasks), graph).tolist()
    if len(order) < len(workflow.tasks):
        raise FileFormatError(f"{where}: the dependencies of its tasks have a cycle; remove it")
    findings.add_rows(
        "dropped",
        f"tasks beyond the first {options.tasks:,} in a topological order",
        (workflow.tasks[i].id for i in order[options.tasks :]),
        max(0, len(order) - options.tasks),
    )
    order = order[: options.tasks]
    position = {task: p for p, task in enumerate(order)}
    kept = [workflow.tasks[i] for i in order]
    if all(task.runtime_s is None for task in kept):
        raise FileFormatError(f"{where}: no task has a run time; there is nothing to schedule by")
    several = [task.id for task in kept if (task.cores or 1.0) > 1]
    findings.add_rows("dropped", "numbers of cores: a task uses one device", several)
    powers = [task.id for task in kept if task.power_w is not None or task.energy_j is not None]
    findings.add_rows("dropped", "recorded powers: those of the profiles hold", powers)
    machines = len(workflow.machines)
    findings.add_rows("dropped", "machines: those of the cluster take their place", (), machines)
    edges = [
        (position[i], position[j], gb)
        for i, j, gb in zip(source, target, data_gb, strict=True)
        if i in position and j in position
    ]
    return _Tasks(
        [task.id for task in kept],
        [NUMBER.sub("", task.name) for task in kept],
        [task.runtime_s or 0.0 for task in kept],
        [0] * len(kept),
        sorted(edges, key=lambda edge: (edge[1], edge[0])),
    )


def _of_trace(
    trace: TraceJobs, where: str, options: RecordOptions, findings: ImportFindings
) -> tuple[_Tasks, Floats]:
    """Jobs of one task each, in order of arrival, at most so many; the first arrives at 0."""
    n = len(trace.arrival_s)
    if n == 0:
        raise FileFormatError(f"{where}: no job is left; `optbench convert` says what was dropped")
    kept = min(n, options.tasks)
    findings.add_rows("dropped", f"jobs beyond the first {options.tasks:,}", (), n - kept)
    findings.add_rows(
        "assumed",
        "numbers of GPUs on record do not bind: GPU-seconds are work, and policies choose",
        (),
        int((trace.gpus[:kept] != 1).sum()),
    )
    names = list(trace.names or (f"job-{i}" for i in range(n)))[:kept]
    tasks = _Tasks(names, names, trace.gpu_s[:kept].tolist(), list(range(kept)), ())
    return tasks, trace.arrival_s[:kept] - trace.arrival_s[0]


def _workload(
    tasks: _Tasks,
    defaults: tuple[str, str],
    options: RecordOptions,
    rng: Rng,
    findings: ImportFindings,
) -> Workload:
    """The tasks with everything that the record does not say."""
    name = defaults[0] if options.reference is None else options.reference
    category = defaults[1] if options.category is None else options.category
    reference, out = profile(name), Workload()
    kinds = [ClusterKind(category, dimension) for dimension in DIMENSIONS]
    if reference.name == profile("CPU").name:
        kinds = [kind for kind in kinds if kind.on_cpus]
    for _ in range(max(tasks.job) + 1):
        draw_job(rng, out, options.users)
    drawn: dict[str, ClusterKind] = {}
    for task, program, run_s, job in zip(
        tasks.names, tasks.programs, tasks.run_s, tasks.job, strict=True
    ):
        if program not in drawn:
            drawn[program] = kinds[int(rng.integers(len(kinds)))]
        kind = drawn[program]
        if run_s <= 0:
            findings.add("assumed", f"takes no time on record: {LEAST_UNITS:g} s of an A100", task)
        out.kind.append(kind)
        out.units.append(max(LEAST_UNITS, run_s / kind.relative_s(reference)))
        out.memory_gb.append(draw_memory_gb(rng, kind, options.room_gb))
        out.job.append(job)
        out.label.append(task)
    for i, j, gb in tasks.edges:
        out.source.append(i)
        out.target.append(j)
        out.data_gb.append(gb)
    n = len(tasks.names)
    findings.add_rows(
        "assumed",
        f"run times are those on one {reference.name} at its top clock, of {category}",
        (),
        n,
    )
    what = "no matrix dimension, memory, user, priority or deadline on record: drawn by the seed"
    findings.add_rows("assumed", what, (), n)
    return out


def record_figures(recorded: Recorded) -> dict[str, int | float | str]:
    """The figures of a report."""
    return {
        "rows": recorded.rows,
        "tasks": recorded.work.num_tasks,
        "jobs": len(recorded.arrival_s),
        "edges": len(recorded.work.source),
        "kinds": len(set(recorded.work.kind)),
        "seconds of one A100": round(float(np.sum(recorded.work.units)), 3),
        "last arrival on record (s)": float(recorded.arrival_s[-1]),
    }
