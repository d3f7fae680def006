"""Charts of shapes: well-formed SVG, at the places that the values say."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from optbench.html.standalone_charts import stacked_steps, step_lines

SVG = "{http://www.w3.org/2000/svg}"


def paths(text: str, kind: str) -> list[str]:
    root = ET.fromstring(text)
    return [
        each.attrib["d"] for each in root.iter(f"{SVG}path") if each.attrib.get("class") == kind
    ]


def test_areas_stand_on_each_other() -> None:
    # The axis ends at 4.2, 5 % above the highest sum: 240 pixels from y = 270 to y = 30.
    found = paths(stacked_steps([0, 1, 2], {"a": [1, 2], "b": [3, 2]}, "h", "GPUs"), "a")
    assert len(found) == 2
    top = 270 - 240 / 4.2 * 4
    assert f" {top:.1f}H" in found[1] and f" {270 - 240 / 4.2:.1f}H" in found[0]


def test_lines_may_be_negative() -> None:
    found = paths(step_lines([0, 1, 2], {"a": [-1, 1]}, "h", "MJ"), "l")
    assert len(found) == 1
    first, last = (float(found[0].split(mark)[1].split("H")[0]) for mark in (" ", "V"))
    assert first > last  # below, on the page


def test_names_are_escaped() -> None:
    ET.fromstring(step_lines([0, 1], {"a < b & c": [1]}, 'h "x"', "<MJ>"))
