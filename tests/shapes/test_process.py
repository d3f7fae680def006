"""A shape that unfolds in time: policies get observations, and what they decide is verified."""

from __future__ import annotations

import sys
import threading
import time
import types
from typing import Any

import pytest

import optbench as ob
from optbench.errors import OptbenchError, PluginCrashError, PluginError
from tests.sample_files.serving_workspace import FIRST_ROOM, SERVING, TIGHTEST


@pytest.fixture(scope="module")
def module() -> Any:
    found = types.ModuleType("serving_of_this_test")
    sys.modules[found.__name__] = found  # dataclasses look their module up
    exec(compile(SERVING, "serving.py", "exec"), found.__dict__)
    return found.__dict__


def three(module: Any) -> Any:
    """GPUs of 40 and 20 GB. Services of 15, 30 and 20 GB arrive at 0, 1 and 2 and stay for long."""
    data = module["Services"]((9.0, 9.0, 9.0), (15.0, 30.0, 20.0), (40.0, 20.0))
    return module["Serving"]().instance("three", data)


def first_room(seen: Any) -> Any:
    gb, free_gb = seen
    return next((g for g, free in enumerate(free_gb) if free >= gb), None)


def tightest(seen: Any) -> Any:
    gb, free_gb = seen
    return min(((free, g) for g, free in enumerate(free_gb) if free >= gb), default=(0, None))[1]


def test_the_file_is_short() -> None:
    assert len(SERVING.splitlines()) <= 90
    assert max(len(text.splitlines()) for text in (FIRST_ROOM, TIGHTEST)) <= 15


def test_the_results_by_hand(module: Any) -> None:
    """A service pays 0.02 per GB and hour, a GPU costs 0.004 per GB and hour.

    First room: 15 GB to the large GPU (9 · (0.3 − 0.16) = 1.26), no room for 30, 20 GB beside it
    (9 · 0.24 = 2.16). Tightest: 15 GB to the small GPU (9 · 0.22 = 1.98), 30 GB to the large one
    (9 · 0.44 = 3.96), no room for 20. Best, in hindsight: 15 GB are
    refused, 20 GB go to the small one (9 · 0.32 = 2.88), which makes 6.84."""
    instance = three(module)
    found = {f.__name__: ob.simulate(instance, f) for f in (first_room, tightest)}
    assert found["first_room"].objective == pytest.approx(3.42)
    assert found["tightest"].objective == pytest.approx(5.94)
    played: Any = found["tightest"]
    assert played.decision.gpu == (1, 0, None) and played.actions == 3 and played.verified
    assert played.bounds[0].proof == "exact-lp" and played.bound >= 6.84
    assert ob.solve(instance, "highs", time_limit_s=20).objective == pytest.approx(6.84)
    line = "by tightest: complete after 3 actions, max profit_usd = 5.94"
    assert line in repr(played) and "verified>" in repr(played)


def test_a_decision_that_breaks_a_constraint_is_not_verified(module: Any) -> None:
    done: Any = ob.simulate(three(module), lambda seen: 1)
    assert not done.verified and done.objective is None
    assert "service 1 lacks 25.0 GB on GPU 1" in done.violations[0]


def test_a_process_that_is_never_done_is_named(module: Any) -> None:
    class Endless(module["Door"]):  # type: ignore[misc, name-defined]
        done = property(lambda self: False, lambda self, value: None)

        def observe(self) -> Any:
            return 1.0, [80.0]

        def act(self, gpu: Any) -> None:
            pass

    kept = {"process": lambda self, data, seed: Endless(data), "most_actions": 50}
    shape = type("Never", (module["Serving"],), kept)()
    with pytest.raises(PluginError, match=r"test_process.py:\d+: .* not done after 50 actions"):
        ob.simulate(shape.instance("x", three(module).data), first_room)


def sleepy(seen: Any) -> Any:
    time.sleep(0.02)
    while True:
        pass


def test_a_policy_that_never_answers_is_stopped(module: Any) -> None:
    began = time.monotonic()
    done: Any = ob.simulate(three(module), sleepy, time_limit_s=0.2)
    assert time.monotonic() - began < 3
    assert done.termination == "time_limit" and done.end == "stopped" and done.decision is None
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    assert ob.simulate(three(module), sleepy, stop=stop).termination == "interrupted"


def test_solve_says_that_the_time_was_over(module: Any) -> None:
    class Slow(ob.ProcessPolicy):
        def act(self, seen: Any) -> Any:
            time.sleep(0.3)
            return 0

    found = ob.solve(three(module), Slow(), time_limit_s=0.2)
    assert found.termination == "time_limit" and found.objective is None
    assert "had acted 1 times when its time was over" in str(found.message)


def test_a_function_that_raises_and_params_beside_an_object(module: Any) -> None:
    with pytest.raises(PluginCrashError, match=r"test_process.py:\d+: act\(\) raised ZeroDivis"):
        ob.simulate(three(module), lambda seen: 1 // 0)
    with pytest.raises(OptbenchError, match="k: parameters can only be given with the name"):
        ob.simulate(three(module), first_room, params={"k": 1})
    with pytest.raises(OptbenchError, match=r"must be the name of a policy, an object of a subcl"):
        ob.simulate(three(module), ob.ProcessPolicy)  # type: ignore[arg-type]


def test_a_policy_stores_what_it_needs_per_run_and_draws_by_the_seed(module: Any) -> None:
    class Drawn(ob.ProcessPolicy):
        def actor(self, rng: Any) -> Any:
            return lambda seen: int(rng.integers(2))

    def gpus(seed: int) -> Any:
        played: Any = ob.simulate(three(module), Drawn(), seed=seed)
        return played.decision.gpu

    assert gpus(3) == gpus(3) and len({gpus(seed) for seed in range(9)}) > 1


def test_a_class_without_act_is_named(module: Any) -> None:
    class Acts(ob.ProcessPolicy):
        def acts(self, observation: Any) -> Any:
            return 0

    with pytest.raises(PluginError, match=r"Acts has no method 'act'; rename 'acts' to it, or def"):
        ob.simulate(three(module), Acts())
