"""Planned starts at learned prices: a network prices the devices of each site over time, and jobs
book by those prices.

Each job books the site and the time at which its energy, the devices at their learned price and its
wait cost least (``optbench.sim.sites.plans``), and is held until then. The network
(``optbench.learn.sites.prices``) sees tariffs, sites and the length of the stream, but no future
jobs. It imitates the worth of devices in hindsight, by the LP behind the slotted bound, on training
seeds; evolution strategies go on from there on simulated days
(``optbench.learn.sites.price_evolution``, ``optbench train learned_prices``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from optbench import __version__
from optbench.errors import ParameterError
from optbench.learn.sites.mean_duals import DualTable, read_tables
from optbench.learn.sites.price_settings import PriceTraining
from optbench.learn.sites.prices import features, plans_from_parameters, read_prices, write_prices
from optbench.model.instance import Floats, Instance
from optbench.plugins.protocol import Problem
from optbench.plugins.training import FIRST_SEED, Trainable, TrainingResult, TrainingRun
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace
from optbench.sim.sites.plans import BookingTable, board_of, play_plans
from optbench.sim.sites.sites import grid_of, why_unsupported

from ._sites import SITES, SitePolicy

SHIPPED = Path(__file__).with_name("_learned_prices.json")
TABLES = Path(__file__).with_name("_mean_duals.json")
PRICES = ("network", "none", "table")
# Seeds 500 to 599 are for validation.
FIRST_VALIDATION = 500


@lru_cache(maxsize=4)
def _read(path: Path, _modified_ns: int) -> Floats:
    return read_prices(path)[0]


def learned(checkpoint: str | None = None) -> Floats:
    """Return the parameters of a checkpoint, or those that optbench includes."""
    path = SHIPPED if checkpoint is None else Path(checkpoint)
    return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


@dataclass(frozen=True)
class LearnedPrices(SitePolicy, Trainable):
    """Holds work for cheap hours by booking devices at prices that a network has learned; for
    closed streams with tariffs.

    ``checkpoint`` is a file of ``optbench train``. ``prices`` says what devices cost: by the
    ``network``; nothing (``none``, the booking planner alone); or by a ``table`` of their mean
    worth in hindsight on training days, by site and hour. The last two are for comparison, on days
    of the two lengths of docs/results/geo_room.md.
    """

    supports: ClassVar[frozenset[str] | set[str]] = SITES - {
        "outages",
        "preemption",
        "open_end",
        "per_unit",
    }
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"plans"})
    settings: ClassVar[type] = PriceTraining
    distributes: ClassVar[str | None] = "the simulated days of each generation"

    checkpoint: str | None = None
    prices: Literal["network", "none", "table"] = "network"

    def __post_init__(self) -> None:
        if self.prices not in PRICES:
            raise ParameterError(
                f"learned_prices: prices is {self.prices!r}; it must be one of {', '.join(PRICES)}"
            )

    def refuse(self, instance: Instance) -> str | None:
        reason = why_unsupported(instance)
        if reason is not None:
            return reason
        if instance.tariffs is None or instance.is_open:
            return (
                "it plans around tariffs until all work is done "
                "(geo_dc:drain=yes,minimize=cost); use -s cost_route for others"
            )
        if not (grid_of(instance).mode_at[:, :, 0] >= 0).any(axis=2).all():
            return (
                "some kind of task has no mode on one device of some pool; it plans one "
                "device per task"
            )
        if self.prices != "network" and self._table(board_of(instance)) is None:
            known = ", ".join(dict.fromkeys(table.problem for table in read_tables(TABLES)))
            return (
                f"no table of prices fits its sites and hours; there are tables for {known}. "
                "-p prices=network fits others"
            )
        return None

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        board = board_of(instance)
        x, unit = features(board)
        table = None if self.prices == "network" else self._table(board)
        plans = (
            plans_from_parameters(learned(self.checkpoint), board, x, unit)
            if table is None
            else table.plans(board, unit)
        )
        return play_plans(board, plans, faults, until)

    def _table(self, board: BookingTable) -> DualTable | None:
        tables = (table for table in read_tables(TABLES) if table.name == self.prices)
        return next((table for table in tables if table.fits(board)), None)

    def train(self, run: TrainingRun) -> TrainingResult:
        """Run a day of every problem in each generation."""
        from optbench.learn.sites.price_evolution import Evolution, TrainingDay, evolve

        settings: PriceTraining = run.settings
        if run.fresh:
            run.kept.unlink(missing_ok=True)
        elif (
            run.output.exists()
            and not run.kept.exists()
            and read_prices(run.output)[1].get("complete", True)
        ):
            raise ParameterError(
                f"{run.output} is the checkpoint of a finished training; --fresh trains anew and "
                "replaces it"
            )
        first = FIRST_SEED + 100 * run.seed

        def days(begin: int, count: int) -> list[list[TrainingDay]]:
            return [
                [TrainingDay(self._made(problem, seed)) for seed in range(begin, begin + count)]
                for problem in run.problems
            ]

        evolution = Evolution(
            days(first, settings.envs),
            days(FIRST_VALIDATION, settings.validation),
            settings,
            run.seed,
            run.names,
            run.pool,
        )
        done = evolve(evolution, kept=run.kept, on_point=run.on_point, stop=run.stop)
        about = {
            "solver": "learned_prices",
            "trained_on": list(run.names),
            "instance_seeds": [first, first + settings.envs - 1],
            "validation_seeds": [FIRST_VALIDATION, FIRST_VALIDATION + settings.validation - 1],
            "optbench": __version__,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            **done.about,
        }
        write_prices(run.output, done.theta, about)
        return TrainingResult(done.history, about, done.interrupted)

    def _made(self, problem: Problem, seed: int) -> Instance:
        instance = problem.instance(seed)
        reason = self.refuse(instance)
        if reason is not None:
            raise ParameterError(f"learned_prices cannot be trained on {instance.name!r}: {reason}")
        return instance
