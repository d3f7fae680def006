"""Large neighbourhood search from the schedule of a graph network, which also says what to free.

The start is the best of some schedules of ``hgnn``. In each round some tasks are freed and searched
again by annealing in the event kernel (``freed_search``), and the result is kept where it is
better. What is freed is chosen among neighbourhoods of eight selectors (``neighbourhoods``) by a
linear model of their expected gain (``neighbourhood_ranking``), whose features come from the
network's prices and due dates, or by one selector alone. Modes are drawn by the network's prices in
either case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Instance, Ints
from optbench.model.schedule import Schedule
from optbench.plugins.policy import CARRIED_OUT, settle
from optbench.plugins.protocol import Run, Solver

from .._lp_annealing import STEPS, report
from ..hgnn import Hgnn
from ..hgnn.instance_kinds import has_arrivals
from .freed_search import FreedSearch
from .neighbourhood_ranking import columns_of, shipped_weights
from .neighbourhoods import SELECTORS, PointView, select
from .starting_point import NetworkStart, start_of

# Units of work where nothing limits a run.
DEFAULT_WORK = 20.0
# With more pairs of task and mode than this the tables of the search need gigabytes.
MOST_PAIRS = 4_000_000
SELECT = ("hgnn", "random", "window", "critical", "mixed")
# Neighbourhoods of each selector among which the model chooses, and the share of rounds in which
# one of them is drawn instead.
DRAWS, DRAWN = 2, 0.1
# Rounds between two reports.
REPORT_ROUNDS = 10


@dataclass(frozen=True)
class HgnnLns(Solver):
    """Large neighbourhood search from the network's schedule; the network says which tasks to free.

    ``select`` is who chooses them: the model of expected gains on the network's numbers (``hgnn``),
    or one rule: ``random`` tasks, a ``window`` of time, the ``critical`` path, or the eight
    selectors in random turn (``mixed``). ``freed`` tasks are searched for ``steps`` steps in a
    round; ``samples`` schedules of the network are tried first. ``checkpoint`` is a file of
    ``optbench train hgnn``, and ``weights`` puts something else in its place, as for ``hgnn``.
    """

    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"rules", "lp_search"})

    select: Literal["hgnn", "random", "window", "critical", "mixed"] = "hgnn"
    checkpoint: str | None = None
    weights: Literal["trained", "random", "permuted", "table", "none"] = "trained"
    samples: int = 8
    freed: int = 40
    steps: int = 500

    def __post_init__(self) -> None:
        for name in ("samples", "freed", "steps"):
            if getattr(self, name) < 1:
                raise ParameterError(
                    f"hgnn_lns: {name} is {getattr(self, name)!r}; it must be at least 1"
                )
        self.network()
        if self.select not in SELECT:
            raise ParameterError(
                f"hgnn_lns: select is {self.select!r}; it must be one of {', '.join(SELECT)}"
            )

    def refuse(self, instance: Instance) -> str | None:
        if has_arrivals(instance):
            return "work arrives over time; use -s hgnn, which decides at every arrival"
        pairs = instance.num_tasks * instance.num_modes // max(1, len(instance.modes.kind_names))
        if pairs > MOST_PAIRS:
            return (
                f"about {pairs:,} pairs of a task and a mode, more than {MOST_PAIRS:,}; use -s hgnn"
            )
        return self.network().refuse(instance)

    def network(self) -> Hgnn:
        return Hgnn(checkpoint=self.checkpoint, weights=self.weights)

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        if run.warm_start is not None:
            run.report(run.warm_start)
        if instance.num_tasks == 0:
            return self.network().solve(instance, run)
        begun = start_of(instance, self.network(), self.samples, run.seed, run.time_left)
        if begun is None or not begun.finder.found:
            return settle(instance, run, None if begun is None else begun.finder.best_schedule())
        report(begun.finder, run)
        search = NeighbourhoodSearch(begun, self, run.seed)
        limited = run.work_limit is not None or run.time_limit_s is None
        work = DEFAULT_WORK if run.work_limit is None else run.work_limit
        most = max(1.0, work * STEPS) if limited else math.inf
        while search.search.steps < most and run.time_left() > 0:
            search.play(int(min(self.steps, most - search.search.steps)))
            if search.rounds % REPORT_ROUNDS == 0:
                report(begun.finder, run)
        report(begun.finder, run)
        if run.time_left() <= 0:
            run.report_termination("time_limit")
        elif run.work_limit is not None:
            run.report_termination("work_limit")
        run.info["neighbourhoods"] = f"{search.rounds:,} rounds, {search.better:,} of them better"
        return run.best if run.best is not None else settle(instance, run, search.schedule())


class NeighbourhoodSearch:
    """The rounds of one run, from the network's best point on."""

    def __init__(self, begun: NetworkStart, settings: HgnnLns, seed: int) -> None:
        self.begun, self.settings = begun, settings
        self.search = FreedSearch(begun.finder)
        self.rng = np.random.default_rng((seed, 1))
        self.attempts = np.zeros(self.search.instance.num_tasks)
        self.rounds = self.better = 0

    def play(self, steps: int) -> None:
        """Free tasks, search, and keep what is better."""
        freed = self.chosen()
        found = self.search.attempt(freed, steps)
        self.attempts[freed] += 1.0
        self.rounds += 1
        if found.value < self.search.point.value:
            self.better += 1
            self.search.move_to(found)

    def chosen(self) -> Ints:
        """Return the tasks to free."""
        search, size, rng = self.search, self.settings.freed, self.rng
        view = PointView(self.begun.surroundings, search.mode, search.start, search.end)
        name = self.settings.select
        if name not in ("hgnn", "mixed"):
            return select(name, view, size, rng)
        if name == "mixed" or rng.random() < DRAWN:
            return select(SELECTORS[int(rng.integers(len(SELECTORS)))], view, size, rng)
        columns, weights = columns_of(view, self.attempts), np.array(shipped_weights())
        made = [(each, select(each, view, size, rng)) for each in SELECTORS * DRAWS]
        expected = [float(columns.features(*each) @ weights) for each in made]
        return made[int(np.argmax(expected))][1]

    def schedule(self) -> Schedule | None:
        """Return the best schedule so far."""
        return self.begun.finder.best_schedule()
