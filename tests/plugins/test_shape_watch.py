"""Methods of a user's shape that do not end, in ``solve``: verify, model, encode and bounds."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyomo.environ as pyo
import pytest

import optbench as ob
from optbench.model.result import Bound
from optbench.plugins.shape_watch import author_methods
from optbench.shapes import DataShape, Findings, Metric, PyomoShape

# The limit of these runs, and how much later they may return on a busy machine; each would go on
# for an hour.
LIMIT_S, LATE_S, HOUR_S = 0.3, 15.0, 3600.0


def sleeping() -> None:
    time.sleep(HOUR_S)


def looping() -> None:
    end = time.monotonic() + HOUR_S
    while time.monotonic() < end:
        pass


WAYS = pytest.mark.parametrize("way", [sleeping, looping])


@dataclass(frozen=True)
class Price:
    usd: float


@dataclass(frozen=True)
class Bill:
    usd: float


class Plain(DataShape):
    """The least bill that pays a price; ``at`` names the method that goes on."""

    name = "plain"
    data, solution = Price, Bill
    metrics: ClassVar[dict[str, Metric]] = {"usd": Metric("USD", "what is paid")}
    minimize = "usd"
    at: ClassVar[str] = ""
    way: ClassVar[Callable[[], None]] = staticmethod(looping)

    def pause(self, method: str) -> None:
        if self.at == method:
            type(self).way()

    def verify(self, data: Price, decision: Bill) -> Findings:
        if decision.usd < 2 * data.usd:
            self.pause("verify")
        return Findings({"usd": decision.usd})

    def bounds(self, instance: Any, method: str, time_limit_s: float, best: Any) -> list[Bound]:
        self.pause("bounds")
        return []


class Modelled(PyomoShape, Plain):
    """The same with a model."""

    def model(self, data: Price) -> Any:
        self.pause("model")
        m = pyo.ConcreteModel()
        m.usd = pyo.Var(bounds=(data.usd, 8 * data.usd))
        m.paid = pyo.Objective(expr=m.usd)
        return m

    def encode(self, data: Price, decision: Bill, model: Any) -> None:
        self.pause("encode")
        model.usd.set_value(decision.usd)

    def decode(self, data: Price, model: Any) -> Bill:
        return Bill(float(model.usd.value))


class Twice(ob.Solver):
    """Reports a bill of three times the price, and returns one of the price."""

    shapes: ClassVar[set[str]] = {"plain"}

    def solve(self, instance: Any, run: ob.Run) -> Bill:
        run.report(Bill(3 * instance.data.usd))
        return Bill(instance.data.usd)


def stuck(base: type[Plain], method: str, way: Callable[[], None]) -> Any:
    cls = type("Stuck", (base,), {"at": method, "way": staticmethod(way), "__module__": __name__})
    return cls().instance("price", Price(2.0))


def solved(instance: Any, solver: Any, **more: Any) -> ob.Result:
    began = time.monotonic()
    result = ob.solve(instance, solver, **{"time_limit_s": LIMIT_S, **more})
    assert time.monotonic() - began < LATE_S
    return result


def names_place(result: ob.Result, cls: type, method: str) -> bool:
    """Whether the message has the method, its file and a line of it."""
    lines, first = inspect.getsourcelines(getattr(cls, method))
    said = str(result.message)
    places = (f"{__file__}:{first + k}: {method}() went on" for k in range(len(lines)))
    return "shape 'plain'" in said and any(each in said for each in places)


@WAYS
def test_a_verify_without_an_end_is_stopped_and_the_incumbent_kept(
    way: Callable[[], None],
) -> None:
    """Without a model the solver's first report, of 6 USD, is verified at once."""
    result = solved(stuck(Plain, "verify", way), Twice())
    assert (result.termination, result.status, result.objective) == ("time_limit", "feasible", 6)
    assert result.verified and result.wall_s >= LIMIT_S
    assert "went on after the time limit of 0.3 s" in str(result.message)
    assert "verify() went on" in str(result.message) and __file__ in str(result.message)


@WAYS
@pytest.mark.parametrize("method", ["verify", "model", "encode"])
def test_built_in_solvers_end_although_the_shape_does_not(
    method: str, way: Callable[[], None]
) -> None:
    result = solved(stuck(Modelled, method, way), "highs")
    assert (result.termination, result.status, result.objective) == ("time_limit", "unknown", None)
    assert f"{method}() went on" in str(result.message) and __file__ in str(result.message)


@WAYS
def test_bounds_without_an_end_leave_the_decision(way: Callable[[], None]) -> None:
    result = solved(stuck(Plain, "bounds", way), Twice())
    assert (result.termination, result.objective, result.bound) == ("time_limit", 2, None)
    assert "bounds() went on" in str(result.message)


def test_the_line_is_one_of_the_method() -> None:
    class Loops(Plain):
        def verify(self, data: Price, decision: Bill) -> Findings:
            while True:
                pass

    result = solved(Loops().instance("price", Price(2.0)), Twice())
    assert names_place(result, Loops, "verify"), result.message


def test_a_stop_ends_a_verify() -> None:
    stop = threading.Event()
    threading.Timer(LIMIT_S, stop.set).start()
    result = solved(stuck(Plain, "verify", looping), Twice(), time_limit_s=None, stop=stop)
    assert (result.termination, result.objective) == ("interrupted", 6)
    assert "went on after the interruption" in str(result.message)


def test_a_slow_verify_that_ends_in_time_counts() -> None:
    """It begins when the time is almost over, and may take half a second even then."""

    def slow() -> None:
        time.sleep(0.35)

    result = solved(stuck(Plain, "verify", slow), Twice(), time_limit_s=0.2)
    assert (result.status, result.objective, result.message) == ("feasible", 2, None)


def test_a_shape_that_ends_is_left_alone() -> None:
    result = ob.solve(stuck(Modelled, "", looping), "highs", time_limit_s=10)
    assert (result.status, result.termination, result.message) == ("optimal", "finished", None)
    with pytest.raises(ob.errors.PluginError, match="verify returned NoneType"):

        class Forgets(Plain):
            def verify(self, data: Price, decision: Bill) -> Findings:
                return None  # type: ignore[return-value]

        ob.solve(Forgets().instance("price", Price(2.0)), Twice(), time_limit_s=10)


def test_only_the_authors_methods_are_stopped() -> None:
    names = {code.co_name for code in author_methods(Modelled())}
    assert {"verify", "model", "encode", "decode", "bounds"} <= names
    assert not names & {"accept", "formulate", "_compare", "verdict_of"}


PROBLEM = '''
from dataclasses import dataclass
import optbench as ob
from optbench.shapes import DataShape, Findings, Metric

@dataclass(frozen=True)
class Price:
    usd: float

@dataclass(frozen=True)
class Bill:
    usd: float

class Endless(DataShape):
    name = "endless"
    data, solution = Price, Bill
    metrics = {"usd": Metric("USD", "what is paid")}
    minimize = "usd"

    def verify(self, data, decision):
        print("ready", flush=True)
        while True: pass

@dataclass
class Problem(ob.Problem):
    """One price."""

    def instance(self, seed=0):
        return Endless().instance("price", Price(2.0))
'''
SOLVER = '''
import optbench as ob

class Pays(ob.Solver):
    """Pays the price."""

    shapes = {"endless"}

    def solve(self, instance, run):
        return instance.shape.solution(instance.data.usd)
'''


def test_one_ctrl_c_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "optbench.toml").touch()
    for folder, name, source in (("problems", "endless", PROBLEM), ("solvers", "pays", SOLVER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(source)
    words = [sys.executable, "-m", "optbench.cli.main", "solve", "endless", "-s", "pays", "--json"]
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(tmp_path)}
    more: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, **more) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    assert '"termination": "interrupted"' in out
    assert f"{tmp_path / 'problems' / 'endless.py'}:22: verify() went on" in out
