"""What learned list rules share: the answers of a network, sampled offline and played online."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

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
from optbench.sim.sampling import Sampler

from .answer_noise import draw_noise, shifted
from .answer_player import AnswerPlayer
from .answers import Answers, plain_answers
from .instance_kinds import has_arrivals, is_judged_by_its_end, value_of_end
from .milestone_rule import rule_of
from .network_checkpoint import NetworkCheckpoint, read_network, suited
from .network_design import AnsweringNetwork, NetworkDesign
from .online_play import OnlinePlay
from .situation import Situation, situation_of
from .stream_readouts import StreamReadouts

# The noise of samples falls to this share of its first deviation.
LAST_SCALE = 0.3
# The (task, class) pairs of which the features, and the dense attention of hgnn, take gigabytes.
MOST_PAIRS = 2_000_000
# What samples are drawn around, and how many around starts are drawn between two looks at the
# clock.
CENTRES = ("answers", "starts")
PORTION = 20


@dataclass(frozen=True)
class LearnedListRule(Policy, Trainable):
    """A list rule whose numbers a network gives; derived classes name its design."""

    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"rules", "arrivals", "sampling"})
    # Imitation runs lp_guided.
    needs_in_training: ClassVar[frozenset[str] | set[str]] = frozenset(
        {"rules", "arrivals", "lp_search", "going_on", "routes"}
    )
    distributes: ClassVar[str | None] = "the plays of its samples, and its experts"
    design: ClassVar[type[NetworkDesign]]
    # The checkpoints that optbench includes: the one that suits an instance is read (``suited``).
    shipped: ClassVar[tuple[Path, ...]]

    checkpoint: str | None = None
    samples: int = 1
    around: Literal["answers", "starts"] = "answers"

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ParameterError(
                f"{self.design.solver}: samples is {self.samples!r}; it must be at least 1"
            )
        if self.around not in CENTRES:
            raise ParameterError(
                f"{self.design.solver}: around is {self.around!r}; it must be one of "
                f"{', '.join(CENTRES)}"
            )

    def kernels(self, instance: Instance) -> frozenset[str] | set[str]:
        drawn = self.around == "starts" and self.samples > 1
        return self.needs if drawn else self.needs - {"sampling"}

    def refuse(self, instance: Instance) -> str | None:
        # Arriving jobs are encoded one by one.
        together = np.unique(instance.tasks.release, return_counts=True)[1].max(initial=0)
        number = int(together) if has_arrivals(instance) else instance.num_tasks
        pairs = number * class_view(instance).num_classes
        if pairs > MOST_PAIRS:
            return (
                f"{pairs:,} pairs of a task and a class of devices, more than {MOST_PAIRS:,}; use "
                "-s tuned_rule, or fewer tasks"
            )
        if (np.diff(instance.modes.req_ptr) == 0).any():
            return "some mode uses no device; use -s lp_guided"
        if self.around == "starts" and instance.features & {"open_end", "per_unit"}:
            return "samples around starts compare whole schedules; use around=answers"
        return None

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        if has_arrivals(instance):
            return super().solve(instance, run)
        found = situation_of(instance)
        mean = self.answers(instance, found)
        player = AnswerPlayer(instance, found)
        first = player.play(mean)
        if first is not None:
            run.report(first)
        if self.samples > 1 and self.around == "starts":
            self._sample_starts(instance, run)
        else:
            self._sample_answers(instance, run, player, mean)
        return settle(instance, run, first) if run.best is None else run.best

    def _sample_answers(
        self, instance: Instance, run: Run, player: AnswerPlayer, mean: Answers
    ) -> None:
        """Report schedules of answers around the best so far, in opposite pairs, ever closer."""
        best, rng, by_end = mean, run.rng, is_judged_by_its_end(instance)
        for sample in range(1, self.samples):
            if run.time_left() <= 0:
                run.report_termination("time_limit")
                return
            # The noise of every second sample is that of the one before, negated.
            if sample % 2:
                scale = LAST_SCALE ** (sample / self.samples)
                noise = draw_noise(player.found.seen, best, rng, scale, self.design.answered)
                centre = best
            answers = shifted(centre, noise, 1.0 if sample % 2 else -1.0)
            made, before = player.play(answers), run.best
            # Verifying takes ten times as long as playing: what ends no earlier is left out.
            late = (
                by_end
                and made is not None
                and run.objective is not None
                and value_of_end(instance, made) >= run.objective
            )
            if made is not None and not late:
                run.report(made)
            if run.best is not before:
                best = answers

    def _sample_starts(self, instance: Instance, run: Run) -> None:
        """Report schedules whose keys are the starts of the best so far, disturbed and refined by
        runs backwards and forwards (``kernel.sampling``).
        """
        sampler = Sampler(instance, run.seed)
        if run.best is not None and run.objective is not None:
            sampler.begin_with(run.best, run.objective, fresh=False)
        left = self.samples - 1
        while left > 0:
            if run.time_left() <= 0:
                run.report_termination("time_limit")
                return
            count = min(left, PORTION)
            if sampler.sample(count) and (made := sampler.schedule()) is not None:
                run.report(made)
            left -= count

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        if has_arrivals(instance):
            network = self.network(instance)
            return OnlinePlay(instance, network, self.readouts(instance), faults).play(until)
        found = situation_of(instance)
        rule = rule_of(instance, found, self.answers(instance, found))
        return run_rule(instance, rule, faults, until)

    def found(self, instance: Instance) -> NetworkCheckpoint:
        """Return the checkpoint given, or the shipped one that suits the instance."""
        if self.checkpoint is not None:
            return read_network(Path(self.checkpoint), self.design)
        return suited([read_network(path, self.design) for path in self.shipped], instance)

    def network(self, instance: Instance) -> AnsweringNetwork | None:
        """Return the network, or what stands in its place; None for the answers of no network."""
        found = self.found(instance)
        return self.design(found.settings).forward_pass(found.weights)

    def readouts(self, instance: Instance) -> StreamReadouts | None:
        """Return what is added to the answers where work arrives over time, if it is known."""
        return self.found(instance).streams_for(instance)

    def answers(self, instance: Instance, found: Situation) -> Answers:
        """Return the answers for an instance of which everything is known."""
        network, seen = self.network(instance), found.seen
        if network is None:
            return plain_answers(len(seen.task), len(seen.device), len(seen.sets))
        return network.answers(seen)

    def train(self, run: TrainingRun) -> TrainingResult:
        from .training_command import train

        return train(run)
