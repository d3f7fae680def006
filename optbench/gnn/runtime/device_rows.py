"""Utilisation and memory of one device over time, a row per sample, as lines of JSON.

``utilisation`` is the share of the time that the device computed, ``busy_s`` over ``seconds``; the
rest it waited for others (``waited_s``) or for its core. Memory is that of the process, or what
the GPU has allocated.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from optbench.gnn.runtime.halo_exchange import HaloExchange

MEGA = 1e6


@dataclass(frozen=True)
class DeviceRow:
    """One sample; ``at_s`` is the time since 1970 at its end, ``step`` the next step."""

    device: int
    attempt: int
    step: int
    at_s: float
    seconds: float
    busy_s: float
    waited_s: float
    utilisation: float
    memory_mb: float
    sent_mb: float


class DeviceRows:
    """Samples of one process, at least ``sample_s`` apart."""

    def __init__(
        self, path: Path, rank: int, attempt: int, exchange: HaloExchange, sample_s: float
    ) -> None:
        self._path, self._rank, self._attempt = path, rank, attempt
        self._exchange, self._sample_s = exchange, sample_s
        self.rows: list[DeviceRow] = []
        self._begin()

    def _begin(self) -> None:
        self._since = time.perf_counter()
        clock = self._exchange.clock
        self._busy_s, self._waited_s = clock.busy_s, clock.waited_s
        self._sent = self._exchange.sent_bytes

    def sample(self, step: int, last: bool = False) -> None:
        """Append a row if it is time, or the end."""
        seconds = time.perf_counter() - self._since
        if seconds <= 0 or (seconds < self._sample_s and not last):
            return
        busy = self._exchange.clock.busy_s - self._busy_s
        row = DeviceRow(
            self._rank,
            self._attempt,
            step,
            time.time(),
            seconds,
            busy,
            self._exchange.clock.waited_s - self._waited_s,
            min(busy / seconds, 1.0),
            _memory_mb(),
            (self._exchange.sent_bytes - self._sent) / MEGA,
        )
        self.rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")
        self._begin()


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all devices and attempts that this machine's processes wrote."""
    files = sorted(folder.glob("rows-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def _memory_mb() -> float:
    if torch.cuda.is_available():
        return torch.cuda.memory_allocated() / MEGA
    import psutil

    return float(psutil.Process().memory_info().rss) / MEGA
