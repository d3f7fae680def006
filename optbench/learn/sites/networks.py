"""The networks of ``sim.kernel.sites.network_scores`` in torch, with any number of outputs per
option, and their conversion to compiled form.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from optbench.learn.sites.pilot import Float32, layers
from optbench.sim.kernel.sites.view import G, O, S


class SharedNet(nn.Module):
    """One small network for all options: (rows, features) → (rows, options, outputs)."""

    site_mean: torch.Tensor
    whole_mean: torch.Tensor
    bias_mean: torch.Tensor
    option: torch.Tensor
    site: torch.Tensor
    whole: torch.Tensor
    mean: torch.Tensor
    bias: torch.Tensor
    second: torch.Tensor
    bias_second: torch.Tensor
    last: torch.Tensor
    bias_last: torch.Tensor

    def __init__(self, pools: int, widest: int, hidden: int, outputs: int = 1) -> None:
        super().__init__()
        self.pools, self.widest, self.hidden, self.outputs = pools, widest, hidden, outputs
        for name, shape in layers("shared", hidden, pools, widest).items():
            if name in ("last", "bias_last"):
                shape = (*shape[:-1], outputs)
            setattr(self, name, nn.Parameter(_start(shape, small=name == "last" and outputs == 1)))

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        base, sites = self._around(row)
        options = row[:, G + self.pools * S :].reshape(len(row), self.pools, self.widest, O)
        first = options @ self.option + sites[:, :, None] + base[:, None, None]
        return self._ahead(first).flatten(1, 2)

    def chosen(self, row: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Return the outputs of one option per row only."""
        base, sites = self._around(row)
        rows = torch.arange(len(row))
        option = row[:, G + self.pools * S :].reshape(len(row), -1, O)[rows, action]
        return self._ahead(option @ self.option + sites[rows, action // self.widest] + base)

    def _around(self, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole, site = row[:, :G], row[:, G : G + self.pools * S].reshape(len(row), self.pools, S)
        mean = torch.relu(
            site @ self.site_mean + (whole @ self.whole_mean + self.bias_mean)[:, None]
        ).mean(dim=1)
        return whole @ self.whole + mean @ self.mean + self.bias, site @ self.site

    def _ahead(self, first: torch.Tensor) -> torch.Tensor:
        return (
            torch.relu(torch.relu(first) @ self.second + self.bias_second) @ self.last
            + self.bias_last
        )


# The layers of a flat network that actor and critics share.
ENCODER = ("first", "bias_first", "second", "bias_second", "third", "bias_third")


class FlatNet(nn.Module):
    """The paper's encoder of the whole and all sites, with heads for sites and numbers of devices,
    or one for options.
    """

    first: torch.Tensor
    bias_first: torch.Tensor
    second: torch.Tensor
    bias_second: torch.Tensor
    third: torch.Tensor
    bias_third: torch.Tensor
    sites: torch.Tensor
    bias_sites: torch.Tensor
    counts: torch.Tensor
    bias_counts: torch.Tensor
    options: torch.Tensor
    bias_options: torch.Tensor

    def __init__(self, pools: int, widest: int, hidden: int, outputs: int = 1) -> None:
        super().__init__()
        self.pools, self.widest, self.hidden, self.outputs, self.width = (
            pools,
            widest,
            hidden,
            outputs,
            G + pools * S,
        )
        shapes = layers("flat", hidden, pools, widest)
        if outputs > 1:
            shapes = {k: v for k, v in shapes.items() if "sites" not in k and "counts" not in k}
            shapes |= {
                "options": (hidden, pools * widest * outputs),
                "bias_options": (pools * widest * outputs,),
            }
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(_start(shape)))

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        x = row[:, : self.width]
        for weights, bias in (
            (self.first, self.bias_first),
            (self.second, self.bias_second),
            (self.third, self.bias_third),
        ):
            x = torch.relu(x @ weights + bias)
        if self.outputs > 1:
            return (x @ self.options + self.bias_options).reshape(len(row), -1, self.outputs)
        sites, counts = x @ self.sites + self.bias_sites, x @ self.counts + self.bias_counts
        return (sites[:, :, None] + counts[:, None, :]).reshape(len(row), -1, 1)

    def chosen(self, row: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Return the outputs of one option per row only."""
        return self.forward(row)[torch.arange(len(row)), action]


Net = SharedNet | FlatNet


def make_net(kind: str, pools: int, widest: int, hidden: int, outputs: int = 1) -> Net:
    return (SharedNet if kind == "shared" else FlatNet)(pools, widest, hidden, outputs)


def _start(shape: tuple[int, ...], small: bool = False) -> torch.Tensor:
    if len(shape) == 1:
        return torch.zeros(shape)
    spread = (0.1 if small else 1.0) * math.sqrt(3.0 / shape[0])
    return torch.empty(shape).uniform_(-spread, spread)


def theta_of(net: Net) -> Float32:
    """Return the weights of an actor, one array after the other, as the kernel reads them."""
    kind = "shared" if isinstance(net, SharedNet) else "flat"
    names = layers(kind, net.hidden, net.pools, net.widest)
    return np.concatenate([getattr(net, name).detach().numpy().ravel() for name in names]).astype(
        np.float32
    )


def load_theta(net: Net, theta: Float32) -> None:
    """Set the weights of an actor from the kernel's array."""
    at = 0
    kind = "shared" if isinstance(net, SharedNet) else "flat"
    with torch.no_grad():
        for name, shape in layers(kind, net.hidden, net.pools, net.widest).items():
            size = math.prod(shape)
            getattr(net, name).copy_(torch.from_numpy(theta[at : at + size].reshape(shape)))
            at += size
