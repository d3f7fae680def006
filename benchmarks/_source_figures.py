"""Figures of the source that `rooms.py` prints: rooms, imports, cycles, names, the diagram.

A *room* is a folder or module directly under optbench/; for the count of rooms that import each
other, a folder inside a room counts as a room of its own. Nothing is imported: files are parsed.
Imports count wherever they stand in a file, those for type checkers alone excepted.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

PLUGINS = ("problems", "solvers")
Graph = Mapping[str, Collection[str]]
SPEC_SPLIT = re.compile(r"""partition\((['"]):\1\)\[0\]\.partition\((['"])\[\2\)""")
COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
COLON_PARTITION = re.compile(r"""\bpartition\((['"]):\1\)""")
COLON_SPLIT = re.compile(r"""\br?split\((['"]):\1[,)]""")


def module_name(path: str) -> str:
    """`optbench/sim/__init__.py` is optbench.sim; plug-ins lie under optbench.plugins."""
    parts = path.removesuffix(".py").split("/")
    if parts[0] in PLUGINS:
        parts = ["optbench", "plugins", *parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(path: str) -> str:
    """The room of a file: the folder or module directly under optbench, or a folder of plug-ins."""
    parts = path.removesuffix(".py").split("/")
    return parts[0] if parts[0] in PLUGINS or parts[-1] == parts[1] == "__init__" else parts[1]


def inner_room(module: str) -> str:
    """The room of a module, where a folder inside a room is a room of its own."""
    parts = module.split(".")
    return ".".join(parts[1:3] if len(parts) > 3 else parts[1:2]) or "optbench"


class Source:
    """All Python files of optbench/, problems/ and solvers/, parsed."""

    def __init__(self, root: Path) -> None:
        tops = ("optbench", *PLUGINS)
        found = sorted(path for top in tops for path in (root / top).rglob("*.py"))
        self.texts = {path.relative_to(root).as_posix(): path.read_text() for path in found}
        self.paths = {module_name(path): path for path in self.texts}
        self.trees = {name: ast.parse(self.texts[path]) for name, path in self.paths.items()}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Which module imports which others; a package is not imported by its own modules."""
        arrows: dict[str, set[str]] = {}
        for name in self.paths:
            targets = {self._existing(target) for target in self._imported(name)} - {"", name}
            arrows[name] = {hit for hit in targets if not name.startswith(f"{hit}.")}
        return arrows

    def _existing(self, target: str) -> str:
        """The module that an imported name is, or lies in; nothing if it is not ours."""
        above = target.rpartition(".")[0]
        return target if target in self.paths else above if above in self.paths else ""

    def _imported(self, name: str) -> Iterator[str]:
        path = self.paths[name]
        package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
        for node in nodes_at_run_time(self.trees[name]):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                parents = package.split(".")
                kept = parents[: len(parents) - node.level + 1] if node.level else []
                base = ".".join([*kept, *filter(None, [node.module])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)

    def mutual_rooms(self) -> list[str]:
        """Pairs of rooms, folders inside rooms included, that import each other."""
        arrows = {(inner_room(a), inner_room(b)) for a in self.imports for b in self.imports[a]}
        return sorted(f"{a} ~ {b}" for a, b in arrows if a < b and (b, a) in arrows)

    def mutual_top_rooms(self) -> list[str]:
        """Pairs of folders or modules directly under optbench that import each other."""
        room = {name: room_of(path) for name, path in self.paths.items()}
        arrows = {(room[a], room[b]) for a in self.imports for b in self.imports[a]}
        return sorted(f"{a} ~ {b}" for a, b in arrows if a < b and (b, a) in arrows)

    def repeated_classes(self) -> dict[str, list[str]]:
        places = defaultdict(list)
        for name, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(self.paths[name])
        return {name: where for name, where in sorted(places.items()) if len(where) > 1}

    def repeated_basenames(self) -> dict[str, list[str]]:
        places = defaultdict(list)
        for path in self.texts:
            if not path.endswith("__init__.py"):
                places[path.rpartition("/")[2]].append(path)
        return {name: where for name, where in sorted(places.items()) if len(where) > 1}

    def outcomes(self) -> list[str]:
        """Files that check a solver's bounds (`check_bound`) and compute the gaps of all levels
        (`gap` in a comprehension): they turn a decision and bounds into an outcome."""
        found = []
        for name, tree in self.trees.items():
            loops = (node for node in ast.walk(tree) if isinstance(node, COMPREHENSIONS))
            inside = (node for loop in loops for node in ast.walk(loop))
            if "gap" in called_names(inside) and "check_bound" in called_names(ast.walk(tree)):
                found.append(self.paths[name])
        return found

    def matches(self, pattern: re.Pattern[str]) -> list[str]:
        """Files of optbench, plug-ins aside, once for each match."""
        texts = {path: text for path, text in self.texts.items() if path.startswith("optbench/")}
        return [path for path, text in texts.items() for _ in pattern.finditer(text)]

    def figures(self) -> dict[str, Any]:
        """What is counted, with the names behind each count."""
        own = [path for path in self.texts if path.startswith("optbench/")]
        lines = {path: text.count("\n") for path, text in self.texts.items()}
        every_line = [line for text in self.texts.values() for line in text.splitlines()]
        return {
            "module cycles": cycles(self.imports),
            "rooms that import each other": self.mutual_rooms(),
            "top folders that import each other": self.mutual_top_rooms(),
            "files by top folder": dict(Counter(room_of(path) for path in own).most_common()),
            "repeated public class names": self.repeated_classes(),
            "repeated basenames": self.repeated_basenames(),
            "copies of the spec split": self.matches(SPEC_SPLIT),
            'partition(":")': self.matches(COLON_PARTITION),
            'split(":")': self.matches(COLON_SPLIT),
            "files that assemble an outcome": self.outcomes(),
            "files": len(self.texts),
            "lines of optbench": sum(lines[path] for path in own),
            "lines with plug-ins": sum(lines.values()),
            "lines over 100 columns": sum(len(line) > 100 for line in every_line),
        }


def called_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names of the functions that are called, those behind a dot aside."""
    functions = (node.func for node in nodes if isinstance(node, ast.Call))
    return {function.id for function in functions if isinstance(function, ast.Name)}


def nodes_at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from (inner for branch in node.orelse for inner in ast.walk(branch))
        else:
            yield from nodes_at_run_time(node)


def reachable(arrows: Graph, start: str) -> set[str]:
    """Everything that a path of at least one arrow leads to."""
    found: set[str] = set()
    waiting = list(arrows.get(start, ()))
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += arrows.get(node, ())
    return found


def cycles(arrows: Graph) -> list[list[str]]:
    """Groups of modules that reach each other (strongly connected, more than one)."""
    after = {node: reachable(arrows, node) for node in arrows}
    groups = {tuple(sorted(b for b in after[a] if a in after.get(b, ()))) for a in arrows}
    return sorted(list(group) for group in groups if len(group) > 1)


class Layers:
    """The layers of tests/test_layers.py: heights of packages, the bottom is 0."""

    def __init__(self, root: Path) -> None:
        tree = ast.parse((root / "tests" / "test_layers.py").read_text())
        given = (node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)))
        values = [node.value for node in given if "LAYERS" in assigned(node)]
        if len(values) != 1 or values[0] is None:
            raise SystemExit("tests/test_layers.py must assign LAYERS once, rows of package names")
        self.rows: tuple[tuple[str, ...], ...] = ast.literal_eval(values[0])
        self.heights = {
            name: float(height) for height, row in enumerate(reversed(self.rows)) for name in row
        }
        # Plug-ins use everything below optbench.plugins and are called from above it.
        for folder in PLUGINS:
            self.heights[f"optbench.plugins.{folder}"] = self.heights["optbench.plugins"] + 0.5

    def package(self, module: str) -> str:
        """The longest package of a layer that holds the module; nothing for optbench itself."""
        parts = module.split(".")
        names = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
        return next((name for name in names if name in self.heights), "")

    def height(self, path: str) -> float:
        """Height of a file's layer; the package optbench itself stands above everything."""
        return self.heights.get(self.package(module_name(path)), float(len(self.rows)))


def assigned(node: ast.Assign | ast.AnnAssign) -> set[str]:
    """The names that a statement gives a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def diagram(source: Source, layers: Layers) -> str:
    """The rooms in their layers and who imports whom, as Mermaid text, drawn from the imports.

    An arrow that follows from two others is left out, unless it points up or sideways.
    """
    arrows: dict[str, set[str]] = defaultdict(set)
    for module, targets in source.imports.items():
        above = layers.package(module)
        below = {layers.package(target) for target in targets} - {"", above}
        if above:
            arrows[above] |= below
    height = layers.heights
    down = {a: {b for b in arrows[a] if height[a] > height[b]} for a in list(arrows)}
    lines = ["flowchart TD"]
    for level in sorted({*height.values()}, reverse=True):
        row = sorted(name for name in height if height[name] == level and name in used(arrows))
        if row:
            opening = f'    subgraph layer{level:g}[" "]'.replace(".", "_")
            nodes = [f'        {node_of(name)}["{label(name)}"]' for name in row]
            lines += [opening, "        direction LR", *nodes, "    end"]
    for a in sorted(arrows, key=lambda name: -height[name]):
        implied = {c for b in down[a] for c in reachable(down, b)}
        lines += [f"    {node_of(a)} --> {node_of(b)}" for b in sorted(down[a] - implied)]
        wrong = sorted(arrows[a] - down[a])
        lines += [f"    {node_of(a)} -. against the layers .-> {node_of(b)}" for b in wrong]
    return "\n".join(lines)


def used(arrows: Graph) -> set[str]:
    return {*arrows}.union(*arrows.values())


def node_of(package: str) -> str:
    return package.replace(".", "_")


def label(package: str) -> str:
    name = package.removeprefix("optbench.")
    return {f"plugins.{folder}": f"{folder}/" for folder in PLUGINS}.get(name, name)
