"""The cost model of a training step, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.shapes.gnn_training.step_costs import step_costs
from tests.shapes.gnn_training.small_training import plan, training

# Part 0 holds nodes 0, 1, 2 with the edges 0-1, 0-2, 1-2: 6 arcs inside and the arcs 3→1 and 3→2
# that end there, 8 in all. Part 1 holds node 3 with the 2 arcs that end there.
#   xw on fast: max(3e9 / 2e9, 3 × 4e8 / 1e9) = 1.5 s; on slow: max(1, 0.4) = 1 s
#   ax on fast: max(8e8 / 2e9, 8 × 5e8 / 1e9) = 4 s; on slow: max(0.2, 1) = 1 s
# and 0.01 s for each of the two launches.
WORK = (5.52, 2.02)
# Rows: nodes 1 and 2 are sent to part 1, node 3 to part 0. Two messages of 0.125 s, and the larger
# direction has 2 rows of 2e8 bytes at 0.5e9 bytes per second: 0.8 s.
TALK = 0.25 + 0.8
# A ring of two: 2 × (1e9 / 2 / 0.5e9 + 0.125).
REDUCE = 2.25


def test_a_step_by_hand() -> None:
    costs = step_costs(training(), plan([0, 0, 0, 1]))
    assert costs.work_s[0] == pytest.approx(WORK)
    assert costs.talk_s == pytest.approx([TALK, TALK])
    assert costs.reduce_s == pytest.approx(REDUCE)
    step = WORK[0] + 0.75 * TALK + REDUCE
    assert costs.step_s == pytest.approx(step)
    # 170 W and 70 W at work at the top clocks, idle for the rest; 3 rows of 2e8 bytes, 2 J per GB.
    watts = 170 * WORK[0] + 10 * (step - WORK[0]) + 70 * WORK[1] + 5 * (step - WORK[1])
    assert costs.energy_j == pytest.approx(watts + 2 * 0.6)
    # 3 nodes of 1e9 bytes, half of the bytes of one received row (the forward pass), parameters.
    assert costs.memory_bytes == pytest.approx([3e9 + 1e8 + 1e9, 1e9 + 2e8 + 1e9])


def test_a_lower_clock_slows_only_what_computes() -> None:
    """At clock 0.5 the dense operator takes 3 s on the fast device, the aggregation still 4 s."""
    costs = step_costs(training(), plan([0, 0, 0, 1], clock=[0, 0]))
    assert costs.work_s[0, 0] == pytest.approx(3 + 4 + 0.02)


def test_parts_on_one_device_exchange_nothing() -> None:
    """The whole graph on the fast device: 4 nodes and 10 arcs in two parts; nobody to talk to."""
    costs = step_costs(training(), plan([0, 0, 0, 1], device=[0, 0]))
    assert costs.work_s[0] == pytest.approx([4 / 2 + 10 * 0.5 + 0.04, 0.0])
    assert (costs.talk_s == 0).all()
    assert costs.reduce_s == 0.0
    assert costs.exchanged_bytes == 0.0
    assert costs.memory_bytes[1] == 0.0


def test_a_fusion_replaces_costs_and_exchange() -> None:
    """1.5e9 flop per node: 2.25 s on the fast device for 3 nodes, and no rows are exchanged."""
    costs = step_costs(training(), plan([0, 0, 0, 1], fusions=[0]))
    assert costs.work_s[0] == pytest.approx([2.25 + 0.01, 1.5 + 0.01])
    assert (costs.talk_s == 0).all()


def test_a_step_is_the_mean_over_recorded_speeds() -> None:
    """In the second window the fast device has half of its speed."""
    speeds = np.array([[1.0, 1.0], [0.5, 1.0]])
    costs = step_costs(training(speeds=speeds), plan([0, 0, 0, 1]))
    assert costs.work_s[1] == pytest.approx([2 * WORK[0], WORK[1]])
    assert costs.step_s == pytest.approx(1.5 * WORK[0] + 0.75 * TALK + REDUCE)
