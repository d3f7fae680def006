"""Policies for shapes with a process: they get observations, one after another, and act.

    class Frugal(ob.ProcessPolicy):
        shapes = {"serving"}

        def act(self, observation):
            return min(observation.free, key=lambda gpu: gpu.watts).name

A policy is never given the instance, so it cannot read the future. Its random numbers and those of
the process come from different streams of the same seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from optbench.errors import PluginError
from optbench.plugins.author_errors import defined_at, label, method_at, refuse_result, shown
from optbench.plugins.math_threads import math_threads
from optbench.plugins.protocol import Run, Solver
from optbench.plugins.schedule_shape import shape_of
from optbench.shapes.protocol.process import ActionError
from optbench.shapes.protocol.shape import Shape

# The stream of a seed from which a policy draws; the process draws from that of the seed itself.
POLICY_STREAM = 1
METHODS = ("observe", "act", "decision")
Act = Callable[[Any], Any]


class ProcessPolicy(Solver):
    """Subclasses define ``act``, or ``actor`` if they store something per run."""

    to_define: ClassVar[tuple[str, ...]] = ("act", "actor", "clairvoyant_actor", "solve")
    shapes: ClassVar[frozenset[str] | set[str]] = frozenset({"process"})
    # True if it knows more than its observations: a reference that could not be deployed.
    clairvoyant: ClassVar[bool] = False
    # The function of a user whose policy this is, where he gave no class.
    author: ClassVar[Callable[..., Any] | None] = None

    def act(self, observation: Any) -> Any:
        """Return an action that the process of the shape takes."""
        raise NotImplementedError

    def actor(self, rng: Generator) -> Act:
        """Return the function that acts in one run."""
        return self.act

    def prepare(self, public: Any) -> None:
        """Load or train before the clock starts what acting needs, from what the shape makes public
        (``public`` of the shape; None where that is nothing).

        It is called before every run, and may be called more than once: keep what it makes in a
        cache (``functools.lru_cache``), in which ``actor`` finds it.
        """

    def warm_up(self, instance: Any) -> None:
        self.prepare(shape_of(instance).public_of(instance))

    def clairvoyant_actor(self, instance: Any, rng: Generator) -> Act:
        """Return the function that acts in one run of a policy with ``clairvoyant = True``, which
        is given the instance.
        """
        return self.actor(rng)

    def solve(self, instance: Any, run: Run) -> Any:
        if run.level > 0 and run.warm_start is not None:
            return run.warm_start  # it plays once, whatever the level
        playing = Playing(self, instance, run.seed)
        if playing.play(lambda: run.time_left() > 0):
            return playing.decision
        run.report_termination("time_limit")
        run.report_message(
            f"{label(self)} had acted {playing.actions:,} times when its time was over, and the "
            "process had not ended; give it more time"
        )
        return None


@dataclass(frozen=True)
class ActFunction(ProcessPolicy):
    """A plain function as a policy."""

    function: Act

    @property
    def author(self) -> Act:  # type: ignore[override]
        return self.function

    def act(self, observation: Any) -> Any:
        return self.function(observation)


@dataclass
class Playing:
    """One run of a process by a policy. ``phase`` is whose method runs: for messages."""

    policy: ProcessPolicy
    instance: Any
    seed: int
    spent_s: list[float] = field(default_factory=list)
    decision: Any = None
    prepared_s: float | None = None

    def __post_init__(self) -> None:
        self.shape: Shape = shape_of(self.instance)
        self.author: Any = self.policy.author or self.policy
        self.phase: tuple[Any, str] = (self.author, "actor")

    @property
    def actions(self) -> int:
        return len(self.spent_s)

    def prepare(self) -> None:
        """Let the policy prepare; the time counts apart from that of its decisions."""
        began = time.perf_counter()
        self.phase = (self.shape, "public")
        public = self.shape.public_of(self.instance)
        self.phase = (self.author, "prepare")
        self.policy.prepare(public)
        self.prepared_s = time.perf_counter() - began

    def play(self, has_time: Callable[[], bool]) -> bool:
        """Play to the end, on one thread; False where the time is over before."""
        if self.prepared_s is None:
            self.prepare()
        with math_threads(1):
            return self._play(has_time)

    def _play(self, has_time: Callable[[], bool]) -> bool:
        self.phase = (self.author, "actor")
        act = self._actor()
        self.phase = (self.shape, "process")
        process = self._checked(self.shape.process_of(self.instance, self.seed))
        while not self._is_done(process):
            if not has_time():
                return False
            self.phase = (self.shape, "observe")
            observation = process.observe()
            if observation is process or observation is getattr(self.instance, "data", process):
                raise refuse_result(process, "observe", observation, "return what a policy may see")
            self.phase = (self.author, "act")
            began = time.perf_counter()
            action = act(observation)
            self.spent_s.append(time.perf_counter() - began)
            self.phase = (self.shape, "act")
            try:
                process.act(action)
            except ActionError as error:
                place = defined_at(self.policy.author or act)
                error.args = (f"{place}: action {self.actions}, {action!r:.80}: {error}",)
                raise
        self.phase = (self.shape, "decision")
        self.decision = self._decided(process)
        return True

    def _actor(self) -> Act:
        rng = np.random.default_rng((self.seed, POLICY_STREAM))
        knows = self.policy.clairvoyant
        act = self.policy.clairvoyant_actor(self.instance, rng) if knows else self.policy.actor(rng)
        if not callable(act):
            raise refuse_result(self.policy, "actor", act, "return a function of an observation")
        return act

    def _checked(self, process: Any) -> Any:
        lacks = [name for name in METHODS if not callable(getattr(process, name, None))]
        lacks += [] if hasattr(process, "done") else ["done"]
        if lacks:
            expected = f"return an object with {', '.join((*METHODS, 'done'))}"
            error = refuse_result(self.shape, "process", process, expected)
            if process is not None:
                words = f"{error}; {type(process).__name__} has no {lacks[0]!r}"
                error.args = (words,)
            raise error
        return process

    def _is_done(self, process: Any) -> bool:
        self.phase = (self.shape, "done")
        done = process.done
        if not isinstance(done, (bool, np.bool_)):
            wrong = f"{method_at(process, 'done')}: done is {shown(done)}"
            remedy = "make it an attribute, or a method with @property, that is True or False"
            raise PluginError(f"{label(self.shape)}: {wrong}; {remedy}")
        if not done and self.actions >= self.shape.most_actions:
            raise PluginError(
                f"{label(self.shape)}: {method_at(process, 'done')}: the process is not done after "
                f"{self.actions:,} actions; `done` must become True, or set most_actions in "
                f"{type(self.shape).__name__}"
            )
        return bool(done)

    def _decided(self, process: Any) -> Any:
        decision = process.decision()
        wanted = getattr(self.shape, "solution", self.shape.decision_type)
        if not isinstance(decision, wanted):
            raise refuse_result(process, "decision", decision, f"return a {wanted.__name__}")
        return decision
