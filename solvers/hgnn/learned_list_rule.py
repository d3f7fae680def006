"""What learned list rules share: the answers of a network, sampled offline and played online."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from optbench.errors import ParameterError
from optbench.model.classes import class_view
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.policy import Policy, settle
from optbench.plugins.protocol import Run
from optbench.plugins.training import Trainable, TrainingResult, TrainingRun
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace, run_rule

from .answer_noise import draw_noise, shifted
from .answers import Answers, plain_answers
from .instance_kinds import has_arrivals
from .milestone_rule import rule_of
from .network_checkpoint import NetworkCheckpoint, read_network
from .network_design import AnsweringNetwork, NetworkDesign
from .online_play import OnlinePlay
from .situation import Situation, situation_of
from .stream_readouts import StreamReadouts

# The noise of samples falls to this share of its first deviation.
LAST_SCALE = 0.3
# The (task, class) pairs of which the features, and the dense attention of hgnn, take gigabytes.
MOST_PAIRS = 20_000_000


@dataclass(frozen=True)
class LearnedListRule(Policy, Trainable):
    """A list rule whose numbers a network gives; derived classes name its design."""

    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"rules", "arrivals"})
    design: ClassVar[type[NetworkDesign]]
    # The checkpoint that optbench includes.
    shipped: ClassVar[Path]

    checkpoint: str | None = None
    samples: int = 1

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ParameterError(
                f"{self.design.solver}: samples is {self.samples!r}; it must be at least 1"
            )

    def refuse(self, instance: Instance) -> str | None:
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
        mean = self.answers(instance, found)
        first = run_rule(instance, rule_of(instance, found, mean)).schedule
        if first is not None:
            run.report(first)
        self._sample(instance, run, found, mean)
        return settle(instance, run, first) if run.best is None else run.best

    def _sample(self, instance: Instance, run: Run, found: Situation, mean: Answers) -> None:
        """Report schedules of answers around the best so far, in opposite pairs, ever closer."""
        best, rng = mean, run.rng
        for sample in range(1, self.samples):
            if run.time_left() <= 0:
                run.report_termination("time_limit")
                return
            # The noise of every second sample is that of the one before, negated.
            if sample % 2:
                scale = LAST_SCALE ** (sample / self.samples)
                noise = draw_noise(found.seen, best, rng, scale, self.design.answered)
                centre = best
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
            network = self.network(instance)
            return OnlinePlay(instance, network, self.readouts(), faults).play(until)
        found = situation_of(instance)
        rule = rule_of(instance, found, self.answers(instance, found))
        return run_rule(instance, rule, faults, until)

    def found(self) -> NetworkCheckpoint:
        """Return the checkpoint."""
        path = self.shipped if self.checkpoint is None else Path(self.checkpoint)
        return read_network(path, self.design)

    def network(self, instance: Instance) -> AnsweringNetwork | None:
        """Return the network, or what stands in its place; None for the answers of no network."""
        found = self.found()
        return self.design(found.settings).forward_pass(found.weights)

    def readouts(self) -> StreamReadouts | None:
        """Return what is added to the answers where work arrives over time."""
        return self.found().streams

    def answers(self, instance: Instance, found: Situation) -> Answers:
        """Return the answers for an instance of which everything is known."""
        network, seen = self.network(instance), found.seen
        if network is None:
            return plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        return network.answers(seen)

    def train(self, run: TrainingRun) -> TrainingResult:
        from .training_command import train

        return train(run)
