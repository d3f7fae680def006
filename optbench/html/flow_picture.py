"""A picture of boxes in the order of their work, some framed together: an SVG that stands alone.

A framed group is one vertex of the graph; vertices stand in layers, one after the longest path
before them, and the boxes of a group in layers of their own within its frame. So no frame holds a
box that is not of its group, provided that groups do not wait for each other in a circle. Few
layers run from left to right, many from top to bottom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise

from optbench.html import svg
from optbench.html.colours import TASKS, colour
from optbench.html.standalone_charts import CHARACTER, LEFT, WIDTH, standalone

TOP, SIDE = 44.0, 16.0
WIDE, HIGH = 150.0, 36.0
# Around the boxes of a frame, for its title above it, between boxes across the work, and between
# layers along it in both directions.
PAD, HEAD, ACROSS = 9.0, 20.0, 18.0
TO_RIGHT, DOWN = 32.0, 20.0
# More layers run from top to bottom.
MOST_ACROSS = 5
STYLE = (
    ".box{fill:#fff;stroke:#8d95a5;stroke-width:1.2}.dash{fill:none;stroke-dasharray:4 3}"
    ".n{text-anchor:middle;fill:#16202e;font-weight:600}.k{text-anchor:middle;font-size:11px}"
    ".fr{stroke:#5b6475;stroke-width:1.2;fill-opacity:.35}.ft{font-size:12px;font-weight:600}"
    ".ar{fill:none;stroke:#7b8496;stroke-width:1.4;marker-end:url(#tip)}.tip{fill:#7b8496}"
    "@media(prefers-color-scheme:dark){.box{fill:#262d3a}.dash{fill:none}.n{fill:#e7eaf0}"
    ".fr{stroke:#98a2b3;fill-opacity:.22}}"
)
MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" '
    'markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8Z"/></marker></defs>'
)


@dataclass(frozen=True)
class FlowBox:
    """A box with two lines of words and the numbers of the boxes before it; a ``source`` is
    dashed.
    """

    name: str
    words: str
    inputs: tuple[int, ...]
    source: bool = False


@dataclass
class _Group:
    """Boxes in layers. Places are along the work and across it, where 0 is the middle."""

    layers: list[list[int]]
    title: str = ""
    fill: str = ""
    before: set[int] = field(default_factory=set)
    begin: float = 0.0
    middle: float = 0.0


@dataclass(frozen=True)
class _Grain:
    """Extents along the work and across it, for the direction of a picture."""

    to_right: bool

    @property
    def along(self) -> float:
        return WIDE if self.to_right else HIGH

    @property
    def across(self) -> float:
        return HIGH if self.to_right else WIDE

    @property
    def gap(self) -> float:
        return TO_RIGHT if self.to_right else DOWN

    def frame(self, group: _Group) -> tuple[float, float]:
        """The extent of a group with its frame."""
        count, most = len(group.layers), max(map(len, group.layers))
        along = count * self.along + (count - 1) * self.gap
        across = most * self.across + (most - 1) * ACROSS
        pad = 2 * PAD if group.title else 0.0
        return along + pad, across + pad

    def extent(self, group: _Group) -> tuple[float, float]:
        """The same with the title: above a frame, or on its right where work goes down; as much on
        the other side keeps the boxes in the middle.
        """
        along, across = self.frame(group)
        if not group.title:
            return along, across
        room = CHARACTER * len(group.title) + 8
        return (
            (max(along, room), across + 2 * HEAD) if self.to_right else (along, across + 2 * room)
        )

    def xy(self, along: float, across: float) -> tuple[float, float]:
        return (along, across) if self.to_right else (across, along)


def flow_picture(boxes: Sequence[FlowBox], frames: Mapping[str, Sequence[int]], words: str) -> str:
    """The boxes in layers; ``frames`` are the numbers of boxes that stand together, by name."""
    groups = _groups(boxes, frames)
    layers = _layers([each.before for each in groups])
    depth = sum(max(len(groups[k].layers) for k in layer) for layer in layers)
    grain = _Grain(depth <= MOST_ACROSS)
    length, breadth = _place(groups, layers, grain)
    at = _box_places(groups, grain)
    width, height = grain.xy(length, breadth)
    scale = min(1.0, (WIDTH - 2 * SIDE) / width)
    corner = (-width / 2, 0.0) if not grain.to_right else (0.0, -height / 2)
    shift = ((WIDTH - scale * width) / 2 - scale * corner[0], TOP - scale * corner[1])
    parts = [_frame(each, grain) for each in groups if each.title]
    parts += _arrows(boxes, at, grain)
    parts += [_box(each, *at[k]) for k, each in enumerate(boxes)]
    moved = f"translate({svg.num(shift[0])} {svg.num(shift[1])}) scale({scale:.4f})"
    drawn = svg.tag("g", "".join(parts), transform=moved)
    head = svg.text(LEFT, 22.0, words)
    return standalone([MARKER, head, drawn], TOP + scale * height + 12, words, STYLE)


def _groups(boxes: Sequence[FlowBox], frames: Mapping[str, Sequence[int]]) -> list[_Group]:
    """A group per frame, and one per box that stands alone, with the groups before each."""
    group_of: dict[int, int] = {}
    members: list[list[int]] = []
    out: list[_Group] = []
    for k, (name, chosen) in enumerate(frames.items()):
        group_of |= dict.fromkeys(chosen, len(out))
        members.append(sorted(chosen))
        out.append(_Group([], name, colour(TASKS, k)))
    for k in range(len(boxes)):
        if k not in group_of:
            group_of[k] = len(out)
            members.append([k])
            out.append(_Group([]))
    for g, chosen in enumerate(members):
        number = {k: i for i, k in enumerate(chosen)}
        within = [{number[i] for i in boxes[k].inputs if i in number} for k in chosen]
        out[g].layers = [[chosen[i] for i in layer] for layer in _layers(within)]
        out[g].before = {group_of[i] for k in chosen for i in boxes[k].inputs} - {g}
    return out


def _layers(before: Sequence[set[int]]) -> list[list[int]]:
    """Vertices by the number of vertices on the longest path before them."""
    depth: dict[int, int] = {}
    for k in TopologicalSorter(dict(enumerate(before))).static_order():
        depth[k] = 1 + max([depth[i] for i in before[k]], default=-1)
    out: list[list[int]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for k in sorted(depth):
        out[depth[k]].append(k)
    return out


def _place(
    groups: Sequence[_Group], layers: Sequence[Sequence[int]], grain: _Grain
) -> tuple[float, float]:
    """Place groups, those of a layer in the order of what is before them; the whole extent."""
    begin, broadest = 0.0, 0.0
    for layer in layers:
        extents = {k: grain.extent(groups[k]) for k in layer}
        aims = {k: _aim(groups, k) for k in layer}
        order = sorted(layer, key=lambda k: (aims[k], k))
        breadth = sum(extents[k][1] for k in layer) + ACROSS * (len(layer) - 1)
        longest, place = max(each[0] for each in extents.values()), -breadth / 2
        for k in order:
            groups[k].begin = begin + (longest - extents[k][0]) / 2
            groups[k].middle = place + extents[k][1] / 2
            place += extents[k][1] + ACROSS
        begin, broadest = begin + longest + grain.gap, max(broadest, breadth)
    return begin - grain.gap, broadest


def _aim(groups: Sequence[_Group], k: int) -> float:
    """The mean place across of the groups before."""
    before = [groups[i].middle for i in groups[k].before]
    return sum(before) / len(before) if before else 0.0


def _box_places(groups: Sequence[_Group], grain: _Grain) -> dict[int, tuple[float, float]]:
    """The middle of every box, in pixels."""
    out = {}
    for group in groups:
        begin = group.begin + (PAD if group.title else 0.0)
        for depth, layer in enumerate(group.layers):
            along = begin + depth * (grain.along + grain.gap) + grain.along / 2
            first = group.middle - (len(layer) - 1) * (grain.across + ACROSS) / 2
            for i, k in enumerate(layer):
                out[k] = grain.xy(along, first + i * (grain.across + ACROSS))
    return out


def _frame(group: _Group, grain: _Grain) -> str:
    """A frame with its title above it, or on its right where work goes down."""
    along, across = grain.frame(group)
    x, y = grain.xy(group.begin, group.middle - across / 2)
    width, height = grain.xy(along, across)
    rectangle = svg.rect(x, y, width, height, class_="fr", fill=group.fill, rx=8.0)
    at = (x, y - 6) if grain.to_right else (x + width + 8, y + height / 2 + 4)
    return rectangle + svg.text(*at, group.title, class_="ft")


def _box(box: FlowBox, x: float, y: float) -> str:
    class_ = "box dash" if box.source else "box"
    out = svg.rect(x - WIDE / 2, y - HIGH / 2, WIDE, HIGH, class_=class_, rx=5.0)
    room = int(WIDE / CHARACTER)
    second = svg.text(x, y + 12, _clipped(box.words, room + 4), class_="k") if box.words else ""
    first = svg.text(x, y + (-2 if second else 5), _clipped(box.name, room), class_="n")
    return out + first + second


def _arrows(
    boxes: Sequence[FlowBox], at: Mapping[int, tuple[float, float]], grain: _Grain
) -> list[str]:
    """Curves from each box to those after it; a longer one runs straight where no box stands: in
    line with its begin, in line with its end, or beside all boxes between.
    """
    middle = {k: grain.xy(*place) for k, place in at.items()}
    out, beside = [], 0
    for k, box in enumerate(boxes):
        for i in box.inputs:
            begin, end = middle[i][0] + grain.along / 2, middle[k][0] - grain.along / 2
            between = [c for a, c in middle.values() if begin < a < end]
            line = middle[i][1], middle[k][1]
            lane = next((each for each in line if _is_free(each, between, grain)), None)
            if lane is None:
                lane = max(between) + grain.across / 2 + 12 + 5 * beside
                beside += 1
            gap = min(grain.gap, (end - begin) / 2)
            if not between:
                places = [(begin, line[0]), (end, line[1])]
            else:
                places = [(begin, line[0]), (begin + gap, lane), (end - gap, lane), (end, line[1])]
            out.append(svg.path(_curve(places, grain), class_="ar"))
    return out


def _is_free(line: float, between: Sequence[float], grain: _Grain) -> bool:
    return all(abs(line - each) > grain.across / 2 + 3 for each in between)


def _curve(places: Sequence[tuple[float, float]], grain: _Grain) -> str:
    """Path data through places along the work and across it, straight where these are in line."""

    def words(along: float, across: float) -> str:
        return " ".join(map(svg.num, grain.xy(along, across)))

    d = f"M{words(*places[0])}"
    for (a, b), (c, e) in pairwise(places):
        half = (a + c) / 2
        d += f"L{words(c, e)}" if b == e else f"C{words(half, b)} {words(half, e)} {words(c, e)}"
    return d


def _clipped(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: max(most - 1, 1)]}…"
