"""A study that maximises is the mirror of one that minimises: gaps, ranks and contradictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optbench.evaluate.claim_ledger import at_bound, judge_claim
from optbench.evaluate.judging import columns_of
from optbench.evaluate.rows import table
from optbench.evaluate.summaries import summaries
from optbench.evaluate.worst_cells import direction
from optbench.report.solver_charts import no_profile, zero_best
from optbench.report.study_report import StudyReport, gather
from optbench.run.best_known import BestKnown
from optbench.run.study_progress import StudyWatch
from optbench.shapes.protocol.shape import Metric
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.store.run_store import Store
from optbench.study.cells import BOUNDS
from optbench.study.declared import Claim
from optbench.study.formula_binding import number
from optbench.study.formula_names import Scope
from optbench.study.formula_syntax import Binary
from optbench.study.planning import Plan
from tests.evaluate.studies_by_hand import record, records_of, study_of

EARNED = {"earned_usd": Metric("USD", "what is earned")}
MAXIMISED = ShapeFacts(
    "bag", "max", "decision", "max earned_usd", "3 jobs", "a:B", ("bag",), metrics=EARNED
)
MINIMISED = replace(MAXIMISED, sense="min", objective="earned_usd")


def mirrored(results: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    return {
        key: tuple(None if value is None else -value for value in pair)
        for key, pair in results.items()
    }


def plans(labels: list[str], instances: list[str]) -> tuple[Plan, Plan]:
    low = study_of(labels, instances, shape=MINIMISED)
    return low, study_of(labels, instances, shape=MAXIMISED)


GIVEN = {
    (BOUNDS, "a-0"): (None, 95.0),
    ("x", "a-0"): (110.0, 90.0),
    ("y", "a-0"): (100.0, 98.0),
    (BOUNDS, "b-0"): (None, -20.0),
    ("x", "b-0"): (-10.0, None),
    ("y", "b-0"): (-5.0, -30.0),
}


def test_gaps_ranks_and_the_best_known_are_mirrored() -> None:
    low, high = plans(["x", "y"], ["a", "b"])
    down = table(low, records_of(low, GIVEN))
    up = table(high, records_of(high, mirrored(GIVEN)))
    assert [row.gap for row in up.rows] == [row.gap for row in down.rows]
    assert [row.study_gap for row in up.rows] == [row.study_gap for row in down.rows]
    assert [row.state for row in up.rows] == [row.state for row in down.rows]
    assert up.best["hash-a-0"] == BestKnown(-100.0, "y", -95.0, "max")
    assert up.best["hash-b-0"] == BestKnown(10.0, "x", 20.0, "max")
    assert down.contradictions == up.contradictions == ()
    assert [(each.label, each.rank, each.wins, each.study_gap) for each in summaries(up)] == [
        (each.label, each.rank, each.wins, each.study_gap) for each in summaries(down)
    ]


def test_excesses_apply_to_positive_minima_only() -> None:
    low, high = plans(["x", "y"], ["a", "b"])
    down = table(low, records_of(low, GIVEN))
    assert [row.rpd for row in down.rows] == [pytest.approx(0.1), 0.0, None, None]
    assert {row.no_excess for row in down.rows if row.rpd is None} == {
        "the best known objective is not positive"
    }
    up = table(high, records_of(high, mirrored(GIVEN)))
    assert [row.rpd for row in up.rows] == [None] * 4
    assert {row.no_excess for row in up.rows} == {"its objective is maximised"}
    # Without a decision there is nothing to explain.
    none = table(high, records_of(high, {("x", "a-0"): (None, None)}))
    assert {row.no_excess for row in none.rows} == {None}


@pytest.mark.parametrize("bound", [99.0, 100.0 + 1e-6])
def test_an_upper_bound_below_what_was_reached_is_refuted(bound: float) -> None:
    _, high = plans(["x", "y"], ["a"])
    found = table(
        high, records_of(high, {("x", "a-0"): (90.0, bound), ("y", "a-0"): (100.0, None)})
    )
    if bound < 100.0:
        assert "is below the objective 100.0 that y reached" in found.contradictions[0].words
        assert [row.state for row in found.rows] == ["false_bound", "feasible"]
    else:
        assert found.contradictions == ()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.one_of(st.none(), st.floats(-1e6, 1e6))
        ),
        min_size=1,
        max_size=4,
    )
)
def test_every_study_has_a_mirror(rows: list[tuple[float, float, float | None]]) -> None:
    names = [f"i{k}" for k in range(len(rows))]
    given_: dict[tuple[str, str], Any] = {}
    for name, (x, y, bound) in zip(names, rows, strict=True):
        given_ |= {("x", f"{name}-0"): (x, bound), ("y", f"{name}-0"): (y, None)}
    low, high = plans(["x", "y"], names)
    down, up = table(low, records_of(low, given_)), table(high, records_of(high, mirrored(given_)))
    assert len(down.contradictions) == len(up.contradictions)
    for one, other in zip(down.rows, up.rows, strict=True):
        assert (one.state, one.gap, one.study_gap) == (other.state, other.gap, other.study_gap)
    assert [(each.label, each.rank) for each in summaries(down)] == [
        (each.label, each.rank) for each in summaries(up)
    ]


def test_progress_finds_the_best_gap_and_false_bounds_of_a_maximum() -> None:
    _, high = plans(["x", "y"], ["a"])
    bounding, x, y = high.cells
    watch = StudyWatch()
    watch.begin([record(bounding, bound=110.0)], [x, y], 3)
    assert watch.take(record(x, 100.0, 105.0)) is None
    assert watch.best_gap == pytest.approx(5 / 105)
    assert "false bound" in str(
        watch.take(record(y, 108.0, None)) or watch.take(record(x, 1, 105.0))
    )


def report_of(plan: Plan, results: dict[tuple[str, str], Any], root: Path) -> StudyReport:
    store = Store(root / ".optbench").make()
    for each in records_of(plan, results).values():
        store.add(each, {})
    return gather(plan, store)


def test_a_profile_says_when_it_does_not_apply(tmp_path: Path) -> None:
    low, high = plans(["x", "y"], ["a", "b"])
    assert "is negative" in str(no_profile(report_of(low, GIVEN, tmp_path / "low")))
    up = report_of(high, mirrored(GIVEN), tmp_path / "high")
    assert "is maximised" in str(no_profile(up))
    zero = {("x", "a-0"): (0.0, None), ("y", "a-0"): (3.0, None)}
    found = report_of(study_of(["x", "y"], ["a"], shape=MINIMISED), zero, tmp_path / "zero")
    assert no_profile(found) is None and "On 1 pair of instance and seed" in zero_best(found)


def test_what_bounds_allow_of_a_claim_is_on_the_other_side() -> None:
    _, high = plans(["x", "y"], ["a", "b"])
    columns = columns_of(table(high, records_of(high, mirrored(GIVEN))))
    claim = Claim("more", "here", -45.0, "mean(objective, x)", better="higher")
    # -95 and 20 are the upper bounds: no choice of x earns more on average.
    assert judge_claim(high.study, claim, columns).bound == pytest.approx((-95.0 + 20.0) / 2)
    assert judge_claim(high.study, replace(claim, better="lower"), columns).bound is None


def test_where_signs_are_unknown_no_bound_is_made_of_a_product() -> None:
    scope = Scope((("x", "x"), ("y", "y")))
    product = number("mean(objective, x) * mean(objective, y)", scope)
    assert isinstance(product.term, Binary) and direction(product.term) == (1, 1)
    assert direction(product.term, signed=True) == (0, 0)
    assert at_bound(product) is not None and at_bound(product, signed=True) is None
    ratio = number("ratio(objective, x, y)", scope)
    assert at_bound(ratio) is not None and at_bound(ratio, signed=True) is None
    timed = number("mean(objective, x) / mean(wall_s, y)", scope)
    assert at_bound(timed, signed=True) is not None


@pytest.mark.parametrize(
    ("ours", "better", "said"),
    [
        ("mean(objective, x)", "lower", True),
        ("rel(earned_usd, x, y)", "lower", True),
        ("mean(objective, x)", "higher", False),
        ("-mean(objective, x)", "lower", False),
        ("mean(study_gap, x)", "lower", False),
    ],
)
def test_less_of_a_maximum_is_seldom_better(ours: str, better: Any, said: bool) -> None:
    def made(value: float) -> Any:
        return lambda cell: record(cell, value, metrics={"earned_usd": value})

    low, high = plans(["x", "y"], ["a"])
    claim = Claim("earns more", "a paper", 20.0, ours, better)
    for plan, expected in ((low, False), (high, said)):
        study = replace(plan.study, metrics=("earned_usd",))
        records = records_of(plan, {("x", "a-0"): made(110.0), ("y", "a-0"): made(100.0)})
        remark = judge_claim(study, claim, columns_of(table(plan, records))).remark
        assert ("the objective is maximised" in remark) is expected
