"""The page of a front, read back as XML and looked at by a parser."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import optbench as ob
from optbench.fronts.front_page import render_front
from optbench.fronts.front_search import pareto
from optbench.fronts.points import Front


@pytest.fixture(scope="module")
def front() -> Front:
    m = ob.Model("three modes")
    gpu = m.pool("gpu", idle_w=2)
    m.task("a", modes=[m.mode(gpu, 10, 100), m.mode(gpu, 15, 90), m.mode(gpu, 20, 20)])
    m.minimize(energy_j=1.0)
    return pareto(m.build(), points=3, time_limit_s=5)


def chart(page: str) -> ElementTree.Element:
    found = re.search(r"<svg.*</svg>", page, re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found.group())


def test_proven_and_open_points_are_told_apart(front: Front) -> None:
    first, *others = front.points
    # Energy net of rest: 80, 60 and -20 J, plus 20 s of 2 W: the first point is at 120 J.
    assert first.y == 120
    opened = replace(front, points=(replace(first, bound=90.0), *others))
    circles = [circle.get("class") for circle in chart(render_front(opened)).iter("circle")]
    assert circles == ["point open", "point", "point"]
    assert [path.get("class") for path in chart(render_front(opened)).iter("path")].count(
        "whisker"
    ) == 1
    assert "2 of 3 points are proven optimal" in render_front(opened) and "25.0 %" in render_front(
        opened
    )


def test_every_point_says_its_proof_and_the_page_its_horizon(front: Front) -> None:
    page = render_front(front, "a <title>")
    titles = [title.text or "" for title in chart(page).iter("title")]
    assert sum("proven optimal" in text for text in titles) == 3
    assert "a &lt;title&gt;" in page
    assert "until 20 s, the horizon in which every task can have its cheapest mode" in page


def test_the_floor_is_never_above_a_point(front: Front) -> None:
    # Pixels grow downwards: the floor's line may not be higher than a point at the same x.
    drawn = chart(render_front(front))
    line = next(
        path.get("d") or "" for path in drawn.iter("path") if path.get("class") == "floor-line"
    )
    numbers = [float(n) for n in re.findall(r"[-\d.]+", line)]
    lowest_pixel = {float(c.get("cx") or 0): float(c.get("cy") or 0) for c in drawn.iter("circle")}
    assert min(numbers[1::2]) >= min(lowest_pixel.values()) - 0.1


def test_a_page_fetches_nothing(front: Front) -> None:
    assert not re.search(r"(?:src|href)=|@import|url\(", render_front(front))


def test_without_points_there_is_a_page_without_a_chart(front: Front) -> None:
    page = render_front(replace(front, points=(), floor=()))
    assert "<svg" not in page and "0 of 0 points" not in page
