"""Calls that a training makes in several places at once, without knowing where they are made.

A training builds what its calls work on from plain data, once per worker, and gives calls to all
workers. There are two kinds. Calls on a ``Workplace`` change nothing, so that any worker may make
any of them, and one that was lost with its worker is made again elsewhere. Calls on ``Shards``
change what they work on, as an environment that goes on from rollout to rollout: shard k receives
item k of each round, and a shard that was lost with its worker is built again and given all of its
items so far. In both cases a call must depend on nothing but what was built and its item, so that
the results are the same wherever, and however often, it is made. Functions are those of a module,
which another process can import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

Given = TypeVar("Given")
Built = TypeVar("Built")
Item = TypeVar("Item")
Found = TypeVar("Found")
Place_co = TypeVar("Place_co", covariant=True)


class Workplace(Protocol[Place_co]):
    """Calls that change nothing of what was built."""

    def map(
        self, function: Callable[[Place_co, Item], Found], items: Sequence[Item]
    ) -> list[Found]:
        """Return ``function(built, item)`` of every item, in the order of the items."""
        ...


class Shards(Protocol[Place_co]):
    """Calls that change the shard on which they work."""

    def __len__(self) -> int: ...

    def each(
        self, function: Callable[[Place_co, Item], Found], items: Sequence[Item]
    ) -> list[Found]:
        """Return ``function(shard k, item k)`` of every shard, in the order of the shards."""
        ...


class WorkPool(Protocol):
    """Workers. ``cpu_s`` is the processor time that calls have taken in other processes than the
    one of the training.
    """

    @property
    def workers(self) -> int: ...

    @property
    def cpu_s(self) -> float: ...

    @property
    def cpu_elsewhere_s(self) -> float:
        """The part of ``cpu_s`` that was spent on other nodes, not below this process."""
        ...

    def workplace(
        self, build: Callable[[Given], Built], given: Given, here: Built | None = None
    ) -> Workplace[Built]:
        """Return a place that every worker builds from ``given`` before its first call; ``here`` is
        what the training's own process has built of it already.
        """
        ...

    def shards(self, build: Callable[[Given], Built], given: Sequence[Given]) -> Shards[Built]:
        """Return one shard for each element of ``given``."""
        ...


@dataclass
class OneProcess:
    """The pool of a training that makes its calls itself, one after another."""

    workers: int = 1
    cpu_s: float = 0.0
    cpu_elsewhere_s: float = 0.0

    def workplace(
        self, build: Callable[[Given], Built], given: Given, here: Built | None = None
    ) -> OwnWorkplace:
        return OwnWorkplace(build(given) if here is None else here)

    def shards(self, build: Callable[[Given], Built], given: Sequence[Given]) -> OwnShards:
        return OwnShards([build(each) for each in given])


@dataclass(frozen=True, eq=False)
class OwnWorkplace:
    """A place in the training's own process."""

    built: Any

    def map(self, function: Callable[[Any, Item], Found], items: Sequence[Item]) -> list[Found]:
        return [function(self.built, item) for item in items]


@dataclass(frozen=True, eq=False)
class OwnShards:
    """Shards in the training's own process."""

    built: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.built)

    def each(self, function: Callable[[Any, Item], Found], items: Sequence[Item]) -> list[Found]:
        return [function(one, item) for one, item in zip(self.built, items, strict=True)]


def parts(count: int, workers: int) -> list[range]:
    """Return ``count`` places in at most ``workers`` consecutive ranges of nearly equal length."""
    used = max(1, min(count, workers))
    edges = [k * count // used for k in range(used + 1)]
    return [range(edges[k], edges[k + 1]) for k in range(used)]
