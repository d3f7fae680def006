"""The front as a picture: where marks and floors stand."""

from __future__ import annotations

import re

from optbench.report.operation_charts import TOP, FrontierPoint, frontier

NUMBER = {"fast": 0, "cheap": 1}


def test_a_floor_stands_below_its_mark_and_faster_is_further_left() -> None:
    picture = frontier(
        [FrontierPoint("fast", 800.0, 9.7, 9.6), FrontierPoint("cheap", 3600.0, 8.6, 8.5)], NUMBER
    )
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    (x_fast, y_fast), (x_cheap, y_cheap) = ((float(x), float(y)) for x, y in dots)
    assert x_fast < x_cheap and TOP < y_fast < y_cheap
    assert "1.0 % above its floor" in picture and "13:20" not in picture and ">1:00:00<" in picture


def test_one_solver_is_no_front() -> None:
    assert frontier([FrontierPoint("fast", 800.0, 9.7, 9.6)], NUMBER) == ""


def test_a_solver_without_a_floor_is_drawn_alone() -> None:
    picture = frontier(
        [FrontierPoint("fast", 800.0, 9.7, None), FrontierPoint("cheap", 3600.0, 8.6, None)], NUMBER
    )
    assert "<circle" not in picture and "above its floor" not in picture
