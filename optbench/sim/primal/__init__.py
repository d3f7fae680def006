"""Compiled heuristics for the makespan: tabu search for shops, a genetic search over lists for
projects.

``Improver`` runs one of them per thread until a time, a target or an amount of work is reached.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import numpy as np

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.windows import windows
from optbench.sim.primal.project import ProjectSearch, is_project
from optbench.sim.primal.shop import ShopSearch, is_shop, list_schedule

# Work between two checks of the clock: tabu iterations, or children.
CHUNK = 400


def is_searchable(instance: Instance) -> bool:
    """Whether one of the heuristics supports this instance."""
    return is_shop(instance) or is_project(instance)


def search_kernels(instance: Instance) -> frozenset[str]:
    """Return the kernels of the heuristic for this instance."""
    if is_shop(instance):
        return frozenset({"shop_search"})
    return frozenset({"project_search"}) if is_project(instance) else frozenset()


class Improver:
    """One search per thread from an incumbent, every second one from a list schedule; ``run`` may
    be called again to continue.
    """

    def __init__(
        self, instance: Instance, incumbent: Schedule | None, seed: int = 0, threads: int = 1
    ) -> None:
        self.searches = [
            _begin(instance, incumbent, seed * 1000 + k, fresh=k % 2 == 1) for k in range(threads)
        ]
        self.best = math.inf if incumbent is None else float(incumbent.end.max(initial=0))
        self.lock = threading.Lock()

    def run(
        self,
        target: Callable[[], float],
        report: Callable[[Schedule], object],
        stop: Callable[[], bool],
        seconds: float,
        chunks: int | None = None,
        spared: int = 0,
    ) -> None:
        """Search for ``seconds``, or ``chunks`` chunks each, reporting every better schedule, until
        ``target()`` in time units is reached.

        The last ``spared`` searches pause, to leave their threads to other work.
        """
        until = time.perf_counter() + seconds

        def work(search: ShopSearch | ProjectSearch) -> None:
            done = 0
            while not (
                stop() or self.best <= target() or time.perf_counter() >= until or done == chunks
            ):
                search.aim(target())
                search.step(CHUNK)
                done += 1
                with self.lock:
                    if search.makespan < self.best:
                        self.best = search.makespan
                        report(search.schedule())

        active = self.searches[1 : len(self.searches) - spared]
        others = [threading.Thread(target=work, args=(search,), name="primal") for search in active]
        for thread in others:
            thread.start()
        work(self.searches[0])
        for thread in others:
            thread.join()


def _begin(
    instance: Instance, incumbent: Schedule | None, seed: int, fresh: bool
) -> ShopSearch | ProjectSearch:
    search: ShopSearch | ProjectSearch
    if is_shop(instance):
        search = ShopSearch(instance, seed)
        if incumbent is None or fresh:
            w = windows(instance)
            search.begin(*list_schedule(instance, np.lexsort((-w.tail, w.head))))
            return search
    else:
        search = ProjectSearch(instance, seed)
        if incumbent is None or fresh:
            return search
    order = np.argsort(incumbent.task)
    mode, start = incumbent.mode[order], incumbent.start[order]
    pairs = instance.pairs
    row = np.array(
        [
            next(r for r in range(pairs.ptr[i], pairs.ptr[i + 1]) if pairs.mode[r] == mode[i])
            for i in range(len(mode))
        ]
    )
    search.begin(row, start.astype(np.int64))
    return search
