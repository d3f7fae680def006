"""Training the prices of planned starts: imitation of the worth of devices in hindsight, then
evolution strategies on simulated days.

Imitation: the slotted LP of an instance (``bounds.stream_program``) has duals π[p, s] of the
devices of a pool in a slot; the network is fitted to π / unit by least squares, and the price of
waiting is the best of a grid. Evolution: with z normal,

    loss(θ) = cost / cost₀ + 2 (w / (0.97 τ) − 1)⁺ + 5 (late − late₀)⁺ / N
    d_k = Σ over problems loss(θ + σ z_k) − loss(θ − σ z_k)
    m ← 0.8 m + 0.2 mean_k z_k d_k / scale
    θ ← θ − step σ m

w is the mean time in the system, τ its limit; cost₀ and late₀ are those of plans where devices are
free and no job waits.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optbench.bounds.streams.stream_duals import solve_scaled
from optbench.bounds.streams.stream_program import Demand, stream_program
from optbench.bounds.streams.stream_slots import slots_of
from optbench.bounds.streams.stream_traffic import traffic
from optbench.errors import FileFormatError, ParameterError
from optbench.files import write_whole
from optbench.learn.sites.price_settings import PriceTraining
from optbench.learn.sites.prices import (
    EXTRA,
    FEATURES,
    HIDDEN,
    SIZE,
    features,
    plans_from_parameters,
)
from optbench.learn.work_pool import OneProcess, WorkPool
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.sites.plans import Plans
from optbench.sim.sites.plans import SLOT_S, board_of, plans_of, play_plans
from optbench.units import J_PER_KWH

# The share of the limit on the time in the system above which a penalty begins, and the weights of
# it and of a missed deadline.
SPARE, SLOW, LATE = 0.97, 2.0, 5.0
# Logarithms of the price of waiting that are tried after the imitation; the first logarithms of the
# prices of working on and of room.
WAITING, LATER_AND_ROOM = (-8.0, -6.0, -5.0, -4.0, -3.0, -2.5, -2.0), (0.0, -1.5)
# The step sizes of the three extra numbers; ``sigma`` is that of the network.
EXTRA_SIGMA = (0.15, 0.3, 0.3)
MOMENTUM = 0.8
LP_LIMIT_S = 60.0


class TrainingDay:
    """An instance for training: the cost, mean time in the system and missed deadlines of any
    parameters.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance, self.board = instance, board_of(instance)
        self.x, self.unit = features(self.board)
        modes, tariffs = instance.modes, instance.tariffs
        assert tariffs is not None, "a day with tariffs"
        self.net_w = modes.energy_per_unit_j / modes.time_per_unit_s - instance.mode_rest_w
        level = dict(instance.objective.levels[0])
        self.times = np.asarray(tariffs.times, dtype=float) * instance.tick_s
        per_kwh = (
            level.get("cost_usd", 0.0) * tariffs.price_usd_per_kwh
            + level.get("carbon_g", 0.0) * tariffs.carbon_g_per_kwh
        )
        self.rate = np.asarray(per_kwh / J_PER_KWH + level.get("energy_j", 0.0), dtype=float)
        paid = self.rate[:, :-1] * np.diff(self.times)
        self.paid = np.concatenate((np.zeros((len(paid), 1)), np.cumsum(paid, axis=1)), axis=1)
        limit = instance.limits.metric_max.get("flow_time_s")
        self.limit_s = math.inf if limit is None else float(limit) / max(1, instance.num_tasks)
        free = np.zeros_like(self.board.rate)
        self.cost, _, self.late = self._figures(
            plans_of(
                self.board,
                free,
                mu=self.unit * math.exp(-2.0),
                kappa=self.unit,
                patience_h=0.0,
                room=1.0,
            )
        )

    def _until(self, pool: Ints, at_s: Floats) -> Floats:
        """Return the cost of a watt at a pool up to some time."""
        k = np.searchsorted(self.times, at_s, side="right") - 1
        return np.asarray(self.paid[pool, k] + (at_s - self.times[k]) * self.rate[pool, k])

    def play(self, theta: Floats) -> tuple[float, float, float]:
        """Return cost, mean time in the system, and the number of late tasks."""
        return self._figures(plans_from_parameters(theta, self.board, self.x, self.unit))

    def _figures(self, plans: Plans) -> tuple[float, float, float]:
        instance, schedule = self.instance, play_plans(self.board, plans).schedule
        assert schedule is not None, "a closed stream, run to its end"
        step = instance.tick_s
        begin = np.asarray(schedule.start, dtype=float) * step
        end = np.asarray(schedule.end, dtype=float) * step
        pool = np.asarray(instance.modes.primary)[schedule.mode]
        cost = (
            self.net_w[schedule.mode] * (self._until(pool, end) - self._until(pool, begin))
        ).sum()
        pools = np.arange(instance.num_pools)
        rest_w = instance.pools.rest_w * instance.pools.count
        cost += (rest_w * self._until(pools, np.full(len(pools), end.max()))).sum()
        left = np.zeros(instance.num_tasks)
        np.maximum.at(left, np.asarray(schedule.task), schedule.end.astype(float))
        late = (left > instance.tasks.deadline).sum()
        return float(cost), float((left - instance.tasks.release).mean()) * step, float(late)

    def loss(self, theta: Floats) -> float:
        return self.loss_of(plans_from_parameters(theta, self.board, self.x, self.unit))

    def loss_of(self, plans: Plans) -> float:
        cost, sojourn_s, late = self._figures(plans)
        slow = max(0.0, sojourn_s / (SPARE * self.limit_s) - 1.0)
        return (
            cost / self.cost
            + SLOW * slow
            + LATE * max(0.0, late - self.late) / self.instance.num_tasks
        )

    def worth(self, slot_s: float) -> Floats:
        """Return the worth of a device in hindsight, by pool and slot of the booking table, in
        units of fees.
        """
        instance, work = self.instance, traffic(self.instance)
        slots = slots_of(instance, work, slot_s)
        program = stream_program(instance, work, slots, Demand())
        answer = solve_scaled(program.lp, LP_LIMIT_S)
        rows = np.flatnonzero(np.asarray(program.lp.family) == "devices")
        dual = np.asarray(answer.dual)[rows].reshape(instance.num_pools, slots.count)
        middle = (np.arange(self.board.slots) + 0.5) * SLOT_S
        k = np.clip(np.searchsorted(slots.edges, middle, side="right") - 1, 0, slots.count - 1)
        return np.asarray(dual[:, k] / self.unit, dtype=float)


def fit_by_imitation(
    days: Sequence[TrainingDay], worth: Sequence[Floats], settings: PriceTraining, seed: int
) -> tuple[Floats, float]:
    """Return parameters fitted to the ``worth`` of devices in hindsight on each day, and the
    unexplained share of the variance.
    """
    import torch

    torch.set_num_threads(1)
    x = torch.tensor(
        np.concatenate([day.x.reshape(-1, FEATURES) for day in days]), dtype=torch.float32
    )
    y = torch.tensor(np.concatenate([each.ravel() for each in worth]), dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed)
    parts = [
        torch.randn(FEATURES, HIDDEN, generator=generator) * 0.4, torch.zeros(HIDDEN),
        torch.randn(HIDDEN, generator=generator) * 0.4, torch.full((1,), -1.0),
    ]  # fmt: skip
    a, b, v, c = (part.requires_grad_() for part in parts)
    optimiser = torch.optim.Adam([a, b, v, c], lr=0.02)
    loss = torch.zeros(())
    for k in range(settings.imitation_steps):
        if k == round(0.8 * settings.imitation_steps):
            optimiser.param_groups[0]["lr"] = 0.004
        loss = ((torch.nn.functional.softplus(torch.tanh(x @ a + b) @ v + c) - y) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    network = [part.detach().numpy().ravel() for part in (a, b, v, c)]
    spread = float(y.var(unbiased=False))
    left = float(loss.detach()) / spread if spread > 0 else 0.0
    return np.concatenate([*network, [WAITING[0], *LATER_AND_ROOM]]).astype(float), left


@dataclass(eq=False)
class EvolutionResult:
    """The best parameters on validation, the curves (one dictionary per generation), and whether it
    was interrupted.
    """

    theta: Floats
    history: list[dict[str, float]] = field(default_factory=list)
    interrupted: bool = False
    about: dict[str, Any] = field(default_factory=dict)


def days_of(instances: Sequence[Instance]) -> list[TrainingDay]:
    """Return the days of instances."""
    return [TrainingDay(instance) for instance in instances]


def loss_on(days: Sequence[TrainingDay], item: tuple[int, Floats]) -> float:
    """Return the loss of parameters on one of the days."""
    k, theta = item
    return days[k].loss(theta)


def worth_on(days: Sequence[TrainingDay], item: tuple[int, float]) -> Floats:
    """Return what devices are worth in hindsight on one of the days, by slots of this length."""
    k, slot_s = item
    return days[k].worth(slot_s)


class Evolution:
    """The state of the training of prices; ``train`` and ``check`` hold the days of each
    problem.
    """

    def __init__(
        self,
        train: Sequence[Sequence[TrainingDay]],
        check: Sequence[Sequence[TrainingDay]],
        settings: PriceTraining,
        seed: int,
        names: Sequence[str] = (),
        pool: WorkPool | None = None,
    ) -> None:
        self.train, self.check, self.settings, self.seed, self.names = (
            train,
            check,
            settings,
            seed,
            list(names),
        )
        every = [day for days in (*train, *check) for day in days]
        self.place = {id(day): k for k, day in enumerate(every)}
        self.days = (pool or OneProcess()).workplace(
            days_of, [day.instance for day in every], here=every
        )
        self.sigma = np.concatenate((np.full(SIZE, settings.sigma), EXTRA_SIGMA))
        self.theta = self.best = self.momentum = np.zeros(SIZE + EXTRA)
        self.least = math.inf
        self.generation, self.spent_s, self.left = 0, 0.0, 0.0
        self.history: list[dict[str, float]] = []

    def imitate(self) -> None:
        """Start from the imitation, at the best price of waiting of the grid."""
        began = time.perf_counter()
        some = [day for days in self.train for day in days[: self.settings.imitate_on]]
        worth = self.days.map(worth_on, [(self.place[id(d)], self.settings.slot_s) for d in some])
        theta, self.left = fit_by_imitation(some, worth, self.settings, self.seed)
        grid = [np.concatenate((theta[:SIZE], [waiting, *LATER_AND_ROOM])) for waiting in WAITING]
        few = [day for days in self.train for day in days[:2]]
        losses = [sum(each) for each in self._losses(grid, few)]
        self.theta = grid[losses.index(min(losses))]
        self.history.append({"generation": 0.0, "imitation_left": self.left, **self._checked()})
        self.spent_s += time.perf_counter() - began

    def _losses(self, thetas: Sequence[Floats], days: Sequence[TrainingDay]) -> list[list[float]]:
        """Return, for each of the parameters, the loss on each of the days."""
        items = [(self.place[id(day)], theta) for theta in thetas for day in days]
        found = self.days.map(loss_on, items)
        return [found[k : k + len(days)] for k in range(0, len(found), len(days))]

    def _checked(self) -> dict[str, float]:
        """Return the losses on validation; the best parameters so far are kept."""
        (found,) = self._losses([self.theta], [day for days in self.check for day in days])
        rest = iter(found)
        loss = float(np.mean([np.mean([next(rest) for _ in days]) for days in self.check]))
        if loss < self.least:
            self.least, self.best = loss, self.theta.copy()
        return {"validation_loss": loss}

    def step(self) -> None:
        """One generation."""
        began, settings = time.perf_counter(), self.settings
        rng = np.random.default_rng((self.seed, self.generation))
        chosen = [days[int(rng.integers(len(days)))] for days in self.train]
        z = rng.normal(size=(settings.pairs, len(self.theta)))
        moved = [self.theta + s * self.sigma * each for each in z for s in (1, -1)]
        played = np.array([sum(each) for each in self._losses(moved, chosen)]).reshape(-1, 2)
        d = played[:, 0] - played[:, 1]
        scale = d.std() + np.abs(d).mean() + 1e-9
        self.momentum = MOMENTUM * self.momentum + (1.0 - MOMENTUM) * (
            z * (d / scale)[:, None]
        ).mean(axis=0)
        self.theta = self.theta - settings.step * self.sigma * self.momentum
        self.generation += 1
        point = {"generation": float(self.generation), "loss": float(played.mean()) / len(chosen)}
        if self.generation % settings.check_every == 0 or self.generation == settings.generations:
            point |= self._checked()
        self.spent_s += time.perf_counter() - began
        self.history.append({**point, "spent_s": self.spent_s})

    def _mine(self) -> dict[str, Any]:
        return {"seed": self.seed, "trained on": self.names, "settings": repr(self.settings)}

    def save(self, path: Path) -> None:
        state = {
            **self._mine(),
            "theta": self.theta.tolist(),
            "best": self.best.tolist(),
            "momentum": self.momentum.tolist(),
            "least": self.least,
            "generation": self.generation,
            "spent_s": self.spent_s,
            "left": self.left,
            "history": self.history,
        }
        write_whole(path, json.dumps(state))

    def load(self, path: Path) -> None:
        """Continue from a file; the state of another training is refused."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            what = f"{path}: the state of a training cannot be read ({error})"
            raise FileFormatError(f"{what}. --fresh starts again without it") from None
        for name, value in self._mine().items():
            there = kept.get(name) if isinstance(kept, dict) else None
            if there != value:
                raise ParameterError(
                    f"{path} is the state of a training with another {name}:\n  there: {there}\n "
                    f" here:  {value}\n"
                    "Use its settings, write to another file, or start again with --fresh, "
                    "which deletes it"
                )
        self.theta, self.best, self.momentum = (
            np.array(kept[name], dtype=float) for name in ("theta", "best", "momentum")
        )
        self.least, self.generation, self.spent_s = (
            kept["least"],
            kept["generation"],
            kept["spent_s"],
        )
        self.left, self.history = kept["left"], list(kept["history"])


def evolve(
    evolution: Evolution,
    *,
    kept: Path | None = None,
    on_point: Callable[[int, int, dict[str, float]], None] | None = None,
    stop: threading.Event | None = None,
) -> EvolutionResult:
    """Train to the end or until ``stop``; the state is saved to ``kept`` regularly, and training
    continues from it.
    """
    settings = evolution.settings
    if kept is not None and kept.exists():
        evolution.load(kept)
    else:
        evolution.imitate()
    while evolution.generation < settings.generations and not (stop is not None and stop.is_set()):
        evolution.step()
        if kept is not None:
            evolution.save(kept)
        if on_point is not None:
            on_point(evolution.generation, settings.generations, evolution.history[-1])
    interrupted = evolution.generation < settings.generations
    if kept is not None and interrupted:
        evolution.save(kept)
    elif kept is not None:
        kept.unlink(missing_ok=True)
    about = {
        "seed": evolution.seed,
        "settings": asdict(settings),
        "generations": evolution.generation,
        "plays": 2 * settings.pairs * len(evolution.train) * evolution.generation,
        "imitation_left": evolution.left,
        "validation_loss": evolution.least,
        "training_s": round(evolution.spent_s, 1),
        "complete": not interrupted,
    }
    return EvolutionResult(evolution.best, evolution.history, interrupted, about)
