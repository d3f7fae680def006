"""Bounds and gaps in joined results: whose bounds count for whom, and which of them a schedule
refutes.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optbench.evaluate.rows import Row, table
from optbench.run.best_known import BestKnown
from optbench.study.cells import BOUNDS
from tests.evaluate.studies_by_hand import bound_row, failure, record, records_of, study_of


def test_a_gap_is_to_bounds_of_its_own_run_the_study_gap_to_certified_and_trusted_ones() -> None:
    """What y says of itself counts for y alone, unless the study trusts it; the bounding is
    certified and counts for all.
    """
    given = {
        (BOUNDS, "a-0"): (None, 95.0),
        ("x", "a-0"): (110.0, 90.0),
        ("y", "a-0"): (100.0, 98.0),
        ("z", "a-0"): (100.0, None),
    }
    plan = study_of(["x", "y", "z"], ["a"])
    found = table(plan, records_of(plan, given))
    assert [row.gap for row in found.rows] == [
        pytest.approx(20 / 110),
        pytest.approx(2 / 100),
        None,
    ]
    assert [row.study_gap for row in found.rows] == pytest.approx([15 / 110, 2 / 100, 5 / 100])
    assert [row.shared_gap for row in found.rows] == pytest.approx([15 / 110, 5 / 100, 5 / 100])
    assert [row.rpd for row in found.rows] == pytest.approx([0.1, 0.0, 0.0])
    assert found.best == {"hash-a-0": BestKnown(100.0, "y", 95.0)}
    assert found.contradictions == ()
    trusting = study_of(["x", "y", "z"], ["a"], trust=("y",))
    again = table(trusting, records_of(trusting, given))
    assert [row.gap for row in again.rows] == [row.gap for row in found.rows]
    assert [row.study_gap for row in again.rows] == pytest.approx([12 / 110, 2 / 100, 2 / 100])
    assert again.best == {"hash-a-0": BestKnown(100.0, "y", 98.0)}


def test_a_certified_bound_counts_for_all_but_not_in_records_that_nobody_checked() -> None:
    def reports(cell: Any, labelled: bool) -> Any:
        return record(
            cell,
            100.0,
            98.0,
            bounds=(bound_row(98.0, "fluid_lp", proof="exact-lp"),),
            labelled=labelled,
        )

    plan = study_of(["x", "y"], ["a"])
    for labelled, gap in ((True, 2 / 100), (False, None)):
        given = {
            ("x", "a-0"): lambda cell, k=labelled: reports(cell, k),
            ("y", "a-0"): (100.0, None),
        }
        x, y = table(plan, records_of(plan, given)).rows
        assert x.study_gap == pytest.approx(2 / 100)
        assert y.study_gap == (None if gap is None else pytest.approx(gap))


def test_an_optimum_on_a_solvers_word_alone_is_not_called_proven() -> None:
    given = {("x", "a-0"): (100.0, 100.0), ("y", "a-0"): (100.0, None)}
    plan = study_of(["x", "y"], ["a"])
    found = table(plan, records_of(plan, given))
    assert [row.optimal for row in found.rows] == [True, False]
    assert [row.proven for row in found.rows] == [False, False]
    assert found.proven == frozenset()
    trusting = study_of(["x", "y"], ["a"], trust=("x",))
    again = table(trusting, records_of(trusting, given))
    assert [row.proven for row in again.rows] == [True, True]
    assert again.proven == {"hash-a-0"}


def test_an_optimum_that_another_solver_proved_is_reached_but_not_proved() -> None:
    plan = study_of(["exact", "rule"], ["a"], trust=("exact",))
    exact, rule = table(
        plan, records_of(plan, {("exact", "a-0"): (50.0, 50.0), ("rule", "a-0"): (50.0, None)})
    ).rows
    assert (exact.proved, exact.optimal, exact.state) == (True, True, "optimal")
    assert (rule.proved, rule.optimal, rule.state, rule.gap, rule.counted_gap) == (
        False,
        True,
        "optimal",
        None,
        1.0,
    )


def test_a_missing_gap_counts_as_one() -> None:
    plan = study_of(["x", "y", "z"], ["a"])
    given = {("x", "a-0"): (10.0, 10.0), ("y", "a-0"): lambda cell: failure(cell, "crashed")}
    x, y, z = table(plan, records_of(plan, given)).rows
    assert [row.counted_gap for row in (x, y, z)] == [0.0, 1.0, 1.0]
    assert [row.counted_study_gap for row in (x, y, z)] == [0.0, 1.0, 1.0]
    assert [row.state for row in (x, y, z)] == ["optimal", "crashed", "not run"]


def test_nothing_counts_worse_than_no_gap() -> None:
    plan = study_of(["x", "y"], ["a"])
    found = table(
        plan,
        records_of(
            plan, {("x", "a-0"): (10.0, -10.0), ("y", "a-0"): lambda cell: failure(cell, "crashed")}
        ),
    ).rows
    assert found[0].gap == 1.0
    assert [(row.counted_gap, row.counted_study_gap) for row in found] == [(1.0, 1.0), (1.0, 1.0)]


def test_a_bound_above_another_solvers_objective_fails_its_cell_and_names_both() -> None:
    plan = study_of(["liar", "honest"], ["a"])
    given = {
        (BOUNDS, "a-0"): (None, 80.0),
        ("liar", "a-0"): (120.0, 110.0),
        ("honest", "a-0"): (100.0, 90.0),
    }
    found = table(plan, records_of(plan, given))
    liar, honest = found.rows
    assert liar.record is not None and liar.record.reason is not None
    assert liar.state == "false_bound" and liar.objective is None and liar.counted_gap == 1.0
    assert liar.record.reason.message == (
        "a-0: liar's bound 110.0 (liar) exceeds the objective 100.0 that honest reached and the "
        "verifier confirmed"
    )
    assert honest.gap == pytest.approx(0.1) and honest.study_gap == pytest.approx(0.1)
    (words,) = found.contradictions
    assert words.guilty is not None and words.guilty.label == "liar"


@pytest.mark.parametrize(("excess", "contradictions"), [(2.0**-41, 0), (2.0**-39, 1)])
def test_only_a_bound_within_the_relative_tolerance_is_no_contradiction(
    excess: float, contradictions: int
) -> None:
    plan = study_of(["x", "y"], ["a"])
    given = {("x", "a-0"): (100.0, 100.0 * (1 + excess)), ("y", "a-0"): (100.0, None)}
    assert len(table(plan, records_of(plan, given)).contradictions) == contradictions


def test_a_shared_bound_above_an_objective_is_struck_out() -> None:
    plan = study_of(["x"], ["a"])
    found = table(
        plan, records_of(plan, {(BOUNDS, "a-0"): (None, 110.0), ("x", "a-0"): (100.0, 90.0)})
    )
    (row,) = found.rows
    assert row.gap == pytest.approx(0.1) and row.study_gap == pytest.approx(0.1) and not row.failed
    (words,) = found.contradictions
    assert words.guilty is not None and words.guilty.kind == "bound"


def test_one_schedule_after_many_refutes_as_well() -> None:
    plan = study_of(["liar", "poor", "good"], ["a"])
    given = {
        ("liar", "a-0"): (300.0, 150.0),
        ("poor", "a-0"): (200.0, None),
        ("good", "a-0"): (100.0, None),
    }
    found = table(plan, records_of(plan, given))
    assert [row.failed for row in found.rows] == [True, False, False]
    assert "100.0 that good reached" in found.contradictions[0].words


def test_infeasibility_that_a_schedule_refutes_fails() -> None:
    plan = study_of(["liar", "honest"], ["a"])
    given = {
        ("liar", "a-0"): lambda cell: record(cell, status="infeasible"),
        ("honest", "a-0"): (100.0, 90.0),
    }
    liar, honest = table(plan, records_of(plan, given)).rows
    assert (
        liar.state == "false_bound" and liar.record is not None and liar.record.reason is not None
    )
    assert liar.record.reason.message == (
        "a-0: liar says that it is infeasible, but honest has a schedule of 100.0 that the "
        "verifier confirmed"
    )
    assert honest.state == "feasible"


def test_a_bound_of_a_later_level_is_refuted_by_a_schedule_as_good_before_it() -> None:
    plan = study_of(["liar", "honest"], ["a"], levels=2)
    given = {
        ("liar", "a-0"): ((10.0, 8.0), (10.0, 7.0)),
        ("honest", "a-0"): ((10.0, 6.0), (10.0, 2.0)),
    }
    liar, honest = table(plan, records_of(plan, given)).rows
    assert liar.state == "false_bound" and honest.state == "feasible"
    assert liar.record is not None and liar.record.reason is not None
    assert (
        "bound 7.0 of level 2" in liar.record.reason.message
        and "honest" in liar.record.reason.message
    )


ANY = st.one_of(st.none(), st.integers(1, 12).map(float))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(ANY, ANY, st.booleans()), min_size=6, max_size=6),
    ANY,
    st.randoms(use_true_random=False),
)
def test_what_is_left_contradicts_nothing(
    cells: list[tuple[Any, Any, bool]], shared: float | None, rng: Random
) -> None:
    """Objectives, bounds and proofs of infeasibility at random: those that remain agree, whatever
    the order of the solvers.
    """
    labels = ["x", "y", "z"]
    given_by = {
        (label, f"a-{seed}"): cells[3 * seed + k]
        for k, label in enumerate(labels)
        for seed in (0, 1)
    }

    def made(values: tuple[float | None, float | None, bool]) -> Any:
        objective, bound, infeasible = values
        status = {"status": "infeasible"} if infeasible and objective is None else {}
        return lambda cell: record(cell, objective, bound, **status)

    def joined(order: list[str]) -> dict[tuple[str, str], Row]:
        plan = study_of(order, ["a"], seeds=(0, 1))
        results: dict[tuple[str, str], Any] = {
            place: made(values) for place, values in given_by.items()
        }
        results |= {(BOUNDS, f"a-{seed}"): (None, shared) for seed in (0, 1)}
        return {
            (row.cell.label, row.cell.instance): row
            for row in table(plan, records_of(plan, results)).rows
        }

    found = joined(labels)
    for instance in ("a-0", "a-1"):
        reached = [
            values[0]
            for (_, where), values in given_by.items()
            if where == instance and values[0] is not None
        ]
        here = [row for (_, where), row in found.items() if where == instance]
        for row in here:
            assert row.record is not None
            if not row.failed:
                assert row.record.bound is None or not reached or row.record.bound <= min(reached)
                assert row.record.status != "infeasible" or not reached
            assert 0.0 <= row.counted_study_gap <= row.counted_gap <= 1.0
    shuffled = labels.copy()
    rng.shuffle(shuffled)
    again = joined(shuffled)
    assert {
        place: (row.state, row.gap, row.study_gap, row.rpd) for place, row in found.items()
    } == {place: (row.state, row.gap, row.study_gap, row.rpd) for place, row in again.items()}


def test_published_bounds(data_dir: Path) -> None:
    """ft06's optimum is 55: 55 is the best known though nobody of the study reached it, and 50 is
    too good to be true.
    """
    plan = study_of(["x", "y"], ["jobshop/ft06"], trust=("x", "y"))
    name = "jobshop/ft06-0"
    found = table(plan, records_of(plan, {("x", name): (66.0, None), ("y", name): (60.0, 50.0)}))
    assert found.best["hash-jobshop/ft06-0"] == BestKnown(55.0, "published", 50.0)
    assert [row.rpd for row in found.rows] == pytest.approx([0.2, 5 / 55])
    wrong = table(plan, records_of(plan, {("x", name): (50.0, None), ("y", name): (60.0, None)}))
    assert [each.words for each in wrong.contradictions] == [
        "jobshop/ft06-0: x reached 50.0, below the published lower bound 55.0"
    ]
    assert wrong.contradictions[0].guilty is None and not wrong.rows[0].failed
    high = table(plan, records_of(plan, {("x", name): (66.0, 60.0), ("y", name): (70.0, None)}))
    assert "the bound 60.0 is above the published upper bound 55.0" in high.contradictions[0].words
