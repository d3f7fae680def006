"""An instance with something in every part, whether or not it all goes together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.model.congestion import Congestion
from optbench.model.cooling import Cooling
from optbench.model.instance import Instance
from optbench.model.streams import Outages, Stream
from tests.sample_files.inputs import cluster


def full_instance() -> Instance:
    """Something in every part, ways in, outages and an opening too; the hash does not ask whether
    it all goes together.
    """
    base = cluster()
    outages = Outages(
        np.array([3, 3, 9]),
        np.array([0, 1, 0]),
        np.array([1, 1, -1]),
        np.array([True, False, True]),
    )
    latency_s = np.array([[0.1, np.inf], [0.0, 2.0]])
    stream = Stream(
        np.array([0, 1, 0]), latency_s, np.array([-1, 1, 0]), outages, 4, ("north", "south")
    )
    cooling = Cooling(
        np.array([0, 1]),
        np.array([20.0, 25.0]),
        np.array([0.1, 0.2]),
        np.array([60.0, 600.0]),
        np.array([80.0, 85.0]),
        np.array([20.0, 30.0]),
    )
    return replace(
        base,
        stream=stream,
        cooling=cooling,
        congestion=Congestion(np.array([0, 5]), np.array([[1.0, 2.0], [1.5, 1.0]])),
        tasks=replace(
            base.tasks,
            user=np.array([0, 2, 0]),
            user_names=("x", "y", "z"),
            checkpoint=np.array([5.0, np.inf, 0.0]),
        ),
        pools=replace(
            base.pools,
            failures_per_s=np.array([1e-6, 2e-6]),
            wake_s=np.array([30.0, 0.0]),
            wake_j=np.array([0.0, 500.0]),
        ),
    )
