"""Training of the agents that place parts: plain policy gradient, and a distributional off-policy
actor-critic.

    policy_gradient   REINFORCE: −log π(a|s) (R − b), with R the return of the episode, and b the
                      moving mean of the returns on that table
    distributional    a critic learns quantiles Z(s) of the return to go R_t (quantile Huber loss)
                      of drawn episodes, and of improved ones: the best placement so far of a table,
                      after short annealings, played once more and kept in a replay. With z the mean
                      of the quantiles from ``optimism`` on, drawn episodes are learned from by
                      −log π(a|s) (R_t − z(s)), centred and of deviation 1, improved ones by
                      −log π(a|s) × imitation × min(most, exp((R_t − z(s)) / β))

The improved episodes come from no policy: the second agent learns from them off-policy. An update
takes some steps of episodes on several tables. The agent of the least mean step of the best of
some draws on the validation tables is kept: the best draw is what a planner starts from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from optbench.gnn.placement.allocation_process import (
    FEATURES,
    INCREASE,
    OWN_TALK,
    TALK_OF_OTHERS,
    Episodes,
    HeadWeights,
    play,
    scales_of,
)
from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_search import anneal, bound_order, work_order
from optbench.gnn.placement.placement_table import PlacementTable, mean_load_s
from optbench.learn.placement.graph_transformer import QUANTILES, PlacementNetwork, batch_of
from optbench.learn.placement.placement_settings import PlacementTraining
from optbench.learn.placement.placement_tokens import tokens_of
from optbench.shapes.gnn_training.training_data import Ints

Weights = dict[str, Any]
NO_PLACEMENT = np.zeros(0, dtype=np.int64)
# Training starts as the tuned rule: the increase of the step and, less, that of all talk. These
# weights learn faster, as they are larger.
FIRST_SKIP = {INCREASE: -6.0, OWN_TALK: -1.2, TALK_OF_OTHERS: -1.2}
SKIP_RATE = 10.0
# The temperature of draws at decision time, and draws of each order in a validation: a planner
# starts from the best of several.
HEAT, CHECKED = 0.3, 6


class PreparedTable:
    """A table with what episodes and updates need of it."""

    def __init__(self, table: PlacementTable) -> None:
        self.table, self.costs, self.tokens = table, costs_of(table), tokens_of(table)
        self.orders = (bound_order(self.costs), work_order(self.costs))
        self.scale = float(scales_of(self.costs).step)
        self.baseline: float | None = None
        self.elite, self._least = NO_PLACEMENT, np.inf

    def keep_better(self, device: Ints) -> None:
        """Keep the placement if it is the best so far."""
        step = mean_load_s(self.table, device)
        if step < self._least:
            self.elite, self._least = device, step


@dataclass(eq=False)
class KeptEpisode:
    """One episode of a table: what was seen and done, and the return to go, by step."""

    prepared: PreparedTable
    order: Ints
    action: Ints
    seen: Any
    to_go: Any
    is_drawn: bool


@dataclass(eq=False)
class TrainedPlacement:
    """The best weights, the curve, and the processor time."""

    weights: Weights
    history: list[dict[str, float]] = field(default_factory=list)
    spent_s: float = 0.0
    interrupted: bool = False


def fresh_network(seed: int) -> PlacementNetwork:
    """Return an untrained network that starts as a rule."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PlacementNetwork()
    with torch.no_grad():
        network.skip.weight.zero_()
        network.last.weight.mul_(0.1)
        for f, value in FIRST_SKIP.items():
            network.skip.weight[0, f] = value
    return network


class PlacementTrainer:
    """The network of one agent, its optimiser, and its replay."""

    def __init__(
        self, tables: list[PlacementTable], settings: PlacementTraining, seed: int
    ) -> None:
        self.settings, self.rng = settings, np.random.default_rng(seed)
        self.tables = [PreparedTable(each) for each in tables]
        self.network = fresh_network(seed)
        skip = self.network.skip.weight
        others = [each for each in self.network.parameters() if each is not skip]
        rate = settings.learning_rate
        self.step = torch.optim.Adam(
            [{"params": others, "lr": rate}, {"params": [skip], "lr": SKIP_RATE * rate}]
        )
        self.replay: list[KeptEpisode] = []

    def round(self) -> dict[str, float]:
        """Play on some tables, and learn from what is kept."""
        settings = self.settings
        chosen = self.rng.choice(len(self.tables), min(settings.tables, len(self.tables)), False)
        tables = [self.tables[k] for k in chosen.tolist()]
        fresh: list[KeptEpisode] = []
        returns = []
        heads = self.network.heads([each.tokens for each in tables])
        for prepared, head in zip(tables, heads, strict=True):
            order = prepared.orders[int(self.rng.integers(2))]
            played = self._play(prepared, head, order, NO_PLACEMENT, settings.episodes)
            fresh += kept_of(prepared, order, played, True)
            returns.append(float(played.reward.sum(axis=1).mean()))
            if settings.agent == "distributional":
                fresh += self._improved(prepared, head, order, played)
        if settings.agent == "policy_gradient":
            return {"return": float(np.mean(returns)), **self._update(fresh)}
        improved = [each for each in fresh if not each.is_drawn]
        self.replay = (self.replay + improved)[-settings.kept :]
        figures = self._update(fresh)
        if settings.replayed and self.rng.random() < settings.replayed:
            self._update(self.replay)
        return {"return": float(np.mean(returns)), **figures}

    def slow_down(self, share: float) -> None:
        """Set the learning rates to a share of the first."""
        rate = self.settings.learning_rate * share
        for group, factor in zip(self.step.param_groups, (1.0, SKIP_RATE), strict=True):
            group["lr"] = factor * rate

    def _play(
        self, prepared: PreparedTable, head: HeadWeights, order: Ints, given: Ints, count: int
    ) -> Episodes:
        seed, weight = int(self.rng.integers(1 << 40)), self.settings.talk_weight
        played: Episodes = play(prepared.costs, order, head, weight, 1.0, given, count, seed)
        return played

    def _improved(
        self, prepared: PreparedTable, head: HeadWeights, order: Ints, played: Episodes
    ) -> list[KeptEpisode]:
        """The best episodes after annealing, played once more in both orders."""
        settings, out = self.settings, []
        for k in np.argsort(-played.reward.sum(axis=1), kind="stable")[: settings.improved]:
            seed = int(self.rng.integers(1 << 40))
            start = played.device[k]
            if len(prepared.elite) and self.rng.random() < settings.from_elite:
                start = prepared.elite
            better = anneal(prepared.costs, start, 0.02, 0.01, 0.0005, settings.trials, 0.3, seed)
            prepared.keep_better(better)
            for each in prepared.orders:
                again = self._play(prepared, head, each, prepared.elite, 1)
                out += kept_of(prepared, each, again, False)
        return out

    def _update(self, episodes: list[KeptEpisode]) -> dict[str, float]:
        settings, network = self.settings, self.network
        batch = StepBatch(episodes, settings, self.rng)
        part, device = network.embeddings(batch_of([each.tokens for each in batch.tables]))
        part, device = part[batch.table, batch.part], device[batch.table]
        wide = torch.zeros(len(part), batch.seen.shape[1], device.shape[2])
        wide[:, : device.shape[1]] = device[:, : wide.shape[1]]
        scores = network.scores(part, wide, batch.seen).masked_fill(~batch.mask, -1e9)
        log_pi = torch.log_softmax(scores, dim=1)
        entropy = -(log_pi.exp() * log_pi.clamp(min=-30)).sum(dim=1).mean()
        chosen = log_pi.gather(1, batch.action[:, None])[:, 0]
        if settings.agent == "policy_gradient":
            weight, critic = self._advantage(batch), torch.zeros(())
        else:
            values = network.values(part, batch.seen, batch.mask)
            critic = quantile_huber(values, batch.to_go)
            first = int(settings.optimism * QUANTILES)
            gain = batch.to_go - values.detach().sort(dim=1).values[:, first:].mean(dim=1)
            drawn = gain - (gain * batch.drawn).sum() / batch.drawn.sum().clamp(min=1)
            size = (drawn * batch.drawn).square().sum() / batch.drawn.sum().clamp(min=1)
            drawn = drawn / size.sqrt().clamp(min=1e-6)
            improved = (gain / settings.beta).clamp(max=5).exp().clamp(max=settings.most_weight)
            weight = torch.where(batch.drawn > 0, drawn, settings.imitation * improved)
        loss = -(weight * chosen).mean() - settings.entropy * entropy + critic
        self.step.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # of PyTorch
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        self.step.step()
        return {"entropy": float(entropy.detach()), "critic": float(critic.detach())}

    def _advantage(self, batch: StepBatch) -> torch.Tensor:
        """Returns of whole episodes above the moving mean of their table, of deviation 1."""
        out = np.zeros(len(batch.total), dtype=np.float32)
        for k, prepared in enumerate(batch.tables):
            rows = batch.table.numpy() == k
            mean = float(batch.total[rows].mean())
            before = mean if prepared.baseline is None else prepared.baseline
            out[rows] = batch.total[rows] - before
            prepared.baseline = before + 0.2 * (mean - before)
        return torch.from_numpy(out / max(1e-6, float(out.std())))


class StepBatch:
    """Some steps of episodes on several tables, as tensors."""

    def __init__(
        self,
        episodes: list[KeptEpisode],
        settings: PlacementTraining,
        rng: np.random.Generator,
    ) -> None:
        groups: dict[int, list[KeptEpisode]] = {}
        for each in episodes:
            groups.setdefault(id(each.prepared), []).append(each)
        names = list(groups)
        taken = [names[k] for k in rng.permutation(len(names))[: settings.tables]]
        self.tables = [groups[name][0].prepared for name in taken]
        picked = [
            (k, groups[name][e])
            for k, name in enumerate(taken)
            for e in rng.permutation(len(groups[name]))[: settings.episodes].tolist()
        ]
        wide, many = max(each.seen.shape[1] for _, each in picked), settings.steps
        seen = np.zeros((len(picked), many, wide, len(FEATURES)), dtype=np.float32)
        mask = np.zeros((len(picked), many, wide), dtype=bool)
        part, action = (np.zeros((len(picked), many), dtype=np.int64) for _ in range(2))
        to_go, total = (np.zeros((len(picked), many), dtype=np.float32) for _ in range(2))
        for r, (_, each) in enumerate(picked):
            at, devices = rng.integers(len(each.order), size=many), each.seen.shape[1]
            seen[r, :, :devices], mask[r, :, :devices] = each.seen[at], True
            part[r], action[r] = each.order[at], each.action[at]
            to_go[r], total[r] = each.to_go[at], each.to_go[0]
        rows = len(picked) * many
        drawn = np.repeat([float(each.is_drawn) for _, each in picked], many)
        self.drawn = torch.from_numpy(drawn.astype(np.float32))
        self.seen = torch.from_numpy(seen.reshape(rows, wide, len(FEATURES)))
        self.mask = torch.from_numpy(mask.reshape(rows, wide))
        self.table = torch.from_numpy(np.repeat([k for k, _ in picked], many))
        self.part, self.action = (torch.from_numpy(x.reshape(rows)) for x in (part, action))
        self.to_go, self.total = torch.from_numpy(to_go.reshape(rows)), total.reshape(rows)


def kept_of(
    prepared: PreparedTable, order: Ints, played: Episodes, is_drawn: bool
) -> list[KeptEpisode]:
    """The episodes with their returns to go."""
    to_go = np.cumsum(played.reward[:, ::-1], axis=1)[:, ::-1]
    return [
        KeptEpisode(prepared, order, played.action[k], played.seen[k], to_go[k], is_drawn)
        for k in range(len(played.action))
    ]


def quantile_huber(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Quantile Huber loss of (steps, quantiles) against one return of each step."""
    share = (torch.arange(found.shape[1]) + 0.5) / found.shape[1]
    error = wanted[:, None] - found
    huber = torch.where(error.abs() <= 0.1, 5.0 * error.square(), error.abs() - 0.05)
    return ((share - (error.detach() < 0).float()).abs() * huber).sum(dim=1).mean()


def validation_ratio(network: PlacementNetwork, tables: list[PreparedTable]) -> float:
    """Mean step of the best of some draws in both orders, over the balanced step."""
    found = []
    for each, head in zip(tables, network.heads([t.tokens for t in tables]), strict=True):
        steps = [
            mean_load_s(each.table, device)
            for order in each.orders
            for device in play(each.costs, order, head, 0.0, HEAT, NO_PLACEMENT, CHECKED, 0).device
        ]
        found.append(min(steps) / each.scale)
    return float(np.mean(found))


def train_placement(
    tables: list[PlacementTable],
    checks: list[PlacementTable],
    settings: PlacementTraining,
    seed: int = 0,
    on_point: Callable[[int, int, dict[str, float]], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> TrainedPlacement:
    """Train an agent and return the weights that were best on the validation tables."""
    # Threads that wait for each other took twenty times the processor time on a busy machine.
    torch.set_num_threads(1)
    began = time.process_time()
    trainer = PlacementTrainer(tables, settings, seed)
    validation = [PreparedTable(each) for each in checks]
    done = TrainedPlacement({})
    least, figures = float("inf"), dict[str, float]()
    for number in range(settings.rounds + 1):
        spent = time.process_time() - began
        last = number == settings.rounds or spent >= 60 * settings.cpu_minutes or stopped()
        if number % settings.check_every == 0 or last:
            ratio = validation_ratio(trainer.network, validation)
            if ratio < least:
                least = ratio
                done.weights = {
                    name: value.detach().numpy().copy()
                    for name, value in trainer.network.state_dict().items()
                }
            point = {"round": float(number), "cpu_s": round(spent, 1), "validation": ratio}
            done.history.append({**point, **figures})
            if on_point is not None:
                on_point(number, settings.rounds, done.history[-1])
        if last:
            break
        done_share = max(spent / (60 * settings.cpu_minutes), number / settings.rounds)
        trainer.slow_down(1.0 - 0.9 * done_share)
        figures = trainer.round()
    done.spent_s, done.interrupted = time.process_time() - began, stopped()
    return done
