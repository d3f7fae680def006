"""A sample of `benchmarks/damaged_files.py`: damaged files of every shape, through the commands."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.lp_by_patterns import lp_by_patterns
from tests.fuzz.other_readings import by_highs, dense, same_values
from tests.fuzz.shape_damage import LP, MPS, Originals, damaged_file, judged, run
from tests.loaded_modules import forget_modules_of
from tests.sample_files.packing_workspace import write_workspace

FILES = 25
NAMES = ("schedules", "packing", "milp", "mps", "lp", "schedule", "placement", "point")


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Originals]:
    """Files of every kind, in a workspace with the packing shape."""
    root = write_workspace(tmp_path_factory.mktemp("damaged"))
    patch = pytest.MonkeyPatch()
    for folder in ("problems", "solvers"):
        package = importlib.import_module(f"optbench.plugins.{folder}")
        patch.setattr(package, "__path__", [str(root / folder), *package.__path__])
    importlib.invalidate_caches()
    yield Originals(root)
    patch.undo()
    forget_modules_of(root)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_refused_or_read_rightly(name: str, originals: Originals) -> None:
    kind = next(each for each in originals.kinds() if each.name == name)
    codes: Counter[int] = Counter()
    for seed in range(2):
        path = originals.folder / f"whole{kind.suffix}"
        path.write_text(kind.original(seed))
        answer = run(kind.command(path, seed))
        assert answer.code == 0 and judged(kind, path, seed, answer) == (None, True)
    for seed in range(FILES):
        done, path = damaged_file(kind, originals.folder, seed)
        answer = run(kind.command(path, seed))
        fault, _ = judged(kind, path, seed, answer)
        assert fault is None, f"{name}, seed {seed}, {done}: {fault}"
        codes[answer.code] += 1
    assert codes[2] > FILES // 2


def test_the_second_readings_see_a_difference(tmp_path: Path) -> None:
    (tmp_path / "a.mps").write_text(MPS)
    said = by_highs(tmp_path / "a.mps")
    assert said is not None and said["rows"]["cap"][:2] == (7.3 - 0.2, 7.3)
    assert lp_by_patterns(LP)["columns"]["y"] == (-2.5, None, None, False)
    assert lp_by_patterns(LP)["rows"]["both"] == (-1.0, None, {"x": 1.0, "y": 2.0})
    assert same_values({"a": [1, None]}, {"a": [1.0]}) == ".a: 2 entries, written 1"
    assert same_values({"a": [1, True]}, {"a": [1.0, 1.0]}) is not None
    assert same_values({"a": 1, "b": None}, {"a": 1.0}) is None
    base = {"sense": "min", "constant": 0, "columns": ["x"], "cost": [1], "lower": [0]}
    more = {"upper": [None], "integer": [False], "rows": ["r"], "row_lower": [0]}
    last = {"row_upper": [None], "row_ptr": [0, 2], "index": [0, 0], "value": [1, 1]}
    assert dense({**base, **more, **last})["rows"] == {"r": (0.0, None, {"x": 2.0})}
