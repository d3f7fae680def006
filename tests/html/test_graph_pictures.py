"""Pictures of graphs in parts: well-formed, what they say in words, and where things stand."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from optbench.html.graph_layouts import (
    fitted,
    force_layout,
    lying,
    on_circle,
    ring_order,
    spectral_start,
)
from optbench.html.graph_pictures import MOST_BUBBLES, bubble_graph, point_graph

SVG = "{http://www.w3.org/2000/svg}"
# A path 0-1-2-3 and a node alone.
TAIL, HEAD = np.array([0, 1, 2]), np.array([1, 2, 3])
KEY = {"in": "within", "cut": "between"}


def drawn(text: str) -> ET.Element:
    return ET.fromstring(text)


def circles(text: str) -> list[tuple[float, float, float]]:
    return [
        (float(each.attrib["cx"]), float(each.attrib["cy"]), float(each.attrib["r"]))
        for each in drawn(text).iter(f"{SVG}circle")
    ]


def words(text: str) -> list[str]:
    return [each.text or "" for each in drawn(text).iter(f"{SVG}text")]


def test_nodes_have_the_colour_of_their_group_and_cut_edges_a_line_of_their_own() -> None:
    group = np.array([0, 0, 1, 1, 1])
    text = point_graph(group, ["a < b", "c"], TAIL, HEAD, "5 nodes", KEY)
    fills = [each.attrib["fill"] for each in drawn(text).iter(f"{SVG}circle")]
    assert fills[0] == fills[1] != fills[2] == fills[3] == fills[4]
    lines = {each.attrib["class"]: each.attrib["d"] for each in drawn(text).iter(f"{SVG}path")}
    # Edges 0-1 and 2-3 lie within groups, 1-2 between; the last two paths are those of the key.
    first = [each.attrib["d"] for each in drawn(text).iter(f"{SVG}path")][:2]
    assert [d.count("M") for d in first] == [2, 1] and set(lines) == {"in", "cut"}
    assert {"5 nodes", "a < b", "c", "within", "between"} <= set(words(text))
    assert drawn(text).attrib["aria-label"] == "5 nodes"


def test_many_groups_are_named_in_part() -> None:
    group = np.arange(20)
    names = [f"part {k}" for k in group]
    text = point_graph(group, names, np.array([0]), np.array([1]), "20", KEY)
    assert "and 5 more" in words(text) and "part 16" not in words(text)


def test_bubbles_have_areas_of_sizes_and_lines_their_weights() -> None:
    weights = np.array([[0.0, 8.0, 0.0], [8.0, 0.0, 2.0], [0.0, 2.0, 0.0]])
    names = [(str(k), f"{k} nodes") for k in range(3)]
    text = bubble_graph(np.array([100.0, 25.0, 100.0]), names, np.zeros(3, int), weights, [], "x")
    radii = [r for *_, r in circles(text)]
    assert radii[1] == pytest.approx(radii[0] / 2, abs=0.1) and radii[2] == radii[0]
    widths = [float(each.attrib["stroke-width"]) for each in drawn(text).iter(f"{SVG}path")]
    # Lines are as thick as the root of their weight, and the heaviest is drawn last.
    assert widths[0] == pytest.approx(widths[1] / 2) and len(widths) == 2
    assert {"8", "2"} <= set(words(text))


@pytest.mark.parametrize("count", [1, 2, 5, 14, 40, MOST_BUBBLES + 5])
def test_bubbles_neither_touch_nor_leave_the_picture(count: int) -> None:
    rng = np.random.default_rng(count)
    weights = rng.integers(0, 9, (count, count)).astype(float)
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    sizes = rng.integers(50, 100, count).astype(float)
    names = [(str(k), f"{k} nodes") for k in range(count)]
    text = bubble_graph(sizes, names, np.zeros(count, int), weights, ["on a"], "x")
    found = circles(text)
    assert len(found) == min(count, MOST_BUBBLES)
    assert ("the largest 60 of 65 are drawn" in words(text)) == (count > MOST_BUBBLES)
    width, height = (float(each) for each in drawn(text).attrib["viewBox"].split()[2:])
    for k, (x, y, r) in enumerate(found):
        assert r <= x <= width - r and r <= y <= height - r
        for z, w, s in found[:k]:
            assert (x - z) ** 2 + (y - w) ** 2 >= (r + s - 0.2) ** 2


def test_a_layout_is_the_same_each_time_and_joins_what_edges_join() -> None:
    at = [force_layout(spectral_start(5, TAIL, HEAD), TAIL, HEAD) for _ in range(2)]
    assert np.array_equal(at[0], at[1])
    path = [float(np.linalg.norm(at[0][k] - at[0][k + 1])) for k in range(3)]
    apart = np.linalg.norm(at[0][4] - at[0][:4], axis=1)
    assert max(path) < float(apart.max()) and np.isfinite(at[0]).all()
    assert len({tuple(each) for each in at[0].round(6).tolist()}) == 5


def test_a_layout_lies_on_its_longer_side_and_fits_its_box() -> None:
    upright = np.array([[0.0, 0.0], [0.1, 5.0], [0.0, 10.0]])
    turned = lying(upright)
    assert np.ptp(turned[:, 0]) > 9 and np.ptp(turned[:, 1]) < 1
    placed = fitted(turned, 10.0, 20.0, 100.0, 50.0)
    assert placed[:, 0].min() == pytest.approx(10) and placed[:, 0].max() == pytest.approx(110)
    assert placed[:, 1].mean() == pytest.approx(45, abs=1)


def test_places_on_a_circle_and_an_order_of_heavy_neighbours() -> None:
    assert on_circle(4)[0] == pytest.approx([0.0, -1.0])
    assert on_circle(1).tolist() == [[0.0, 0.0]]
    weights = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    assert ring_order(weights) == [0, 2, 1]
