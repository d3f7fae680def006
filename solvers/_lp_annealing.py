"""How long lp_guided anneals: for a time or for an amount of work, with reports in between."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

from optbench.model.instance import Floats, Ints
from optbench.plugins.protocol import Run

from ._lp_finder import Finder
from ._lp_search import BEST_VALUE

# Steps per unit of work.
STEPS = 1_000
# Shares of the time between two checks of the clock, and between two reports.
LOOK_SHARE, REPORT_SHARE = 0.005, 0.1
# From this share of the time left on, a search goes on from another's point where that is better.
ADOPTED_FROM = 0.6
# Steps per task after which no more improvement is expected: hours of search are better spent on
# several seeds.
ENOUGH = 20_000
# With a work limit the temperature changes this many times.
LOOKS = 200


def report(finder: Finder, run: Run) -> None:
    schedule = finder.best_schedule()
    if schedule is not None:
        run.report(schedule)


class SharedPoint:
    """The best point of several searches of one instance, one per thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value = math.inf
        self.mode: Ints | None = None
        self.key: Floats | None = None

    def exchange(self, finder: Finder, adopts: bool) -> None:
        """Offer a search's best point; with ``adopts``, it goes on from the shared one where that
        is better.
        """
        with self.lock:
            own = float(finder.search.value[BEST_VALUE])
            if own < self.value:
                self.value = own
                self.mode, self.key = finder.search.best_mode.copy(), finder.search.best_key.copy()
            elif adopts and own > self.value and self.mode is not None and self.key is not None:
                finder.go_on_from(self.mode, self.key)


class AnnealingThread:
    """A second search from the best point of the first, in a thread of its own, until the time is
    over or the block that it is used in is left. The kernel releases Python's lock.
    """

    def __init__(
        self, finder: Finder, run: Run, time_left: Callable[[], float], shared: SharedPoint
    ) -> None:
        self.twin, self.run, self.left = finder.twin(run.seed + 1), run, threading.Event()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="annealing")
        self.steps = self.pool.submit(
            search_for_a_time,
            self.twin,
            run,
            lambda: 0.0 if self.left.is_set() else time_left(),
            shared,
        )

    def __enter__(self) -> AnnealingThread:
        return self

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self.pool.shutdown()

    def join(self) -> int:
        """Wait for its end, report its best schedule, return its steps; what it raised is raised
        here.
        """
        steps = self.steps.result()
        report(self.twin, self.run)
        return steps


def anneal_beside(
    finder: Finder, run: Run, time_left: Callable[[], float], shared: SharedPoint
) -> AbstractContextManager[AnnealingThread | None]:
    """Return a second search where the run has a second thread."""
    return AnnealingThread(finder, run, time_left, shared) if run.threads > 1 else nullcontext()


def search_for_a_time(
    finder: Finder, run: Run, time_left: Callable[[], float], shared: SharedPoint | None = None
) -> int:
    """Anneal until the time is over or the search long enough; the nearer end sets the
    temperature. Return the number of steps.
    """
    whole, steps, reported = time_left(), 1, 1.0
    done, enough = 0, ENOUGH * finder.instance.num_tasks
    expected = 1.0
    while (left := time_left()) > 0 and done < enough:
        finder.anneal(steps, max(1 - left / whole, done / enough), expected)
        done += steps
        expected = min(enough, done * whole / max(1e-9, whole - time_left()))
        share = (left - time_left()) / whole
        steps = min(
            max(1, round(steps * min(4.0, LOOK_SHARE / max(share, 1e-9)))), max(1, enough // LOOKS)
        )
        if left / whole < reported - REPORT_SHARE:
            reported = left / whole
            if shared is not None:
                shared.exchange(finder, adopts=reported < ADOPTED_FROM)
            report(finder, run)
    if shared is not None:
        shared.exchange(finder, adopts=False)
    return done


def search_for_work(finder: Finder, run: Run, total: int) -> int:
    """Anneal for this many steps: the same seed gives the same schedule. Return their number."""
    done = 0
    while done < total and run.time_left() > 0:
        steps = min(-(-total // LOOKS), total - done)
        finder.anneal(steps, done / total, total)
        done += steps
    return done
