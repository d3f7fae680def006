"""Train a policy for sites: rollouts of a fleet, soft actor-critic on their replay, multipliers,
then prices for the budgets.

In the corrected mode one network learns all budgets: half of the environments have a budget each,
for which a signed dual finds the price of latency while the policy changes; the others have prices
spread over the whole range. Afterwards the network is frozen and the duals continue with falling
gains: their final prices are stored.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch

from optbench.errors import FileFormatError, ParameterError
from optbench.files import replacing
from optbench.learn.duals import ProjectedDual, SignedDual
from optbench.learn.replay import Replay
from optbench.learn.sites.checkpoints import SiteCheckpoint
from optbench.learn.sites.networks import theta_of
from optbench.learn.sites.parallel_weeks import Rollout
from optbench.learn.sites.pilot import RoutingNetwork
from optbench.learn.sites.sharded_fleet import ShardedFleet
from optbench.learn.sites.soft_actor_critic import SacSettings, SoftActorCritic
from optbench.learn.sites.training_settings import SiteTraining
from optbench.learn.work_pool import OneProcess, WorkPool
from optbench.model.instance import Floats, Instance
from optbench.sim.kernel.sites.pilot import (
    DEVICES,
    ENERGY_J,
    LONGEST,
    OVER,
    PRICE,
    REGRET_J,
    SERVICE_S,
    UNITS,
    WAITED_S,
)

# Rollouts between two points of the curves; transitions before the first gradient step; decisions
# in a calibration rollout.
EVERY, WARM, CALIBRATION_STEPS = 10, 4_000, 400
# Networks that do not see the multipliers are trained and run at price 0; the price axis is
# logarithmic.
NO_PRICE_W = 1e-9
# The learning rate falls linearly to this share of its first value.
LAST_RATE = 0.1


@dataclass(eq=False)
class ActorTrainingResult:
    """A checkpoint, the curves (one dictionary per point), and whether training was interrupted."""

    checkpoint: SiteCheckpoint
    history: list[dict[str, float]] = field(default_factory=list)
    interrupted: bool = False


class SiteTrainer:
    """The state of a training; ``save`` and ``load`` store it in a file."""

    def __init__(
        self,
        instances: Sequence[Instance],
        settings: SiteTraining,
        seed: int = 0,
        names: Sequence[str] = (),
        pool: WorkPool | None = None,
    ) -> None:
        self.settings = full = settings.full
        self.pool = pool or OneProcess()
        self.names = list(names)
        self.seed, self.rng = seed, np.random.default_rng(seed)
        self.mean_units = float(np.mean([instance.tasks.units.mean() for instance in instances]))
        worlds = [instances[b % len(instances)] for b in range(full.envs)]
        self.fleet = self._fleet(worlds)
        sizes = self.fleet.sizes
        self.sac = SoftActorCritic(
            SacSettings(
                kind=str(full.network),
                hidden=int(full.hidden or 32),
                critic_hidden=64,
                quantiles=full.quantiles,
                gamma=full.gamma,
                learning_rate=float(full.learning_rate or 0.0),
                temperature_rate=float(full.temperature_rate or 0.0),
                temperature=float(full.temperature or 0.0),
                target_entropy=full.target_entropy,
                masks=full.masks,
            ),
            sizes.pools,
            sizes.widest,
            seed,
        )
        self.replay = Replay(int(full.replay or 60_000), sizes.width, sizes.pools * sizes.widest)
        self.least_j = sizes.least_j
        self.rolled, self.gradient_steps, self.spent_s = 0, 0, 0.0
        self.history: list[dict[str, float]] = []
        self.prices = self._first_prices()
        self.tied = (
            {b: full.budgets_s[b % len(full.budgets_s)] for b in range(0, full.envs, 2)}
            if full.dual == "signed"
            else {}
        )
        self.duals = {b: SignedDual(float(self.prices[b]), integral=0.02) for b in self.tied}
        self.multipliers = {
            name: ProjectedDual(0.0, full.dual_rate, full.dual == "clipped")
            for name in ("latency", "queue")
        }

    def _fleet(self, worlds: Sequence[Instance]) -> ShardedFleet:
        clock, seen = str(self.settings.clock), str(self.settings.seen)
        return ShardedFleet(self.pool, worlds, clock, self.mean_units, seen)

    def _first_prices(self) -> Floats:
        """Return prices spread evenly over the logarithmic range; in the paper's mode there is one
        multiplier, which starts at 0.
        """
        full = self.settings
        if full.dual != "signed":
            return np.zeros(full.envs)
        spread = np.geomspace(full.lowest_w, full.highest_w, full.envs)
        return np.asarray(spread[self.rng.permutation(full.envs)])

    @property
    def pilot(self) -> RoutingNetwork:
        full = self.settings
        return RoutingNetwork(
            str(full.network),
            int(full.hidden or 32),
            theta_of(self.sac.actor),
            str(full.clock),
            seen=str(full.seen),
        )

    def round(self) -> None:
        """Run one rollout, add its transitions to the replay, update the duals and take gradient
        steps.
        """
        full, began = self.settings, time.perf_counter()
        for b in range(full.envs):
            self.fleet.set_price(b, float(self.prices[b]))
        rolled = self.fleet.roll(self.pilot, full.steps, self.rng)
        self._remember(rolled)
        self._follow_duals(rolled.measured)
        figures: dict[str, float] = {}
        if len(self.replay) >= min(WARM, full.envs * full.steps * 2):
            self.sac.set_rate(max(LAST_RATE, 1.0 - self.rolled / full.rolls))
            for _ in range(full.updates):
                figures = self.sac.update(self.replay.sample(full.batch, self.rng))
            self.gradient_steps += full.updates
        self.rolled += 1
        self.spent_s += time.perf_counter() - began
        if self.rolled % EVERY == 0 or self.rolled == full.rolls:
            self.history.append(self._point(rolled.measured, figures))

    def _remember(self, rolled: Rollout) -> None:
        """Add transitions to the replay, except those that end an instance: work continues beyond
        it, unseen.
        """
        envs, steps = rolled.actions.shape
        whole = (rolled.measured[:, :, OVER] == 0.0).ravel()
        reward = self.rewards(rolled.measured).ravel()

        def rows(values: Any) -> Any:
            return values.reshape(envs * steps, -1)[whole]

        self.replay.add(
            rows(rolled.rows[:, :-1]),
            rows(rolled.masks[:, :-1]),
            rolled.actions.ravel()[whole],
            reward[whole],
            rows(rolled.rows[:, 1:]),
            rows(rolled.masks[:, 1:]),
            np.zeros(int(whole.sum())),
        )

    def rewards(self, measured: Floats) -> Floats:
        """Return the reward of each decision according to the settings; see
        ``training_settings``.
        """
        full = self.settings
        if full.reward == "regret":
            cost = (
                measured[:, :, UNITS] * measured[:, :, REGRET_J]
                + measured[:, :, PRICE] * measured[:, :, WAITED_S]
            )
            return np.asarray(-full.reward_scale * cost / (self.mean_units * self.least_j))
        latency = measured[:, :, SERVICE_S] + measured[:, :, WAITED_S]
        queue = measured[:, :, LONGEST]
        over = self.multipliers["latency"].value * np.maximum(0.0, latency - full.paper_budget_s)
        over += self.multipliers["queue"].value * np.maximum(0.0, queue - full.queue_max)
        return np.asarray(-measured[:, :, ENERGY_J] + full.alpha_n / measured[:, :, DEVICES] - over)

    def _follow_duals(self, measured: Floats) -> None:
        """Update prices after a rollout: those of environments with a budget, or the paper's
        multipliers.
        """
        latency = (measured[:, :, SERVICE_S] + measured[:, :, WAITED_S]).mean(axis=1)
        for b, dual in self.duals.items():
            self.prices[b] = dual.update(float(latency[b]), self.tied[b])
        if self.settings.dual != "signed":
            full = self.settings
            self.multipliers["latency"].update(float(latency.mean()), full.paper_budget_s)
            self.multipliers["queue"].update(float(measured[:, :, LONGEST].mean()), full.queue_max)

    def _point(self, measured: Floats, figures: dict[str, float]) -> dict[str, float]:
        """Return one point of the curves."""
        latency = measured[:, :, SERVICE_S] + measured[:, :, WAITED_S]
        prices = {f"price_w_{self.tied[b]:g}s": float(self.prices[b]) for b in self.duals}
        multipliers = {} if self.settings.dual == "signed" else self.multipliers
        lambdas = {f"lambda_{name}": dual.value for name, dual in multipliers.items()}
        return {
            "decisions": float(self.rolled * measured.shape[0] * measured.shape[1]),
            "reward": float(self.rewards(measured).mean()),
            "energy_j_per_unit": float(
                (measured[:, :, ENERGY_J] * measured[:, :, UNITS]).sum()
                / measured[:, :, UNITS].sum()
            ),
            "latency_s": float(latency.mean()),
            "spent_s": self.spent_s,
            **figures,
            **prices,
            **lambdas,
        }

    def calibrated(self, instances: Sequence[Instance]) -> tuple[Floats, Floats]:
        """Return budgets and their prices for the current network: separate environments, duals
        with falling gains, and the mean of their last values.
        """
        full = self.settings
        if full.dual != "signed":
            return np.array([full.paper_budget_s]), np.array([NO_PRICE_W])
        budgets = np.array(full.budgets_s)
        start = SiteCheckpoint(self.pilot, 0, 0, 1.0, *self._known_prices())
        duals = [SignedDual(start.price_w(float(budget))) for budget in budgets]
        envs = 2 * len(duals)
        worlds = [instances[b % len(instances)] for b in range(envs)]
        fleet = self._fleet(worlds)
        late: list[list[float]] = []
        for k in range(full.calibrate):
            for b in range(envs):
                fleet.set_price(b, duals[b % len(duals)].value)
            latency = fleet.latency(self.pilot, CALIBRATION_STEPS, self.rng)
            for i, dual in enumerate(duals):
                dual.integral = 1.0 / (1.0 + 0.3 * k)
                dual.update(float(latency[i :: len(duals)].mean()), float(budgets[i]))
            if k >= full.calibrate // 3:
                late.append([np.log(dual.value) for dual in duals])
        return budgets, np.asarray(
            np.exp(np.mean(late, axis=0)) if late else [dual.value for dual in duals]
        )

    def _known_prices(self) -> tuple[Floats, Floats]:
        order = sorted({self.tied[b]: float(self.prices[b]) for b in self.duals}.items())
        return np.array([budget for budget, _ in order]), np.array([price for _, price in order])

    def save(self, path: Path) -> None:
        """Save networks, optimisers, duals, generator and curves; the replay is filled again."""
        with replacing(path) as fresh:
            torch.save(self._state(), fresh)

    def _state(self) -> dict[str, Any]:
        sac = self.sac
        return {
            "actor": sac.actor.state_dict(),
            "critics": [net.state_dict() for net in sac.critics],
            "targets": [net.state_dict() for net in sac.targets],
            "log_alpha": sac.log_alpha.detach(),
            "steps": [
                step.state_dict() for step in (sac.actor_step, sac.critic_step, sac.alpha_step)
            ],
            "rolled": self.rolled,
            "spent_s": self.spent_s,
            "history": self.history,
            "prices": torch.from_numpy(self.prices),
            "multipliers": {name: dual.value for name, dual in self.multipliers.items()},
            "settings": repr(self.settings),
            "seed": self.seed,
            "trained on": self.names,
            "gradient_steps": self.gradient_steps,
        }

    def load(self, path: Path) -> None:
        """Continue from a file; the state of another training is refused."""
        try:
            kept = torch.load(path, weights_only=True)
        except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
            said = str(error).partition("\n")[0][:80]
            what = f"{path}: the state of a training cannot be read ({said})"
            raise FileFormatError(f"{what}. --fresh starts again without it") from None
        mine = {"seed": self.seed, "trained on": self.names, "settings": repr(self.settings)}
        for name, value in mine.items():
            if kept.get(name) != value:
                raise ParameterError(
                    f"{path} is the state of a training with another {name}:\n  there: "
                    f"{kept.get(name)}\n  here:  {value}\n"
                    "Use its settings, write to another file, or start again with --fresh, "
                    "which deletes it"
                )
        sac = self.sac
        sac.actor.load_state_dict(kept["actor"])
        for nets, states in ((sac.critics, kept["critics"]), (sac.targets, kept["targets"])):
            for net, state in zip(nets, states, strict=True):
                net.load_state_dict(state)
        with torch.no_grad():
            sac.log_alpha.copy_(kept["log_alpha"])
        for step, state in zip(
            (sac.actor_step, sac.critic_step, sac.alpha_step), kept["steps"], strict=True
        ):
            step.load_state_dict(state)
        self.rolled, self.spent_s, self.history = (
            kept["rolled"],
            kept["spent_s"],
            list(kept["history"]),
        )
        self.gradient_steps = kept["gradient_steps"]
        self.prices = kept["prices"].numpy().copy()
        for b, dual in self.duals.items():
            dual.value = float(self.prices[b])
        for name, dual_value in kept["multipliers"].items():
            self.multipliers[name].value = dual_value
        self.rng = np.random.default_rng((self.seed, self.rolled))


def train_sites(
    instances: Sequence[Instance],
    settings: SiteTraining,
    *,
    seed: int = 0,
    names: Sequence[str] = (),
    calibrate_on: Sequence[Instance] = (),
    kept: Path | None = None,
    on_point: Callable[[int, int, dict[str, float]], None] | None = None,
    stop: threading.Event | None = None,
    pool: WorkPool | None = None,
) -> ActorTrainingResult:
    """Train to the end or until ``stop``; the state is saved to ``kept`` regularly, and training
    continues from it.

    ``names`` are the problems of the instances: the state of a training on other problems is
    refused.
    """
    torch.set_num_threads(1)
    trainer = SiteTrainer(instances, settings, seed, names, pool)
    if kept is not None and kept.exists():
        trainer.load(kept)
    while trainer.rolled < trainer.settings.rolls and not (stop is not None and stop.is_set()):
        before = len(trainer.history)
        trainer.round()
        if len(trainer.history) > before:
            if on_point is not None:
                on_point(trainer.rolled, trainer.settings.rolls, trainer.history[-1])
            if kept is not None:
                trainer.save(kept)
    stopped = trainer.rolled < trainer.settings.rolls
    if stopped and kept is not None:
        trainer.save(kept)
    began = time.perf_counter()
    budgets, prices = (
        trainer._known_prices()
        if stopped and trainer.duals
        else trainer.calibrated(calibrate_on or instances)
    )
    sizes = trainer.fleet.sizes
    provenance = {
        "seed": seed,
        "settings": {
            name: getattr(trainer.settings, name) for name in trainer.settings.__dataclass_fields__
        },
        "decisions": trainer.rolled * trainer.settings.envs * trainer.settings.steps,
        "gradient_steps": trainer.gradient_steps,
        "training_s": round(trainer.spent_s, 1),
        "calibration_s": round(time.perf_counter() - began, 1),
        "threads": 1,
        "complete": not stopped,
    }
    made = SiteCheckpoint(
        trainer.pilot, sizes.pools, sizes.widest, trainer.mean_units, budgets, prices, provenance
    )
    if not stopped and kept is not None:
        kept.unlink(missing_ok=True)
    return ActorTrainingResult(made, trainer.history, stopped)
