"""Conformance suite of policies for a shape with a process: they act, and only on what they see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import optbench.api as api
from optbench.plugins.discovery import load_solver
from optbench.plugins.process_policy import Playing, ProcessPolicy
from optbench.plugins.schedule_shape import shape_of
from optbench.shapes.protocol.plain_data import to_plain
from optbench.testing.documented import check_documented

# After how many of the observations the futures part, as shares.
SHARES = (0.25, 0.5, 0.75)


class ProcessConformance:
    """Inherit, name your class ``Test...``, set ``solver`` to your policy and ``problem`` to a spec
    of the shape, and define ``other_future``.
    """

    solver: ClassVar[str]
    problem: ClassVar[str]
    seeds: ClassVar[int] = 3

    def other_future(self, data: Any, observed: int) -> Any:
        """Return data that differ in what comes after so many observations, and in nothing else."""
        raise NotImplementedError

    def future_after(self, data: Any, observations: list[Any]) -> Any:
        """The same, for shapes in which the number of observations does not tell what they have
        shown.
        """
        return self.other_future(data, len(observations))

    def load(self) -> tuple[str, ProcessPolicy]:
        name, policy = load_solver(self.solver)
        assert isinstance(policy, ProcessPolicy), f"{name} is no ob.ProcessPolicy"
        return name, policy

    def instance(self, seed: int) -> Any:
        return api.load_target(self.problem, seed)

    def test_it_is_documented(self) -> None:
        name, policy = self.load()
        check_documented("solver", name, type(policy))

    @pytest.mark.parametrize("seed", range(2))
    def test_what_it_decides_is_verified_and_the_same_again(self, seed: int) -> None:
        instance = self.instance(seed)
        first, again = (played(self.load()[1], instance, seed) for _ in range(2))
        verdict = shape_of(instance).accept(instance, first.decision).verdict
        assert verdict.feasible, str(verdict.violations[0])
        assert to_plain(first.decision) == to_plain(again.decision)
        result = api.solve(instance, self.load()[1], seed=seed, bound=False)
        levels = result.objective if isinstance(result.objective, tuple) else (result.objective,)
        assert levels == verdict.objectives

    def test_decisions_use_the_future_only_if_declared(self) -> None:
        name, policy = self.load()
        found = self.differences(policy)
        if policy.clairvoyant:
            unused = "declares clairvoyant = True, but no action depends on what it is not shown"
            assert found, f"{name} {unused}; remove the declaration"
        else:
            assert not found, f"{name}: {found[0]}"

    def differences(self, policy: ProcessPolicy) -> list[str]:
        """What differs before the futures part: observations, or actions on equal ones."""
        found = []
        for seed in range(self.seeds):
            instance = self.instance(seed)
            mine = played(policy, instance, seed)
            for share in SHARES:
                observed = max(1, int(share * len(mine.seen)))
                data = self.future_after(instance.data, mine.observations[:observed])
                other = replace(instance, data=data)
                assert other.hash != instance.hash, "other_future returned the same data"
                words = first_difference(mine, played(policy, other, seed), observed)
                if words is not None:
                    found.append(f"{instance.name}, other after {observed} observations: {words}")
        return found


@dataclass
class PlayedProcess:
    """What a policy saw and did, and the decision that this makes."""

    observations: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    done: list[Any] = field(default_factory=list)
    decision: Any = None


def played(policy: ProcessPolicy, instance: Any, seed: int) -> PlayedProcess:
    """Play the process of an instance to its end."""
    record = PlayedProcess()
    playing = Playing(_Recorded(policy, record), instance, seed)
    assert playing.play(lambda: True)
    record.decision = playing.decision
    return record


def first_difference(mine: PlayedProcess, theirs: PlayedProcess, observed: int) -> str | None:
    for k in range(observed):
        if k >= len(theirs.seen) or mine.seen[k] != theirs.seen[k]:
            return f"the process shows the future: observation {k + 1} differs"
        if mine.done[k] != theirs.done[k]:
            both = f"{mine.done[k]!r} becomes {theirs.done[k]!r}"
            return f"it reads the future: action {k + 1}, {both}"
    return None


@dataclass(frozen=True)
class _Recorded(ProcessPolicy):
    """A policy whose observations and actions are written down."""

    policy: ProcessPolicy
    record: PlayedProcess

    @property
    def clairvoyant(self) -> bool:  # type: ignore[override]
        return self.policy.clairvoyant

    def prepare(self, public: Any) -> None:
        self.policy.prepare(public)

    def actor(self, rng: Any) -> Callable[[Any], Any]:
        return self._recorded(self.policy.actor(rng))

    def clairvoyant_actor(self, instance: Any, rng: Any) -> Callable[[Any], Any]:
        return self._recorded(self.policy.clairvoyant_actor(instance, rng))

    def _recorded(self, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def recorded(observation: Any) -> Any:
            self.record.observations.append(observation)
            self.record.seen.append(comparable(observation))
            action = act(observation)
            self.record.done.append(comparable(action))
            return action

        return recorded


def comparable(value: Any) -> Any:
    """Return an observation or an action as something that is equal to itself, NaN included."""
    if is_dataclass(value) and not isinstance(value, type):
        return [comparable(getattr(value, each.name)) for each in fields(value) if each.init]
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [comparable(each) for each in value]
    return str(value) if isinstance(value, float) else to_plain(value)
