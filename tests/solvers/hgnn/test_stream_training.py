"""Training of read-outs: what counts, and that objectives of any sign can be compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optbench.model.instance import Instance
from optbench.model.verify import verify
from solvers.hgnn.hierarchical_design import HierarchicalDesign
from solvers.hgnn.network_design import Weights
from solvers.hgnn.network_settings import NetworkSettings
from solvers.hgnn.online_play import OnlinePlay
from solvers.hgnn.stream_readouts import first_readouts, readouts_from
from solvers.hgnn.stream_training import MOST_LOSS, StreamTraining, relative


def test_losses_of_negative_and_infinite_values() -> None:
    """From -10 to -12 is a fifth better; what does not end is as bad as it gets."""
    assert relative(-12.0, -10.0) == pytest.approx(-0.2)
    assert relative(8.0, 10.0) == pytest.approx(-0.2)
    assert relative(math.inf, 10.0) == relative(math.inf, math.inf) == MOST_LOSS
    assert relative(10.0, math.inf) == -MOST_LOSS
    assert relative(1e9, 1.0) == MOST_LOSS
    assert relative(0.0, 0.0) == 0.0


def test_training_never_ends_worse_than_it_begins(
    stream: Instance, settings: NetworkSettings, weights: Weights
) -> None:
    network = HierarchicalDesign(settings).forward_pass(weights)
    training = StreamTraining(network, [stream], [stream], 0)
    (begin,) = training.values([(training.checks[0], first_readouts())])
    training.train(1e9, 1, 1, lambda: False)
    assert training.steps == 1 and training.least <= 0.0
    (best,) = training.values([(training.checks[0], training.best)])
    assert relative(best, begin) == pytest.approx(training.least)
    again = StreamTraining(network, [stream], [stream], 0)
    again.train(1e9, 1, 1, lambda: False)
    assert (again.theta == training.theta).all()


def test_the_end_of_the_stream_does_not_count(
    stream: Instance, settings: NetworkSettings, weights: Weights
) -> None:
    """Without the makespan, and without the rest of devices, which grows with it, what is left is
    the energy beyond rest, transfers and tardiness.
    """
    network = HierarchicalDesign(settings).forward_pass(weights)
    training = StreamTraining(network, [stream], [stream], 0)
    play = OnlinePlay(stream, network, readouts_from(first_readouts()))
    schedule = play.play(math.inf).schedule
    assert schedule is not None
    found = verify(stream, schedule).metrics
    rest_w = float((stream.pools.rest_w * stream.pools.count).sum())
    expected = found["energy_j"] - rest_w * found["makespan_s"] + 500 * found["tardiness_s"]
    (value,) = training.values([(training.checks[0], first_readouts())])
    assert value == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(value)
