"""Training of the network: stages, running mean of the weights, checks on validation, and a state
from which an interrupted training continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from optbench.errors import ParameterError
from optbench.learn.work_pool import OneProcess, WorkPool
from optbench.model.instance import Instance

from .answers import Answers
from .gradients import (
    arrays_of,
    draw_answers,
    gradient_loss,
    imitation_loss,
    kept_values,
    label_loss,
)
from .learning_settings import ListRuleTraining
from .lookup_table import class_names
from .network_checkpoint import NetworkCheckpoint, read_network
from .prepared_instances import (
    ExpertOrder,
    ImitationTargets,
    PreparedInstance,
    expert_schedule,
    prepared_all,
    targets_of,
    value_of,
)
from .training_state import named, part_of, read_state, rows_of, write_state

# The learning rate of the linear skips over that of the other layers.
FASTER = 8.0
# Gradients are clipped to this norm.
CLIPPED = 1.0
# The share of the running mean of weights that a step leaves, in the long run.
MEMORY = 0.98
# The learning rate and the noise fall linearly to these shares of what they begin with.
LAST_RATE, LAST_NOISE = 0.05, 0.4
STAGES = ("imitation", "labels", "gradient")
# Instances of up to so many tasks are imitated from the expert of the settings, others from
# lp_guided.
EXACT_TASKS = 60
# Keys of the text of a saved state.
STATE = ("step", "spent_s", "least", "history", "rng", "about", "values", "stretch")


@dataclass(frozen=True, eq=False)
class Pupil:
    """A training instance with its tensors."""

    prepared: PreparedInstance
    tensors: Any


class NetworkTraining:
    """The state of a training; ``advance`` takes one step."""

    def __init__(
        self,
        instances: list[Instance],
        validation: list[Instance],
        settings: ListRuleTraining,
        seed: int,
        pool: WorkPool | None = None,
    ) -> None:
        torch.set_num_threads(1)
        self.pool = pool or OneProcess()
        self.settings, self.rng = settings, np.random.default_rng(seed)
        self.design = settings.design
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = self.design.module()
        if settings.start is not None:
            self.start_from(read_network(Path(settings.start), type(self.design)))
        silence(self.network, set(self.design.answered) - set(settings.answered))
        self.pupils, self.checks = (
            [Pupil(p, self.design.tensors(p.situation.seen)) for p in prepared]
            for prepared in (
                [PreparedInstance(x) for x in group] for group in (instances, validation)
            )
        )
        self.checks = self.comparable(self.checks)
        played = [each.prepared for each in (*self.pupils, *self.checks)]
        self.played = self.pool.workplace(
            prepared_all, [each.instance for each in played], here=played
        )
        self.targets: dict[int, ImitationTargets | None] = {}
        self.mean = {k: v.clone() for k, v in self.network.state_dict().items()}
        skips = [p for name, p in self.network.named_parameters() if "_skip" in name]
        others = [p for name, p in self.network.named_parameters() if "_skip" not in name]
        self.optimiser = torch.optim.Adam(
            [{"params": others, "lr": settings.rate}, {"params": skips, "lr": settings.rate}]
        )
        self.step, self.spent_s, self.least = 0, 0.0, np.inf
        self.best = {k: v.clone() for k, v in self.mean.items()}
        self.history: list[dict[str, float]] = []

    def comparable(self, checks: list[Pupil]) -> list[Pupil]:
        """Return the validation instances of which the plain rule makes a valid schedule: the loss
        is relative to its objective.
        """
        kept = [each for each in checks if np.isfinite(each.prepared.plain)]
        if not kept:
            names = ", ".join(each.prepared.instance.name for each in checks) or "none"
            raise ParameterError(
                f"training of {self.settings.solver}: the rule without a network makes no valid "
                f"schedule of any validation instance ({names}), so that nothing can be compared; "
                "train on a problem of which `-s tuned_rule` makes one"
            )
        return kept

    def start_from(self, checkpoint: NetworkCheckpoint) -> None:
        if checkpoint.settings != self.design.settings:
            raise ParameterError(
                f"training of {self.settings.solver}: start is {self.settings.start!r}, a network "
                f"of other settings ({checkpoint.settings}); give the same"
            )
        weights = {name: torch.from_numpy(np.array(w)) for name, w in checkpoint.weights.items()}
        self.network.load_state_dict(weights)

    @property
    def share(self) -> float:
        """The share of the training that is over."""
        if self.settings.steps:
            return self.step / self.settings.steps
        return self.spent_s / (60.0 * self.settings.cpu_minutes)

    @property
    def stage(self) -> str:
        settings = self.settings
        ends = (settings.imitate, settings.imitate + settings.label)
        return STAGES[int(np.searchsorted(ends, self.share, side="right"))]

    def advance(self) -> None:
        """Take one step of gradient on a batch of instances."""
        began = self.processor_s()
        rate = self.settings.rate * max(LAST_RATE, 1.0 - self.share)
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.param_groups[1]["lr"] = FASTER * rate
        self.optimiser.zero_grad()
        chosen = self.rng.integers(len(self.pupils), size=self.settings.batch).tolist()
        losses = self.imitated(chosen) if self.stage == "imitation" else self.sampled(chosen)
        for loss in losses:
            (loss / len(chosen)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIPPED)
        self.optimiser.step()
        memory = min(MEMORY, self.step / (self.step + 10.0))
        for name, value in self.network.state_dict().items():
            self.mean[name].mul_(memory).add_(value, alpha=1.0 - memory)
        self.step += 1
        self.spent_s += self.processor_s() - began

    def processor_s(self) -> float:
        """Processor time of the training, wherever it was spent."""
        return time.process_time() + self.pool.cpu_s

    def imitated(self, chosen: list[int]) -> Iterator[torch.Tensor]:
        """Return the losses of imitation on those of the instances that have a target."""
        self.find_targets(chosen)
        for k in chosen:
            target = self.targets[k]
            if target is not None:
                yield imitation_loss(self.network(self.pupils[k].tensors), target)

    def sampled(self, chosen: list[int]) -> Iterator[torch.Tensor]:
        """Return the losses of the other stages, after samples of all instances were played."""
        samples, answered = self.settings.samples, self.settings.answered
        labels = self.stage == "labels"
        scale = 1.0 if labels else max(LAST_NOISE, 1.0 - self.share)
        answers = [self.network(self.pupils[k].tensors) for k in chosen]
        drawn = [
            draw_answers(
                self.pupils[k].prepared, arrays_of(answer), samples, self.rng, scale, answered
            )
            for k, answer in zip(chosen, answers, strict=True)
        ]
        items = [(k, each.answers) for k, all_ in zip(chosen, drawn, strict=True) for each in all_]
        values = iter(self.played.map(value_of, items))
        for k, answer, own in zip(chosen, answers, drawn, strict=True):
            prepared = self.pupils[k].prepared
            kept = kept_values(prepared, own, [next(values) for _ in own])
            if labels:
                yield label_loss(prepared, answer, answered)
            else:
                yield gradient_loss(answer, own, kept, scale, answered, self.settings.hold)

    def find_targets(self, chosen: list[int]) -> None:
        """Compute what instances imitate, at their first use."""
        new = [k for k in dict.fromkeys(chosen) if k not in self.targets]
        orders = []
        for k in new:
            small = self.pupils[k].prepared.instance.num_tasks <= EXACT_TASKS
            expert = self.settings.expert if small else "lp_guided"
            seed = int(self.rng.integers(2**31))
            orders.append(ExpertOrder(k, expert, self.settings.expert_work, seed))
        for k, schedule in zip(new, self.played.map(expert_schedule, orders), strict=True):
            self.targets[k] = targets_of(self.pupils[k].prepared, schedule)

    def check(self) -> dict[str, float]:
        """Evaluate the running mean of the weights on validation; keep it if it is the best.

        Weights that are no longer finite end the training: their loss would be kept nowhere.
        """
        broken = [name for name, value in self.mean.items() if not torch.isfinite(value).all()]
        if broken:
            raise ParameterError(
                f"training of {self.settings.solver}: the weights of {broken[0]} are not finite "
                f"after step {self.step} with rate {self.settings.rate:g}; train anew with a "
                "smaller rate (--fresh, -p rate=...)"
            )
        kept = {k: v.clone() for k, v in self.network.state_dict().items()}
        self.network.load_state_dict(self.mean)
        with torch.no_grad():
            answers = [arrays_of(self.network(pupil.tensors)) for pupil in self.checks]
        self.network.load_state_dict(kept)
        values = self.played.map(value_of, list(enumerate(answers, start=len(self.pupils))))
        plain = [pupil.prepared.plain for pupil in self.checks]
        loss = float(np.mean([v / first for v, first in zip(values, plain, strict=True)]))
        if loss < self.least:
            self.least, self.best = loss, {k: v.clone() for k, v in self.mean.items()}
        point = {
            "step": float(self.step), "cpu_s": round(self.spent_s, 3), "loss": loss,
            "stage": float(STAGES.index(self.stage)),
        }  # fmt: skip
        self.history.append(point)
        return point

    def require_a_valid_check(self) -> None:
        """Refuse to end with the weights of the beginning as the result."""
        if not np.isfinite(self.least):
            raise ParameterError(
                f"training of {self.settings.solver}: after {self.step} steps no check has made "
                f"valid schedules of all {len(self.checks)} validation instances, so that no "
                "weights are kept; train for longer, or on problems that leave more room"
            )

    def table(self) -> dict[str, Any]:
        """Return the mean of the best answers over the training instances: for the whole, and per
        device name.
        """
        whole = np.mean([p.prepared.best.whole for p in self.pupils], axis=0)
        prices: dict[str, list[float]] = {}
        for pupil in self.pupils:
            for name, value in zip(
                class_names(pupil.prepared.instance),
                pupil.prepared.best.device.tolist(),
                strict=True,
            ):
                prices.setdefault(name, []).append(value)
        means = {name: float(np.mean(values)) for name, values in sorted(prices.items())}
        return {"whole": whole.tolist(), "device": means}

    def save(self, path: Path) -> None:
        """Write everything that ``load`` needs."""
        targets = {k: t for k, t in self.targets.items() if t is not None}
        tensors = {f"net.{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"mean.{k}": v for k, v in self.mean.items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        tensors |= named("adam", self.optimiser.state_dict()["state"])
        tensors |= named("target", {k: arrays_as_tensors(t) for k, t in targets.items()})
        best = {k: arrays_as_tensors(p.prepared.best) for k, p in enumerate(self.pupils)}
        tensors |= named("answers", best)
        text = {
            "step": self.step, "spent_s": self.spent_s, "least": self.least,
            "history": self.history, "rng": self.rng.bit_generator.state,
            "about": self.about(), "values": [p.prepared.least for p in self.pupils],
            "stretch": [[k, t and t.stretch] for k, t in self.targets.items()],
        }  # fmt: skip
        write_state(path, tensors, text)

    def about(self) -> dict[str, Any]:
        """Return what has to be equal where a training goes on."""
        hashes = [pupil.prepared.instance.hash for pupil in self.pupils]
        return {"settings": asdict(self.settings), "instances": hashes}

    def load(self, path: Path) -> None:
        """Continue from a saved state of a training with the same settings and instances."""
        tensors, text = read_state(path, STATE)
        if text["about"] != self.about():
            raise ParameterError(
                f"{path} is the state of a training with other settings or problems; give the "
                "same, or --fresh to begin anew"
            )
        self.network.load_state_dict(part_of("net", tensors))
        self.mean, self.best = part_of("mean", tensors), part_of("best", tensors)
        groups = self.optimiser.state_dict()["param_groups"]
        adam = rows_of("adam", tensors)
        self.optimiser.load_state_dict({"state": adam, "param_groups": groups})
        self.step, self.spent_s, self.least = text["step"], text["spent_s"], text["least"]
        self.history = text["history"]
        self.rng.bit_generator.state = text["rng"]
        targets, answers = rows_of("target", tensors), rows_of("answers", tensors)
        for k, stretch in text["stretch"]:
            arrays = {name: t.numpy() for name, t in targets.get(k, {}).items()}
            self.targets[k] = None if stretch is None else ImitationTargets(stretch, **arrays)
        for k, (pupil, value) in enumerate(zip(self.pupils, text["values"], strict=True)):
            arrays = {name: t.numpy() for name, t in answers[k].items()}
            pupil.prepared.best, pupil.prepared.least = Answers(**arrays), value


# The last layers behind answers that can be left out.
LAST_LAYERS = {
    "device": ("device_out", "device_skip"),
    "set_factor": ("task_factor", "set_factor"),
}


def silence(network: torch.nn.Module, left_out: set[str]) -> None:
    """Set the last layers of answers that are not learned to 0, so that they are those of no
    network; nothing in the loss moves them.
    """
    layers = dict(network.named_modules())
    with torch.no_grad():
        for answer in sorted(left_out):
            for name in LAST_LAYERS[answer]:
                for parameter in layers[name].parameters():
                    parameter.zero_()


def arrays_as_tensors(record: Answers | ImitationTargets) -> dict[str, torch.Tensor]:
    """Return the arrays of a record by the names of its fields."""
    arrays = {name: value for name, value in vars(record).items() if isinstance(value, np.ndarray)}
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


def train_network(
    training: NetworkTraining,
    kept: Path,
    on_point: Callable[[int, int, dict[str, float]], None] | None,
    stopped: Callable[[], bool],
) -> bool:
    """Train to the end; return False where it was stopped before. The state is saved at each
    check and where it stops.
    """
    settings = training.settings
    if not training.history:
        training.check()
    while training.share < 1.0:
        if stopped():
            training.save(kept)
            return False
        training.advance()
        if training.step % settings.check_every == 0 or training.share >= 1.0:
            point = training.check()
            training.save(kept)
            if on_point is not None:
                on_point(int(1000 * min(1.0, training.share)), 1000, point)
    return True
