"""Tests that a study asks for, on results made by hand; and the section of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from optbench.evaluate.hypothesis_tests import linear_regression
from optbench.evaluate.rows import Table, table
from optbench.evaluate.study_tests import StudyTests, study_tests
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.store.records import Record
from optbench.study.declared import Statistics
from optbench.study.planning import Plan
from tests.evaluate.studies_by_hand import failure, records_of, study_of

SEEDS = (0, 1, 2)
# Objectives by solver, on seeds 0, 1, 2 of the problem a: x is y plus 1, 2, 3.
COSTS = {"x": (11.0, 22.0, 33.0), "y": (10.0, 20.0, 30.0), "z": (14.0, 18.0, 36.0)}


def results(**fields: Any) -> tuple[Plan, dict[str, Record]]:
    plan = study_of(list(COSTS), ["a"], SEEDS, statistics=Statistics(**fields))
    given: Mapping[Any, Any] = {
        (label, f"a-{k}"): (cost, None)
        for label, costs in COSTS.items()
        for k, cost in enumerate(costs)
    }
    return plan, records_of(plan, given)


def no_facts(instance_hash: str) -> Mapping[str, float]:
    return {}


def found_in(joined: Table, facts: Any = no_facts) -> StudyTests:
    found = study_tests(joined, ["y", "x", "z"], facts)
    assert found is not None
    return found


def test_a_study_that_asks_for_nothing_has_no_tests() -> None:
    plan = study_of(["x"], ["a"])
    assert study_tests(table(plan, {}), ["x"], no_facts) is None


def test_pairs_by_hand() -> None:
    found = found_in(table(*results(metric="objective")))
    assert found.reference == "y" and [each.label for each in found.pairs] == ["x", "z"]
    x, z = (each.test for each in found.pairs)
    # x − y is 1, 2, 3: t = 2√3, p = 1 − √(12/14) = 0.0742; z − y is 4, −2, 6: mean 8/3.
    assert x is not None and x.difference == 2.0
    assert x.p_value == pytest.approx(1 - (12 / 14) ** 0.5)
    assert z is not None and z.difference == pytest.approx(8 / 3)
    # Holm: the smaller p twice, the larger one once.
    assert found.pairs[0].p_corrected == pytest.approx(2 * x.p_value)
    assert found.pairs[1].p_corrected == pytest.approx(z.p_value)
    (variance,) = found.variances
    assert variance.units == 3 and variance.one_way is not None and variance.blocked is not None
    assert variance.one_way.within_freedom == 6 and variance.blocked.within_freedom == 4


def test_a_reference_of_its_own_and_a_margin() -> None:
    found = found_in(table(*results(metric="objective", reference="x", margin=10.0)))
    assert [each.label for each in found.pairs] == ["y", "z"]
    assert found.pairs[0].equivalence is not None
    # y − x is −1, −2, −3 within ±10: 8√3 standard errors from the nearer end.
    below = found.pairs[0].equivalence.p_above
    assert below == pytest.approx(0.5 - 0.5 * (192 / 194) ** 0.5)
    assert found.pairs[0].equivalence_corrected == pytest.approx(2 * below)


def test_logarithms_compare_by_ratios() -> None:
    # x is 1.1 times y on every seed, but for rounding: differences of logarithms have no spread.
    found = found_in(table(*results(metric="objective", scale="log")))
    assert found.pairs[0].test is None
    assert "all 3 differences are 0.0953102" in found.pairs[0].why
    z = found.pairs[1]
    assert z.test is not None
    # Holm: two pairs, of which one has no test and counts with p = 1.
    assert (found.pairs[0].constant, found.pairs[0].p_corrected) == (True, 1.0)
    assert z.p_corrected == pytest.approx(min(1.0, 2 * z.test.p_value))


def test_identical_values_are_counted_apart_from_tests_of_equivalence() -> None:
    plan, _ = results(metric="objective", margin=10.0)
    given: Mapping[Any, Any] = {
        (label, f"a-{k}"): (COSTS["y" if label == "z" else label][k], None)
        for label in COSTS
        for k in SEEDS
    }
    x, z = found_in(table(plan, records_of(plan, given))).pairs
    assert z.equivalence is not None and z.equivalence.identical
    assert z.equivalence_corrected is None
    # The identical pair counts with p = 1, so that that of x counts twice.
    assert x.equivalence is not None and not x.equivalence.identical
    assert x.equivalence_corrected == pytest.approx(2 * x.equivalence.p_value)


def test_cells_without_a_value_enter_no_test() -> None:
    plan, records = results(metric="objective")
    cell = next(each for each in plan.cells if each.title == "x | a-2 | 2")
    records[cell.key] = failure(cell, "crashed")
    found = found_in(table(plan, records))
    assert found.without == 1
    assert found.pairs[0].test is not None and found.pairs[0].test.count == 2
    assert found.variances[0].units == 2


def sized(instance_hash: str) -> Mapping[str, float]:
    """3, 4 and 8 tasks."""
    return {"num_tasks": {"hash-a-0": 3.0, "hash-a-1": 4.0, "hash-a-2": 8.0}[instance_hash]}


def test_a_regression_on_facts_of_instances() -> None:
    section = results(metric="objective", regress_on=("num_tasks",))
    found = found_in(table(*section), sized)
    wanted = linear_regression({"num_tasks": [3.0, 4.0, 8.0]}, COSTS["y"])
    assert found.regressions[0].label == "y" and found.regressions[0].found == wanted


def test_a_column_that_is_not_known_or_does_not_vary_says_so() -> None:
    section = results(metric="objective", regress_on=("num_tasks",))
    (why, *_) = (each.why for each in found_in(table(*section)).regressions)
    assert why == "num_tasks is not known of a-0"
    section = results(metric="objective", regress_on=("machine_cores",))
    (why, *_) = (each.why for each in found_in(table(*section)).regressions)
    assert why == "column 'machine_cores' is 2 everywhere; leave it out or vary it"


def test_parameters_of_problems_are_columns() -> None:
    names = ["a:tasks=2", "a:tasks=3", "a:tasks=7"]
    asked = Statistics("objective", regress_on=("tasks",))
    plan = study_of(["x"], names, statistics=asked)
    given = {("x", f"{name}-0"): (cost, None) for name, cost in zip(names, (5.0, 6.0, 12.0))}
    found = study_tests(table(plan, records_of(plan, given)), ["x"], no_facts)
    assert found is not None and found.variances == () and found.pairs == ()
    wanted = linear_regression({"tasks": [2.0, 3.0, 7.0]}, [5.0, 6.0, 12.0])
    assert found.regressions[0].found == wanted


def test_by_problem_each_has_its_own_pairs_and_one_correction() -> None:
    asked = Statistics("objective", by_problem=True)
    plan = study_of(["x", "y"], ["a", "b"], SEEDS, statistics=asked)
    given: Mapping[Any, Any] = {
        (label, f"{name}-{k}"): (COSTS[label][k] * (k + 1 if name == "b" else 1), None)
        for label in ("x", "y")
        for name in ("a", "b")
        for k in SEEDS
    }
    found = study_tests(table(plan, records_of(plan, given)), ["y", "x"], no_facts)
    assert found is not None
    assert [(each.problem, each.label) for each in found.pairs] == [("a", "x"), ("b", "x")]
    first, second = (each.test for each in found.pairs)
    assert first is not None and second is not None
    # On b differences are 1, 4, 9: less significant than 1, 2, 3, whose p counts twice.
    assert found.pairs[0].p_corrected == pytest.approx(2 * first.p_value)
    assert second.difference == pytest.approx(14 / 3)


def same_instance(plan: Plan) -> Plan:
    """The plan with one instance per problem, of which each seed is another run."""
    cells = tuple(replace(each, instance_hash=each.target) for each in plan.cells)
    return replace(plan, cells=cells)


def test_runs_of_one_instance_are_averaged_beside_others_and_count_where_it_is_alone() -> None:
    asked = Statistics("objective", regress_on=("n",))
    alone = same_instance(study_of(["x", "y"], ["a"], SEEDS, statistics=asked))
    given: Mapping[Any, Any] = {
        (label, f"{name}-{k}"): (COSTS[label][k] * factor, None)
        for label in ("x", "y")
        for name, factor in (("a", 1), ("b", 2))
        for k in SEEDS
    }
    (pair,) = found_of(alone, given).pairs
    assert pair.test is not None and (pair.test.count, pair.test.difference) == (3, 2.0)
    several = same_instance(study_of(["x", "y"], ["a", "b"], SEEDS, statistics=asked))
    found = found_of(several, given)
    # Means over three runs: 22 and 20 on a, 44 and 40 on b: differences 2 and 4.
    assert found.pairs[0].test is not None
    assert (found.pairs[0].test.count, found.pairs[0].test.difference) == (2, 3.0)
    assert found.variances[0].units == 2
    assert "2 values for 1 columns" in found.regressions[0].why


def found_of(plan: Plan, given: Mapping[Any, Any]) -> StudyTests:
    sizes = {"a": {"n": 1.0}, "b": {"n": 2.0}}
    found = study_tests(table(plan, records_of(plan, given)), ["y", "x"], sizes.__getitem__)
    assert found is not None
    return found


def test_facts_of_a_shape_travel_as_data() -> None:
    facts = ShapeFacts(
        *("s", "min", "decision", "cost", "small", "m:C"),
        facts={"n": 3.0},
        fact_words={"n": "nodes"},
    )
    assert ShapeFacts.from_dict(facts.to_dict()) == facts
