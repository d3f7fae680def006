"""The rules of the house that a parser can see."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("optbench", "problems", "solvers", "tests", "benchmarks")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
# Where anything at all may be raised: importing a user's file, running it (in a thread of its own,
# whose exceptions the caller raises again), and the outermost frame of the command line; and a
# plug-in that swallows everything, for a test.
BROAD_EXCEPT_ALLOWED = {
    "optbench/execute/cell_process.py",
    "optbench/plugins/discovery.py",
    "optbench/plugins/author_errors.py",
    "optbench/plugins/overtime.py",
    "tests/plugins/test_overtime.py",
    "optbench/cli/main.py",
    "optbench/api.py",
}
GLOBAL_RANDOM = re.compile(
    r"\bnp\.random\.(?!default_rng|get_state|Generator|SeedSequence)\w+|\brandom\.seed\("
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[)|#\s*noqa(?!:)")

FILES = sorted(
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path != Path(__file__)
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def tree_of(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def found_in(source: str) -> tuple[list[str], list[int]]:
    """Long functions, and the lines that catch everything; names in a tuple count one by one."""
    functions, excepts = [], []
    for node in ast.walk(tree_of(source)):
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.end_lineno is not None
        ):
            lines = node.end_lineno - node.lineno + 1
            if lines >= MAX_FUNCTION_LINES:
                functions.append(f"{node.name}: {lines} lines")
        elif isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {part.id for part in caught if isinstance(part, ast.Name)}
            if node.type is None or names & {"Exception", "BaseException"}:
                excepts.append(node.lineno)
    return functions, excepts


def long_functions(source: str) -> list[str]:
    return found_in(source)[0]


def broad_excepts(source: str) -> list[int]:
    return found_in(source)[1]


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name(path)}: {line.strip()}"
        for path in FILES
        for line in text_of(path).splitlines()
        if pattern.search(line)
    ]


def test_files_are_short() -> None:
    sizes = {name(path): len(text_of(path).splitlines()) for path in FILES}
    assert {path: size for path, size in sizes.items() if size >= MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    assert [
        f"{name(path)} {found}" for path in FILES for found in long_functions(text_of(path))
    ] == []


def test_nothing_catches_everything() -> None:
    checked = [path for path in FILES if name(path) not in BROAD_EXCEPT_ALLOWED]
    assert [
        f"{name(path)}:{line}" for path in checked for line in broad_excepts(text_of(path))
    ] == []


def test_nothing_is_left_unfinished_or_silenced_wholesale() -> None:
    assert lines_matching(UNFINISHED) == []
    assert lines_matching(BARE_IGNORE) == []


def test_there_is_no_global_random_generator() -> None:
    # A solver that must be caught using it is the one exception.
    assert [
        line
        for line in lines_matching(GLOBAL_RANDOM)
        if not line.startswith("tests/testing/test_suites.py")
    ] == []


def test_functions_are_compiled_in_one_place() -> None:
    """numba's cache is not safe without what compiling/compiled.py does first; some others only
    build types, or serve it.
    """
    allowed = (
        "optbench/compiling/",
        "optbench/sim/kernel/pointers.py",
        "tests/compiling/test_compiled.py",
    )
    found = lines_matching(re.compile(r"^\s*(?:import numba|from numba)"))
    assert [line for line in found if not line.startswith(allowed)] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [
        name(path)
        for path in FILES
        if path.stat().st_size and ast.get_docstring(tree_of(text_of(path))) is None
    ] == []


def test_the_checks_themselves_can_fail() -> None:
    body = "    x = 1\n" * MAX_FUNCTION_LINES
    assert long_functions(f"def f():\n{body}") == ["f: 61 lines"]
    assert broad_excepts("try:\n    f()\nexcept (ValueError, Exception):\n    pass") == [3]
    assert broad_excepts("try:\n    f()\nexcept ValueError:\n    pass") == []
    assert UNFINISHED.search("# TODO later") and BARE_IGNORE.search("x = 1  # type: ignore")
    assert GLOBAL_RANDOM.search("np.random.rand(3)") and not GLOBAL_RANDOM.search(
        "np.random.default_rng(0)"
    )


def test_the_tracking_folder_is_no_package() -> None:
    assert not (ROOT / "mlflow" / "__init__.py").exists()
