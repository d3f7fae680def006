"""A graph transformer over parts, devices and operators, and the head that scores placements.

With tokens x of width H, heads of width H / A and relations r_ij,

    attention_ij = softmax_j( q_i · k_j / √(H / A) + u_a · r_ij )
    x ← x + O concat_a Σ_j attention_ij (v_j + V_a r_ij);   x ← x + MLP(norm(x))

The embeddings of parts and devices feed the head of ``allocation_process``, which runs in compiled
code in every step; ``scores`` is the same function for learning. ``values`` are quantiles of what
is still to be earned in a state, which only the training uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from optbench.gnn.placement.allocation_process import FEATURES, HeadWeights
from optbench.learn.placement.placement_tokens import (
    DEVICE_FEATURES,
    OPERATOR_FEATURES,
    PART_FEATURES,
    RELATIONS,
    PlacementTokens,
)

WIDTH, HEADS, LAYERS, HIDDEN, QUANTILES = 32, 4, 2, 32, 8


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """Tokens of several tables, padded: masks are true where there is a token."""

    parts: torch.Tensor
    devices: torch.Tensor
    operators: torch.Tensor
    relation: torch.Tensor
    mask: torch.Tensor


def batch_of(tokens: list[PlacementTokens]) -> TokenBatch:
    """Return padded tokens; relations are gathered into the padded places."""
    most = [max(len(getattr(t, n)) for t in tokens) for n in ("parts", "devices", "operators")]
    size, count = sum(most), len(tokens)
    first = (0, most[0], most[0] + most[1])
    kinds = [
        np.zeros((count, m, w), dtype=np.float32)
        for m, w in zip(most, (PART_FEATURES, DEVICE_FEATURES, OPERATOR_FEATURES), strict=True)
    ]
    relation = np.zeros((count, size, size, RELATIONS), dtype=np.float32)
    mask = np.zeros((count, size), dtype=bool)
    for b, each in enumerate(tokens):
        at: list[int] = []
        for kind, start, rows in zip(
            kinds, first, (each.parts, each.devices, each.operators), strict=True
        ):
            kind[b, : len(rows)] = rows
            at.extend(range(start, start + len(rows)))
        mask[b, at] = True
        relation[b][np.ix_(at, at)] = each.relation
    return TokenBatch(*(torch.from_numpy(x) for x in (*kinds, relation, mask)))


class AttentionLayer(nn.Module):
    """Attention with relations, then two dense layers; both are added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.bias = nn.Linear(RELATIONS, HEADS)
        self.relation_value = nn.Linear(RELATIONS, WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm, self.second_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.dense = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor, relation: torch.Tensor, mask: torch.Tensor) -> Any:
        count, size, _ = x.shape
        q, k, v = self.query_key_value(self.norm(x)).split(WIDTH, dim=2)
        q, k, v = (y.view(count, size, HEADS, -1).transpose(1, 2) for y in (q, k, v))
        score = q @ k.transpose(2, 3) / (WIDTH / HEADS) ** 0.5
        score = score + self.bias(relation).permute(0, 3, 1, 2)
        score = score.masked_fill(~mask[:, None, None, :], -1e9)
        share = torch.softmax(score, dim=3)
        # Σ_j share_ij r_ij first: its width is that of the relations.
        met = torch.einsum("baij,bijr->biar", share, relation)
        weight = self.relation_value.weight.view(HEADS, WIDTH // HEADS, RELATIONS)
        seen = torch.einsum("biar,ahr->biah", met, weight)
        mixed = (share @ v).transpose(1, 2) + seen
        x = x + self.out(mixed.reshape(count, size, WIDTH))
        return x + self.dense(self.second_norm(x))


class PlacementNetwork(nn.Module):
    """Encoder and head of an agent."""

    def __init__(self) -> None:
        super().__init__()
        widths = (PART_FEATURES, DEVICE_FEATURES, OPERATOR_FEATURES)
        self.embed = nn.ModuleList([nn.Linear(width, WIDTH) for width in widths])
        self.layers = nn.ModuleList([AttentionLayer() for _ in range(LAYERS)])
        self.part, self.device = nn.Linear(WIDTH, HIDDEN), nn.Linear(WIDTH, HIDDEN)
        self.first = nn.Linear(len(FEATURES), HIDDEN, bias=False)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, 1, bias=False)
        self.skip = nn.Linear(len(FEATURES), 1, bias=False)
        self.value = nn.Sequential(
            nn.Linear(2 * len(FEATURES) + HIDDEN, 2 * HIDDEN),
            nn.ReLU(),
            nn.Linear(2 * HIDDEN, QUANTILES),
        )

    def embeddings(self, batch: TokenBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a_p (tables, parts, H) and b_d (tables, devices, H)."""
        rows = (batch.parts, batch.devices, batch.operators)
        x = torch.cat([f(y) for f, y in zip(self.embed, rows, strict=True)], dim=1)
        for layer in self.layers:
            x = layer(x, batch.relation, batch.mask)
        parts, devices = batch.parts.shape[1], batch.devices.shape[1]
        return self.part(x[:, :parts]), self.device(x[:, parts : parts + devices])

    def scores(self, part: torch.Tensor, device: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Scores (steps, devices) of a_p (steps, H), b_d (steps, devices, H), features."""
        hidden = torch.relu(part[:, None] + device + self.first(seen))
        found: torch.Tensor = self.last(torch.relu(self.second(hidden))) + self.skip(seen)
        return found.squeeze(2)

    def values(self, part: torch.Tensor, seen: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Quantiles (steps, QUANTILES) of what is still to be earned."""
        mean = (seen * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        least = seen.masked_fill(~mask[:, :, None], 1e3).amin(dim=1)
        found: torch.Tensor = self.value(torch.cat([mean, least, part.detach()], dim=1))
        return found

    @torch.no_grad()
    def heads(self, tokens: list[PlacementTokens]) -> list[HeadWeights]:
        """Return the heads of tables for the compiled code."""
        part, device = self.embeddings(batch_of(tokens))
        shared = [
            np.ascontiguousarray(x.detach().numpy())
            for x in (
                self.first.weight.T, self.second.weight.T, self.second.bias, self.last.weight[0],
                self.skip.weight[0],
            )
        ]  # fmt: skip
        return [
            HeadWeights(
                np.ascontiguousarray(part[k, : len(each.parts)].numpy()),
                np.ascontiguousarray(device[k, : len(each.devices)].numpy()),
                *shared,
            )
            for k, each in enumerate(tokens)
        ]
