"""A hierarchical graph network that sets due dates, prices of devices and clocks for a compiled list
rule.

The network reads the task graph and the cluster as classes of alike devices, nodes and the whole
(``encoder``); its answers are the numbers of one list rule (``milestone_rule``): a due date, a key and
a price of lateness per task, a price per class of devices, a cost per task and (class, clock), a
price of time. The rule is then played by the event kernel, which chooses (class, clock) and node
when devices are free. Where work arrives over time, each job is encoded at its arrival together with
the state of the cluster (``online_play``).

``optbench train hgnn`` trains it (``network_training``); solving needs numpy only (``forward_pass``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.policy import CARRIED_OUT, Policy, settle
from optbench.plugins.protocol import Run
from optbench.plugins.training import Trainable, TrainingResult, TrainingRun
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace, run_rule

from .answer_noise import draw_noise, shifted
from .answers import Answers, plain_answers
from .forward_pass import ForwardPass
from .instance_kinds import has_arrivals
from .learning_settings import HgnnTraining
from .lookup_table import answers_of_table
from .milestone_rule import rule_of
from .network_checkpoint import NetworkCheckpoint, read_network
from .online_play import OnlinePlay
from .situation import Situation, situation_of
from .substitutes import permuted_weights, random_weights

SHIPPED = Path(__file__).with_name("clusters.safetensors")
WEIGHTS = ("trained", "random", "permuted", "table", "none")
# The noise of samples falls to this share of its first deviation.
LAST_SCALE = 0.3
# (task, class) pairs beyond which the dense attention would need gigabytes.
MOST_PAIRS = 20_000_000


@dataclass(frozen=True)
class Hgnn(Policy, Trainable):
    """Due dates, prices and clocks from a hierarchical graph network, played by a compiled list rule.

    ``samples`` schedules are made, the first from the network's answers, the others with noise on
    the best answers so far; the best is returned. ``checkpoint`` is a file of ``optbench train hgnn``. ``weights`` puts
    something else in the place of the trained network, for comparison: ``random`` or ``permuted``
    weights, a ``table`` of mean answers by device, or ``none``, the rule at its plain values.
    """

    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"rules", "arrivals"})
    settings: ClassVar[type] = HgnnTraining

    checkpoint: str | None = None
    samples: int = 1
    weights: Literal["trained", "random", "permuted", "table", "none"] = "trained"

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ParameterError(f"hgnn: samples is {self.samples!r}; it must be at least 1")
        if self.weights not in WEIGHTS:
            raise ParameterError(
                f"hgnn: weights is {self.weights!r}; it must be one of {', '.join(WEIGHTS)}"
            )

    def refuse(self, instance: Instance) -> str | None:
        from optbench.model.classes import class_view

        pairs = instance.num_tasks * class_view(instance).num_classes
        if pairs > MOST_PAIRS:
            return (
                f"{pairs:,} pairs of a task and a class of devices, more than {MOST_PAIRS:,}; use "
                "-s tuned_rule, or fewer tasks"
            )
        if (np.diff(instance.modes.req_ptr) == 0).any():
            return "some mode uses no device; use -s lp_guided"
        return None

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        if has_arrivals(instance):
            return super().solve(instance, run)
        found = situation_of(instance)
        mean, rng = self.answers(instance, found), run.rng
        schedule = run_rule(instance, rule_of(instance, found, mean)).schedule
        if schedule is None or not run.report(schedule).feasible:
            settle(instance, run, schedule)
        self._sample(instance, run, found, mean, rng)
        return run.best

    def _sample(
        self,
        instance: Instance,
        run: Run,
        found: Situation,
        mean: Answers | None,
        rng: np.random.Generator,
    ) -> None:
        """Draw answers around the best so far, in antithetic pairs and ever closer."""
        seen = found.seen
        best = mean or plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        for sample in range(1, self.samples):
            if run.time_left() <= 0:
                run.report_termination("time_limit")
                return
            if sample % 2:
                scale = LAST_SCALE ** (sample / self.samples)
                centre, noise = best, draw_noise(seen, best, rng, scale)
            answers = shifted(centre, noise, 1.0 if sample % 2 else -1.0)
            made, before = run_rule(instance, rule_of(instance, found, answers)).schedule, run.best
            if made is not None:
                run.report(made)
            if run.best is not before:
                best = answers

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        if has_arrivals(instance):
            network, found = self.network(), self.found()
            readouts = found.streams if self.weights == "trained" else None
            return OnlinePlay(instance, network, readouts, faults).play(until)
        found_now = situation_of(instance)
        return run_rule(
            instance, rule_of(instance, found_now, self.answers(instance, found_now)), faults, until
        )

    def found(self) -> NetworkCheckpoint:
        return read_network(SHIPPED if self.checkpoint is None else Path(self.checkpoint))

    def network(self) -> ForwardPass | None:
        """Return the network, or what stands in its place; None for the plain rule."""
        if self.weights in ("none", "table"):
            return None
        found = self.found()
        weights = found.weights
        if self.weights == "random":
            weights = random_weights(weights)
        elif self.weights == "permuted":
            weights = permuted_weights(weights)
        return ForwardPass(weights, found.settings)

    def answers(self, instance: Instance, found: Situation) -> Answers | None:
        """Return the answers for an instance of which everything is known."""
        if self.weights == "table":
            return answers_of_table(instance, found, self.found().table)
        network = self.network()
        return None if network is None else network.answers(found.seen)

    def train(self, run: TrainingRun) -> TrainingResult:
        from .training_command import train

        return train(run)
