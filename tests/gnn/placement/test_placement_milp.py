"""The exact programme of a placement meets brute force, with memory and with equal devices."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest

from optbench.gnn.placement.placement_milp import PlacementProgramme, solve_placement
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    memory_excess_bytes,
    table_step_s,
)


def drawn_table(seed: int) -> PlacementTable:
    """Five parts on three devices whose links differ by direction."""
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((5, 5)) < 0.6, rng.integers(1, 9, (5, 5)), 0)
    np.fill_diagonal(rows, 0)
    work = rng.uniform(0.5, 1.5, (5, 3, 2))
    rate, flat = rng.uniform(0.5, 2.0, (3, 3)), np.full((3, 3), 0.05)
    kept = rng.uniform(0.5, 1.5, 5)
    return PlacementTable(
        work, rows.astype(float), 6e7, 2.0, rate, flat, 0.2, kept, np.full(3, inf), 3e8
    )


def best_of_all(table: PlacementTable) -> float:
    found = []
    for each in product(range(3), repeat=5):
        device = np.array(each)
        if not memory_excess_bytes(table, device).any():
            found.append(table_step_s(table, device))
    return min(found)


def equal_devices(table: PlacementTable) -> PlacementTable:
    """All devices alike: every placement has six copies, of which rows leave one."""
    return replace(
        table, work_s=np.repeat(table.work_s[:, :1], 3, axis=1), gb_per_s=np.ones((3, 3))
    )


def full_memory(table: PlacementTable) -> PlacementTable:
    return replace(
        table, memory_bytes=np.array([1.5, 2.5, 4.0]), row_bytes=1e-3, parameter_bytes=0.0
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("changed", [lambda t: t, equal_devices, full_memory])
def test_it_meets_brute_force(seed: int, changed: object) -> None:
    table = changed(drawn_table(seed))  # type: ignore[operator]
    known = next(
        device
        for device in map(np.array, product(range(3), repeat=5))
        if not memory_excess_bytes(table, device).any()
    )
    found = solve_placement(table, known, 60.0)
    assert found.step_s == pytest.approx(best_of_all(table), rel=2e-4)
    assert found.is_closed
    assert found.bound_s <= best_of_all(table) * (1 + 1e-6)
    assert not memory_excess_bytes(table, found.device).any()


def test_alike_devices_are_found() -> None:
    table = equal_devices(drawn_table(0))
    programme = PlacementProgramme(table, 1.0)
    assert programme._are_alike(0, 1)
    assert programme._are_alike(1, 2)
    slower = table.work_s.copy()
    slower[:, 2] *= 2
    other = PlacementProgramme(replace(table, work_s=slower), 1.0)
    assert not other._are_alike(1, 2)
