"""WfFormat, the JSON of WfCommons, into records: versions 1.5 and 1.6 (specification and
execution), and the flat 1.2 to 1.4.

Flat files name the same things differently (``jobs`` or ``tasks``, ``runtime``, ``cores``,
``files`` with a ``link``), and their tasks refer to each other by name: a reference is looked up
among the ids first and the names second. Properties that are not read are allowed, as the format
allows them; those that are read must have their type, and an error names place and value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from optbench import typed_values
from optbench.errors import FileFormatError
from optbench.formats.imported import ImportFindings
from optbench.formats.text import shorten
from optbench.units import J_PER_KWH

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
BYTES_PER_GB = 1e9
# The format has no unit larger than bytes, and no machine this long uptime.
MAX_VALUE = 1e15

# Name of a property in each layout, the newer ones first.
RUNTIME = ("runtimeInSeconds", "runtime")
CORES = ("coreCount", "cores")
ENERGY_KWH = ("energyInKWh", "energy")
POWER_W = ("avgPowerInW", "avgPower")
SIZE = ("sizeInBytes", "size")


@dataclass
class TaskRecord:
    """One task; properties that the file does not give are None."""

    id: str
    name: str
    parents: list[str]
    children: list[str]
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    runtime_s: float | None = None
    cores: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    machine: str | None = None
    started_at: float | None = None


@dataclass(frozen=True)
class MachineRecord:
    name: str
    cores: int | None
    speed_mhz: float | None


@dataclass(frozen=True)
class Workflow:
    """All properties of a file that are used."""

    version: str
    tasks: list[TaskRecord]
    sizes: dict[str, float]
    machines: list[MachineRecord]
    makespan_s: float | None
    started_at: float | None
    executed: bool


def is_wfformat(data: Any) -> bool:
    """Whether a JSON value is WfFormat: it has a workflow, and no key ``format``."""
    return (
        isinstance(data, dict) and "format" not in data and isinstance(data.get("workflow"), dict)
    )


def read_workflow(data: Any, findings: ImportFindings) -> Workflow:
    data = table(data, "the file")
    version = data.get("schemaVersion", "(none)")
    if not isinstance(version, str) or version not in VERSIONS:
        findings.add(
            "warnings", f"schemaVersion {shorten(str(version))} is not one of {', '.join(VERSIONS)}"
        )
    workflow = table(data.get("workflow"), "workflow")
    if "specification" in workflow:
        return read_nested_workflow(str(version), workflow, findings)
    if "tasks" not in workflow and "jobs" not in workflow:
        raise FileFormatError(
            "workflow has neither 'specification' (versions 1.5 on) nor 'tasks' (before)"
        )
    return read_flat_workflow(str(version), workflow, findings)


def read_nested_workflow(
    version: str, workflow: dict[str, Any], findings: ImportFindings
) -> Workflow:
    """Specification and execution, joined by the ids of the tasks."""
    specification = table(workflow["specification"], "workflow.specification")
    tasks: dict[str, TaskRecord] = {}
    for where, row in rows(specification, "tasks", "workflow.specification"):
        task = TaskRecord(
            id=text_of(row, "id", where),
            name=text_of(row, "name", where),
            parents=texts(row, "parents", where),
            children=texts(row, "children", where),
            inputs=texts(row, "inputFiles", where),
            outputs=texts(row, "outputFiles", where),
        )
        if task.id in tasks:
            raise FileFormatError(
                f"{where}.id is {shorten(task.id)}, the id of an earlier task; ids must differ"
            )
        tasks[task.id] = task
    sizes: dict[str, float] = {}
    if "files" in specification:
        for where, row in rows(specification, "files", "workflow.specification", least=0):
            name = text_of(row, "id", where)
            if name in sizes:
                findings.add(
                    "warnings", "files that stand twice; the first size is taken", shorten(name)
                )
            sizes.setdefault(name, number(row, SIZE, where, required=True) or 0.0)
    if "execution" not in workflow:
        return Workflow(version, list(tasks.values()), sizes, [], None, None, False)
    execution = table(workflow["execution"], "workflow.execution")
    recorded: set[str] = set()
    for where, row in rows(execution, "tasks", "workflow.execution"):
        name = text_of(row, "id", where)
        if name not in tasks:
            findings.add(
                "dropped",
                "executions of tasks that the specification does not have",
                f"{where}: {shorten(name)}",
            )
        elif name in recorded:
            findings.add("dropped", "further executions of one task", f"{where}: {shorten(name)}")
        else:
            recorded.add(name)
            read_execution(tasks[name], row, where, findings)
    makespan = number(execution, ("makespanInSeconds",), "workflow.execution")
    return Workflow(
        version,
        list(tasks.values()),
        sizes,
        machines_of(execution, findings),
        makespan,
        started(execution),
        True,
    )


def read_flat_workflow(
    version: str, workflow: dict[str, Any], findings: ImportFindings
) -> Workflow:
    """Read a workflow of a version before 1.5: one list, ``tasks`` or ``jobs``, in which each task
    holds its execution and its files.
    """
    key = "tasks" if "tasks" in workflow else "jobs"
    tasks: list[TaskRecord] = []
    ids: set[str] = set()
    sizes: dict[str, float] = {}
    for where, row in rows(workflow, key, "workflow"):
        name = text_of(row, "name", where)
        task = TaskRecord(
            id=text_of(row, "id", where) if "id" in row else name,
            name=name,
            parents=texts(row, "parents", where),
            children=texts(row, "children", where),
        )
        if task.id in ids:
            task.id = name
        if task.id in ids:
            raise FileFormatError(
                f"{where}.name is {shorten(name)}, which an earlier task has too; tasks must differ"
            )
        ids.add(task.id)
        read_execution(task, row, where, findings)
        if "files" in row:
            for place, entry in rows(row, "files", where, least=0):
                file = text_of(entry, "name" if "name" in entry else "id", place)
                size = number(entry, SIZE, place)
                if size is not None:
                    sizes.setdefault(file, size)
                (
                    task.inputs if str(entry.get("link", "")).lower() == "input" else task.outputs
                ).append(file)
        tasks.append(task)
    makespan = number(workflow, ("makespanInSeconds", "makespan"), "workflow")
    return Workflow(
        version, tasks, sizes, machines_of(workflow, findings), makespan, started(workflow), True
    )


def read_execution(
    task: TaskRecord, row: dict[str, Any], where: str, findings: ImportFindings
) -> None:
    task.runtime_s = number(row, RUNTIME, where)
    task.cores = number(row, CORES, where)
    task.power_w = number(row, POWER_W, where)
    energy = number(row, ENERGY_KWH, where)
    task.energy_j = None if energy is None else energy * J_PER_KWH
    names = texts(row, "machines", where)
    if row.get("machine") is not None:
        names.append(text_of(row, "machine", where))
    if len(names) > 1:
        findings.add(
            "warnings",
            "tasks on several machines; the first is taken",
            f"{where}: {shorten(task.id)}",
        )
    task.machine = names[0] if names else None
    if row.get("executedAt") is not None:
        task.started_at = epoch_s(row["executedAt"])
        if task.started_at is None:
            findings.add(
                "warnings",
                "executedAt that is no ISO 8601 time",
                f"{where}: {shorten(str(row['executedAt']))}",
            )


def machines_of(parent: dict[str, Any], findings: ImportFindings) -> list[MachineRecord]:
    out: dict[str, MachineRecord] = {}
    if parent.get("machines") is None:
        return []
    for where, row in rows(parent, "machines", "execution", least=0):
        name = text_of(row, "nodeName", where)
        cpu = table(row["cpu"], f"{where}.cpu") if row.get("cpu") is not None else {}
        cores, speed = (
            number(cpu, ("coreCount", "count"), f"{where}.cpu"),
            number(cpu, ("speedInMHz", "speed"), f"{where}.cpu"),
        )
        if name in out:
            findings.add("warnings", "machines that stand twice; the first is taken", shorten(name))
        out.setdefault(name, MachineRecord(name, int(cores) if cores else None, speed or None))
    return list(out.values())


def started(parent: dict[str, Any]) -> float | None:
    return epoch_s(parent["executedAt"]) if parent.get("executedAt") is not None else None


def epoch_s(value: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 time, taken as UTC where it has no zone."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (
            moment.timestamp()
            if moment.tzinfo is not None
            else moment.replace(tzinfo=UTC).timestamp()
        )
    except (ValueError, OverflowError):
        return None


def table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileFormatError(f"{where} is {kind_of(value)}; it must be an object")
    return value


def rows(
    parent: dict[str, Any], key: str, where: str, least: int = 1
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a list, with their places."""
    value = parent.get(key)
    if not isinstance(value, list) or len(value) < least:
        allowed = "at least one object" if least else "objects"
        raise FileFormatError(f"{where}.{key} is {kind_of(value)}; it must be a list of {allowed}")
    for i, row in enumerate(value):
        place = f"{where}.{key}[{i}]"
        yield place, table(row, place)


def text_of(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise FileFormatError(f"{where}.{key} is {kind_of(value)}; it must be a non-empty string")
    return value


def texts(row: dict[str, Any], key: str, where: str) -> list[str]:
    value = row.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise FileFormatError(f"{where}.{key} is {kind_of(value)}; it must be a list of strings")
    return list(dict.fromkeys(value))


def number(
    row: dict[str, Any], keys: tuple[str, ...], where: str, required: bool = False
) -> float | None:
    """A number from 0 to MAX_VALUE under the first key that is there."""
    key = next((key for key in keys if row.get(key) is not None), None)
    if key is None:
        if required:
            raise FileFormatError(f"{where}.{keys[0]} is missing; it must be a number, at least 0")
        return None
    value = row[key]
    allowed = f"a number from 0 to {MAX_VALUE:g}"
    return typed_values.number(value, f"{where}.{key}", 0.0, MAX_VALUE, allowed)


def kind_of(value: Any) -> str:
    """Describe a value in a message."""
    if value is None:
        return "missing or null"
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return shorten(value) if isinstance(value, str) else shorten(str(value))
