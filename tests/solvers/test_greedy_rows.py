"""The greedy rows of an epoch, by hand.

One GPU of 10 W asleep, 20 W idle and 120 W full. Two training jobs of two types: the second has no
throughput alone there, but 4/s beside the first, which keeps 5 of its 10/s. Utilisation is 0.6.
"""

from __future__ import annotations

import numpy as np
import pytest

from optbench.plugins.solvers.greedy_efficiency import GreedyRows
from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, JobDemands


def demand() -> EpochDemand:
    jobs = JobDemands(
        job_type=np.array([0, 1]),
        required_per_s=np.array([4.0, 3.0]),
        is_service=np.array([False, False]),
        replicas=np.array([1, 1]),
        price_j=np.array([2.0, 1.0]),
        before=np.array([-2, -2]),
    )
    return EpochDemand(
        counts=np.array([1]),
        sleep_w=np.array([10.0]),
        idle_w=np.array([20.0]),
        full_w=np.array([120.0]),
        gangs=np.array([1, 1]),
        alone_per_s=np.array([[10.0, 0.0]]),
        beside_per_s=np.array([[[6.0, 5.0], [4.0, 0.0]]]),
        utilisation=np.full((1, 2), 0.6),
        jobs=jobs,
    )


def test_a_pair_of_which_one_was_never_measured_alone_has_a_power() -> None:
    rows = GreedyRows(demand())
    # Alone the first uses 0.6: 20 − 10 + 60 W, less 2 J × 10/s.
    assert rows._watts(0, 0, NOBODY) == pytest.approx(50.0)
    # Beside the second 0.6 × 5 / 10 = 0.3, and the second 0.6 at any rate: 10 + 90 W, less 14 W.
    assert rows._watts(0, 0, 1) == pytest.approx(100.0 - 2.0 * 5 - 1.0 * 4)
