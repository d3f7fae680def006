"""Public facts for tests of estimators: a table by hand, and one of the interference model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from optbench.plugins.problems._interference import interference_tables
from optbench.plugins.problems._throughput_tables import ThroughputTables
from optbench.shapes.colocation.colocation_data import Bools, Floats, GpuType, JobType
from optbench.shapes.colocation.colocation_process import Measurement, PublicFacts
from optbench.shapes.colocation.epoch_physics import Misfit


def facts_of(
    names: Sequence[str],
    job_types: Sequence[JobType],
    alone: Floats,
    beside: Floats,
    known: Bools,
    noise: float = 0.03,
) -> PublicFacts:
    """Public facts of true tables of which some cells are known."""
    pairs = known[:, :, None] & known[:, None, :]
    return PublicFacts(
        tuple(GpuType(name, 2, 10.0, 20.0, 200.0) for name in names),
        tuple(job_types),
        np.where(known, alone, np.nan),
        np.where(pairs, beside, np.nan),
        known,
        np.full(known.shape, 0.8),
        360.0,
        60.0,
        60.0,
        0.0,
        noise,
    )


def by_hand() -> PublicFacts:
    """One GPU type, known types a (10 per second) and b (20), and a new type c of another family.

    Ratios: a beside a 0.5, a beside b 0.6, b beside a 0.8, b beside b 0.5."""
    types = [JobType("a", "A", 8.0), JobType("b", "B", 8.0), JobType("c", "C", 8.0)]
    alone = np.array([[10.0, 20.0, 40.0]])
    beside = np.array([[[5.0, 6.0, 9.0], [16.0, 10.0, 9.0], [30.0, 30.0, 30.0]]])
    return facts_of(["one"], types, alone, beside, np.array([[True, True, False]]))


@cache
def synthetic() -> ThroughputTables:
    """Four families of six batch sizes on two generations."""
    return interference_tables(24, 2, 3)


def synthetic_facts(new: Sequence[int] = (0, 1, 2, 3, 4, 5, 20)) -> PublicFacts:
    """A family and one type of another family are new."""
    tables = synthetic()
    known = np.ones(tables.alone_per_s.shape, dtype=np.bool_)
    known[:, list(new)] = False
    return facts_of(
        tables.gpu_names, tables.job_types, tables.alone_per_s, tables.beside_per_s, known
    )


def told(measurements: Sequence[Measurement], misfits: Sequence[Misfit] = ()) -> Any:
    """The part of an observation from which estimators learn."""
    return SimpleNamespace(measurements=tuple(measurements), misfits=tuple(misfits))


def some_runs(tables: ThroughputTables, t: int, partners: Sequence[int], g: int = 0) -> Any:
    """Measurements without noise: t alone, and beside partners, on one GPU type."""
    alone, beside = tables.alone_per_s, tables.beside_per_s
    found = [Measurement(g, 0, t, -1, float(alone[g, t]))]
    for s in partners:
        found.append(Measurement(g, 0, t, s, float(beside[g, t, s])))
        found.append(Measurement(g, 0, s, t, float(beside[g, s, t])))
    return told(found)
