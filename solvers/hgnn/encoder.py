"""The network: tasks, classes of devices, nodes, cluster, and back down; PyG modules for training.

    tasks      x_i = MLP(features); rounds: x_i = norm(x_i + relu(W [x_i, mean and max of
               predecessors, of successors, mean of all]))
    devices    d_c = MLP(features) + attention over the tasks that fit (edges: time, energy, cost)
               d_c += relu(Chebyshev(d) + attention over links(d))
    nodes      three poolings of d (``level_pooling``), each with a convolution between nodes
    cluster    z = relu(W [z, attention over all nodes of the query W z]), z = MLP(features of the
               whole) below
    down       d_c += relu(W [d_c, nodes of c, z]),  x_i += relu(W [x_i, attention over classes, z])
    answers    ``AnswerTensors``: linear in these, plus linear in the features themselves

``forward_pass`` computes the same with numpy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, GATv2Conv

from .answers import FACTORS, TASK_ANSWERS, WHOLE_ANSWERS
from .level_pooling import Coarsening, ContractedEdges, SoftClusters
from .network_settings import LEVEL_HEADS, NetworkSettings
from .network_shapes import CHEBYSHEV
from .seen_arrays import (
    CLASS_COLUMNS,
    LINK_COLUMNS,
    PAIR_COLUMNS,
    SET_COLUMNS,
    TASK_COLUMNS,
    WHOLE_COLUMNS,
    SeenArrays,
)
from .task_sampling import taking_part


class SeenTensors(NamedTuple):
    """``SeenArrays`` as tensors, with lists of edges as PyG's modules take them; ``edges`` are
    those of each round.
    """

    task: Tensor
    device: Tensor
    pair: Tensor
    whole: Tensor
    edges: list[Tensor]
    fits: Tensor
    link: Tensor
    links: Tensor
    near: Tensor
    member: Tensor
    sets: Tensor
    set_class: Tensor


def tensors_of(seen: SeenArrays, settings: NetworkSettings) -> SeenTensors:
    """Return the tensors of an instance for a network of these settings."""
    rows, columns = np.nonzero(seen.fits)
    between = np.nonzero(~np.eye(len(seen.device), dtype=bool))
    fits, links = (torch.from_numpy(np.stack(ends)) for ends in ((rows, columns), between))
    edges = [torch.from_numpy(np.stack(ends)) for ends in taking_part(seen, settings)]
    floats = (seen.task, seen.device, seen.pair[rows, columns], seen.whole)
    task, device, pair, whole = (torch.from_numpy(each) for each in floats)
    more = (seen.link[between], seen.near, seen.member, seen.sets, seen.set_class)
    link, near, member, sets, set_class = (torch.from_numpy(np.asarray(each)) for each in more)
    return SeenTensors(
        task, device, pair, whole, edges, fits, link, links, near, member, sets, set_class
    )


class AnswerTensors(NamedTuple):
    """``Answers`` as tensors."""

    whole: Tensor
    device: Tensor
    task: Tensor
    task_factor: Tensor
    set_factor: Tensor


def two_layers(inputs: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden))


class TaskRound(nn.Module):
    """One round of messages along the edges of the task graph, both ways."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.mix, self.norm = nn.Linear(6 * hidden, hidden), nn.LayerNorm(hidden)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        whole = x.mean(dim=0, keepdim=True).expand_as(x)
        before, behind = gathered(x, edges[0], edges[1]), gathered(x, edges[1], edges[0])
        mixed = self.mix(torch.cat((x, *before, *behind, whole), dim=1))
        return self.norm(x + torch.relu(mixed))


def gathered(x: Tensor, sender: Tensor, receiver: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and largest value over the senders of each receiver; 0 where there are none."""
    count = torch.bincount(receiver, minlength=len(x)).clamp(min=1)[:, None]
    mean = torch.zeros_like(x).index_add_(0, receiver, x[sender]) / count
    most = torch.full_like(x, -1e9).index_reduce_(0, receiver, x[sender], "amax")
    return mean, torch.where(most < -1e8, torch.zeros_like(x), most)


class HierarchicalNetwork(nn.Module):
    """The whole network; ``settings`` switch its parts off."""

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings = settings
        h = settings.hidden
        self.task_in = two_layers(len(TASK_COLUMNS), h)
        self.device_in = two_layers(len(CLASS_COLUMNS), h)
        self.whole_in = two_layers(len(WHOLE_COLUMNS), h)
        self.rounds = nn.ModuleList(TaskRound(h) for _ in range(settings.rounds))
        wide, heads, edge = h // settings.heads, settings.heads, len(PAIR_COLUMNS)
        self.to_device = GATv2Conv((h, h), wide, heads, edge_dim=edge, add_self_loops=False)
        self.to_task = GATv2Conv((h, h), wide, heads, edge_dim=edge, add_self_loops=False)
        if settings.convolves("spectral"):
            self.spectral = ChebConv(h, h, CHEBYSHEV)
        if settings.convolves("spatial"):
            self.spatial = GATv2Conv(
                h, wide, heads, edge_dim=len(LINK_COLUMNS), add_self_loops=False
            )
        if settings.pools_by("coarsening"):
            self.coarse = Coarsening(h)
        if settings.pools_by("differentiable"):
            self.soft = SoftClusters(h, settings.clusters)
        if settings.pools_by("edge"):
            self.contracted = ContractedEdges(h)
        if settings.levels == "hierarchy":
            self.query = nn.Linear(h, len(LEVEL_HEADS) * wide)
            self.key = nn.Linear(h, len(LEVEL_HEADS) * wide)
            self.value = nn.Linear(h, len(LEVEL_HEADS) * wide)
            self.cluster = nn.Linear(h + len(LEVEL_HEADS) * wide, h)
            self.down = nn.Linear(3 * h, h)
        self.mix_task = nn.Linear(3 * h, h)
        self.whole_out = nn.Linear(3 * h, WHOLE_ANSWERS)
        self.device_out = nn.Linear(2 * h, 1)
        self.task_out = nn.Linear(h, TASK_ANSWERS)
        self.task_factor = nn.Linear(h, FACTORS)
        self.whole_skip = nn.Linear(len(WHOLE_COLUMNS), WHOLE_ANSWERS)
        self.device_skip = nn.Linear(len(CLASS_COLUMNS), 1)
        self.task_skip = nn.Linear(len(TASK_COLUMNS), TASK_ANSWERS)
        self.set_in = nn.Linear(h + len(SET_COLUMNS), h)
        self.set_factor = nn.Linear(h, FACTORS)
        skips = (self.whole_skip, self.device_skip, self.task_skip)
        for layer in (self.whole_out, self.device_out, self.task_out, self.set_factor, *skips):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, seen: SeenTensors) -> AnswerTensors:
        x, d = self.task_in(seen.task), self.device_in(seen.device)
        z = self.whole_in(seen.whole)
        for layer, edges in zip(self.rounds, seen.edges, strict=True):
            x = layer(x, edges)
        d = d + torch.relu(self.to_device((x, d), seen.fits, seen.pair))
        d = d + torch.relu(self.convolved(d, seen))
        if self.settings.levels == "hierarchy":
            d, z = self.through_levels(d, z, seen)
        back = self.to_task((d, x), seen.fits.flip(0), seen.pair)
        x = x + torch.relu(self.mix_task(torch.cat((x, back, z.expand_as(x)), dim=1)))
        whole = self.whole_out(torch.cat((z, x.mean(dim=0), d.mean(dim=0))))
        whole = whole + self.whole_skip(seen.whole)
        device = self.device_out(torch.cat((d, z.expand_as(d)), dim=1))
        device = device + self.device_skip(seen.device)
        task = self.task_out(x) + self.task_skip(seen.task)
        s = torch.relu(self.set_in(torch.cat((d[seen.set_class], seen.sets), dim=1)))
        factors = self.task_factor(x), self.set_factor(s)
        return AnswerTensors(whole, device[:, 0], task, *factors)

    def convolved(self, d: Tensor, seen: SeenTensors) -> Tensor:
        out = torch.zeros_like(d)
        if self.settings.convolves("spectral"):
            weight = seen.near[seen.links[0], seen.links[1]]
            out = out + self.spectral(d, seen.links, weight)
        if self.settings.convolves("spatial"):
            out = out + self.spatial(d, seen.links, seen.link)
        return out

    def through_levels(self, d: Tensor, z: Tensor, seen: SeenTensors) -> tuple[Tensor, Tensor]:
        """Return devices and cluster after the levels above the devices."""
        pooled = []
        if self.settings.pools_by("coarsening"):
            pooled.append(self.coarse(d, seen.near, seen.member))
        if self.settings.pools_by("differentiable"):
            pooled.append(self.soft(d, seen.near))
        if self.settings.pools_by("edge"):
            pooled.append(self.contracted(d, seen.near, seen.links))
        nodes = torch.cat([each for each, _ in pooled])
        heads = len(LEVEL_HEADS)
        q, k = self.query(z).view(heads, -1), self.key(nodes).view(len(nodes), heads, -1)
        weight = torch.softmax(torch.einsum("hw,nhw->hn", q, k) / q.shape[1] ** 0.5, dim=1)
        v = self.value(nodes).view(len(nodes), heads, -1)
        z = torch.relu(self.cluster(torch.cat((z, torch.einsum("hn,nhw->hw", weight, v).ravel()))))
        above = torch.stack([back for _, back in pooled]).mean(dim=0)
        return d + torch.relu(self.down(torch.cat((d, above, z.expand_as(d)), dim=1))), z
