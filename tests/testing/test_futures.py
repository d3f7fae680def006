"""Policies that read the future are caught by the suite, and only they may say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.plugins.discovery import catalogue, load_solver
from optbench.plugins.policy import Policy, RulePolicy
from optbench.plugins.protocol import Solver
from optbench.plugins.solvers._sites import SITES
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.moments import Moment
from optbench.sim.rules import Trace, list_rule
from optbench.sim.sites.sites import SiteRun, grid_of, steering_of
from optbench.testing import PolicyConformance
from optbench.testing.futures import FUTURES, MOMENTS, STREAMS, FutureStream, other_future


@dataclass
class ByMeanSize(RulePolicy):
    """Small jobs first, where small is below the mean of all jobs that it is given."""

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        large = instance.tasks.units > instance.tasks.units.mean()
        return list_rule(
            instance,
            base=np.where(large, 1e9 / instance.tick_s, 0.0) + instance.tasks.release,
            end_weight=1.0,
        )


@dataclass
class ByNumberOfKinds(RulePolicy):
    """Takes fast modes where most jobs that it is given are short."""

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        return list_rule(
            instance,
            energy_weight=float((instance.tasks.kind == 0).mean() > 0.5),
            end_weight=1e-3 * instance.tick_s,
        )


@dataclass
class ByLastArrival(RulePolicy):
    """Saves energy where the last arrival that it is given comes within six hours."""

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        end = float(instance.tasks.release.max()) * instance.tick_s
        return list_rule(
            instance, energy_weight=float(end < 6 * 3600.0), end_weight=1e-3 * instance.tick_s
        )


@dataclass
class Oracle(ByMeanSize):
    """The same, and says so."""

    clairvoyant: ClassVar[bool] = True


@dataclass
class Innocent(RulePolicy):
    """First come, first served, but says that it reads the future."""

    clairvoyant: ClassVar[bool] = True

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        return list_rule(instance, ready_weight=1.0, end_weight=1.0)


def suite(policy: Policy) -> PolicyConformance:
    class Tried(PolicyConformance):
        solver = "tried"

        @classmethod
        def load(cls) -> tuple[str, Solver]:
            return "tried", policy

    return Tried()


CHANGED = [(stream, change) for stream in STREAMS for change in stream.changes()]


@pytest.mark.parametrize(
    ("stream", "change"), CHANGED, ids=[f"{stream.name}-{change}" for stream, change in CHANGED]
)
def test_another_future_is_the_same_until_its_moment(stream: FutureStream, change: str) -> None:
    instance = stream.instance
    for share in MOMENTS:
        moment = stream.moment(share)
        other = other_future(instance, moment, change)
        past = int((instance.tasks.release <= moment).sum())
        assert 0 < past < instance.num_tasks  # rows are in order of arrival
        assert (other.tasks.release[past:] > moment).all()
        for column in ("kind", "units", "release", "deadline"):
            mine, theirs = getattr(instance.tasks, column), getattr(other.tasks, column)
            assert np.array_equal(mine[:past], theirs[:past])
        for one, two in ((instance, other), (other, instance)):
            edges = set(zip(one.edges.source.tolist(), one.edges.target.tolist(), strict=True))
            kept = {edge for edge in edges if edge[1] < past}
            assert kept <= set(
                zip(two.edges.source.tolist(), two.edges.target.tolist(), strict=True)
            )
            if one.stream is not None and two.stream is not None:
                o, w = one.stream.outages, two.stream.outages
                assert o.time[o.time <= moment].tolist() == w.time[w.time <= moment].tolist()
                assert o.time[o.announced].tolist() == w.time[w.announced].tolist()
        assert other.hash != instance.hash


def test_every_change_is_made_somewhere() -> None:
    assert {change for _, change in CHANGED} == set(FUTURES)


READERS: list[type[RulePolicy]] = [ByMeanSize, ByNumberOfKinds, ByLastArrival]


@pytest.mark.parametrize("cls", READERS, ids=lambda cls: cls.__name__)
def test_a_rule_that_reads_all_jobs_is_given_those_that_have_arrived(cls: type[RulePolicy]) -> None:
    suite(cls()).test_decisions_use_the_future_only_if_declared()


@pytest.mark.parametrize("cls", READERS, ids=lambda cls: cls.__name__)
def test_a_rule_that_claims_to_go_job_by_job_and_does_not_is_caught(cls: type[RulePolicy]) -> None:
    class Claims(cls):  # type: ignore[misc, valid-type]
        job_by_job: ClassVar[bool] = True

    with pytest.raises(AssertionError, match=r"tried reads the future: .* becomes"):
        suite(Claims()).test_decisions_use_the_future_only_if_declared()


def test_the_label_is_right_where_the_future_is_read_and_wrong_where_it_is_not() -> None:
    suite(Oracle()).test_decisions_use_the_future_only_if_declared()
    with pytest.raises(AssertionError, match="remove the declaration"):
        suite(Innocent()).test_decisions_use_the_future_only_if_declared()


class UserRouter(Policy):
    """Sends each job to the pool with most room, and to the last one before large jobs come."""

    supports: ClassVar[frozenset[str] | set[str]] = SITES
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"site_decisions"})
    looks_ahead: ClassVar[bool] = True

    def play(
        self, instance: Instance, rng: Any, faults: Any = (), until: float = math.inf
    ) -> Trace:
        run = SiteRun(instance, steering_of(grid_of(instance)), faults, until)
        units = np.append(instance.tasks.units, 0.0)
        while (task := run.asked()) is not None:
            ahead = self.looks_ahead and units[task + 1 : task + 20].mean() > 50_000.0
            run.send(task, 2 if ahead else int(np.argmax(run.state.free)))
        return run.trace()


def test_a_user_written_router_that_looks_at_the_next_job_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"tried reads the future: .* becomes"):
        suite(UserRouter()).test_decisions_use_the_future_only_if_declared()
    honest = type("Honest", (UserRouter,), {"looks_ahead": False})()
    suite(honest).test_decisions_use_the_future_only_if_declared()


class SmallestThere(ob.PythonPolicy):
    """Of the options, the one of the smallest task, unless one below the mean is known to come."""

    def decide(self, moment: Moment) -> Any:
        tasks = moment.instance.tasks
        small = tasks.units < tasks.units.mean()
        if moment.can_wait and bool((small & (tasks.release > moment.now)).any()):
            return None
        k = int(np.argmin(tasks.units[moment.task]))
        return int(moment.task[k]), int(moment.mode[k])


def test_a_policy_in_python_is_given_nothing_of_the_future_unless_it_says_so() -> None:
    suite(SmallestThere()).test_decisions_use_the_future_only_if_declared()
    told = type("Told", (SmallestThere,), {"clairvoyant": True})()
    suite(told).test_decisions_use_the_future_only_if_declared()


def test_an_environment_shows_the_same_until_the_futures_part() -> None:
    """Observations and masks of an agent that takes the first thing that is possible."""
    stream = next(each for each in STREAMS if each.name == "task graphs")
    moment = stream.moment(0.5)

    def shown(instance: Instance) -> list[Any]:
        env = ob.environment(instance, slots=32)
        seen, (observation, info), done = [], env.reset(seed=0), False
        while not done and info["time"] <= moment:
            row = [info["action_mask"], *observation.values()]
            seen.append((info["time"], [part.tolist() for part in row]))
            observation, _, done, _, info = env.step(int(info["action_mask"].argmax()))
        return seen

    mine = shown(stream.instance)
    for change in stream.changes():
        assert mine == shown(other_future(stream.instance, moment, change)), change


def test_a_network_that_is_fed_sizes_relative_to_all_jobs_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What chsac_af did: the mean over all jobs of the instance, those of the future among them."""
    policy = load_solver("chsac_af")[1]
    module: Any = __import__(type(policy).__module__, fromlist=["run_network"])
    run_network = module.run_network

    def with_mean_of_all(instance: Instance, *given: Any, **named: Any) -> Any:
        return run_network(
            instance, *given, **{**named, "mean_units": float(instance.tasks.units.mean())}
        )

    monkeypatch.setattr(module, "run_network", with_mean_of_all)
    assert isinstance(policy, Policy)
    with pytest.raises(AssertionError, match="reads the future"):
        suite(policy).test_decisions_use_the_future_only_if_declared()


def test_what_reads_the_future_is_listed_as_such() -> None:
    assert [entry.name for entry in catalogue("solver") if entry.clairvoyant] == [
        "oracle",
        "random_rules",
    ]
