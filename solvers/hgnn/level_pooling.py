"""From classes of devices to nodes and back, in three ways: coarsening by membership, a learned
soft assignment (DiffPool), and contraction of edges (EdgePooling).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import dense_diff_pool
from torch_geometric.nn.pool import EdgePooling


class NodeConvolution(nn.Module):
    """x' = relu(A x + B Ā x) with the row-normalised strength Ā of links between nodes."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden, bias=False)

    def forward(self, x: Tensor, near: Tensor) -> Tensor:
        share = near / near.sum(dim=1, keepdim=True).clamp(min=1e-9)
        return torch.relu(self.own(x) + self.others(share @ x))


class Coarsening(nn.Module):
    """The mean over the devices of each group of alike nodes; back by the same shares."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.between = NodeConvolution(hidden)

    def forward(self, x: Tensor, near: Tensor, member: Tensor) -> tuple[Tensor, Tensor]:
        mean = member / member.sum(dim=1, keepdim=True).clamp(min=1e-9)
        nodes = self.between(mean @ x, mean @ near @ mean.T)
        return nodes, member.T @ nodes


class SoftClusters(nn.Module):
    """DiffPool: x → Sᵀx with S = softmax of a linear layer; back by S."""

    def __init__(self, hidden: int, clusters: int) -> None:
        super().__init__()
        self.assign, self.between = nn.Linear(hidden, clusters), NodeConvolution(hidden)

    def forward(self, x: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
        score = self.assign(x)
        pooled, between, _, _ = dense_diff_pool(x[None], near[None], score[None])
        share = torch.softmax(score, dim=-1)
        size = share.sum(dim=0).clamp(min=1e-9)[:, None]
        nodes = self.between(pooled[0] / size, between[0])
        return nodes, share @ nodes


class ContractedEdges(nn.Module):
    """Pairs of classes joined by the edges of the highest scores; back to both ends."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.pool, self.between = EdgePooling(hidden), NodeConvolution(hidden)

    def forward(self, x: Tensor, near: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        batch = torch.zeros(len(x), dtype=torch.long)
        pooled, _, _, info = self.pool(x, edges, batch)
        member = torch.zeros(len(pooled), len(x)).index_put_(
            (info.cluster, torch.arange(len(x))), torch.ones(len(x))
        )
        nodes = self.between(pooled, member @ near @ member.T)
        return nodes, nodes[info.cluster]
