"""Rows of halo nodes from the processes that own them, and their gradients back, while computing.

``start`` sends the own rows that others need and begins to receive; ``finish`` waits. What is
computed between the two hides the exchange. Backward, autograd visits in reverse order of creation:
``finish`` sends the gradients of received rows to their owners, then the gradient of what was
computed between flows, and ``start`` waits and adds what has arrived, peer by peer in order of
rank, so that sums do not depend on who was first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from optbench.gnn.runtime.local_graph import LocalGraph
from optbench.gnn.runtime.section_clock import SectionClock


@dataclass
class _Flight:
    """One exchange of rows forward, and of gradients backward."""

    exchange: HaloExchange
    works: list[Any] = field(default_factory=list)
    # What is being sent must live until it is.
    sending: list[Tensor] = field(default_factory=list)
    arrived: list[Tensor] = field(default_factory=list)


@dataclass
class HaloExchange:
    """The exchange of rows of one process with its peers; ``overlap=False`` waits at once."""

    local: LocalGraph
    clock: SectionClock
    overlap: bool = True
    sent_bytes: int = 0

    def __post_init__(self) -> None:
        self._send = [torch.from_numpy(each.send) for each in self.local.peers]

    def to(self, device: torch.device) -> None:
        self._send = [each.to(device) for each in self._send]

    def start(self, rows: Tensor) -> tuple[Tensor, Tensor, _Flight]:
        """Send own rows; return them, the rows of the halo to come, and what ``finish`` needs."""
        flight = _Flight(self)
        own, coming = _Start.apply(rows, flight)  # type: ignore[no-untyped-call]  # of PyTorch
        return own, coming, flight

    def finish(self, coming: Tensor, flight: _Flight) -> Tensor:
        """Return the rows of the halo nodes."""
        found: Tensor = _Finish.apply(coming, flight)  # type: ignore[no-untyped-call]  # of PyTorch
        return found

    def whole(self, rows: Tensor) -> Tensor:
        """Return own rows, then those of the halo, without computing between."""
        own, coming, flight = self.start(rows)
        return torch.cat([own, self.finish(coming, flight)])

    def send_rows(self, rows: Tensor, flight: _Flight) -> Tensor:
        halo = rows.new_empty((len(self.local.halo), *rows.shape[1:]))
        out = [rows.index_select(0, send) for send in self._send]
        self._begin(out, [halo[each.first : each.last] for each in self.local.peers], flight)
        return halo

    def send_gradients(self, gradient: Tensor, flight: _Flight) -> None:
        gradient = gradient.contiguous()
        out = [gradient[each.first : each.last] for each in self.local.peers]
        flight.arrived = [
            gradient.new_empty((len(send), *gradient.shape[1:])) for send in self._send
        ]
        self._begin(out, flight.arrived, flight)

    def added(self, gradient: Tensor, flight: _Flight) -> Tensor:
        """Return the gradient of own rows with what the peers have sent."""
        self.wait(flight)
        total = gradient.clone()
        for send, arrived in zip(self._send, flight.arrived, strict=True):
            total.index_add_(0, send, arrived)
        return total

    def wait(self, flight: _Flight) -> None:
        """Wait for everything under way."""
        if not flight.works:
            return
        with self.clock.waiting():
            for work in flight.works:
                work.wait()
        flight.works, flight.sending = [], []

    def _begin(self, out: list[Tensor], into: list[Tensor], flight: _Flight) -> None:
        """Send and receive without waiting; a slow device has its rows only once it is done."""
        if not self.local.peers:
            return
        with self.clock.waiting():
            ops = []
            for peer, sent, place in zip(self.local.peers, out, into, strict=True):
                ops.append(dist.P2POp(dist.isend, sent, peer.rank))
                ops.append(dist.P2POp(dist.irecv, place, peer.rank))
                self.sent_bytes += sent.numel() * sent.element_size()
            flight.works = dist.batch_isend_irecv(ops)
        flight.sending = out
        if not self.overlap:
            self.wait(flight)


class _Start(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, flight: _Flight) -> tuple[Tensor, Tensor]:
        ctx.flight = flight
        rows = rows.contiguous()
        return rows.view_as(rows), flight.exchange.send_rows(rows, flight)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return ctx.flight.exchange.added(gradients[0], ctx.flight), None


class _Finish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, coming: Tensor, flight: _Flight) -> Tensor:
        ctx.flight = flight
        flight.exchange.wait(flight)
        return coming.view_as(coming)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.flight.exchange.send_gradients(gradients[0], ctx.flight)
        return gradients[0], None
