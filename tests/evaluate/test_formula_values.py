"""What formulas come to, derived by hand; what is unknown stays unknown and says why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.claim_ledger import at_bound
from optbench.evaluate.formula_values import evaluate, interval
from optbench.evaluate.rows import table
from optbench.evaluate.worst_cells import worst_cells
from optbench.store.records import Record
from optbench.study.cells import BOUNDS, Cell
from optbench.study.formula_binding import condition, number
from optbench.study.formula_names import Scope
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan
from tests.evaluate.studies_by_hand import BUDGET, failure, record, records_of, study_of

# Energies of two solvers on four instances; b is a's rival.
A, B = (10.0, 20.0, 30.0, 60.0), (20.0, 25.0, 20.0, 80.0)
PLAN = study_of(["a", "b"], ["x"], seeds=(0, 1, 2, 3), trust=("b",))
SCOPE = Scope((("a", "a"), ("b", "b")), "a", ("speed",))


def made(cell: Any, energy: float, bound: float | None = None, **metrics: float) -> Record:
    return record(cell, energy, bound, metrics={"energy_j": energy, **metrics}, wall_s=energy / 10)


def study(results: Mapping[tuple[str, str], Any] | None = None, plan: Plan = PLAN) -> CellColumns:
    """Both solvers on all instances, but for what ``results`` says otherwise."""
    given: dict[tuple[str, str], Any] = {}
    for label, energies in (("a", A), ("b", B)):
        for seed, energy in enumerate(energies):
            given[label, f"x-{seed}"] = lambda cell, energy=energy: made(cell, energy)
    given |= {(BOUNDS, f"x-{seed}"): (None, 10.0) for seed in range(4)}
    return CellColumns(table(plan, records_of(plan, given | dict(results or {}))).rows)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("energy_j", 30.0),
        ("energy_j(b)", 36.25),
        ("mean(energy_j, b)", 36.25),
        ("sum(energy_j)", 120.0),
        ("median(energy_j)", 25.0),
        ("max(energy_j)", 60.0),
        ("min(energy_j, b)", 20.0),
        ("p(50, energy_j)", 25.0),
        ("p(100, energy_j)", 60.0),
        ("p(0, energy_j)", 10.0),
        # A quarter of the way from the first to the last of four: rank 0.75.
        ("p(25%, energy_j)", 17.5),
        ("gm(energy_j, 0)", (10 * 20 * 30 * 60) ** 0.25),
        ("gm(energy_j, 10)", (20 * 30 * 40 * 70) ** 0.25 - 10),
        ("share(energy_j > 20)", 0.5),
        ("share(energy_j >= 20)", 0.75),
        ("count(energy_j >= 20)", 3.0),
        ("count()", 4.0),
        ("count(b)", 4.0),
        ("mean(energy_j / 10)", 3.0),
        ("mean(energy_j * energy_j)", (100 + 400 + 900 + 3600) / 4),
        ("mean(abs(energy_j - 30))", 15.0),
        ("mean(-energy_j)", -30.0),
        ("energy_j / energy_j(b) - 1", 30 / 36.25 - 1),
        ("abs(energy_j - energy_j(b))", 6.25),
        ("rel(energy_j, a, b)", (-0.5 - 0.2 + 0.5 - 0.25) / 4),
        ("rel(energy_j, b)", (-0.5 - 0.2 + 0.5 - 0.25) / 4),
        ("ratio(energy_j, a, b)", 30 / 36.25),
        ("rel(bound, a, energy_j, b)", (-0.5 - 0.6 - 0.5 - 0.875) / 4),
        ("bound", 10.0),
        ("study_gap", (0 + 1 / 2 + 2 / 3 + 5 / 6) / 4),
        ("optimal", 0.25),
        ("solved", 1.0),
        ("failed", 0.0),
        ("count(failed or energy_j > 25)", 2.0),
        ("count(not optimal and energy_j < 25)", 1.0),
        ("rpd", (0 + 0 + 10 / 20 + 0) / 4),
        ("wall_s", 3.0),
        ("mean(wall_s) <= 3s and 5 >= 5", None),
    ],
)  # fmt: skip
def test_values(source: str, value: float | None) -> None:
    if value is None:
        assert evaluate(condition(source, SCOPE), study()).value is True
    else:
        assert evaluate(number(source, SCOPE), study()).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("energy_j <= 30", True),
        ("energy_j < 30", False),
        ("energy_j == 30", True),
        ("energy_j != 30", False),
        ("energy_j >= 30", True),
        ("energy_j > 30", False),
        ("not energy_j > 30", True),
        ("energy_j > 30 or energy_j(b) > 30", True),
        ("energy_j > 30 and energy_j(b) > 30", False),
        ("mean(energy_j * 0.1) == 3", True),  # 0.1 is no binary fraction: rounding is no difference
        ("mean(energy_j * 0.1) < 3", False),
        ("mean(energy_j * 0.1) > 3", False),
    ],
)
def test_conditions(source: str, held: bool) -> None:
    assert evaluate(condition(source, SCOPE), study()).value is held


CRASHED = {("a", "x-1"): lambda cell: failure(cell, "crashed")}
NOT_RUN = {("a", "x-1"): None}
NO_METRIC = {("a", "x-1"): lambda cell: record(cell, 20.0)}


def test_a_failed_cell_counts_as_a_gap_of_one_and_makes_other_means_unknown() -> None:
    columns = study(CRASHED)
    assert evaluate(number("study_gap", SCOPE), columns).value == pytest.approx(
        (0 + 1 + 2 / 3 + 5 / 6) / 4
    )
    assert evaluate(number("failed", SCOPE), columns).value == 0.25
    assert evaluate(number("count(solved)", SCOPE), columns).value == 3
    found = evaluate(condition("energy_j <= 1000", SCOPE), columns)
    assert found.value is None
    assert found.why == ("1 of 4 cells of a have no value: x-1, seed 1, failed: crashed",)
    assert found.parts[0].value is None
    assert evaluate(number("energy_j(b)", SCOPE), columns).value == 36.25
    assert evaluate(number("rel(energy_j, b)", SCOPE), columns).value is None


def test_what_has_not_been_run_is_unknown_even_as_a_gap() -> None:
    for source in ("gap < 1", "count(failed) == 0", "solved > 0", "energy_j > 0"):
        found = evaluate(condition(source, SCOPE), study(NOT_RUN))
        assert found.value is None
        assert found.why == ("1 of 4 cells of a have no value: x-1, seed 1, has not been run",)


def test_a_metric_that_a_cell_does_not_have_is_said_with_those_that_it_has() -> None:
    columns = study({("a", "x-0"): lambda cell: made(cell, 10.0, speed=1.0), **NO_METRIC})
    found = evaluate(number("speed", SCOPE), columns)
    assert found.value is None
    assert "3 of 4 cells of a have no value: x-1, seed 1, has no speed" in found.why[0]
    found = evaluate(number("speed(b)", SCOPE), columns)
    assert found.why == (
        "4 of 4 cells of b have no value: x-0, seed 0, has no speed; its metrics are energy_j",
    )


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("energy_j < 1 or study_gap < 1", True),
        ("study_gap < 1 or energy_j < 1", True),
        ("energy_j < 1 and study_gap == 1", False),
        ("energy_j < 1 and study_gap < 1", None),
        ("energy_j < 1 or study_gap == 1", None),
        ("not energy_j < 1", None),
        ("energy_j == energy_j", None),
        ("count(failed or energy_j > 0) == 4", True),
        ("count(solved and energy_j > 15) == 2", True),
        ("count(energy_j > 0) == 3", None),
    ],
)
def test_the_unknown_decides_nothing_that_the_known_does_not(
    source: str, held: bool | None
) -> None:
    assert evaluate(condition(source, SCOPE), study(CRASHED)).value is held


def test_division_by_zero_is_unknown() -> None:
    free = {("b", "x-2"): lambda cell: made(cell, 0.0)}
    found = evaluate(number("rel(energy_j, a, b)", SCOPE), study(free))
    assert found.value is None and "b is 0 on x-2" in found.why[0]
    assert evaluate(number("ratio(energy_j, a, b)", SCOPE), study(free)).value == pytest.approx(
        30 / 31.25
    )
    found = evaluate(condition("energy_j / (energy_j - 30) < 1", SCOPE), study())
    assert found.value is None and "division by zero" in found.why[0]
    found = evaluate(number("mean(1 / energy_j, b)", SCOPE), study(free))
    assert found.value is None and "x-2, seed 2, divides by zero" in found.why[0]


def test_nothing_over_nothing_is_no_difference() -> None:
    both = {(label, "x-2"): lambda cell: made(cell, 0.0) for label in "ab"}
    assert evaluate(number("rel(energy_j, a, b)", SCOPE), study(both)).value == pytest.approx(
        (-0.5 - 0.2 + 0 - 0.25) / 4
    )


def test_a_geometric_mean_needs_a_shift_above_what_it_averages() -> None:
    found = evaluate(number("gm(energy_j - 20, 5)", SCOPE), study())
    assert found.value is None and "take a greater shift" in found.why[0]


def test_objectives_in_order_are_no_one_number() -> None:
    plan = study_of(["a", "b"], ["x"], levels=2)
    given = {(label, "x-0"): ((1.0, 2.0), (1.0, 1.0)) for label in "ab"}
    columns = CellColumns(table(plan, records_of(plan, given)).rows)
    assert evaluate(number("study_gap", SCOPE), columns).value == 0.5
    found = evaluate(number("objective", SCOPE), columns)
    assert found.value is None and "2 levels: name metrics" in found.why[0]


def test_instances_that_could_not_be_made_leave_everything_unknown() -> None:
    columns = CellColumns(table(PLAN, {}).rows, "1 of 4 instances could not be made")
    for source in ("gap < 1", "count() == 4"):
        assert evaluate(condition(source, SCOPE), columns).why == (
            "1 of 4 instances could not be made",
        )


def test_the_bound_is_the_best_that_anybody_proved() -> None:
    columns = study({("b", "x-3"): lambda cell: made(cell, 80.0, 55.0)})
    assert evaluate(number("max(bound)", SCOPE), columns).value == 55.0
    assert evaluate(number("gap", SCOPE), columns).value == 1  # a reports no bounds
    assert evaluate(number("min(gap, b)", SCOPE), columns).value == pytest.approx(25 / 80)
    assert evaluate(number("p(100, study_gap)", SCOPE), columns).value == pytest.approx(20 / 30)


def test_the_interval_is_that_of_the_mean_of_four() -> None:
    columns = study()
    found = interval(number("energy_j", SCOPE), columns)
    assert found is not None
    low, high = found
    assert 10 <= low < 30 < high <= 60
    scaled = interval(number("10 * energy_j + 1", SCOPE), columns)
    assert scaled == pytest.approx((10 * low + 1, 10 * high + 1))


def test_pairs_are_drawn_together() -> None:
    """The difference of a solver and itself shifted by one is one in every resample."""
    plan = study_of(["a", "b"], ["x"], seeds=(0, 1, 2, 3))
    given = {
        (label, f"x-{k}"): (value + (label == "b"), None)
        for label in "ab"
        for k, value in enumerate(A)
    }
    columns = CellColumns(table(plan, records_of(plan, given)).rows)
    assert interval(number("objective(b) - objective(a)", SCOPE), columns) == pytest.approx(
        (1.0, 1.0)
    )


def test_seeds_of_an_instance_are_drawn_with_it() -> None:
    """Four files, the same whatever the seed: the interval is that of one seed, not one without
    width.
    """
    one = study_of(["a"], ["w", "x", "y", "z"])
    made = [
        MadeInstance(name, seed, f"{name}-0", f"hash-{name}-0")
        for name in "wxyz"
        for seed in (0, 1, 2)
    ]
    cells = [
        Cell("solve", m.target, m.name, str(m.instance_hash), 0, "a", "a", {}, "", m.seed, BUDGET)
        for m in made
    ]
    three = replace(one, made=tuple(made), cells=tuple(cells))
    given = {("a", f"{name}-0"): (value, None) for name, value in zip("wxyz", A)}
    tables = [table(plan, records_of(plan, given)) for plan in (one, three)]
    found = [interval(number("objective(a)", SCOPE), CellColumns(each.rows)) for each in tables]
    assert found[0] is not None and found[0][0] < 30 < found[0][1]
    assert found[1] == pytest.approx(found[0])


def test_no_interval_where_resampling_tells_nothing() -> None:
    assert interval(number("max(energy_j)", SCOPE), study()) is None
    assert interval(number("energy_j", SCOPE), study(CRASHED)) is None
    one = study_of(["a", "b"], ["x"])
    columns = CellColumns(
        table(one, records_of(one, {("a", "x-0"): (1.0, 1.0), ("b", "x-0"): (1.0, 1.0)})).rows
    )
    assert interval(number("objective", SCOPE), columns) is None


def test_at_the_bound_of_the_first_solver() -> None:
    for source, value in (
        ("rel(objective, a, b)", (-0.5 - 0.6 - 0.5 - 0.875) / 4),
        ("objective / objective(b) - 1", 10 / 36.25 - 1),
        ("100 * (mean(objective, a) - mean(objective, b))", -2625.0),
    ):
        lowest = at_bound(number(source, SCOPE))
        assert lowest is not None
        assert evaluate(lowest, study()).value == pytest.approx(value)
    falling = (
        "1 - objective",
        "1 / objective",
        "objective(b) / objective - objective(b) / 2",
        "abs(objective)",
    )
    unsure = (
        "objective * regret(b)",
        "objective * mean(energy_j - 25, b)",
        "objective / rpd(b)",
    )  # by what may be below zero
    for source in ("energy_j", "gap", *falling, *unsure):
        assert at_bound(number(source, SCOPE)) is None


def worst(source: str, columns: CellColumns) -> list[tuple[str, str, float | None]]:
    return [
        (each.cell.label, each.cell.instance, each.value)
        for each in worst_cells(condition(source, SCOPE), columns)
    ]


def test_worst_cells_are_those_that_pull_the_wrong_way() -> None:
    assert worst("energy_j <= 20", study()) == [("a", "x-3", 60.0), ("a", "x-2", 30.0)]
    assert worst("energy_j >= 40", study()) == [
        ("a", "x-0", 10.0),
        ("a", "x-1", 20.0),
        ("a", "x-2", 30.0),
    ]
    assert worst("40 <= energy_j", study())[0] == ("a", "x-0", 10.0)
    assert worst("not energy_j > 20", study())[0] == ("a", "x-3", 60.0)
    assert worst("1 - energy_j >= 0", study())[0] == ("a", "x-3", 60.0)
    assert worst("energy_j / energy_j(b) <= 0.1", study())[0] == ("a", "x-3", 60.0)
    assert worst("rel(energy_j, b) <= -0.5", study()) == [("a", "x-2", 0.5)]
    assert worst("share(optimal) >= 0.9", study()) == [("a", f"x-{k}", 0.0) for k in (1, 2, 3)]
    assert worst("count(energy_j > 25) == 0", study()) == [("a", "x-2", 1.0), ("a", "x-3", 1.0)]


def test_only_what_does_not_hold_is_blamed() -> None:
    assert worst("energy_j <= 100 and energy_j(b) <= 20", study())[0][0] == "b"


def test_cells_without_a_value_come_first_and_say_why() -> None:
    found = worst_cells(condition("energy_j <= 5 and study_gap <= 0", SCOPE), study(CRASHED))
    assert (found[0].cell.instance, found[0].value, found[0].why) == (
        "x-1",
        None,
        "failed: crashed",
    )
    assert found[1].cell.instance == "x-3" and found[1].value == pytest.approx(5 / 6)


def test_values_of_cells_are_numbers_whatever_a_family_reports() -> None:
    columns = study({("a", "x-0"): lambda cell: made(cell, 10.0, speed=math.inf)})
    assert np.isnan(columns.measure(columns.rows("a")[0], "speed"))
