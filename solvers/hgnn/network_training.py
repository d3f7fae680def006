"""Training of the network: stages, running mean of the weights, checks on validation, and a state from
which an interrupted training continues.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from optbench.api import solve
from optbench.errors import FileFormatError, ParameterError
from optbench.files import replacing
from optbench.model.instance import Instance

from .encoder import HierarchicalNetwork, SeenTensors, tensors_of
from .gradients import arrays_of, gradient_loss, imitation_loss, label_loss
from .learning_settings import HgnnTraining
from .lookup_table import class_names
from .network_checkpoint import NetworkCheckpoint, read_network
from .prepared_instances import PreparedInstance, Targets, targets_of

# Weights of linear read-outs learn so much faster; gradients are clipped to this norm; the running
# mean forgets with this rate per step; the rate of learning and the noise fall to these shares.
FASTER, CLIPPED, MEMORY, LAST_RATE, LAST_NOISE = 8.0, 1.0, 0.98, 0.05, 0.4
STAGES = ("imitation", "labels", "gradient")


@dataclass(frozen=True, eq=False)
class Pupil:
    """A training instance with its tensors, and what it imitates once that has been computed."""

    prepared: PreparedInstance
    tensors: SeenTensors


class NetworkTraining:
    """The state of a training; ``advance`` takes one step."""

    def __init__(
        self,
        instances: list[Instance],
        validation: list[Instance],
        settings: HgnnTraining,
        seed: int,
    ) -> None:
        torch.set_num_threads(1)
        self.settings, self.rng = settings, np.random.default_rng(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = HierarchicalNetwork(settings.network)
        if settings.start is not None:
            self.start_from(read_network(Path(settings.start)))
        self.pupils, self.checks = (
            [Pupil(p, tensors_of(p.situation.seen, settings.network)) for p in prepared]
            for prepared in (
                [PreparedInstance(x) for x in group] for group in (instances, validation)
            )
        )
        self.targets: dict[int, Targets | None] = {}
        self.mean = {k: v.clone() for k, v in self.network.state_dict().items()}
        skips = [p for name, p in self.network.named_parameters() if "_skip" in name]
        others = [p for name, p in self.network.named_parameters() if "_skip" not in name]
        self.optimiser = torch.optim.Adam(
            [{"params": others, "lr": settings.rate}, {"params": skips, "lr": settings.rate}]
        )
        self.step, self.spent_s, self.least = 0, 0.0, np.inf
        self.best = {k: v.clone() for k, v in self.mean.items()}
        self.history: list[dict[str, float]] = []

    def start_from(self, checkpoint: NetworkCheckpoint) -> None:
        if checkpoint.settings != self.settings.network:
            raise ParameterError(
                f"training of hgnn: start is {self.settings.start!r}, a network of other settings "
                f"({checkpoint.settings}); give the same"
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
        began, stage = time.process_time(), self.stage
        rate = self.settings.rate * max(LAST_RATE, 1.0 - self.share)
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.param_groups[1]["lr"] = FASTER * rate
        self.optimiser.zero_grad()
        chosen = self.rng.integers(len(self.pupils), size=self.settings.batch).tolist()
        for k in chosen:
            pupil = self.pupils[k]
            answer = self.network(pupil.tensors)
            if stage == "imitation":
                target = self.target(k)
                if target is None:
                    continue
                loss = imitation_loss(answer, target)
            elif stage == "labels":
                loss = label_loss(pupil.prepared, answer, self.settings.samples, self.rng)
            else:
                scale = max(LAST_NOISE, 1.0 - self.share)
                samples = self.settings.samples
                loss = gradient_loss(pupil.prepared, answer, samples, self.rng, scale)
            (loss / len(chosen)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIPPED)
        self.optimiser.step()
        memory = min(MEMORY, self.step / (self.step + 10.0))
        for name, value in self.network.state_dict().items():
            self.mean[name].mul_(memory).add_(value, alpha=1.0 - memory)
        self.step += 1
        self.spent_s += time.process_time() - began

    def target(self, k: int) -> Targets | None:
        """Return what instance k imitates; computed at the first use."""
        if k not in self.targets:
            prepared = self.pupils[k].prepared
            work, seed = self.settings.expert_work, int(self.rng.integers(2**31))
            found = solve(
                prepared.instance, "lp_guided", time_limit_s=None, work_limit=work, seed=seed,
                bound=False,
            )  # fmt: skip
            self.targets[k] = targets_of(prepared, found.schedule)
        return self.targets[k]

    def check(self) -> dict[str, float]:
        """Evaluate the running mean of the weights on validation; keep it if it is the best."""
        kept = {k: v.clone() for k, v in self.network.state_dict().items()}
        self.network.load_state_dict(self.mean)
        ratios = []
        for pupil in self.checks:
            with torch.no_grad():
                answers = arrays_of(self.network(pupil.tensors))
            ratios.append(pupil.prepared.value(answers) / pupil.prepared.plain)
        self.network.load_state_dict(kept)
        loss = float(np.mean(ratios))
        if loss < self.least:
            self.least, self.best = loss, {k: v.clone() for k, v in self.mean.items()}
        point = {
            "step": float(self.step), "cpu_s": round(self.spent_s, 3), "loss": loss,
            "stage": float(STAGES.index(self.stage)),
        }  # fmt: skip
        self.history.append(point)
        return point

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
        """Write everything that ``load`` needs, as tensors and a JSON text."""
        from safetensors.torch import save_file

        state = self.optimiser.state_dict()["state"]
        tensors = {f"net.{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"mean.{k}": v for k, v in self.mean.items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        for k, row in state.items():
            tensors |= {f"adam.{k}.{name}": value for name, value in row.items()}
        text = {
            "step": self.step, "spent_s": self.spent_s, "least": self.least,
            "history": self.history, "rng": self.rng.bit_generator.state,
        }  # fmt: skip
        copies = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
        with replacing(path) as fresh:
            save_file(copies, str(fresh), metadata={"state": json.dumps(text)})

    def load(self, path: Path) -> None:
        """Continue from a saved state of a training with the same settings."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="pt") as file:
                text = json.loads((file.metadata() or {})["state"])
                names = file.keys()
                tensors = {name: file.get_tensor(name) for name in names}
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise FileFormatError(
                f"{path}: not the state of a training ({error}); --fresh begins anew"
            ) from None
        parts: dict[str, dict[str, torch.Tensor]] = {"net": {}, "mean": {}, "best": {}}
        adam: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in tensors.items():
            head, _, rest = name.partition(".")
            if head == "adam":
                k, _, entry = rest.partition(".")
                adam.setdefault(int(k), {})[entry] = value
            else:
                parts[head][rest] = value
        try:
            self.network.load_state_dict(parts["net"])
        except RuntimeError:
            raise ParameterError(
                f"{path} is the state of a training with other settings; give the same, or "
                "--fresh to begin anew"
            ) from None
        self.mean, self.best = parts["mean"], parts["best"]
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": adam, "param_groups": groups})
        self.step, self.spent_s, self.least = text["step"], text["spent_s"], text["least"]
        self.history = text["history"]
        self.rng.bit_generator.state = text["rng"]


def train_network(
    training: NetworkTraining,
    kept: Path,
    on_point: Callable[[int, int, dict[str, float]], None] | None,
    stopped: Callable[[], bool],
) -> bool:
    """Train to the end; return False where it was stopped before. The state is saved at each
    check.
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
    kept.unlink(missing_ok=True)
    return True
