"""What a worker of a training's pool does, wherever it runs: it builds and it calls.

Messages are pickled: the driver trusts its workers as it trusts itself, since both run the code of
the training.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# The number of a place or a set of shards, and of a shard in it (None: a place).
Where = tuple[int, int | None]
Call = tuple[Callable[[Any, Any], Any], Any]


@dataclass(frozen=True, eq=False)
class PoolCalls:
    """Calls of one function, in order, on what is built at ``where``; ``build`` makes it first,
    where it is given.

    ``made_before`` are calls that a shard had taken when its worker was lost: they are made again,
    and their results are not wanted.
    """

    where: Where
    function: Callable[[Any, Any], Any]
    items: tuple[Any, ...]
    build: bytes | None = None
    made_before: tuple[Call, ...] = ()


@dataclass(frozen=True, eq=False)
class PoolAnswer:
    """The results of calls, their seconds and their processor time."""

    found: list[Any]
    busy_s: float
    cpu_s: float


@dataclass
class PoolWorker:
    """The state of a worker: what it has built."""

    built: dict[Where, Any] = field(default_factory=dict)

    def prepare(self, kernels: tuple[str, ...]) -> None:
        """Load compiled kernels, and compile those that this machine has not."""
        from optbench.compiling.kernel_table import prepare

        prepare(kernels)

    def answer(self, calls: PoolCalls) -> PoolAnswer:
        """Make the calls."""
        began, cpu = time.perf_counter(), time.process_time()
        if calls.build is not None:
            build, given = pickle.loads(calls.build)
            self.built[calls.where] = build(given)
        place = self.built[calls.where]
        for function, item in calls.made_before:
            function(place, item)
        found = [calls.function(place, item) for item in calls.items]
        return PoolAnswer(found, time.perf_counter() - began, time.process_time() - cpu)
