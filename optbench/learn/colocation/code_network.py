"""The small networks: tokens to a code of a job, the code and a column to a correction of a cell.

Tokens are a new job's neighbours (first sight) or its measurements (refinement). They are encoded
by one of three kinds: feed-forward (each token by itself, then mean and maximum), recurrent (a GRU,
one token after the other) or transformer (one layer of self-attention, then the mean). With the
code c of a job, words h_j of a column, its loadings W_j and numbers x_j of the cell,

    correction_j = W_j · U c + (O tanh(A c + B h_j + C x_j))_1        log variance_j = (...)_2

so a network can move a row in the low-rank directions and correct single cells.
"""

from __future__ import annotations

import torch
from torch import nn

from optbench.learn.colocation.estimator_settings import Kind

WIDTH, CODE = 48, 32
HEADS = 4


class TokenEncoder(nn.Module):
    """Tokens (n, m, d) with a mask (n, m) of those that exist, to (n, ``size``)."""

    def __init__(self, kind: Kind, token: int) -> None:
        super().__init__()
        self.kind = kind
        self.size = 2 * WIDTH if kind == "feed_forward" else WIDTH
        self.first = nn.Linear(token, WIDTH)
        self.body: nn.Module
        if kind == "recurrent":
            self.body = nn.GRU(WIDTH, WIDTH, batch_first=True)
        elif kind == "transformer":
            self.body = nn.TransformerEncoderLayer(
                WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
            )
        else:
            self.body = nn.Sequential(nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU())

    def forward(self, tokens: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        first = self.first(tokens)
        count = there.sum(dim=1).clamp(min=1)
        if self.kind == "recurrent":
            states, _ = self.body(torch.tanh(first))
            last = (count - 1).long()
            found: torch.Tensor = states[torch.arange(len(tokens)), last]
            return found * (there.any(dim=1))[:, None]
        if self.kind == "transformer":
            # A row without tokens attends to its padding; its mean is masked below.
            hidden = ~there
            hidden = hidden & there.any(dim=1, keepdim=True)
            states = self.body(first, src_key_padding_mask=hidden)
        else:
            states = self.body(first)
        masked = states * there[:, :, None]
        mean: torch.Tensor = masked.sum(dim=1) / count[:, None]
        if self.kind == "transformer":
            return mean
        return torch.cat([mean, masked.amax(dim=1)], dim=1)


class CodeNetwork(nn.Module):
    """A code of each job, and corrections with log variances of its cells."""

    def __init__(
        self, kind: Kind, token: int, query: int, column: int, rank: int, numbers: int
    ) -> None:
        super().__init__()
        self.encoder = TokenEncoder(kind, token)
        self.code = nn.Sequential(
            nn.Linear(self.encoder.size + query, WIDTH), nn.GELU(), nn.Linear(WIDTH, CODE)
        )
        self.low_rank = nn.Linear(CODE, rank, bias=False)
        self.from_code = nn.Linear(CODE, CODE, bias=False)
        self.from_column = nn.Linear(column, CODE)
        self.from_numbers = nn.Linear(numbers, CODE, bias=False)
        self.last = nn.Linear(CODE, 2)
        # Corrections begin near 0.
        with torch.no_grad():
            self.low_rank.weight *= 0.1
            self.last.weight *= 0.1

    def forward(
        self,
        tokens: torch.Tensor,
        there: torch.Tensor,
        query: torch.Tensor,
        columns: torch.Tensor,
        loadings: torch.Tensor,
        numbers: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Corrections and log variances (n, J), in units of the part's scale."""
        code = self.code(torch.cat([self.encoder(tokens, there), query], dim=1))
        inner = self.from_code(code)[:, None] + self.from_column(columns)[None]
        hidden = torch.tanh(inner + self.from_numbers(numbers))
        out = self.last(hidden)
        shift = self.low_rank(code) @ loadings.T
        return shift + out[..., 0], out[..., 1].clamp(-6.0, 3.0)


def likelihood_loss(
    mean: torch.Tensor, log_variance: torch.Tensor, goal: torch.Tensor, there: torch.Tensor
) -> torch.Tensor:
    """The mean negative log likelihood of the cells that exist, and half their absolute error."""
    rest = torch.where(there, goal - mean, torch.zeros_like(mean))
    each = 0.5 * torch.exp(-log_variance) * rest**2 + 0.5 * log_variance + 0.5 * rest.abs()
    total: torch.Tensor = (each * there).sum() / there.sum().clamp(min=1)
    return total
