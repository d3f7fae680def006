"""Whether solvers met an instance on the same hardware: CPU and GPU models are in each record."""

from __future__ import annotations

from collections.abc import Iterable

from optbench.evaluate.rows import Row
from optbench.store.records import Record

# The models of the CPU and of the GPUs.
HardwareModel = tuple[str, tuple[str, ...]]


def hardware_of(record: Record) -> HardwareModel | None:
    """Return the models on which a cell ran; None for a record that does not name its CPU."""
    cpu = record.machine.get("cpu")
    return None if cpu is None else (str(cpu), tuple(map(str, record.machine.get("gpus", ()))))


def models_by_instance(rows: Iterable[Row]) -> dict[str, set[HardwareModel]]:
    """Return by instance the models on which its cells ran, as far as they are known."""
    found: dict[str, set[HardwareModel]] = {}
    for row in rows:
        if row.record is not None and (model := hardware_of(row.record)) is not None:
            found.setdefault(row.cell.instance_hash, set()).add(model)
    return found


def unequal_instances(*solvers: Iterable[Row]) -> frozenset[str]:
    """Return the instances on which these solvers are compared, but on different hardware."""
    each = [models_by_instance(rows) for rows in solvers]
    shared = set.intersection(*map(set, each)) if each else set()
    return frozenset(
        instance for instance in shared if len(set().union(*(one[instance] for one in each))) > 1
    )


def words_of(model: HardwareModel) -> str:
    """``AMD EPYC 7763, 2 x NVIDIA L4``."""
    cpu, gpus = model
    counts = {name: gpus.count(name) for name in gpus}
    return ", ".join(
        [cpu, *(f"{count} x {name}" if count > 1 else name for name, count in counts.items())]
    )
