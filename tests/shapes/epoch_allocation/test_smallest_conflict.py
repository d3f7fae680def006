"""The smallest set of jobs that cannot all be placed, by hand and by trying all sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from optbench.shapes.epoch_allocation.smallest_conflict import conflicts, smallest_conflict
from tests.shapes.epoch_allocation.test_epoch_allocation import demand_by_hand
from tests.shapes.epoch_allocation.tiny_demands import tiny_demand


def test_a_single_job_by_hand() -> None:
    found = smallest_conflict(demand_by_hand(jobs_required_per_s=np.array([2.0, 12.0])))
    assert found is not None and found.jobs == (1,) and found.is_smallest
    assert found.words == (
        "job 1 requires 12 per second; no GPU there is gives it more than 10 "
        "(1 of type 0, 1 of type 1)"
    )


def test_two_jobs_by_hand() -> None:
    # 9 per second are met alone on the first GPU type only, of which there is one.
    found = smallest_conflict(demand_by_hand(jobs_required_per_s=np.array([9.0, 9.0])))
    assert found is not None and found.jobs == (0, 1) and found.is_smallest
    assert found.words.startswith("jobs 0, 1 cannot all be placed on the GPUs that there are (1 of")
    assert found.words.endswith("any 1 of them can")


def test_nothing_conflicts_where_all_can_be_placed() -> None:
    assert smallest_conflict(demand_by_hand()) is None


@pytest.mark.parametrize("seed", range(20))
def test_no_smaller_set_conflicts(seed: int) -> None:
    demand = tiny_demand(seed, jobs=6, gpus=2)
    found = smallest_conflict(demand)
    sets = [
        chosen
        for size in range(1, 7)
        for chosen in combinations(range(6), size)
        if conflicts(demand, np.array(chosen))
    ]
    assert (found is None) == (not sets)
    if found is not None:
        assert found.is_smallest and len(found.jobs) == len(sets[0]) and found.jobs in sets
