"""Conformance suite of shapes: files, ``verify``, the model held against it, and bounds."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from optbench import api
from optbench.errors import FileFormatError, OptbenchError, PluginError
from optbench.model.files.strict_json import parse_json
from optbench.model.result import Result
from optbench.plugins import discovery
from optbench.plugins.shape_files import instance_text, shaped_instance
from optbench.plugins.shape_search import shape_named
from optbench.plugins.solver_choice import refusals
from optbench.shapes.milp.exact_point import broken
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.protocol.shape import Shape
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.testing.changed_decisions import changed

SEEDS = (0, 1, 2)


class ShapeConformance:
    """Inherit, name your class ``Test...`` and set ``problem`` to a spec that makes small instances
    of the shape.
    """

    problem: ClassVar[str]
    time_limit_s: ClassVar[float] = 5.0
    # Decisions that are tried beside those of solvers, each changed in one or two values.
    num_changes: ClassVar[int] = 400
    # Constraints that no changed decision violates, and that are tested elsewhere.
    not_reached: ClassVar[frozenset[str] | set[str]] = frozenset()

    # --- what the author may replace ---

    def instance(self, seed: int = 0) -> ShapedInstance:
        made: object = discovery.load_problem(self.problem).instance(seed)
        assert isinstance(made, ShapedInstance), f"{self.problem} makes a {type(made).__name__}"
        return made

    def broken_decisions(self, instance: ShapedInstance) -> Iterator[Any]:
        """Yield decisions of one's own that violate constraints, where changes do not."""
        yield from ()

    # --- what is tried ---

    def results(self, seed: int) -> tuple[ShapedInstance, tuple[Result, ...]]:
        """Return an instance and the results of all solvers that take it."""
        suite: Any = type(self)
        return solved(suite, seed)

    def decisions(self, seed: int) -> Iterator[tuple[ShapedInstance, Any]]:
        """Yield decisions of solvers, those of the author, and changed ones; not all are valid."""
        instance, results = self.results(seed)
        yield from ((instance, each) for each in self.broken_decisions(instance))
        found = [result.schedule for result in results if result.schedule is not None]
        yield from ((instance, each) for each in found)
        for decision in found[:1]:
            document = plain(instance.shape.write_decision(instance, decision))
            for body in changed(document["decision"], self.num_changes, seed):
                other = {**document, "decision": body}
                try:
                    read = instance.shape.read_decision(instance, other)
                except FileFormatError:  # it is refused before it is verified
                    continue
                yield instance, read

    # --- the shape ---

    def test_it_is_documented(self) -> None:
        shape = self.instance().shape
        assert shape.name == shape.name.strip() and shape.name
        assert type(shape).__doc__, f"shape {shape.name!r}: its class needs a docstring"
        for name, metric in shape.metrics.items():
            assert metric.words, f"metric {name!r} needs words"
        for name, words in shape.constraints.items():
            assert words, f"constraint {name!r} needs words"

    def test_it_is_found_by_its_name(self) -> None:
        shape = self.instance().shape
        assert type(shape_named(shape.name)) is type(shape)

    def test_same_seed_same_instance(self) -> None:
        for seed in SEEDS:
            assert self.instance(seed).hash == self.instance(seed).hash

    def test_an_instance_survives_a_file(self) -> None:
        for seed in SEEDS:
            instance = self.instance(seed)
            again = shaped_instance(parse_json(instance_text(instance)))
            assert again.hash == instance.hash and again.name == instance.name
            assert instance_text(again) == instance_text(instance)

    def test_an_instance_survives_pickling(self) -> None:
        instance = self.instance()
        assert pickle.loads(pickle.dumps(instance)).hash == instance.hash

    # --- decisions ---

    def test_some_solver_finds_a_decision(self) -> None:
        for seed in SEEDS:
            instance, results = self.results(seed)
            assert any(result.verified for result in results), (
                f"{instance.name}: none of {[result.solver for result in results]} finds one"
            )

    def test_a_decision_survives_a_file(self) -> None:
        for seed in SEEDS:
            for instance, decision in self.decisions(seed):
                document = plain(instance.shape.write_decision(instance, decision))
                again = instance.shape.read_decision(instance, document)
                assert plain(instance.shape.write_decision(instance, again)) == document
                assert verdict(instance, again) == verdict(instance, decision)

    def test_verify_leaves_the_instance_alone(self) -> None:
        for seed in SEEDS:
            for instance, decision in self.decisions(seed):
                assert verdict(instance, decision) == verdict(instance, decision)
            assert instance_text(instance) == instance_text(replace(instance))

    def test_what_verify_finds_is_declared(self) -> None:
        shape: Shape = self.instance().shape
        declared = {*shape.constraints, "finite"}
        for seed in SEEDS:
            for instance, decision in self.decisions(seed):
                _, names, metrics = verdict(instance, decision)
                assert set(names) <= declared, (
                    f"verify names {sorted(set(names) - declared)}, which `constraints` lacks"
                )
                assert {name for name, _ in metrics} <= set(shape.metrics), (
                    f"verify computes {metrics}, and `metrics` lacks some of them"
                )

    def test_each_constraint_can_be_violated(self) -> None:
        """A constraint that is never violated may be one that verify forgets."""
        violated: set[str] = set()
        for seed in SEEDS:
            for instance, decision in self.decisions(seed):
                violated |= set(verdict(instance, decision)[1])
        never = set(self.instance().shape.constraints) - violated
        assert never <= set(self.not_reached), (
            f"no decision that was tried violates {sorted(never)}; yield one that does from "
            "broken_decisions(), or name the constraint in `not_reached`"
        )
        assert not violated & set(self.not_reached), (
            f"{sorted(violated & set(self.not_reached))} in `not_reached` can be violated"
        )

    # --- the model ---

    def test_model_and_verify_agree_on_decisions(self) -> None:
        """What verify accepts satisfies every row at the same objective, and what it refuses does
        not.
        """
        for seed in SEEDS:
            for instance, decision in self.decisions(seed):
                if "formulate" in instance.shape.capabilities:
                    compare(instance, decision)

    def test_model_and_verify_agree_on_points(self) -> None:
        """Points of the model, found under random objectives, are decisions that verify accepts."""
        for seed in SEEDS:
            instance = self.instance(seed)
            if "formulate" not in instance.shape.capabilities:
                continue
            rng = np.random.default_rng(seed)
            for _ in range(3):
                program = instance.formulation.program
                cost = rng.integers(-5, 6, program.num_columns).astype(float)
                other: Any = MILPS.instance(replace(program, cost=cost, constant=0.0))
                found: Any = api.solve(other, "highs", time_limit_s=self.time_limit_s, bound=False)
                if found.schedule is not None:
                    decision = instance.formulation.decode(found.schedule)
                    reached = instance.shape.verdict_of(instance, decision)
                    instance.shape.check_decoded(instance, found.schedule, reached)

    def test_bounds_are_on_the_right_side(self) -> None:
        for seed in SEEDS:
            instance, results = self.results(seed)
            bounds = api.bound(instance, time_limit_s=self.time_limit_s)
            bounds += [bound for result in results for bound in result.bounds]
            sign = 1.0 if instance.shape.sense(instance) == "min" else -1.0
            best = max((sign * bound.value for bound in bounds), default=-math.inf)
            for _, decision in self.decisions(seed):
                reached = instance.shape.verdict_of(instance, decision)
                if reached.feasible:
                    value = sign * reached.objectives[0]
                    room = 1e-9 * max(1.0, abs(value))
                    assert value >= best - room, (
                        f"{instance.name}: a verified decision has {value}, beyond a bound {best}"
                    )


@cache
def solved(suite: Any, seed: int) -> tuple[ShapedInstance, tuple[Result, ...]]:
    """Solve the instance of a seed by all solvers that take it, once for all tests."""
    instance: Any = suite().instance(seed)
    takers = [name for name, reason in refusals(instance).items() if reason is None]
    limits: Any = {"time_limit_s": suite.time_limit_s, "seed": 7}
    return instance, tuple(api.solve(instance, name, **limits) for name in takers)


def plain(document: Any) -> Any:
    """Return a document as it comes back from a file."""
    return json.loads(json.dumps(document, allow_nan=False))


def verdict(instance: ShapedInstance, decision: Any) -> tuple[bool, tuple[str, ...], Any]:
    """Return what verify says: feasible, names of violated constraints, metrics."""
    found = instance.shape.verdict_of(instance, decision)
    names = tuple(sorted({violation.constraint for violation in found.violations}))
    return found.feasible, names, tuple(sorted(found.metrics.items()))


def compare(instance: ShapedInstance, decision: Any) -> None:
    """Hold verify's verdict on a decision against the rows of the model."""
    shape, formulation = instance.shape, instance.formulation
    if verdict(instance, decision)[0]:
        shape.accept(instance, decision)  # raises where a row is broken or the objectives differ
        return
    try:
        point = formulation.encode(decision)
        again = formulation.decode(point)
    except (PluginError, OptbenchError):  # the model has no point for what verify refuses
        return
    stands_for_it = plain(shape.write_decision(instance, again)) == plain(
        shape.write_decision(instance, decision)
    )
    if stands_for_it and not broken(formulation.program, point):
        found = shape.verdict_of(instance, decision).violations[0]
        pytest.fail(
            f"{instance.name}: the model allows a decision that verify refuses: {found.message} "
            f"(constraint {found.constraint!r}); the model lacks it, or verify is wrong"
        )
