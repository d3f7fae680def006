"""What a plug-in's author does wrong is answered with his file, his line and what is expected."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import optbench as ob
from optbench.cli.main import main
from optbench.cli.terminal import exits
from optbench.errors import PluginCrashError, PluginError
from optbench.plugins.author_errors import is_built_in
from optbench.plugins.discovery import load_class
from optbench.sim import rules

PROBLEM = '''"""A problem."""
from dataclasses import dataclass
import optbench as ob

@dataclass
class One(ob.Problem):
    """One task."""

    def instance(self, seed: int = 0):
        m = ob.Model("one")
        pool = m.pool("gpu", count=1)
        m.task("a", modes=[m.mode(pool, time_s=3)])
        m.minimize(makespan_s=1.0)
        return m.build()
'''
SOLVER = '''"""A solver."""
from dataclasses import dataclass
import numpy as np
import optbench as ob

@dataclass
class Mine(ob.Solver):
    """Starts everything at 0."""

    supports = frozenset({"modes", "pooled", "energy"})

    def solve(self, instance, run):
        zeros = np.zeros(instance.num_tasks, dtype=np.int64)
        return ob.Schedule.of(instance, zeros, zeros)
'''
POLICY = '''"""A policy."""
from dataclasses import dataclass
import optbench as ob

@dataclass
class Mine(ob.PythonPolicy):
    """The first option."""

    def decide(self, moment):
        return int(moment.task[0]), int(moment.mode[0])
'''
RULE = '''"""A rule."""
from dataclasses import dataclass
from optbench.plugins.policy import RulePolicy
from optbench.sim.rules import list_rule

@dataclass
class Mine(RulePolicy):
    """First come, first served."""

    def rule(self, instance, rng):
        return list_rule(instance, ready_weight=1.0)
'''
# Untyped, because mypy too refuses the calls below.
OB: Any = ob
RULES: Any = rules
Written = Callable[..., str]


@pytest.fixture()
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Write a plug-in of a user with one change; returns ``file:line`` of the line ``at``."""
    for folder in ("problems", "solvers"):
        (tmp_path / folder).mkdir()
        package = importlib.import_module(f"optbench.plugins.{folder}")
        monkeypatch.setattr(package, "__path__", [str(tmp_path / folder), *package.__path__])

    def write(kind: str, name: str, source: str, old: str, new: str, at: str) -> str:
        assert old in source
        text, path = source.replace(old, new), tmp_path / f"{kind}s" / f"{name}.py"
        path.write_text(text)
        importlib.invalidate_caches()
        line = next(i for i, row in enumerate(text.splitlines(), 1) if at in row)
        return f"{path}:{line}"

    yield write
    for name in [name for name in sys.modules if ".zz_" in name]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("old", "new", "at", "words"),
    [
        ("return m.build()", "m.build()", "def instance", "returned nothing; end it with return"),
        ("return m.build()", "return m", "def instance", "returned a Model; end it with return"),
        ("return m.build()", "return 1 / 0", "1 / 0", "raised ZeroDivisionError"),
        ("def instance", "def instanse", "def instanse", "no method 'instance'; rename 'instanse'"),
        (", seed: int = 0", "", "def instance", "write def instance(self, seed: int = 0)"),
        ("time_s=3)]", "time_s=3)], dealine_s=9", "dealine_s", "did you mean 'deadline_s'?"),
        ("count=1", "cuont=1", "cuont", "m.pool() has no argument 'cuont'; did you mean 'count'?"),
        ("m.minimize", "m.minimise", "m.minimise", "did you mean 'minimize'?"),
        ("makespan_s", "makspan_s", "makspan_s", "did you mean 'makespan_s'?"),
    ],
)
def test_a_problem_with_a_mistake(
    write: Written, capsys: pytest.CaptureFixture[str], old: str, new: str, at: str, words: str
) -> None:
    place = write("problem", "zz_wrong", PROBLEM, old, new, at)
    assert main(["solve", "zz_wrong", "-s", "fcfs", "-q"]) == exits.USAGE
    said = capsys.readouterr().err
    assert place in said and words in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("source", "old", "new", "at", "words"),
    [
        (SOLVER, "return ob", "return [3] and [3] #", "def solve", "returned [3], a list; return"),
        (SOLVER, "return ob", "run.report([3]) #", "run.report", "was given [3], a list; it takes"),
        (SOLVER, "return ob", "run.report_bound('3', 'me') #", "report_b", "was given '3'; it tak"),
        (SOLVER, "def solve", "def slove", "def slove", "no method 'solve'; rename 'slove' to it"),
        (SOLVER, ", run)", ")", "def solve", "write def solve(self, instance, run)"),
        (SOLVER, '"modes"', '"moeds"', "@dataclass", "did you mean 'modes'?"),
        (SOLVER, "return ob", "ob.solve(instance, seeed=1) #", "seeed", "did you mean 'seed'?"),
        (POLICY, "return int", "return 'run' #", "def decide", "a policy decided 'run'"),
        (POLICY, "def decide", "def deicde", "def deicde", "no method 'decide'; rename 'deicde'"),
        (RULE, "return list_rule", "list_rule", "def rule", "returned nothing; end it with return"),
        (RULE, "ready_weight", "raedy_weight", "raedy", "did you mean 'ready_weight'?"),
    ],
)
def test_a_solver_with_a_mistake(
    write: Written,
    capsys: pytest.CaptureFixture[str],
    source: str,
    old: str,
    new: str,
    at: str,
    words: str,
) -> None:
    write("problem", "zz_one", PROBLEM, "one", "one", "class")
    place = write("solver", "zz_wrong", source, old, new, at)
    for verb in ("solve",) if source is SOLVER else ("solve", "simulate"):
        assert main([verb, "zz_one", "-s", "zz_wrong"]) == exits.USAGE
        said = capsys.readouterr().err
        assert place in said and words in said and "Traceback" not in said


def test_an_exception_of_a_policy_names_the_line(
    write: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of any crashed solver, the exit code is 1; ``solve`` keeps what was found before."""
    write("problem", "zz_one", PROBLEM, "one", "one", "class")
    place = write("solver", "zz_wrong", POLICY, "moment.task", "moment.tsak", "moment.tsak")
    assert main(["simulate", "zz_one", "-s", "zz_wrong"]) == exits.INTERNAL
    said = capsys.readouterr().err
    assert place in said and "did you mean 'task'?" in said and "Traceback" not in said
    assert main(["solve", "zz_one", "-s", "zz_wrong", "-q"]) == exits.INTERNAL
    said = "".join(capsys.readouterr())
    assert place in said.replace("\n", "") and "Traceback" not in said


def one_task() -> ob.Instance:
    m = ob.Model("one")
    m.task("a", modes=[m.mode(m.pool("gpu", count=1), time_s=3)])
    m.minimize(makespan_s=1.0)
    return m.build()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda i: OB.solve(i, "fcfs", time_limit="5s"), "did you mean 'time_limit_s'?"),
        (lambda i: OB.solve(i, "fcfs", time_limit_s="5s"), "time_limit_s is '5s'; it must be a nu"),
        (lambda i: OB.solve(i, "fcfs", time_limit_s=True), "time_limit_s is True; it must be a nu"),
        (lambda i: OB.solve(i, "fcfs", seed="1"), "seed is '1'; it must be a whole number"),
        (lambda i: OB.solve(i, "fcfs", threads=1.5), "threads is 1.5; it must be a whole number"),
        (
            lambda i: OB.solve(i, "fcfs", warm_start=[1]),
            "warm_start is [1], a list; it must be an",
        ),
        (lambda i: OB.solve(i, "random_rules", kk=1), "unknown parameter of solver 'random_rules'"),
        (lambda i: OB.solve(OB.Model("m"), "fcfs"), "the target is a Model, which is still being"),
        (lambda i: OB.solve(None), "the target is None; it must be an instance, a problem"),
        (lambda i: OB.solve(ob.Problem), "the target is the class Problem; give an object"),
        (lambda i: OB.solve(i, 3), "the solver is 3; it must be the name of a solver"),
        (lambda i: OB.solve(i, ob.Solver), "the solver is the class Solver; give an object"),
        (lambda i: OB.bound(i, time_limit="5s"), "did you mean 'time_limit_s'?"),
        (lambda i: OB.bound(i, time_limit_s="5s"), "time_limit_s is '5s'; it must be a number"),
        (lambda i: OB.bound(i, 3), "unknown bounding method '3'"),
        (lambda i: OB.simulate(i, horizon="5s"), "did you mean 'horizon_s'?"),
        (lambda i: OB.simulate(i, horizon_s="5s"), "horizon_s is '5s'; it must be a number"),
        (lambda i: OB.simulate(i, 3), "the policy is 3; it must be a policy's name"),
        (lambda i: OB.verify(i, [1]), "verify: the schedule is a list; it must be an ob.Schedule"),
        (lambda i: OB.explain(OB.Model(), None), "the instance is a Model; it must be an ob.Inst"),
        (lambda i: OB.Model("m").task("a", dealine_s=1), "did you mean 'deadline_s'?"),
        (
            lambda i: OB.Model("m", tik_s=1),
            "did you mean 'tick_s'?",
        ),
        (
            lambda i: RULES.list_rule(i, ednweight=1),
            "list_rule() has no argument 'ednweight'; did you m",
        ),
    ],
)
def test_a_wrong_call(call: Callable[[ob.Instance], Any], words: str) -> None:
    with pytest.raises(ob.OptbenchError, match=re.escape(words)):
        call(one_task())


class Slow(ob.Solver):
    """Defined outside of any plug-in file."""

    def solv(self, instance: ob.Instance, run: ob.Run) -> None:
        return None


class Nothing(ob.Problem):
    """Returns no instance."""

    def instance(self, seed: int = 0) -> ob.Instance:
        return None  # type: ignore[return-value]


def test_objects_are_held_to_the_same() -> None:
    with pytest.raises(PluginError, match=r"test_author_errors.py:\d+: Slow has no method 'solve'"):
        ob.solve(one_task(), Slow())
    for use in (ob.solve, ob.simulate, ob.environment):
        with pytest.raises(PluginError, match=r"test_author_errors.py:\d+: instance\(\) returned"):
            use(Nothing())


def test_a_function_without_an_argument() -> None:
    with pytest.raises(PluginCrashError, match=r"test_author_errors.py:\d+: .*write def decide\(m"):
        ob.simulate(one_task(), lambda: None)  # type: ignore[arg-type, misc]


def test_which_plugins_are_built_in() -> None:
    assert is_built_in(load_class("solver", "fcfs")) and is_built_in(ob.Solver)
    assert not is_built_in(Slow)
