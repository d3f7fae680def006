"""Averages of weights by hand, and rounds of training whose result is known."""

from __future__ import annotations

import pytest
import torch

from optbench.api import load_target
from optbench.errors import ParameterError
from solvers.hgnn.federated_averaging import State, average, train_federated
from solvers.hgnn.learning_settings import HgnnTraining
from solvers.hgnn.network_training import NetworkTraining


def owner(spec: str, seed: int = 0) -> NetworkTraining:
    settings = HgnnTraining(
        steps=4, samples=2, batch=1, hidden=8, imitate=0.0, label=0.0, instances=1
    )
    instance = load_target(spec)
    return NetworkTraining([instance], [instance], settings, seed)


def test_the_mean_counts_steps() -> None:
    """(1 · 4 + 3 · 8) / 4 = 7; an owner without steps does not count."""
    states = [{"w": torch.tensor([4.0])}, {"w": torch.tensor([8.0])}]
    assert average(states, [1, 3])["w"].tolist() == [7.0]
    assert average(states, [0, 5])["w"].tolist() == [8.0]


@pytest.mark.parametrize("steps", [[1], [0, 0], [2, -1]])
def test_steps_that_give_no_mean_are_named(steps: list[int]) -> None:
    states = [{"w": torch.zeros(1)}] * 2
    with pytest.raises(ParameterError, match=rf"steps is \[{steps[0]}"):
        average(states, steps)


def test_equal_owners_train_what_one_of_them_trains_alone() -> None:
    """Same instance and seed: all take the same steps, and the mean of equals is one of them."""
    spec = "gpu_cluster:nodes=2,types=2,tasks=6"
    alone = owner(spec)
    for _ in range(4):
        alone.advance()
    rounds: list[int] = []

    def on_round(number: int, mean: State) -> None:
        rounds.append(number)

    together = train_federated([owner(spec), owner(spec)], 2, [2, 2], on_round)
    assert rounds == [1, 2]
    for name, value in alone.mean.items():
        torch.testing.assert_close(together[name], value, rtol=1e-6, atol=1e-7)


def test_different_owners_share_one_network() -> None:
    """After a round the mean lies between what the owners have trained, and both begin with it."""
    specs = ("gpu_cluster:nodes=2,types=2,tasks=6", "gpu_cluster:nodes=1,types=1,tasks=8")
    owners = [owner(spec) for spec in specs]
    shared = train_federated(owners, 1, [1, 3])
    name = "mix_task.weight"
    one, two = (each.mean[name] for each in owners)
    assert not torch.equal(one, two)
    torch.testing.assert_close(shared[name], 0.25 * one + 0.75 * two)
