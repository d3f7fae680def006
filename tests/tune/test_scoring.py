"""What a configuration is worth, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from optbench.store.records import Reason, Record
from optbench.study.cells import Cell
from optbench.study.declared import CellBudget, Study
from optbench.study.tune_section import Goal
from optbench.tune.scoring import (
    FOUND,
    MISSING,
    WHOLE,
    change,
    changes_of,
    compared,
    excess,
    means_of,
    paired_means,
    scales,
    values_of,
    why_missing,
)
from optbench.tune.search_task import SearchPoint, SearchTask, task_of

A, B = SearchPoint("gpu_dag:tasks=5", 1), SearchPoint("gpu_dag:tasks=5", 2)
ENERGY = Goal("energy_j")


def task(minimize: list[str], **more: Any) -> SearchTask:
    section = {
        "solver": "fixed_dvfs",
        "seeds": [1, 2],
        "space": {"load": {"float": [0, 1]}},
        "minimize": minimize,
        **more,
    }
    return task_of(Study("s", "", ("gpu_dag:tasks=5",), (), seeds=(8, 9), tune=section))


def record(point: SearchPoint, energy_j: float | None, tardiness_s: float = 0.0) -> Record:
    """A verified result with this energy, or a crash."""
    cell = Cell(
        "solve",
        point.target,
        "i",
        f"hash-{point.seed}",
        point.seed,
        "x",
        "fixed_dvfs",
        {},
        "",
        point.seed,
        CellBudget(),
    )
    if energy_j is None:
        return Record(cell, "error", "crashed", Reason("crashed", "no"))
    metrics = {"energy_j": energy_j, "tardiness_s": tardiness_s}
    return Record(
        cell, "feasible", "finished", objective=2 * energy_j, verified=True, metrics=metrics
    )


def both(a: float | None, b: float | None, **more: float) -> dict[SearchPoint, Record | None]:
    return {A: record(A, a, **more), B: record(B, b, **more)}


def test_changes_are_relative_to_the_defaults_of_the_same_instance() -> None:
    reference = {"energy_j": values_of(task(["energy_j"]), ENERGY, both(100.0, 400.0))}
    (changes,) = changes_of(task(["energy_j"]), both(90.0, 500.0), reference)
    assert changes == {A: pytest.approx(-0.1), B: pytest.approx(0.25)}
    (none,) = changes_of(task(["energy_j"]), both(100.0, 400.0), reference)
    assert none == {A: 0.0, B: 0.0}


def test_next_to_nothing_is_divided_by_a_tenth_of_the_mean() -> None:
    # Mean of |0| and |100| is 50, a tenth of which is 5.
    assert scales({A: 0.0, B: 100.0}) == {A: 5.0, B: 100.0}
    # Nothing at all: absolute differences.
    assert scales({A: 0.0, B: 0.0}) == {A: 1.0, B: 1.0}
    # Another problem's values do not count.
    assert scales({A: 0.0, SearchPoint("other", 1): 100.0})[A] == 1.0


def test_failing_never_pays() -> None:
    assert change(None, 100.0, 100.0, ENERGY) == MISSING
    assert change(1e9, 100.0, 100.0, ENERGY) == MISSING
    assert change(100.0, None, 1.0, ENERGY) == FOUND
    assert change(None, None, 1.0, ENERGY) == 0.0
    assert change(150.0, 100.0, 100.0, Goal("energy_j", maximize=True)) == pytest.approx(-0.5)


def test_a_failed_cell_has_no_value() -> None:
    assert values_of(task(["energy_j"]), ENERGY, both(5.0, None)) == {A: 5.0, B: None}
    assert values_of(task(["objective"]), Goal("objective"), both(5.0, 7.0)) == {A: 10.0, B: 14.0}
    assert "failed: crashed" in why_missing(ENERGY, task(["energy_j"]), both(None, None))


def test_a_formula_has_one_value_for_all_instances() -> None:
    most = Goal("max(energy_j)")
    wanted = task(["max(energy_j)"])
    assert values_of(wanted, most, both(5.0, 7.0)) == {WHOLE: 7.0}
    (changes,) = changes_of(wanted, both(9.0, 3.0), {"max(energy_j)": {WHOLE: 10.0}})
    assert changes == {WHOLE: pytest.approx(-0.1)}
    assert values_of(wanted, most, both(5.0, None)) == {WHOLE: None}


def test_an_instance_that_cannot_be_made_has_no_value() -> None:
    lost: dict[SearchPoint, Record | None] = {A: record(A, 5.0), B: None}
    assert values_of(task(["energy_j"]), ENERGY, lost) == {A: 5.0, B: None}
    assert values_of(task(["max(energy_j)"]), Goal("max(energy_j)"), lost) == {WHOLE: None}
    assert excess(task(["energy_j"]), "energy_j <= 1e9", lost) == MISSING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("energy_j <= 30", -1 / 3),  # the mean of 10 and 30 is 20: 20 / 30 - 1
        ("energy_j <= 10", 1.0),
        ("energy_j >= 10", -1.0),
        ("energy_j >= 40", 0.5),
        ("energy_j <= 10 or energy_j >= 10", -1.0),
        ("energy_j <= 10 and energy_j >= 10", 1.0),
        ("not energy_j >= 40", -0.5),
        ("tardiness_s <= 0", 0.0),
        ("max(energy_j) <= 15", 1.0),
        ("energy_j < 20", 1e-9),  # broken, if by nothing
        ("not energy_j <= 20", 1e-9),
        ("energy_j != 20", 1e-9),
        ("energy_j <= 19.9999999999", 0.0),  # equal, as formulas understand it
        (
            "energy_j <= 30 or energy_j / tardiness_s <= 1",
            0.0,
        ),  # one side is unknown, the other holds
        ("energy_j <= 10 and energy_j / tardiness_s <= 1", 10.0),
    ],
)
def test_constraints_say_by_how_much_they_are_broken(text: str, expected: float) -> None:
    assert excess(task(["energy_j"]), text, both(10.0, 30.0)) == pytest.approx(expected)


def test_means_are_of_the_same_instances() -> None:
    # Without the second instance the tuned mean would be 9 against 55: an instance that fails is
    # not won.
    assert paired_means({A: 9.0, B: None}, {A: 10.0, B: 100.0}) == (9.0, 10.0)
    assert paired_means({A: None, B: 9.0}, {A: 10.0, B: None}) == (None, None)


def test_a_constraint_that_hangs_on_a_failed_cell_is_broken() -> None:
    assert excess(task(["energy_j"]), "energy_j <= 1e9", both(10.0, None)) == MISSING
    assert excess(task(["energy_j"]), "failed == 0", both(10.0, None)) > 0
    assert excess(task(["energy_j"]), "failed == 0", both(10.0, 20.0)) <= 0


def test_intervals_are_of_paired_changes() -> None:
    points = [SearchPoint("gpu_dag:tasks=5", seed) for seed in range(8)]
    theirs: dict[SearchPoint, Record | None] = {
        point: record(point, 100.0 * (1 + point.seed)) for point in points
    }
    ours: dict[SearchPoint, Record | None] = {
        point: record(point, 90.0 * (1 + point.seed)) for point in points
    }
    wanted = task(["energy_j", "median(energy_j)"])
    reference = {goal.expression: values_of(wanted, goal, theirs) for goal in wanted.section.goals}
    # Every instance is 10 % better, whatever its size: so is each resample of either goal.
    for goal, changes in zip(
        wanted.section.goals, changes_of(wanted, ours, reference), strict=True
    ):
        found = compared(wanted, goal, ours, theirs, changes)
        assert (found.value, found.low, found.high) == pytest.approx((-0.1, -0.1, -0.1))
    assert means_of(wanted, ours)["energy_j"] == pytest.approx(405.0)
