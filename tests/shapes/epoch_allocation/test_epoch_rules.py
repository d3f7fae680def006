"""Each constraint of an epoch's allocation broken once, and demands that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError
from optbench.shapes.epoch_allocation.epoch_allocation_shape import (
    CONSTRAINTS,
    EpochAllocationShape,
)
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from tests.shapes.epoch_allocation.test_epoch_allocation import demand_by_hand

SHAPE = EpochAllocationShape()
GANG: dict[str, Any] = {
    "gangs": np.array([1, 2]),
    "counts": np.array([2, 2]),
    "alone_per_s": np.array([[10.0, 12.0], [4.0, 0.0]]),
    "beside_per_s": np.zeros((2, 2, 2)),
    "utilisation": np.full((2, 2), 0.5),
    "jobs_job_type": np.array([0, 1]),
}


@pytest.mark.parametrize(
    ("constraint", "rows", "changed", "words"),
    [
        ("form", [(2, 0, -1)], {}, "row 0 has GPU type 2 and jobs 0 and -1; there are 2 types"),
        ("form", [(0, 0, 5)], {}, "jobs 0 and 5; there are 2 types and 2 jobs"),
        ("gpu_count", [(0, 0, -1), (0, 1, -1)], {}, "2 GPUs of type 0 are in use; there are 1"),
        ("distinct", [(0, 0, 0)], {}, "job 0 stands beside itself"),
        ("gang_alone", [(0, 0, 1)], GANG, "jobs 0 and 1 share GPUs; one of them is a gang"),
        ("gpu_count", [(0, 0, -1), (0, 1, -1)], GANG, "3 GPUs of type 0 are in use; there are 2"),
        ("replicas", [(0, 0, -1), (1, 0, -1)], {}, "job 0 stands in 2 rows; at most 1"),
        ("fits", [(1, 1, -1)], GANG, "row 0: job 1 does not run there, on GPU type 1"),
        ("fits", [(0, 0, 1)], {"beside_per_s": np.zeros((2, 1, 1))}, "job 1 does not run there"),
        (
            "requirement",
            [(1, 0, 1)],
            {"jobs_required_per_s": np.array([3.0, 1.0])},
            "row 0: job 0 gets 2 per second of 3",
        ),
        (
            "requirement",
            [(0, 0, -1)],
            {"jobs_required_per_s": np.array([12.5, 1.0]), "jobs_replicas": np.array([2, 1])},
            "the rows of job 0 give it 80.0000 % of its requirement",
        ),
        (
            "requirement",
            [(0, 0, 1), (1, 0, -1)],
            {
                "jobs_required_per_s": np.array([30.0, 1.0]),
                "jobs_replicas": np.array([2, 1]),
                "best_effort": True,
            },
            "job 0 is served at best effort and has a partner",
        ),
    ],
)
def test_a_broken_constraint_is_named(
    constraint: str, rows: list[tuple[int, int, int]], changed: dict[str, Any], words: str
) -> None:
    found = SHAPE.verify(demand_by_hand(**changed), EpochRows.of(rows))
    named = {each.constraint: each.message for each in found.violations}
    assert words in named[constraint]
    assert set(named) <= set(CONSTRAINTS)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"alone_per_s": np.array([[np.nan], [4.0]])}, r"alone_per_s\[0, 0\] is nan; it must be"),
        ({"beside_per_s": np.array([[[-8.0]], [[2.0]]])}, r"beside_per_s\[0, 0, 0\] is -8.0"),
        ({"counts": np.array([1, -1])}, r"counts\[1\] is -1; it must be finite and at least 0"),
        ({"idle_w": np.array([40.0, 5.0])}, r"idle_w\[1\] is 5.0; it must be at least sleep_w"),
        ({"full_w": np.array([30.0, 60.0])}, r"full_w\[0\] is 30.0; it must be finite and"),
        ({"utilisation": np.array([[1.5], [0.8]])}, r"utilisation\[0, 0\] is 1.5; it must be from"),
        ({"gangs": np.array([2])}, r"beside_per_s\[0, 0, 0\] is 8.0; it must be 0 for jobs of sev"),
        ({"gangs": np.array([1, 1])}, r"alone_per_s has the size \(2, 1\); it must be \(2, 2\)"),
        ({"jobs_job_type": np.array([0, 1])}, r"jobs.job_type\[1\] is 1; it must be 0 to 0"),
        ({"jobs_before": np.array([0, 2])}, r"jobs.before\[1\] is 2; it must be -2 .never run"),
        ({"jobs_required_per_s": np.array([0.0, 1.0])}, r"jobs.required_per_s\[0\] is 0.0"),
        ({"jobs_replicas": np.array([1, 0])}, r"jobs.replicas\[1\] is 0; it must be at least 1"),
        (
            {"jobs_price_j": np.array([1.0, 0.0]), "jobs_is_service": np.array([True, False])},
            r"jobs.price_j\[0\] is 1.0; it must be at least 0, and 0 for a service",
        ),
        ({"jobs_shortfall_w": np.array([1.0, -1.0])}, r"jobs.shortfall_w\[1\] is -1.0"),
        ({"jobs_shortfall_w": np.array([1.0])}, r"jobs.shortfall_w has the size \(1,\)"),
        ({"migration_price_w": -1.0}, "migration_price_w is -1.0; it must be finite and at least"),
        ({"alone_price_w": np.array([[np.inf], [0.0]])}, r"alone_price_w\[0, 0\] is inf"),
    ],
)
def test_a_wrong_demand_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        demand_by_hand(**changed)


def test_an_asymmetric_price_is_refused() -> None:
    prices = np.zeros((2, 2, 2))
    prices[1, 0, 1] = 3.0
    changed = {**GANG, "gangs": np.array([1, 1]), "pair_price_w": prices}
    with pytest.raises(ModelError, match=r"pair_price_w\[1, 0, 1\] is 3.0; it must be symmetric"):
        demand_by_hand(**changed)


def test_files_keep_demand_and_rows() -> None:
    demand: EpochDemand = demand_by_hand(best_effort=True)
    instance = SHAPE.instance("by hand", demand)
    again = SHAPE.read(SHAPE.write(instance))
    assert again.hash == instance.hash
    rows = EpochRows.of([(0, 0, 1)])
    document = SHAPE.write_decision(instance, rows)
    found = SHAPE.read_decision(instance, document)
    assert SHAPE.write_decision(instance, found) == document
