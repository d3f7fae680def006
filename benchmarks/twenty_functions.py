"""Draw twenty functions of optbench for a reader who has not seen the code.

Run: ``python benchmarks/twenty_functions.py [--seed 12] [--count 20] [--names-only]``.

The reader sees path, name and docstring first and describes in one sentence what the function does.
He then compares this with the source, which is printed below. What he got wrong is renamed.
A function or method of at least five lines, public or private, is drawn with equal probability.
Tests, benchmarks and special methods are left out. Nested functions belong to their parents.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("optbench", "solvers", "problems")
LEAST_LINES = 5


@dataclass(frozen=True)
class DrawnFunction:
    """A function of the source tree, with its qualified name and its first line."""

    path: str
    name: str
    line: int
    docstring: str | None
    source: str

    def text(self, with_source: bool = True) -> str:
        """Return the function as a section of Markdown."""
        lines = [f"## `{self.name}`", "", f"`{self.path}`, line {self.line}", ""]
        lines += [f"> {row}".rstrip() for row in (self.docstring or "(no docstring)").splitlines()]
        if with_source:
            lines += ["", "```python", self.source, "```"]
        return "\n".join([*lines, ""])


def functions_in(path: Path) -> Iterator[DrawnFunction]:
    """Yield the functions and methods of a file that are long enough."""
    source = path.read_text(encoding="utf-8")

    def visit(body: list[ast.stmt], prefix: str) -> Iterator[DrawnFunction]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines >= LEAST_LINES and not node.name.startswith("__"):
                    text = ast.get_source_segment(source, node) or ""
                    name = str(path.relative_to(ROOT))
                    docstring = ast.get_docstring(node)
                    yield DrawnFunction(name, prefix + node.name, node.lineno, docstring, text)

    yield from visit(ast.parse(source).body, "")


def draw(count: int, seed: int) -> list[DrawnFunction]:
    """Draw functions without replacement; the same source and seed give the same functions."""
    files = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    seen: dict[Path, None] = {path.resolve(): None for path in files}
    every = [each for path in seen for each in functions_in(path)]
    return random.Random(seed).sample(every, min(count, len(every)))


def main() -> None:
    """Print the drawn functions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--names-only", action="store_true", help="leave the sources out")
    options = parser.parse_args()
    for each in draw(options.count, options.seed):
        print(each.text(with_source=not options.names_only))


if __name__ == "__main__":
    main()
