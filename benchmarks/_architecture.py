"""The generated parts of docs/architecture.md: the diagram, the walks and the table of figures.

A part stands between `<!-- NAME -->` and `<!-- end of NAME -->`; the text around it is written by
hand and kept. `rooms.py --architecture` calls `rewritten`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks._source_figures import room_of
from benchmarks._walks import ROOT, Walk

PAGE = ROOT / "docs" / "architecture.md"
SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)\.(?:\s|$)")


def rewritten(text: str, parts: Mapping[str, str]) -> str:
    """The page with each part replaced; a part without its two marks is an error."""
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"{PAGE.name} must have the marks of {name!r} once")
        before, after = text.partition(begin)[0], text.partition(end)[2]
        text = f"{before}{begin}{part}\n{end}{after}"
    return text


def mermaid(diagram: str) -> str:
    return f"```mermaid\n{diagram}\n```"


def walk_lists(walks: Iterable[Walk]) -> dict[str, str]:
    """A list for each walk; the summary of a file stands where it occurs first on the page."""
    explained: set[str] = set()
    return {f"walk {walk.name}": _list(walk, explained) for walk in walks}


def _list(walk: Walk, explained: set[str]) -> str:
    lines: list[str] = []
    room = ""
    visited: set[str] = set()
    for call in walk.firsts:
        path, here = call.callee, room_of(call.callee)
        if here != room or call in walk.again:
            again = f", entered again by `{call.caller}`" if call in walk.again else ""
            back = " (back)" if here in visited and not again else ""
            lines.append(f"- **{here}**{back}{again}")
        words = "" if path in explained else f": {summary(ROOT / path)}"
        lines.append(f"  - `{path}`{words}")
        explained.add(path)
        visited.add(here)
        room = here
    entries = f"{len(walk.again)} entries into a room that had been entered before"
    return "\n".join([f"{len(walk.firsts)} files, {entries}.", "", *lines])


def summary(path: Path) -> str:
    """The first sentence of a module's docstring, without its full stop."""
    words = " ".join(
        (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split()
    )
    return SENTENCE_END.split(words, maxsplit=1)[0].rstrip(".:").replace("``", "`")
