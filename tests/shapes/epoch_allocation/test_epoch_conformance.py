"""The shape of one epoch's allocation and its problem, by the suite that any shape may inherit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError
from optbench.plugins.discovery import load_problem
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.testing import ShapeConformance


class TestEpochAllocation(ShapeConformance):
    problem = "epoch_allocation:jobs=7,gpus=5,requirement=tight,migration_w=15"
    num_changes = 150
    # No job of the problem is a gang.
    not_reached = frozenset({"gang_alone"})

    def broken_decisions(self, instance: ShapedInstance) -> Iterator[Any]:
        data = instance.data
        yield EpochRows.of([(g, i, -1) for i in range(7) for g in range(3)])
        kind = data.jobs.job_type
        nowhere = np.argwhere(data.beside_per_s[:, kind][:, :, kind] == 0)
        yield from (EpochRows.of([(g, i, j)]) for g, i, j in nowhere.tolist() if i != j)
        yield from (EpochRows.of([(g, i, j)]) for g in range(3) for i in range(7) for j in range(i))


class TestWithReplicas(ShapeConformance):
    problem = "epoch_allocation:jobs=5,gpus=6,requirement=tight,replicas=3,best_effort=yes"
    num_changes = 150
    not_reached = frozenset({"gang_alone"})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("jobs=0", "jobs is 0; it must be at least 1"),
        ("services=1.5", "services is 1.5; it must be a share from 0 to 1"),
        ("migration_w=-2", "migration_w is -2.0; it must be at least 0"),
    ],
)
def test_parameters_out_of_range_are_refused(spec: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        load_problem(f"epoch_allocation:{spec}")


@pytest.mark.parametrize("tables", ["synthetic", "gavel"])
def test_the_relaxation_certifies_every_solver(tables: str) -> None:
    instance: Any = load_problem(f"epoch_allocation:jobs=28,gpus=20,tables={tables}").instance(3)
    (bound,) = ob.bound(instance, time_limit_s=20)
    assert bound.proof == "exact-lp"
    results = [
        ob.solve(instance, solver, time_limit_s=20)
        for solver in ("column_generation", "highs", "cpsat")
    ]
    objectives = [result.objective for result in results]
    assert set(objectives) == {objectives[0]}
    assert isinstance(objectives[0], float) and objectives[0] >= bound.value
    # The duals of column generation prove what those of the core prove.
    proven = [each for each in results[0].bounds if each.proof == "exact-lp"]
    assert proven[0].value == pytest.approx(bound.value, abs=1e-4)


def test_a_warm_start_counts() -> None:
    instance: Any = load_problem("epoch_allocation:jobs=14,gpus=10").instance(0)
    best = ob.solve(instance, "column_generation", time_limit_s=20)
    again = ob.solve(instance, "column_generation", time_limit_s=20, warm_start=best.schedule)
    assert again.objective == best.objective and again.status == "optimal"


def test_relaxing_a_requirement_never_raises_the_optimum() -> None:
    instance: Any = load_problem("epoch_allocation:jobs=20,gpus=9,requirement=tight").instance(2)
    data = instance.data
    data = replace(data, jobs=replace(data.jobs, is_service=np.zeros(20, dtype=bool)))
    lower = replace(data, jobs=replace(data.jobs, required_per_s=0.8 * data.jobs.required_per_s))
    shape = instance.shape
    values = []
    for each in (data, lower):
        solved = ob.solve(shape.instance("x", each), "column_generation", time_limit_s=20)
        assert isinstance(solved.objective, float) and solved.status == "optimal"
        values.append(solved.objective)
    assert values[1] <= values[0]
