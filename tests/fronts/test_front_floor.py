"""Staircases and areas by hand."""

from __future__ import annotations

from optbench.fronts.front_floor import floor_at, floor_steps, undecided_area


def test_a_bound_holds_for_every_smaller_limit() -> None:
    # 70 at limit 20 also holds at 10, where only 50 was proved; 10 is below the constant.
    steps = floor_steps([(10, 50), (20, 70), (30, 40), (40, 10)], constant=20)
    assert steps == ((20, 70), (30, 40))
    assert [floor_at(steps, x, 20) for x in (5, 20, 20.5, 30, 31)] == [70, 70, 40, 40, 20]


def test_the_area_between_front_and_floor() -> None:
    # From 10 to 20 the front is at 100 and the floor at 60; from 20 to 30 they are at 60 and 50:
    # 400 + 100.
    assert (
        undecided_area(
            [(10, 100), (20, 60), (30, 50)], floor_steps([(10, 100), (20, 60), (30, 50)], 0), 0
        )
        == 500
    )
    # A bound of 80 at 15 halves the first part's lower half: 5 * 20 + 5 * 40 + 10 * 10.
    assert (
        undecided_area(
            [(10, 100), (20, 60), (30, 50)],
            floor_steps([(10, 100), (15, 80), (20, 60), (30, 50)], 0),
            0,
        )
        == 400
    )


def test_one_point_leaves_nothing_open() -> None:
    assert undecided_area([(10, 100)], (), 0) == 0
