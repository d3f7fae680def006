"""The generated parts of docs/architecture.md: the diagram, the walks and the table of figures.

A part stands between `<!-- NAME -->` and `<!-- end of NAME -->`; the text around it is written by
hand and kept. `rooms.py --architecture` calls `rewritten`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks._walks import ROOT, Walk, reason_for, visits

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
    for depth, visit in visits(walk.tree()):
        indent = "  " * depth
        entry = f", entered by `{visit.entry.caller}`" if depth else ""
        lines.append(f"{indent}- **{visit.room}**{entry}")
        for path in visit.files:
            words = "" if path in explained else f": {summary(ROOT / path)}"
            lines.append(f"{indent}  - `{path}`{words}")
            explained.add(path)
    again = len(walk.again_on_stack) or "none"
    heading = [
        f"{len(walk.firsts)} files. Entries into a room that the path of calls had left: {again}.",
        *(f"`{call.words()}`: {reason_for(call)}." for call in walk.again_on_stack),
        f"By time, the stricter reading: {len(walk.again)} entries again.",
    ]
    return "\n".join([*(f"{line}\n" for line in heading), *lines])


def summary(path: Path) -> str:
    """The first sentence of a module's docstring, without its full stop."""
    words = " ".join(
        (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split()
    )
    return SENTENCE_END.split(words, maxsplit=1)[0].rstrip(".:").replace("``", "`")
