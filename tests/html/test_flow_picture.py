"""Pictures of operators: no box overlaps another or stands in a foreign frame."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from optbench.html.flow_picture import HIGH, WIDE, FlowBox, flow_picture

SVG = "{http://www.w3.org/2000/svg}"
Place = tuple[float, float, float, float]
# A layer of attention: scores and rows from the dense product, joined after the softmax.
NAMES = ("dense", "scores", "softmax", "gather", "scale", "scatter", "epilogue")
INPUTS = ((), (0,), (1,), (0,), (2, 3), (4,), (5,))


def boxes(
    names: tuple[str, ...] = NAMES, inputs: tuple[tuple[int, ...], ...] = INPUTS
) -> list[FlowBox]:
    return [FlowBox(name, "kind", each) for name, each in zip(names, inputs, strict=True)]


def places(picture: str) -> tuple[list[Place], list[Place]]:
    """Boxes and frames as x, y and the ends, before the picture is scaled."""
    found: tuple[list[Place], list[Place]] = ([], [])
    for each in ET.fromstring(picture).iter(f"{SVG}rect"):
        x, y = float(each.attrib["x"]), float(each.attrib["y"])
        ends = x + float(each.attrib["width"]), y + float(each.attrib["height"])
        found[each.attrib["class"] == "fr"].append((x, y, *ends))
    return found


def overlap(one: Place, other: Place) -> bool:
    apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    return not apart


FRAMES = {"none": {}, "attention": {"attention": [1, 2, 3, 4, 5]}, "two": {"a": [1, 2], "b": [3]}}


@pytest.mark.parametrize("frames", FRAMES.values(), ids=FRAMES)
def test_boxes_stand_apart_and_in_their_own_frames(frames: dict[str, list[int]]) -> None:
    drawn, around = places(flow_picture(boxes(), frames, "seven"))
    assert len(drawn) == 7 and len(around) == len(frames)
    for k, one in enumerate(drawn):
        assert not any(overlap(one, other) for other in drawn[:k])
        assert (one[2] - one[0], one[3] - one[1]) == pytest.approx((WIDE, HIGH), abs=0.2)
        for members, frame in zip(frames.values(), around, strict=True):
            across = frame[0] < one[0] and one[2] < frame[2]
            inside = across and frame[1] < one[1] and one[3] < frame[3]
            assert inside == (k in members) == overlap(one, frame)


def test_each_box_follows_its_inputs() -> None:
    drawn, _ = places(flow_picture(boxes(), {}, "seven"))
    # Six layers run from top to bottom.
    assert all(drawn[i][3] < drawn[k][1] for k, each in enumerate(INPUTS) for i in each)


def test_few_layers_run_to_the_right() -> None:
    drawn, _ = places(flow_picture(boxes(("a", "b"), ((), (0,))), {}, "two"))
    assert drawn[0][2] < drawn[1][0] and drawn[0][1] == drawn[1][1]


def test_arrows_run_where_no_box_stands() -> None:
    picture = flow_picture(boxes(), {}, "seven")
    drawn, _ = places(picture)
    arrows = [e.attrib["d"] for e in ET.fromstring(picture).iter(f"{SVG}path") if "d" in e.attrib]
    straight = re.compile(r"(?:^M|[C ,0-9.-]* )?(-?[\d.]+) (-?[\d.]+)L(-?[\d.]+) (-?[\d.]+)")
    lines = [tuple(map(float, m.groups())) for d in arrows if (m := straight.search(d))]
    assert lines  # the longer way from the rows to the product runs beside the softmax
    for x, top, z, bottom in lines:
        assert not any(overlap((x, top, z, bottom), each) and x == z for each in drawn)


def test_long_names_are_clipped_and_words_escaped() -> None:
    long = boxes(("a" * 40, "<b & c>"), ((), (0,)))
    picture = flow_picture(long, {"x < y": [1]}, '"quoted"')
    found = [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]
    assert "<b & c>" in found and "x < y" in found
    assert any(each.endswith("…") and len(each) <= WIDE / 7 for each in found)


def test_many_operators_are_scaled_into_the_width() -> None:
    wide = [FlowBox("in", "", (), True), *(FlowBox(f"b{k}", "", (0,)) for k in range(40))]
    wide += [FlowBox(f"c{k}", "", (40 + k,)) for k in range(6)]
    root = ET.fromstring(flow_picture(wide, {}, "many"))
    width = float(root.attrib["viewBox"].split()[2])
    (group,) = root.iter(f"{SVG}g")
    x, _, scale = map(float, re.findall(r"-?[\d.]+", group.attrib["transform"]))
    drawn, _ = places(flow_picture(wide, {}, "many"))
    assert scale < 1
    assert min(x + scale * each[0] for each in drawn) >= 0
    assert max(x + scale * each[2] for each in drawn) <= width
