"""The planner that rules and agents share: several starts, then simulated annealing from the best.

A share of the time goes to starts, the rest to one annealing, whose number of trials follows from
the measured time of the first ones; at last the best moves and swaps, where time is left. Without
a limit of time the numbers of starts and of trials are fixed, so that the same seed gives the same
placement. Compiled code has no clock: it works in pieces of about ``OPERATIONS_AT_ONCE``, or of one
move where that is more, and where ``time_left`` is 0 after a piece, no other follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optbench.gnn.placement.placement_board import BoardCosts
from optbench.gnn.placement.placement_search import anneal, descend
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    memory_excess_bytes,
    table_step_s,
)
from optbench.shapes.gnn_training.training_data import Ints

TimeLeft = Callable[[], float]
# Starts by their number, from 0.
Starts = Callable[[int], list[Ints]]
FIRST_TRIALS = 200
# Annealing in one piece takes at most so many seconds, and then begins again from the best.
LONGEST_S = 2.0
# The last descent is left out below this many seconds.
DESCENT_S = 0.02
MOST_MOVES = 1_000
# About a tenth of a second.
OPERATIONS_AT_ONCE = 1e8


@dataclass(frozen=True)
class PlannerSettings:
    """``hot`` and ``cold`` are temperatures as shares of the step; ``start_share`` is that of the
    time for starts; ``rounds`` and ``trials_per_part`` hold without a limit of time.
    """

    hot: float = 0.005
    cold: float = 2e-4
    swaps: float = 0.3
    blend: float = 0.02
    start_share: float = 0.1
    rounds: int = 4
    trials_per_part: int = 400


def placement_key(table: PlacementTable, device: Ints) -> tuple[float, float]:
    """What makes one placement better than another: bytes above the memories, then the step."""
    return float(memory_excess_bytes(table, device).sum()), table_step_s(table, device)


def price_operations(costs: BoardCosts) -> int:
    """About how many operations it takes to price a move."""
    _, devices, windows = costs.work.shape
    return int(devices * (devices + windows))


def descended(costs: BoardCosts, device: Ints, time_left: TimeLeft) -> Ints:
    """Return a placement improved by the best moves and swaps, until none helps or time is up."""
    parts, devices, _ = costs.work.shape
    each = (parts * devices + parts * parts / 2) * price_operations(costs)
    at_once, made, is_done = max(1, int(OPERATIONS_AT_ONCE / each)), 0, False
    while made < MOST_MOVES and not is_done and time_left() > 0:
        most = min(at_once, MOST_MOVES - made)
        device, is_done = descend(costs, device, 0.0, most)
        made += most
    return device


class Planner:
    """The best placement so far, and how it is improved."""

    def __init__(
        self,
        table: PlacementTable,
        costs: BoardCosts,
        settings: PlannerSettings,
        rng: np.random.Generator,
        time_left: TimeLeft,
    ) -> None:
        self.table, self.costs, self.settings = table, costs, settings
        self.rng, self.time_left, self.budget_s = rng, time_left, time_left()
        self.best: Ints = np.zeros(table.num_parts, dtype=np.int64)
        self._least = (math.inf, math.inf)

    def run(self, starts: Starts) -> Ints:
        """Return the best placement found."""
        self._start(starts)
        if math.isinf(self.budget_s):
            self._anneal_in_pieces(self.settings.trials_per_part * self.table.num_parts)
        else:
            self._anneal_until_late()
        if self.time_left() > DESCENT_S:
            self._offer(descended(self.costs, self.best, self.time_left))
        return self.best

    def _offer(self, device: Ints) -> None:
        key = placement_key(self.table, device)
        if key < self._least:
            self.best, self._least = device, key

    def _start(self, starts: Starts) -> None:
        number, until = 0, (1 - self.settings.start_share) * self.budget_s
        while number == 0 or self._goes_on(number, until):
            for each in starts(number):
                self._offer(each)
            number += 1

    def _goes_on(self, number: int, until: float) -> bool:
        if math.isinf(self.budget_s):
            return number < self.settings.rounds and self.time_left() > 0
        return self.time_left() > until

    def _anneal_in_pieces(self, trials: int) -> None:
        """Anneal once; each piece goes on from the best, at the temperature of the last one."""
        settings = self.settings
        operations = trials * price_operations(self.costs)
        pieces = min(trials, math.ceil(operations / OPERATIONS_AT_ONCE))
        fall = settings.cold / settings.hot
        for k in range(pieces):
            if self.time_left() <= 0:
                return
            hot = settings.hot * fall ** (k / pieces)
            cold = settings.hot * fall ** ((k + 1) / pieces)
            self._anneal(math.ceil(trials / pieces), hot, cold)

    def _anneal(self, trials: int, hot: float | None = None, cold: float | None = None) -> None:
        settings, seed = self.settings, int(self.rng.integers(1 << 40))
        self._offer(
            anneal(
                self.costs,
                self.best,
                settings.blend,
                settings.hot if hot is None else hot,
                settings.cold if cold is None else cold,
                trials,
                settings.swaps,
                seed,
            )
        )

    def _anneal_until_late(self) -> None:
        left = self.time_left()
        while left > 0:
            self._anneal(FIRST_TRIALS)
            now = self.time_left()
            each_s = max(1e-9, (left - now) / FIRST_TRIALS)
            trials = int(min(0.9 * now, LONGEST_S) / each_s)
            if trials < FIRST_TRIALS:
                return
            self._anneal(trials)
            left = self.time_left()
