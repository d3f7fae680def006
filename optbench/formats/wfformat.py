"""A recorded workflow as an instance in seconds, and the recorded schedule.

A machine is a place with one pool, its cores; a task needs ``coreCount`` of them (rounded up) and
may run on every machine that has as many. With u the recorded runtime, s the clock rate of the
machine it ran on, and s_m that of machine m,

    time on m = u · s / s_m         u where one of the two rates is not known
    energy    = the recorded energy (or average power × u) at the recorded rate

since the power is the same on every machine.
Tasks with the same cores, rate and power share a kind. With a profile for the machines (type
``machine``, or a machine's own name), a machine is one device of it: there is a mode per clock f,
r(f) = T(1, f) / T(1, f₁) times as long as at the top clock f₁, and k of C cores draw k / C of P(f);
a recorded power replaces that of the top clock, and scales with P(f) / P(f₁).

An edge carries the files that the parent writes and the child reads. Machines are joined by links
that take no time: recorded runtimes include their transfers. Input files without a producer are not
modelled. The schedule on record needs ``executedAt`` of every task (version 1.6 has it); time 0 is
the earliest of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.formats.imported import Import, ImportFindings, ImportOptions, busy_peaks
from optbench.formats.text import MAX_POOLS, shorten
from optbench.formats.wf_edges import edges_of
from optbench.formats.wf_records import MachineRecord, TaskRecord, Workflow, read_workflow
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance, Links, Modes, Pools, Tasks
from optbench.model.plain_instance import (
    longest_by_kind,
    mode_table,
    plain_instance,
    plain_pools,
    plain_tasks,
)
from optbench.model.repair import verified_or_repaired
from optbench.model.schedule import Schedule
from optbench.model.timegrid import automatic_tick_s
from optbench.power.profiles import Profile

MACHINE = "machine"
# Cores of a machine whose size is neither given nor known from its tasks.
DEFAULT_CORES = 16
# Weight of a second of makespan in J where energy is known.
MAKESPAN_WEIGHT = 50.0
MAX_PAIRS, MAX_MODES = 50_000_000, 2_000_000


@dataclass(frozen=True)
class Machine:
    """A modelled machine; ``speed`` is 1 where its clock rate is not known."""

    name: str
    cores: int
    speed_mhz: float | None
    shape: Profile | None


@dataclass(frozen=True)
class RecordedKind:
    """The properties that determine a task's modes.

    They are its cores, its recorded rate, its power, and its machine if it fits no other."""

    cores: int
    speed_mhz: float | None
    power_w: float | None
    only: int
    takes_time: bool


def read(text: str, name: str, options: ImportOptions | None = None) -> Import:
    return import_workflow(parse_json(text), name, options)


def import_workflow(data: Any, name: str, options: ImportOptions | None = None) -> Import:
    """The instance, schedule and report of a parsed file."""
    options = options or ImportOptions()
    findings = ImportFindings()
    workflow = read_workflow(data, findings)
    runtimes_checked(workflow, findings)
    source, target, data_gb = edges_of(workflow, findings)
    believed = drop_implausible_starts(workflow, source, target, findings)
    machines = machines_of(workflow, options, findings)
    at = {machine.name: m for m, machine in enumerate(machines)}
    kinds: dict[RecordedKind, int] = {}
    kind = [
        kinds.setdefault(kind_of(task, machines, at, findings), len(kinds))
        for task in workflow.tasks
    ]
    places = sum(len(machine.shape.clocks) if machine.shape else 1 for machine in machines)
    for what, count, most in (
        ("tasks", len(kind), MAX_PAIRS),
        ("kinds of task", len(kinds), MAX_MODES),
    ):
        if count * places > most:
            raise FileFormatError(
                f"{count:,} {what} on {places:,} machines and clocks; at most {most:,} pairs are "
                "allowed"
            )
    modes, at_record = modes_of(list(kinds), machines, options)
    ids = [task.id for task in workflow.tasks]
    tasks = plain_tasks(kind, ids, [task.runtime_s or 1.0 for task in workflow.tasks])
    makespan = {"makespan_s": MAKESPAN_WEIGHT if modes.energy_per_unit_j.any() else 1.0}
    instance = plain_instance(
        name,
        "wfformat",
        tasks,
        pools_of(machines),
        modes,
        {"energy_j": 1.0, **makespan} if modes.energy_per_unit_j.any() else makespan,
        tick_s=tick_of(tasks, modes, workflow),
        edges=(source, target, data_gb),
        places=[machine.name for machine in machines],
        links=Links(*np.zeros((3, len(machines), len(machines)))),
    )
    schedule = schedule_of(workflow, instance, kind, at_record, at, findings) if believed else None
    return Import(
        instance, schedule, findings.report("wfformat", figures(workflow, instance, schedule))
    )


def runtimes_checked(workflow: Workflow, findings: ImportFindings) -> None:
    """Check the runtimes: a missing one counts as 0; a file without any cannot be scheduled."""
    missing = [shorten(task.id) for task in workflow.tasks if task.runtime_s is None]
    if len(missing) == len(workflow.tasks):
        why = (
            "no task has a runtimeInSeconds"
            if workflow.executed
            else "workflow.execution is missing"
        )
        raise FileFormatError(f"{why}: without run times there is nothing to schedule by")
    findings.add_rows("assumed", "tasks without a runtime take no time", missing)
    coreless = [shorten(task.id) for task in workflow.tasks if task.cores is None]
    findings.add_rows("assumed", "tasks without coreCount use one core", coreless)


def drop_implausible_starts(
    workflow: Workflow, source: Sequence[int], target: Sequence[int], findings: ImportFindings
) -> bool:
    """Drop the start times if most dependencies contradict them.

    Some tools record the time at which they wrote the file instead."""
    tasks = workflow.tasks
    start = np.asarray([np.nan if task.started_at is None else task.started_at for task in tasks])
    end = start + np.asarray([task.runtime_s or 0.0 for task in tasks])
    wait = start[np.asarray(target, dtype=np.int64)] - end[np.asarray(source, dtype=np.int64)]
    early, known = int((wait < 0).sum()), int(np.isfinite(wait).sum())
    if 2 * early <= known:
        return True
    what = (
        f"executedAt of a task lies before the end of its parent in {early:,} of {known:,} "
        "dependencies"
    )
    findings.add(
        "warnings", f"{what}: these are not start times, and there is no recorded schedule"
    )
    for task in tasks:
        task.started_at = None
    return False


def machines_of(
    workflow: Workflow, options: ImportOptions, findings: ImportFindings
) -> list[Machine]:
    """Machines listed or named by tasks, with their cores as given, as used, or DEFAULT_CORES."""
    records = {machine.name: machine for machine in workflow.machines}
    for task in workflow.tasks:
        if task.machine is not None and task.machine not in records:
            findings.add(
                "assumed",
                "machines that only tasks name, of unknown size and rate",
                shorten(task.machine),
            )
            records[task.machine] = MachineRecord(task.machine, None, None)
    if not records:
        findings.add("assumed", "the file names no machine: there is one")
        records[MACHINE] = MachineRecord(MACHINE, None, None)
    if len(records) > MAX_POOLS:
        raise FileFormatError(f"{len(records):,} machines; at most {MAX_POOLS:,} are allowed")
    profiles = options.loaded(findings)
    given = {
        name.lower(): count
        for name, count in (*options.devices_per_node.items(), *options.counts.items())
    }
    known = {MACHINE, *(name.lower() for name in records)}
    for name in sorted((set(profiles) | set(given)) - known):
        findings.add(
            "warnings",
            f"the option for {shorten(name)} is not used: name a machine, or {MACHINE!r} for all",
        )
    used = most_used(workflow, records)
    out = []
    for name, record in records.items():
        cores = given.get(name.lower(), given.get(MACHINE, record.cores))
        if cores is None:
            cores = used.get(name, 0) or DEFAULT_CORES
            findings.add("assumed", "machines without coreCount", f"{shorten(name)}: {cores} cores")
        shape = profiles.get(name.lower(), profiles.get(MACHINE))
        out.append(Machine(name, cores, record.speed_mhz, shape))
    return out


def most_used(workflow: Workflow, records: dict[str, MachineRecord]) -> dict[str, int]:
    """The most cores busy at once by machine, if every task has a start, else none.

    It is at least the number of cores of the machine's largest task."""
    index = {name: m for m, name in enumerate(records)}
    placed = [task for task in workflow.tasks if task.machine is not None or len(records) == 1]
    which = np.asarray(
        [index[task.machine] if task.machine is not None else 0 for task in placed], dtype=np.int64
    )
    cores = np.asarray([cores_needed(task) for task in placed], dtype=np.int64)
    largest = np.zeros(len(records), dtype=np.int64)
    np.maximum.at(largest, which, cores)
    if any(task.started_at is None for task in placed):
        return {name: int(largest[m]) if largest[m] > 1 else 0 for name, m in index.items()}
    start = np.asarray([task.started_at for task in placed], dtype=float)
    end = start + np.asarray([task.runtime_s or 0.0 for task in placed], dtype=float)
    busy = end > start
    peaks = np.maximum(
        busy_peaks(which[busy], start[busy], end[busy], cores[busy], len(records)), largest
    )
    return {name: int(peaks[m]) for name, m in index.items()}


def cores_needed(task: TaskRecord) -> int:
    return max(1, math.ceil(task.cores or 1.0))


def kind_of(
    task: TaskRecord, machines: Sequence[Machine], at: dict[str, int], findings: ImportFindings
) -> RecordedKind:
    """The kind of a task; one that needs more cores than its machine has gets all of them."""
    home = at[task.machine] if task.machine is not None else (0 if len(machines) == 1 else -1)
    cores, only = cores_needed(task), -1
    if home >= 0 and cores > machines[home].cores:
        what = "tasks with more cores than their machine; they use all of it and run nowhere else"
        findings.add("warnings", what, f"{shorten(task.id)}: {cores} of {machines[home].cores}")
        cores, only = machines[home].cores, home
    elif all(machine.cores < cores for machine in machines):
        only = max(range(len(machines)), key=lambda m: machines[m].cores)
        cores = machines[only].cores
        findings.add(
            "warnings",
            "tasks with more cores than any machine; they use all of the largest",
            shorten(task.id),
        )
    speed = machines[home].speed_mhz if home >= 0 else None
    runtime = task.runtime_s or 0.0
    power = task.power_w
    if task.energy_j is not None and runtime > 0:
        power = task.energy_j / runtime
    elif task.energy_j:
        findings.add("dropped", "energies of tasks that take no time", shorten(task.id))
    return RecordedKind(cores, speed, power if runtime > 0 else None, only, runtime > 0)


def tick_of(tasks: Tasks, modes: Modes, workflow: Workflow) -> float:
    """The automatic tick, by the last recorded start and the longest task."""
    starts = [task.started_at for task in workflow.tasks if task.started_at is not None]
    lasts_s = tasks.units * longest_by_kind(modes)[tasks.kind]
    return automatic_tick_s(
        max(starts, default=0.0) - min(starts, default=0.0) + float(lasts_s.max(initial=0.0))
    )


def pools_of(machines: Sequence[Machine]) -> Pools:
    """A pool of cores for each machine; idle power is divided equally among its cores."""
    return plain_pools(
        [m.name for m in machines],
        [m.cores for m in machines],
        np.arange(1, len(machines) + 1),
        idle_w=[m.shape.idle_w / m.cores if m.shape else 0.0 for m in machines],
        sleep_w=[m.shape.sleep_w / m.cores if m.shape else 0.0 for m in machines],
    )


def modes_of(
    kinds: Sequence[RecordedKind], machines: Sequence[Machine], options: ImportOptions
) -> tuple[Modes, dict[tuple[int, int], int]]:
    """The modes of every kind, and by (kind, machine) the one at the top clock."""
    rows: list[tuple[float, float, float, float]] = []
    needs: list[list[tuple[int, int]]] = []
    ptr, top = [0], {}
    for q, kind in enumerate(kinds):
        for m, machine in enumerate(machines):
            if machine.cores < kind.cores or kind.only not in (-1, m):
                continue
            rate = 1.0
            if kind.speed_mhz and machine.speed_mhz:
                rate = kind.speed_mhz / machine.speed_mhz
            for clock, slower, power in operating_points(kind, machine, options.work):
                time = rate * slower if kind.takes_time else 0.0
                power = power if kind.takes_time else 0.0
                rows.append((time, time * power, power, clock))
                needs.append([(m, kind.cores)])
            top[q, m] = len(rows) - 1
        ptr.append(len(rows))
    names = (f"{kind.cores} cores/{q}" for q, kind in enumerate(kinds))
    return mode_table(names, ptr, rows, needs), top


def operating_points(
    kind: RecordedKind, machine: Machine, work: str
) -> list[tuple[float, float, float]]:
    """Clock, relative time and power of a task on a machine; clocks ascend."""
    shape = machine.shape
    if shape is None:
        return [(float("nan"), 1.0, kind.power_w or 0.0)]
    top = shape.clocks[-1]
    full_time, full_power = shape.time_per_unit_s(work, 1, top), shape.power_w(work, 1, top)
    base = kind.power_w if kind.power_w is not None else full_power * kind.cores / machine.cores
    return [
        (
            clock,
            shape.time_per_unit_s(work, 1, clock) / full_time,
            base * shape.power_w(work, 1, clock) / full_power,
        )
        for clock in shape.clocks
    ]


def schedule_of(
    workflow: Workflow,
    instance: Instance,
    kind: Sequence[int],
    at_record: dict[tuple[int, int], int],
    at: dict[str, int],
    findings: ImportFindings,
) -> Schedule | None:
    """The recorded schedule, if the file gives start and machine of every task."""
    tasks = workflow.tasks
    timeless = [shorten(task.id) for task in tasks if task.started_at is None]
    homeless = [shorten(task.id) for task in tasks if task.machine is None and len(at) > 1]
    for missing, what in ((timeless, "executedAt"), (homeless, "a machine")):
        what = f"tasks without {what}: there is no recorded schedule"
        findings.add_rows("warnings", what, missing)
    if timeless or homeless:
        return None
    started = np.asarray([task.started_at for task in tasks], dtype=float)
    start = started - started.min()
    mode = [
        at_record[q, at[task.machine] if task.machine is not None else 0]
        for q, task in zip(kind, tasks, strict=True)
    ]
    made = verified_or_repaired(
        instance, Schedule.of(instance, mode, np.rint(start / instance.tick_s))
    )
    if made.segments_moved:
        largest_s = made.largest_move * instance.tick_s
        what = f"starts moved by rounding, by {largest_s:.2g} s at most"
        findings.add("assumed", what, count=made.segments_moved)
    findings.verified(instance, made.schedule)
    return made.schedule


def figures(
    workflow: Workflow, instance: Instance, schedule: Schedule | None
) -> dict[str, int | float | str]:
    out: dict[str, int | float | str] = {
        "version": workflow.version,
        "tasks": instance.num_tasks,
        "dependencies": len(instance.edges.source),
        "files": len(workflow.sizes),
        "data_gb": float(instance.edges.data_gb.sum()),
        "machines": instance.num_pools,
        "cores": int(instance.pools.count.sum()),
        "runtime_s": math.fsum(task.runtime_s or 0.0 for task in workflow.tasks),
    }
    if workflow.makespan_s is not None:
        out["recorded_makespan_s"] = workflow.makespan_s
    if schedule is not None:
        out["makespan_of_tasks_s"] = float(schedule.end.max()) * instance.tick_s
    return out
