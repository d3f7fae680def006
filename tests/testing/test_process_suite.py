"""The suite of policies for processes passes those that act on what they see, and no others."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from typing import Any, ClassVar

import pytest

import optbench as ob
from optbench.testing import ProcessConformance
from tests.sample_files.serving_workspace import FIRST_ROOM, SERVING, TIGHTEST


def loaded(name: str, text: str) -> Any:
    found = types.ModuleType(name)
    sys.modules[name] = found  # dataclasses look their module up
    exec(compile(text, f"{name}.py", "exec"), found.__dict__)
    return found


serving = loaded("serving_of_the_suite", SERVING)


class OnServing(ProcessConformance):
    policy: ClassVar[Any]
    shape: ClassVar[Any] = serving.Serving()

    def load(self) -> tuple[str, ob.ProcessPolicy]:
        return "tried", self.policy

    def instance(self, seed: int) -> Any:
        return replace(serving.Problem().instance(seed), shape=self.shape)

    def other_future(self, data: Any, observed: int) -> Any:
        later = tuple(37.0 - gb for gb in data.gb[observed:])
        return replace(data, gb=data.gb[:observed] + later)

    def test_it_is_documented(self) -> None:
        assert type(self.policy).__doc__


class TestFirstRoom(OnServing):
    policy = loaded("first_room_of_the_suite", FIRST_ROOM).FirstRoom()


class TestTightest(OnServing):
    policy = loaded("tightest_of_the_suite", TIGHTEST).Tightest()


def tried(policy: Any, shape: Any = None) -> OnServing:
    made: Any = type("Tried", (OnServing,), {"policy": policy, "shape": shape or OnServing.shape})
    suite: OnServing = made()
    return suite


class Peeping(serving.Door):  # type: ignore[misc, name-defined]
    """A process that shows what the next service will need."""

    def observe(self) -> Any:
        gb, free = super().observe()
        following = [*self.data.gb, 0.0][len(self.gpu) + 1]
        return gb, [room if room >= gb + following else 0.0 for room in free]


class Smuggler(TestFirstRoom.policy.__class__):  # type: ignore[misc, name-defined]
    """Finds the process in the frames below, and asks it for the next service."""

    def act(self, seen: Any) -> Any:
        door = sys._getframe(2).f_locals.get("process") or sys._getframe(1).f_locals["process"]
        last = len(door.gpu) + 1 == len(door.data.gb)
        return super().act(seen) if last or door.data.gb[len(door.gpu) + 1] < 20 else None


class Oracle(Smuggler):
    """The same, and says so."""

    clairvoyant: ClassVar[bool] = True


def test_a_process_that_shows_the_future_is_caught() -> None:
    kept = {"process": lambda self, data, seed: Peeping(data)}
    shape = type("Shown", (serving.Serving,), kept)()
    with pytest.raises(AssertionError, match="the process shows the future: observation 5 differs"):
        tried(TestFirstRoom.policy, shape).test_decisions_use_the_future_only_if_declared()


def test_a_policy_that_reads_the_future_is_caught_unless_it_says_so() -> None:
    with pytest.raises(AssertionError, match="it reads the future: action"):
        tried(Smuggler()).test_decisions_use_the_future_only_if_declared()
    tried(Oracle()).test_decisions_use_the_future_only_if_declared()
    innocent = type("Innocent", (TestFirstRoom.policy.__class__,), {"clairvoyant": True})()
    with pytest.raises(AssertionError, match="remove the declaration"):
        tried(innocent).test_decisions_use_the_future_only_if_declared()
