"""Shapes as data: what a study knows of a shape that it does not import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import optbench as ob
from optbench.errors import FileFormatError, PluginError, UnsupportedError
from optbench.execute.shaped_cells import describe, restored
from optbench.model.result import Bound
from optbench.outcome import outcome_of
from optbench.shapes.milp.milp_shape import MILPS, MilpShape
from optbench.shapes.milp.mps_format import read_mps
from optbench.shapes.protocol.shape_facts import CellShape, ShapeFacts, stand_in
from optbench.shapes.protocol.shaped_instance import ShapedInstance, document_hash
from optbench.study.code_version import definition_digest
from tests.sample_files.knapsack_workspace import MAXIMISED_MPS


def programme() -> ShapedInstance:
    return MILPS.instance(read_mps(MAXIMISED_MPS, "bag"))


def test_a_described_instance_is_made_again_with_the_same_hash(tmp_path: Path) -> None:
    instance, file = programme(), tmp_path / "instance.json"
    answer = describe(instance, file)
    assert answer["shape"]["sense"] == "max" and answer["shape"]["files"] == ()
    assert restored(file).hash == instance.hash
    # The runner computes the hash from the document alone.
    assert document_hash(json.loads(file.read_text())["document"]) == instance.hash
    facts = ShapeFacts.from_dict(json.loads(json.dumps(answer["shape"])))
    assert facts.of_cell == CellShape("milp", "max", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sense": "up"}, "sense is 'up'"),
        ({"name": 3}, "name of the shape"),
        ({"metrics": [1]}, "metrics"),
        ({"files": ["x" * 3000]}, "files of the shape"),
        ({"decision": "d" * 3000}, "decision of the shape"),
        ({"facts": {"num_rows": "3"}}, "facts of the shape: 'num_rows' is no finite number"),
        ({"facts": [3.0]}, "facts of the shape is no object"),
        ({"fact_words": {"num_rows": 3}}, "num_rows of the shape"),
    ],
)
def test_facts_that_another_process_wrote_are_checked(changes: dict[str, Any], words: str) -> None:
    facts = ShapeFacts("milp", "max", "solution", "max objective", "3 columns", "a:B")
    with pytest.raises(FileFormatError, match=words):
        ShapeFacts.from_dict({**facts.to_dict(), **changes})


def test_a_stand_in_has_a_sense_and_runs_no_code() -> None:
    instance = stand_in("bag", CellShape("bag", "max"))
    found = outcome_of(instance, None, [Bound(9.0, "a", "solver"), Bound(8.0, "b", "solver")])
    assert found.bound == 8.0  # the least of upper bounds
    with pytest.raises(UnsupportedError, match="process of its own"):
        instance.shape.verdict_of(instance, None)


class Local:
    """A place for a class that cannot be imported by its name."""

    @staticmethod
    def shape() -> Any:
        class Hidden(type(MILPS)):  # type: ignore[misc]
            name = "hidden"

        return Hidden()


def test_a_shape_that_cannot_be_made_again_is_refused(tmp_path: Path) -> None:
    instance = ShapedInstance(Local.shape(), "bag", programme().data)
    with pytest.raises(PluginError, match="top level of its file"):
        describe(instance, tmp_path / "instance.json")


def test_a_digest_follows_relative_imports_and_takes_files_of_code_only(tmp_path: Path) -> None:
    main, helper, other = (tmp_path / f"{name}.py" for name in ("main", "helper", "other"))
    main.write_text("from .helper import x\n")
    helper.write_text("x = 1\n")
    other.write_text("")
    first = definition_digest([str(main)])
    other.write_text("y = 2\n")
    assert definition_digest([str(main)]) == first
    helper.write_text("x = 2\n")
    assert definition_digest([str(main)]) != first
    assert definition_digest([]) == definition_digest(["/dev/zero", "/dev/null"]) == ""


class Boastful(MilpShape):
    """Calls every bound proven; the first one has a certificate, the second one has none."""

    name = "boastful"

    def bounds(self, instance: Any, method: str, time_limit_s: float, best: Any) -> list[Bound]:
        found = super().bounds(instance, method, time_limit_s, best)
        return [*found, Bound(13.0, "a guess", "combinatorial")]


def test_a_shapes_own_bounds_are_certified_by_the_core_alone() -> None:
    instance = ShapedInstance(Boastful(), "bag", programme().data)
    proven, guess = ob.bound(instance)
    # Of 6 x + 8 y + 5 z with 5 x + 6 y + 4 z ≤ 10 and 0 ≤ x, y, z ≤ 1: y whole and z whole are
    # 13 of profit and fill the bag; per unit of weight y earns 4/3, z 5/4 and x 6/5.
    assert (proven.value, proven.proof) == (13.0, "exact-lp")
    assert (guess.value, guess.proof) == (13.0, "solver")
