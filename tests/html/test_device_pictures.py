"""Pictures of devices at work: widths and heights that the values say, and what is left out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from optbench.html.device_pictures import (
    LANE,
    MOST_ROWS,
    Lane,
    matrix_chart,
    share_lanes,
    stacked_bars,
    step_curves,
)

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]


def rects(picture: str, **wanted: str) -> list[dict[str, str]]:
    every = [each.attrib for each in ET.fromstring(picture).iter(f"{SVG}rect")]
    return [each for each in every if all(each.get(k) == v for k, v in wanted.items())]


def test_bars_are_as_long_as_their_parts() -> None:
    rows = {"a": {"computing": 3.0, "waiting": 1.0}, "b & c": {"computing": 2.0, "waiting": 2.0}}
    picture = stacked_bars(rows, "ms", "two devices")
    # The last two squares are those of the legend.
    widths = [float(each["width"]) for each in rects(picture)][:-2]
    assert widths[0] == pytest.approx(3 * widths[1], abs=0.2)
    assert widths[2] == pytest.approx(widths[3], abs=0.2)
    assert {"75 %", "50 %", "b & c", "computing", "waiting", "ms"} <= set(texts(picture))
    assert ET.fromstring(picture).attrib["aria-label"] == "two devices"


def test_rows_beyond_what_fits_are_counted() -> None:
    rows = {f"d{k}": {"computing": 1.0} for k in range(MOST_ROWS + 3)}
    assert "3 more devices are not drawn" in texts(stacked_bars(rows, "ms", "x"))
    assert stacked_bars({"a": {"computing": 0.0}}, "ms", "x").startswith("<svg")


def test_lanes_are_filled_from_below() -> None:
    lane = Lane([0.0, 1.0, 2.0], {"computing": [0.5, 1.0], "waiting": [0.25, 0.0]})
    picture = share_lanes({"a": lane, "b": Lane([0.5, 2.0], {"computing": [0.1]})}, "s", "x")
    areas = [
        each.attrib["d"]
        for each in ET.fromstring(picture).iter(f"{SVG}path")
        if each.attrib.get("class") == "a"
    ]
    assert len(areas) == 3
    # The first lane is LANE pixels high from y = 44: half of it is filled first, then all.
    begin = float(areas[0].split(" ")[1].split("H")[0])
    assert begin == pytest.approx(44 + LANE / 2) and "V44H" in areas[0]


def test_a_matrix_is_deepest_where_most_is_sent() -> None:
    picture = matrix_chart(["a", "b"], [[0.0, 4.0], [1.0, 0.0]], "MB from", "to", "5 MB")
    shades = [float(each["fill-opacity"]) for each in rects(picture, **{"class": "h"})]
    assert shades == [0.0, 0.6, 0.15, 0.0]
    assert {"4", "1", "MB from ↓", "to →"} <= set(texts(picture)) and "0" not in texts(picture)


def test_a_large_matrix_has_no_numbers() -> None:
    names = [f"core{k}" for k in range(50)]
    picture = matrix_chart(names, [[3.5] * 50 for _ in names], "from", "to", "x")
    assert "3.5" not in texts(picture)
    assert "10 more devices are not drawn" in texts(picture)
    assert len(rects(picture, **{"class": "h"})) == 1600


def test_curves_keep_their_own_edges() -> None:
    curves = {"a": ([0.0, 10.0, 20.0], [1.0, 3.0]), "b": ([0.0, 5.0, 20.0], [2.0, 1.0])}
    picture = step_curves(curves, "step", "MB")
    lines = [
        each.attrib["d"]
        for each in ET.fromstring(picture).iter(f"{SVG}path")
        if each.attrib.get("class") == "l"
    ]
    # Edges 0, 5, 10, 20: a is 1, 1, 3 and b is 2, 1, 1. A path is "M70 y", then "Hx" and "Vy".
    heights = [[float(y) for y in re.findall(r"(?:^M\S+ |V)([\d.]+)", d)] for d in lines]
    one, two, three = heights[0][0], heights[1][0], heights[0][2]
    assert heights == [[one, one, three], [two, one, one]]
    assert one > two > three and one - two == pytest.approx(two - three, abs=0.2)
