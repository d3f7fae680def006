"""Keys of cells and sources: the same content, the same key, in every process; other content,
another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.study.canonical import canonical, digest
from optbench.study.cells import Cell, derived_seed
from optbench.study.code_version import contents_of
from optbench.study.declared import CellBudget
from optbench.study.instance_sources import MadeInstance, read_note, source_keys, write_note

BASE: dict[str, Any] = {
    "kind": "solve",
    "target": "t",
    "instance": "i",
    "instance_hash": "h",
    "instance_seed": 0,
    "label": "l",
    "solver": "s",
    "params": {"k": 1},
    "code": "c",
    "seed": 0,
    "budget": CellBudget(),
}


def key(**fields: Any) -> str:
    return Cell(**{**BASE, **fields}).key


def test_the_same_value_in_another_form_is_the_same_key() -> None:
    assert key(params={"k": 1.0}) == key(params={"k": np.int64(1)}) == key(params={"k": 1})
    assert (
        key(params={"k": (1, 2)})
        == key(params={"k": [1.0, 2]})
        == key(params={"k": np.array([1, 2])})
    )
    assert key(params={"a": 1, "b": 2}) == key(params={"b": 2, "a": 1})
    assert key(params={"k": {3, 1, 2}}) == key(params={"k": frozenset([2, 3, 1])})
    assert key(params={"k": Path("a/x.ckpt")}) == key(params={"k": Path("/elsewhere/x.ckpt")})


def test_keys_of_cells_without_gpus_are_those_of_before_there_were_any() -> None:
    assert "gpus" not in CellBudget().content and CellBudget(gpus=2).content["gpus"] == 2
    assert key(budget=CellBudget(gpus=2)) not in (key(), key(budget=CellBudget(gpus=1)))


def test_another_value_is_another_key() -> None:
    values = [
        1,
        True,
        "1",
        1.5,
        None,
        [1],
        [[1]],
        {"1": 1},
        float("inf"),
        float("nan"),
        "inf",
        -1,
        2**60,
        2**60 + 1,
    ]
    assert len({key(params={"k": value}) for value in values}) == len(values)


def test_words_of_the_study_are_no_part_of_the_key() -> None:
    assert key() == key(label="x", target="y", instance="z", instance_seed=5, repetition=3)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "bound"},
        {"instance_hash": "x"},
        {"solver": "x"},
        {"params": {"k": 2}},
        {"code": "x"},
        {"seed": 1},
        *(
            {"budget": replace(CellBudget(), **{name: 7})}
            for name in CellBudget.__dataclass_fields__
        ),
    ],
)
def test_content_is(fields: Mapping[str, Any]) -> None:
    assert key(**fields) != key()


def test_a_cell_comes_back_with_its_key() -> None:
    cell = Cell(**{**BASE, "params": {"k": (1, 2), "file": Path("a/x")}})
    again = Cell.from_dict(
        {**cell.to_dict(), "params": {"k": [1, 2], "file": "a/x"}, "of_another_version": 1}
    )
    assert again.key == cell.key


@given(st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
))  # fmt: skip
def test_canonical_text_is_plain_and_says_it_once(value: object) -> None:
    assert canonical(value).isascii()
    assert canonical(value) == canonical(value)


def test_what_has_no_canonical_text_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        canonical({"k": object()})


def test_repetitions_have_seeds_of_their_own_and_the_first_is_the_instances() -> None:
    assert derived_seed(7, 0) == 7
    assert (
        len({derived_seed(seed, repetition) for seed in range(20) for repetition in range(20)})
        == 400
    )
    assert derived_seed(3, 1) == 457_190_280  # the same in every process and version of numpy


PLUGIN = """
from dataclasses import dataclass
import optbench as ob
{extra}

@dataclass
class Mine(ob.Solver):
    k: int = 1

    def solve(self, instance, run):
        return None
"""
ASK = """
import sys
from optbench.study.code_version import code_hash
from optbench.study.study_file import load_study
from optbench.study.planning import plan
from optbench.study.instance_sources import MadeInstance
study = load_study(sys.argv[1])
print(study.config_hash)
for cell in plan(study, (MadeInstance("t", 0, "t-0", "h"),)).cells:
    print(cell.label, cell.key)
"""


def asked(folder: Path, seed: str = "0") -> dict[str, str]:
    """Keys of a study's cells by label, in a process of its own."""
    env = {**os.environ, "OPTBENCH_WORKSPACE": str(folder), "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", ASK, str(folder / "studies" / "s.toml")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, check=True)
    first, *rest = done.stdout.splitlines()
    return {"config": first, **dict(line.rsplit(" ", 1) for line in rest)}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "optbench.toml").touch()
    for name in ("solvers", "studies"):
        (tmp_path / name).mkdir()
    solvers = tmp_path / "solvers"
    (solvers / "_helper.py").write_text("from ._deeper import B\nA = 1\n")
    (solvers / "_deeper.py").write_text("B = 1\n")
    (solvers / "helped.py").write_text(PLUGIN.format(extra="from ._helper import A"))
    (solvers / "alone.py").write_text(PLUGIN.format(extra=""))
    (solvers / "package").mkdir()
    (solvers / "package" / "__init__.py").write_text(PLUGIN.format(extra="from .part import C"))
    (solvers / "package" / "part.py").write_text("C = 1\n")
    (solvers / "package" / "weights.json").write_text("{}")
    (tmp_path / "studies" / "s.toml").write_text(
        'problems = ["jobshop:jobs=2,machines=2"]\nsolvers = ["helped", "alone", "package", '
        '"fcfs"]\nseeds = 2\n'
    )
    return tmp_path


def test_keys_are_the_same_in_every_process_and_change_with_the_code_behind_them_only(
    workspace: Path,
) -> None:
    before = asked(workspace)
    assert asked(workspace, "1") == before
    for file, changed in (
        ("_helper.py", {"helped"}),
        ("_deeper.py", {"helped"}),
        ("alone.py", {"alone"}),
        ("package/part.py", {"package"}),
        ("package/weights.json", {"package"}),
    ):
        path = workspace / "solvers" / file
        path.write_text(path.read_text() + "\n# another word\n")
        now = asked(workspace)
        assert {name for name in now if now[name] != before[name]} == changed, file
        before = now


def test_what_files_of_parameters_hold_counts(tmp_path: Path) -> None:
    checkpoint = tmp_path / "x.ckpt"
    checkpoint.write_text("1")
    first = contents_of({"checkpoint": checkpoint, "k": 1})
    assert contents_of({"checkpoint": str(checkpoint)}) == first != contents_of({})
    checkpoint.write_text("2")
    assert contents_of({"checkpoint": checkpoint}) != first
    folder = contents_of({"checkpoint": tmp_path})
    (tmp_path / "more").write_text("3")
    assert contents_of({"checkpoint": tmp_path}) != folder
    assert contents_of({"checkpoint": tmp_path / "absent"}) != ""


def test_every_file_of_a_list_counts(tmp_path: Path) -> None:
    files = [tmp_path / "first", tmp_path / "last"]
    for file in files:
        file.write_text("1")
    before = contents_of({"checkpoints": files})
    files[0].write_text("2")
    assert contents_of({"checkpoints": files}) != before


def test_files_that_change_places_are_other_code(workspace: Path) -> None:
    package = workspace / "solvers" / "package"
    for name, text in (("one", "A = 1\n"), ("two", "A = 2\n")):
        (package / name / "inner").mkdir(parents=True)
        (package / name / "inner" / "same.py").write_text(text)
    before = asked(workspace)["package"]
    (package / "one" / "inner" / "same.py").write_text("A = 2\n")
    (package / "two" / "inner" / "same.py").write_text("A = 1\n")
    assert asked(workspace)["package"] != before


def test_sources_of_instances(tmp_path: Path) -> None:
    shop = tmp_path / "shop.txt"
    shop.write_text("2 2\n0 3 1 2\n0 4 1 2\n")
    targets = [str(shop), "jobshop:jobs=2,machines=2", "jobshop:jobs=3,machines=2", "nothing"]
    keys = source_keys(targets, (0, 1))
    assert keys[str(shop), 0] == keys[str(shop), 1]
    assert len(set(keys.values())) == 6
    assert source_keys(targets, (1, 0)) == keys
    shop.write_text("2 2\n0 3 1 2\n0 4 1 3\n")
    now = source_keys(targets, (0, 1))
    assert {target for target, seed in keys if now[target, seed] != keys[target, seed]} == {
        str(shop)
    }


def test_a_source_is_remembered_while_its_instance_is_there(tmp_path: Path) -> None:
    made = MadeInstance("t", 3, "t-3", digest("h"), 2)
    write_note(tmp_path, "k", made)
    assert read_note(tmp_path, "k") is None
    (tmp_path / f"{made.instance_hash}.pickle").write_bytes(b"x")
    assert read_note(tmp_path, "k") == made
    assert read_note(tmp_path, "other") is None
    (tmp_path / "source-k.json").write_text("{")
    assert read_note(tmp_path, "k") is None
    write_note(tmp_path, "failed", MadeInstance("t", 3, "t", None, error="why"))
    assert not (tmp_path / "source-failed.json").exists()
