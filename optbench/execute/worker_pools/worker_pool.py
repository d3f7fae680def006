"""The pool of a training whose calls are made by several workers, some of which may be lost.

Whether workers are processes or actors on nodes is the matter of a ``Staff``. Calls on a place go
to whoever is free; a call whose worker is lost is made again by another. Shards stay with their
worker; of a lost one they are built again and given all of their items so far, which leaves them as
they were. A lost worker is replaced, and the pool goes on with the others meanwhile.
"""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from optbench.errors import OptbenchError
from optbench.execute.worker_pools.pool_worker import Call, PoolAnswer, PoolCalls, Where

# Seconds between looks for a stop; that all workers have to start; and that a pool without any
# worker waits for one.
LOOK_S, START_S, ALONE_S = 0.2, 60.0, 120.0
# Calls go out in parts, so that free workers find some; so many parts per worker.
PARTS_PER_WORKER = 4
# Workers that one and the same calls may lose.
MOST_LOSSES = 3
# A worker that is lost before it has started was sent to a node that is gone: seconds until the
# next one is hired, and how many may be in a row.
AGAIN_S, MOST_UNSTARTED = 1.0, 60


class WorkerLostError(OptbenchError):
    """A worker of a pool has ended, or its node has."""


class Member(Protocol):
    """A worker as the driver sees it; its methods block."""

    @property
    def node(self) -> str:
        """Where it runs, once it has started."""
        ...

    def start(self) -> None:
        """Wait until it is ready."""
        ...

    def answer(self, calls: PoolCalls) -> PoolAnswer:
        """Make calls, or raise WorkerLostError."""
        ...

    def end(self) -> None: ...


class Staff(Protocol):
    """Hires workers; ``elsewhere`` says that they are no processes below this one."""

    elsewhere: ClassVar[bool]

    def hire(self) -> Member: ...


@dataclass(eq=False)
class _Seat:
    """A worker with a thread that waits for it."""

    member: Member
    thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "optbench-pool")
    )
    starting: Future[None] | None = None
    ready: bool = False
    has: set[Where] = field(default_factory=set)

    def submit(self, calls: PoolCalls) -> Future[PoolAnswer]:
        return self.thread.submit(self.member.answer, calls)


@dataclass(eq=False)
class _Task:
    """Calls that one worker makes; ``results`` is where they go, ``first`` their first place."""

    where: Where
    function: Callable[[Any, Any], Any]
    items: tuple[Any, ...]
    first: int
    lost: int = 0


@dataclass
class PoolFigures:
    """What a pool did: seconds in workers, seconds for which the training waited for them, calls by
    node, and the workers that were lost.
    """

    busy_s: float = 0.0
    waited_s: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)

    @property
    def speed_up(self) -> float | None:
        """How many workers were busy at a time, on average; None before the first call."""
        return self.busy_s / self.waited_s if self.waited_s > 0 else None


class StaffedPool:
    """A pool of ``workers`` workers; a context manager."""

    def __init__(
        self,
        staff: Staff,
        workers: int,
        stop: threading.Event | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.staff, self.workers, self.tell = staff, workers, tell
        self.stop = stop or threading.Event()
        self.cpu_s = 0.0
        self.figures = PoolFigures()
        self.seats: list[_Seat] = []
        self.builds: dict[int, list[bytes]] = {}
        self.logs: dict[Where, list[Call]] = {}
        self.owner: dict[Where, _Seat] = {}
        self.unstarted, self.hire_after = 0, 0.0
        self._numbers = itertools.count()

    @property
    def cpu_elsewhere_s(self) -> float:
        return self.cpu_s if self.staff.elsewhere else 0.0

    def __enter__(self) -> StaffedPool:
        with ExitStack() as on_failure:
            # Members that are left would keep this process from ending.
            on_failure.push(self.__exit__)
            self._welcome()
            until = time.monotonic() + START_S
            while any(not seat.ready for seat in self.seats) and time.monotonic() < until:
                if self.stop.is_set():
                    break
                self._welcome()
                time.sleep(LOOK_S / 4)
            on_failure.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for seat in self.seats:
            seat.member.end()
        for seat in self.seats:
            seat.thread.shutdown(wait=True, cancel_futures=True)
        self.seats.clear()

    def workplace(
        self, build: Callable[[Any], Any], given: Any, here: Any = None
    ) -> StaffedWorkplace:
        number = next(self._numbers)
        self.builds[number] = [pickle.dumps((build, given))]
        return StaffedWorkplace(self, number)

    def shards(self, build: Callable[[Any], Any], given: Sequence[Any]) -> StaffedShards:
        number = next(self._numbers)
        self.builds[number] = [pickle.dumps((build, each)) for each in given]
        for k in range(len(given)):
            self.logs[number, k] = []
        return StaffedShards(self, number, len(given))

    def run(self, tasks: Sequence[_Task]) -> dict[int, list[Any]]:
        """Make all calls; return their results by the task's first place."""
        began = time.monotonic()
        waiting, found = deque(tasks), dict[int, list[Any]]()
        running: dict[Future[PoolAnswer], tuple[_Seat, _Task]] = {}
        while waiting or running:
            self._welcome()
            self._require_workers()
            self.settle([task.where for task in waiting if task.where[1] is not None])
            busy = {seat for seat, _ in running.values()}
            for seat in self.seats:
                if seat.ready and seat not in busy and (task := self._next(seat, waiting)):
                    running[seat.submit(self._calls(seat, task))] = (seat, task)
            for future in wait(running, LOOK_S, FIRST_COMPLETED).done:
                seat, task = running.pop(future)
                lost = future.exception()
                if isinstance(lost, WorkerLostError):
                    self._lose(seat, task, lost)
                    waiting.appendleft(task)
                    continue
                answer = future.result()
                seat.has.add(task.where)
                found[task.first] = answer.found
                self.cpu_s += answer.cpu_s
                self.figures.busy_s += answer.busy_s
                self.figures.calls[seat.member.node] += len(task.items)
        self.figures.waited_s += time.monotonic() - began
        return found

    def _hire(self) -> None:
        while len(self.seats) < self.workers and time.monotonic() >= self.hire_after:
            seat = _Seat(self.staff.hire())
            seat.starting = seat.thread.submit(seat.member.start)
            self.seats.append(seat)

    def _welcome(self) -> None:
        """Hire workers that are missing; count those as ready that have started."""
        self._hire()
        for seat in [each for each in self.seats if not each.ready]:
            assert seat.starting is not None
            if not seat.starting.done():
                continue
            lost = seat.starting.exception()
            if isinstance(lost, WorkerLostError):
                self._remove(seat)
                self.unstarted, self.hire_after = self.unstarted + 1, time.monotonic() + AGAIN_S
                if self.unstarted >= MOST_UNSTARTED:
                    raise lost
            else:
                seat.starting.result()
                self.unstarted, seat.ready = 0, True

    def _require_workers(self) -> None:
        """Wait for a first worker, for a while."""
        until = time.monotonic() + ALONE_S
        while not any(seat.ready for seat in self.seats):
            if self.stop.is_set() or time.monotonic() > until:
                said = f"; the last was lost: {self.figures.lost[-1]}" if self.figures.lost else ""
                raise OptbenchError(
                    f"no worker is left, and none has started for {ALONE_S:.0f} s{said}. What the "
                    "training had saved is kept; the same command continues"
                )
            time.sleep(LOOK_S)
            self._welcome()

    def _next(self, seat: _Seat, waiting: deque[_Task]) -> _Task | None:
        """Take the first task that this worker may do: shards have an owner."""
        for task in waiting:
            if task.where[1] is None or self.owner.get(task.where) is seat:
                waiting.remove(task)
                return task
        return None

    def _calls(self, seat: _Seat, task: _Task) -> PoolCalls:
        number, shard = task.where
        if task.where in seat.has:
            return PoolCalls(task.where, task.function, task.items)
        build = self.builds[number][shard or 0]
        before = tuple(self.logs.get(task.where, ()))
        return PoolCalls(task.where, task.function, task.items, build, before)

    def _lose(self, seat: _Seat, task: _Task, lost: WorkerLostError) -> None:
        task.lost += 1
        if task.lost >= MOST_LOSSES:
            raise OptbenchError(
                f"{task.lost} workers in a row were lost with the same calls of "
                f"{task.function.__name__}; the last: {lost}"
            )
        self.figures.lost.append(str(lost))
        self.tell(f"{lost}; its calls are made again elsewhere")
        self._remove(seat)

    def _remove(self, seat: _Seat) -> None:
        self.seats.remove(seat)
        seat.member.end()
        seat.thread.shutdown(wait=False)

    def settle(self, shards: Sequence[Where]) -> None:
        """Give shards without a living owner to the workers that have the fewest."""
        seats = [seat for seat in self.seats if seat.ready] or self.seats
        if not seats:
            return
        number_of = Counter(id(owner) for owner in self.owner.values())
        for where in shards:
            if self.owner.get(where) in self.seats:
                continue
            chosen = min(seats, key=lambda seat: number_of[id(seat)])
            self.owner[where] = chosen
            number_of[id(chosen)] += 1

    def balance(self, shards: Sequence[Where]) -> None:
        """Move shards to workers that have come since, where others have two more."""
        ready = [seat for seat in self.seats if seat.ready]
        while ready:
            own = {id(seat): [w for w in shards if self.owner.get(w) is seat] for seat in ready}
            least = min(ready, key=lambda seat: len(own[id(seat)]))
            most = max(ready, key=lambda seat: len(own[id(seat)]))
            if len(own[id(most)]) - len(own[id(least)]) < 2:
                return
            moved = own[id(most)][-1]
            self.owner[moved] = least
            most.has.discard(moved)


@dataclass(frozen=True, eq=False)
class StaffedWorkplace:
    """A place on the workers of a pool."""

    pool: StaffedPool
    number: int

    def map(self, function: Callable[[Any, Any], Any], items: Sequence[Any]) -> list[Any]:
        size = max(1, len(items) // (PARTS_PER_WORKER * self.pool.workers))
        tasks = [
            _Task((self.number, None), function, tuple(items[k : k + size]), k)
            for k in range(0, len(items), size)
        ]
        found = self.pool.run(tasks)
        return [result for k in sorted(found) for result in found[k]]


@dataclass(frozen=True, eq=False)
class StaffedShards:
    """Shards on the workers of a pool."""

    pool: StaffedPool
    number: int
    count: int

    def __len__(self) -> int:
        return self.count

    def each(self, function: Callable[[Any, Any], Any], items: Sequence[Any]) -> list[Any]:
        places: list[Where] = [(self.number, k) for k in range(self.count)]
        self.pool.settle(places)
        self.pool.balance(places)
        tasks = [
            _Task(where, function, (item,), k)
            for k, (where, item) in enumerate(zip(places, items, strict=True))
        ]
        found = self.pool.run(tasks)
        for where, item in zip(places, items, strict=True):
            self.pool.logs[where].append((function, item))
        return [found[k][0] for k in range(self.count)]
