"""Conformance suite of policies for a shape with a process: they act, and only on what they see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

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
        assert result.objective == verdict.objectives[0]

    def test_decisions_use_the_future_only_if_declared(self) -> None:
        name, policy = self.load()
        found = self.differences(policy)
        if policy.clairvoyant:
            unused = "declares clairvoyant = True, but no action depends on the future"
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
                other = replace(instance, data=self.other_future(instance.data, observed))
                assert other.hash != instance.hash, "other_future returned the same data"
                words = first_difference(mine, played(policy, other, seed), observed)
                if words is not None:
                    found.append(f"{instance.name}, other after {observed} observations: {words}")
        return found


@dataclass
class PlayedProcess:
    """What a policy saw and did, and the decision that this makes."""

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

    def actor(self, rng: Any) -> Callable[[Any], Any]:
        act = self.policy.actor(rng)

        def recorded(observation: Any) -> Any:
            self.record.seen.append(to_plain(observation))
            action = act(observation)
            self.record.done.append(to_plain(action))
            return action

        return recorded
