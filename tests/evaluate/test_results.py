"""Joined results: regret, aggregates, primal integrals; every figure by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from optbench.evaluate.rows import table
from optbench.evaluate.summaries import Summary, costs_of, summaries
from optbench.evaluate.trajectories import primal_integral_s
from optbench.run.best_known import BestKnown
from optbench.store.run_store import Store
from optbench.study.cells import BOUNDS
from optbench.study.declared import CellBudget
from tests.evaluate.studies_by_hand import failure, records_of, study_of


def by_label(found: list[Summary]) -> dict[str, Summary]:
    return {each.label: each for each in found}


def test_objectives_in_order() -> None:
    """Best is (10, 6). y's bound of the second level holds for schedules of 12 on the first: x is
    better there, and below it.
    """
    plan = study_of(["x", "y", "z"], ["a"], levels=2, trust=("z",))
    found = table(plan, records_of(plan, {
        ("x", "a-0"): ((10.0, 6.0), (8.0, 3.0)),
        ("y", "a-0"): ((12.0, 5.0), (9.0, 5.0)),
        ("z", "a-0"): ((10.0, 9.0), (10.0, 4.0)),
    }))  # fmt: skip
    assert found.contradictions == ()
    assert found.best["hash-a-0"] == BestKnown((10.0, 6.0), "x", 10.0)
    assert [row.gap for row in found.rows] == pytest.approx([0.5, 0.25, 5 / 9])
    assert [row.study_gap for row in found.rows] == pytest.approx([0.5, 2 / 12, 5 / 9])
    assert [row.rpd for row in found.rows] == pytest.approx([0.0, 0.2, 0.0])
    ranks = {each.label: each.rank for each in summaries(found)}
    assert ranks == {"x": 1.0, "z": 2.0, "y": 3.0}


def test_regret_is_against_the_reference_on_the_same_instance_and_seed() -> None:
    plan = study_of(["x", "ideal"], ["a", "b"], reference="ideal")
    given = {
        ("x", "a-0"): (15.0, None), ("ideal", "a-0"): (10.0, None),
        ("x", "b-0"): (30.0, None), ("ideal", "b-0"): lambda cell: failure(cell, "crashed"),
    }  # fmt: skip
    found = table(plan, records_of(plan, given)).rows
    assert [row.regret for row in found] == [0.5, 0.0, None, None]
    assert [row.rpd for row in found] == [0.5, 0.0, 0.0, None]
    same = table(
        replace(plan, study=replace(plan.study, reference="best")), records_of(plan, given)
    ).rows
    assert [row.regret for row in same] == [row.rpd for row in same]


def test_the_reference_is_one_configuration_and_no_other_of_the_same_solver() -> None:
    plan = study_of(["rules", "rules:k=8"], ["a"], reference="rules")
    found = table(
        plan, records_of(plan, {("rules", "a-0"): (20.0, None), ("rules:k=8", "a-0"): (10.0, None)})
    ).rows
    assert [row.regret for row in found] == [0.0, -0.5]


def test_excess_over_nothing() -> None:
    plan = study_of(["x", "y"], ["a"])
    found = table(
        plan, records_of(plan, {("x", "a-0"): (0.0, 0.0), ("y", "a-0"): (3.0, None)})
    ).rows
    assert [row.rpd for row in found] == [0.0, None]


def test_summaries_by_hand() -> None:
    """Two instances, the best bounds 90 and 50. x: gaps 0.1 and 0, y: 0.25 and 1 (it failed, at 10
    s of time).
    """
    plan = study_of(["y", "x"], ["a"], seeds=(0, 1))
    given = {
        (BOUNDS, "a-0"): (None, 90.0), ("x", "a-0"): (100.0, None), ("y", "a-0"): (120.0, None),
        ("x", "a-1"): (50.0, 50.0), ("y", "a-1"): lambda cell: failure(cell, "crashed"),
    }  # fmt: skip
    first, second = summaries(table(plan, records_of(plan, given)))
    assert (first.label, second.label) == ("x", "y")
    assert (
        first.study_gap is not None and second.study_gap is not None and second.behind is not None
    )
    assert first.study_gap.value == pytest.approx(0.05) and second.study_gap.value == pytest.approx(
        0.625
    )
    assert (first.study_gap.low, first.study_gap.high) == pytest.approx((0.0, 0.1))
    assert second.behind.value == pytest.approx((0.15 + 1.0) / 2)
    assert (second.behind.low, second.behind.high) == pytest.approx((0.15, 1.0))
    assert (
        first.optimal,
        first.proved,
        first.failed,
        first.missing_gaps,
        first.wins,
        first.rank,
    ) == (1, 1, 0, 0, 2, 1.0)
    assert (second.optimal, second.failed, second.missing_gaps, second.wins, second.rank) == (
        0,
        1,
        1,
        0,
        2.0,
    )
    assert first.time_s == pytest.approx(1.0)
    assert second.time_s == pytest.approx(math.sqrt(11 * 20) - 10)
    assert (
        second.rpd is not None and second.rpd.value == pytest.approx(0.2) and second.rpd.count == 1
    )


def test_failing_at_once_is_not_fast() -> None:
    """Under a work limit alone a failure has no time."""
    plan = study_of(
        ["x", "y"], ["a"], seeds=(0, 1), budget=CellBudget(time_limit_s=None, work_limit=5.0)
    )
    given: dict[tuple[str, str], Any] = {("x", f"a-{seed}"): (10.0, None) for seed in (0, 1)}
    given |= {
        ("y", f"a-{seed}"): lambda cell: failure(cell, "crashed", total_s=0.01) for seed in (0, 1)
    }
    each = by_label(summaries(table(plan, records_of(plan, given))))
    assert each["x"].time_s == pytest.approx(1.0) and each["y"].time_s is None


def test_what_has_not_run_is_left_out_and_ranks_are_over_what_everybody_ran() -> None:
    """y is compared on a alone, where it is behind; its lack of a cell on b, where x is far from
    its bound, is no merit.
    """
    plan = study_of(["x", "y", "late"], ["a", "b"], trust=("x",))
    given = {("x", "a-0"): (10.0, 10.0), ("y", "a-0"): (12.0, None), ("x", "b-0"): (10.0, 1.0)}
    found = table(plan, records_of(plan, given))
    assert found.ran == 3 and found.labels == ("x", "y", "late")
    assert costs_of(found).columns == (("hash-a-0", 0),)
    each = by_label(summaries(found))
    assert (each["x"].rank, each["y"].rank, each["late"].rank) == (1.0, 2.0, None)
    assert [(each[label].ran, each[label].compared) for label in ("x", "y", "late")] == [
        (2, 1),
        (1, 1),
        (0, 0),
    ]
    assert each["late"].study_gap is None and list(each)[-1] == "late"
    assert (
        next(iter(each)) == "x"
        and each["y"].behind is not None
        and each["y"].behind.value == pytest.approx(2 / 12)
    )


def test_a_study_without_any_record() -> None:
    plan = study_of(["x"], ["a"])
    (only,) = summaries(table(plan, {}))
    assert (only.ran, only.planned, only.study_gap, only.time_s) == (0, 1, None, None)


def test_primal_integral(tmp_path: Path) -> None:
    """1 until 2 s, 0.2 until 6 s (100 against 80), then 0: 2 + 0.8."""
    plan = study_of(["x", "y"], ["a"])
    found = table(
        plan,
        records_of(
            plan, {("x", "a-0"): (80.0, None), ("y", "a-0"): lambda cell: failure(cell, "crashed")}
        ),
    )
    store = Store(tmp_path / "store")
    points = [(0.0, None, 0), (2.0, 100.0, 0), (6.0, 80.0, 0), (8.0, 1.0, 1)]
    rows_of_points = [
        {"t_s": t, "objective": value, "bound": None, "level": level} for t, value, level in points
    ]
    folder = store.cell(found.rows[0].cell.key)
    folder.mkdir(parents=True)
    (folder / "trajectory.json").write_text(json.dumps(rows_of_points))
    best = found.best["hash-a-0"]
    assert primal_integral_s(found.rows[0], best, store) == pytest.approx(2.8)
    assert primal_integral_s(found.rows[1], best, store) == 10.0
    assert primal_integral_s(found.rows[0], None, store) is None
