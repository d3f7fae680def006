"""Federated averaging (McMahan et al. 2017): owners train one network on workloads that stay
private.

In each round every owner k begins with the shared weights w, takes n_k steps on instances of its
own, and gives back weights w_k. The shared weights of the next round are Σ n_k w_k / Σ n_k. The
running mean of the weights, which is what is used in the end, is averaged in the same way. The
state of each optimiser stays with its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from optbench.errors import ParameterError

from .network_training import NetworkTraining

State = dict[str, Tensor]


def average(states: Sequence[Mapping[str, Tensor]], steps: Sequence[int]) -> State:
    """Return the mean of weights, each counted by its number of steps."""
    total = sum(steps)
    if len(states) != len(steps) or min(steps, default=0) < 0 or total == 0:
        raise ParameterError(
            f"federated averaging: steps is {list(steps)!r}; it must have a number from 0 for each "
            f"of the {len(states)} owners, and one above 0"
        )
    share = [count / total for count in steps]
    return {
        name: torch.stack([s * state[name] for s, state in zip(share, states)]).sum(dim=0)
        for name in states[0]
    }


def train_federated(
    owners: Sequence[NetworkTraining],
    rounds: int,
    steps: Sequence[int],
    on_round: Callable[[int, State], None] | None = None,
) -> State:
    """Train for so many rounds, of ``steps[k]`` steps by owner k; return the mean of the running
    means. The first shared weights are those of the first owner.
    """
    weights = {name: value.clone() for name, value in owners[0].network.state_dict().items()}
    mean = {name: value.clone() for name, value in owners[0].mean.items()}
    for number in range(1, rounds + 1):
        for owner, count in zip(owners, steps, strict=True):
            owner.network.load_state_dict(weights)
            owner.mean = {name: value.clone() for name, value in mean.items()}
            for _ in range(count):
                owner.advance()
        weights = average([owner.network.state_dict() for owner in owners], steps)
        mean = average([owner.mean for owner in owners], steps)
        if on_round is not None:
            on_round(number, mean)
    return mean
