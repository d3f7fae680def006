"""Mistakes in the class of a shape: answered with the author's file and line and the remedy."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import optbench as ob
from optbench.cli.terminal.result_lines import figure_or_text
from optbench.errors import PluginError, UnsupportedError
from optbench.plugins.author_errors import plugin_name
from optbench.plugins.discovery import load_class
from optbench.plugins.given import solver_given
from optbench.shapes import DataShape, Findings, PyomoShape
from tests.sample_files.jobs_shape import JobData, Jobs, Order, ShortestFirst


class Misspelt(DataShape):
    """Its method has another name than the one that is called."""

    name = "misspelt"
    data, solution = JobData, Order
    minimize = "flow_h"

    def verfy(self, data: Any, decision: Any) -> Findings:
        return Findings()


class Half(PyomoShape):
    """Lacks all methods but one."""

    name = "half"
    data, solution = JobData, Order
    minimize = "flow_h"

    def modle(self, data: Any) -> Any: ...

    def verify(self, data: Any, decision: Any) -> Findings:
        return Findings()


class Asks(ob.Problem):
    """Makes an instance of a shape that has a mistake."""

    def instance(self, seed: int = 0) -> Any:
        return Misspelt().instance("x", JobData([1.0]))  # type: ignore[abstract]


def test_a_misspelt_method_is_named_with_file_and_line() -> None:
    line = inspect.getsourcelines(Misspelt.verfy)[1]
    words = (
        rf"^shape 'misspelt': \S+test_shape_mistakes.py:{line}: Misspelt has no method 'verify'; "
        r"rename 'verfy' to verify, or define verify\(self, data, decision\)$"
    )
    uses: tuple[Any, ...] = (Misspelt, lambda: ob.solve(Asks()))
    for use in uses:
        with pytest.raises(PluginError, match=words):
            use()


def test_every_missing_method_is_named() -> None:
    words = (
        r"Half has no method 'decode'; define decode\(self, data, model\); it has no method "
        r"'encode'; define encode\(self, data, decision, model\); it has no method 'model'; "
        r"rename 'modle' to model, or define model\(self, data\)$"
    )
    with pytest.raises(PluginError, match=words):
        Half()  # type: ignore[abstract]


def named(constraint: str, **declared: Any) -> Any:
    """An instance of jobs whose verify finds a violation of this name."""

    def verify(self: Any, data: Any, decision: Any) -> Findings:
        found = Findings({"flow_h": 1.0})
        found.require(False, constraint, "never holds")
        return found

    return type("Named", (Jobs,), {"verify": verify, **declared})().instance("x", JobData([1.0]))


def test_a_violation_of_an_undeclared_constraint() -> None:
    line = inspect.getsourcelines(named)[1] + 3
    words = (
        rf"shape 'job_order': \S+test_shape_mistakes.py:{line}: verify names a constraint 'onec', "
        r"which is not declared in constraints; did you mean 'once'\?"
    )
    with pytest.raises(PluginError, match=words):
        ob.verify(named("onec"), Order([0]))
    with pytest.raises(PluginError, match=words):
        ob.solve(named("onec"), ShortestFirst())
    for instance in (named("once"), named("onec", constraints={})):
        (violation,) = ob.verify(instance, Order([0])).violations
        assert violation.message == "never holds"


def test_the_article_of_a_shape() -> None:
    instance = named("once", name="order")
    with pytest.raises(UnsupportedError, match=r"it takes a schedule or .*, and this is an order"):
        ob.solve(instance, "cpsat")


def test_a_solver_of_a_file_is_called_after_the_file() -> None:
    cls = load_class("solver", "sjf_backfill")
    assert plugin_name(cls) == "sjf_backfill" and plugin_name(ShortestFirst) is None
    assert solver_given(cls(), {}, ())[0] == "sjf_backfill"
    assert solver_given(ShortestFirst(), {}, ())[0] == "shortestfirst"


def test_remarks_by_name_are_no_python() -> None:
    remark = {"proof": "exact-lp", "point": {"x": 1.0, "y": "2/3"}, "amount": 2500.0}
    assert figure_or_text(remark) == "(proof exact-lp, point (x 1, y 2/3), amount 2,500)"
    many = {f"x{k}": k for k in range(9)}
    assert figure_or_text(many).endswith("x7 7, ...)")
