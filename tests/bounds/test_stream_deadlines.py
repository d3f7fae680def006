"""Slotted stream bounds with deadlines prove at least what they prove without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.bounds.streams.stream_bound import slotted_bound
from optbench.model.objective import Objective
from tests.bounds.stream_farms import small


@pytest.mark.parametrize("seed", [250, 281, 311, 325])
@pytest.mark.parametrize("slot_s", [0.5, 4.0])
def test_deadlines_never_make_a_bound_weaker(seed: int, slot_s: float) -> None:
    """Repaired duals pay for errors where a deadline makes prices fall: 2.414999, 2.415000 without;
    or prove nothing.
    """
    free, rng = small(seed, drained=seed % 2 == 0), np.random.default_rng(seed)
    if not free.is_open:
        metric = str(rng.choice(["energy_j", "flow_time_s", "makespan_s"]))
        free = free.with_objective(Objective.weighted({metric: 1.0, "energy_j": 0.5}))
    due = (free.tasks.release + free.to_ticks(rng.uniform(1, 9, free.num_tasks))).astype(float)
    due = np.where(rng.random(free.num_tasks) < 0.6, due, np.inf)
    hard = np.full(free.num_tasks, not free.is_open)
    tight = replace(free, tasks=replace(free.tasks, deadline=due, deadline_hard=hard))
    with_deadlines, without = (
        slotted_bound(tight, slot_s, due=free.is_open),
        slotted_bound(free, slot_s),
    )
    assert with_deadlines is not None and without is not None
    assert with_deadlines.value >= without.value
