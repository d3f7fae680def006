"""Whether solvers met an instance on the same hardware: CPU and GPU models are in each record.

How many GPUs a machine has is no matter: a cell sees those that it has reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from optbench.evaluate.rows import Row
from optbench.store.records import Record

# The models of the CPU and of the GPUs, each once.
HardwareModel = tuple[str, tuple[str, ...]]


def hardware_of(record: Record) -> HardwareModel | None:
    """Return the models on which a cell ran; None for a record that does not name its CPU."""
    cpu = record.machine.get("cpu")
    if cpu is None:
        return None
    return str(cpu), tuple(sorted({str(each) for each in record.machine.get("gpus", ())}))


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


def unequal_words(solvers: Sequence[Iterable[Row]]) -> str:
    """``unequal hardware: 2 instances`` on which two of these solvers did not have the same; empty
    where there is none.
    """
    each = [tuple(rows) for rows in solvers]
    found = frozenset[str]().union(*(unequal_instances(*pair) for pair in combinations(each, 2)))
    return mark_of(len(found))


def mark_of(instances: int) -> str:
    """Say on how many instances a comparison is unequal; empty where it is on none."""
    if not instances:
        return ""
    return f"unequal hardware: {instances:,} instance{'s' if instances > 1 else ''}"


def words_of(model: HardwareModel) -> str:
    """``AMD EPYC 7763, NVIDIA L4``."""
    return ", ".join([model[0], *model[1]])
