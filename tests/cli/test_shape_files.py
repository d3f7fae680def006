"""Files of any shape: what the header names picks the codec, and the identity is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

import optbench as ob
from optbench.errors import FileFormatError, UnknownNameError, UnsupportedError
from optbench.plugins import shape_files, shape_search
from tests.cli.conftest import Cli
from tests.sample_files.jobs_shape import JobData, Jobs, Order
from tests.sample_files.packing_workspace import PACKING, write_workspace

PLACES = """
[optbench.shapes]
parcels = parcel_pack.parcels:Packing
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_workspace(tmp_path)


def test_an_instance_is_written_and_read_back(cli: Cli, workspace: Path) -> None:
    made = cli("convert", "packing:services=4", "four.json", "--json").json
    solved = cli("solve", "four.json", "-s", "first_fit", "-o", "placement.json", "--json", "-q")
    assert solved.code == 0 and solved.json["problem"] == "packing:services=4"
    direct = cli("solve", "packing:services=4", "-s", "first_fit", "--json", "-q").json
    assert solved.json["instance_hash"] == made["instance_hash"] == direct["instance_hash"]
    assert solved.json["objective"] == direct["objective"]
    assert cli("verify", "four.json", "placement.json").code == 0
    again = cli("convert", "four.json", "again.json", "--json").json
    assert again["instance_hash"] == made["instance_hash"]
    text = (workspace / "four.json").read_text()
    assert (workspace / "again.json").read_text() == text
    # The header may stand anywhere: here the keys are in the order of the alphabet.
    wide = json.loads(text)
    wide["data"]["memory_gb"] = [1.0] * 300
    (workspace / "sorted.json").write_text(json.dumps(wide, sort_keys=True))
    assert cli("convert", "sorted.json", "same.json").code == 0


def test_its_model_is_written_as_a_programme(cli: Cli, workspace: Path) -> None:
    for to in ("mps", "lp", "milp"):
        assert cli("convert", "packing:services=3", f"three.{to}", "--to", to).code == 0
    solved = cli("solve", "packing:services=3", "-s", "highs", "--json", "-q").json["objective"]
    files = (workspace / f"three.{to}" for to in ("mps", "lp", "milp"))
    assert [ob.solve(file, "highs").objective for file in files] == [solved] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": "packng"}, "shape is 'packng': unknown shape 'packng'; did you mean 'packing'?"),
        ({"shape": 3}, "shape is 3; it must be a text"),
        ({"version": 2}, "version is 2; it must be 1, the only version of optbench-shaped"),
        ({"name": None}, "name is null; it must be a text"),
        ({"problem": 7}, "problem is 7; it must be a text"),
        ({"dta": {}}, "unknown key 'dta'; did you mean 'data'?"),
        ({"data": []}, "data is a list of 0; it must be an object"),
    ],
)
def test_what_is_wrong_in_a_header_is_named(
    cli: Cli, workspace: Path, change: dict[str, object], message: str
) -> None:
    assert cli("convert", "packing:services=3", "three.json").code == 0
    document = json.loads((workspace / "three.json").read_text()) | change
    (workspace / "bad.json").write_text(json.dumps(document))
    done = cli("solve", "bad.json")
    assert done.code == 2 and f"bad.json: {message}" in done.err
    if change.get("shape") == "packng":
        assert "declared in a file of problems/ or solvers/ of the workspace" in done.err


def test_a_decision_of_another_instance_is_refused(cli: Cli, workspace: Path) -> None:
    cli("solve", "packing:services=3", "-s", "first_fit", "-o", "placement.json", "-q")
    done = cli("verify", "packing:services=4", "placement.json")
    assert done.code == 2 and "placement.json: instance_hash is '" in done.err
    (workspace / "placement.json").write_text('{"format": "optbench-schedule"}')
    done = cli("verify", "packing:services=4", "placement.json")
    assert done.code == 2
    assert (
        "placement.json: format is 'optbench-schedule'; it must be 'optbench-decision'" in done.err
    )


def test_two_files_that_declare_one_name(cli: Cli, workspace: Path) -> None:
    assert cli("convert", "packing:services=3", "three.json").code == 0
    (workspace / "problems" / "boxes.py").write_text(PACKING)
    done = cli("solve", "three.json")
    assert done.code == 2 and "two shapes are called 'packing'" in done.err
    assert "boxes.py and " in done.err and "packing.py; rename one of them" in done.err


def test_a_shape_of_an_installed_package(cli: Cli, real_cli: Cli, workspace: Path) -> None:
    assert cli("convert", "packing:services=3", "three.json").code == 0
    document = json.loads((workspace / "three.json").read_text())
    (workspace / "problems" / "packing.py").unlink()
    site = workspace / "site"
    (site / "parcel_pack").mkdir(parents=True)
    (site / "parcel_pack" / "__init__.py").touch()
    renamed = PACKING.replace('name = "packing"', 'name = "parcels"')
    (site / "parcel_pack" / "parcels.py").write_text(renamed)
    (site / "parcel_pack-1.0.dist-info").mkdir()
    (site / "parcel_pack-1.0.dist-info" / "entry_points.txt").write_text(PLACES)
    (workspace / "parcels.json").write_text(json.dumps(document | {"shape": "parcels"}))
    path = {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    done = real_cli("solve", "parcels.json", "-s", "highs", "--json", "-q", **path)
    assert done.code == 0 and done.json["verified"], done.err
    assert cli("solve", "parcels.json", "-s", "highs", "--json", "-q").code == 2


def test_a_shape_of_this_program(tmp_path: Path) -> None:
    made = Jobs().instance("one", JobData([2.0, 1.5]))
    ob.write_instance(made, tmp_path / "jobs.json")
    again = ob.load(tmp_path / "jobs.json")
    assert again.hash == made.hash and type(again.shape) is Jobs
    assert ob.read_instance(tmp_path / "jobs.json").data == made.data == JobData([2.0, 1.5])
    ob.write_decision(Order([1, 0]), tmp_path / "order.json", made)
    assert ob.read_decision(tmp_path / "order.json", again) == Order([1, 0])
    assert ob.convert(tmp_path / "jobs.json", tmp_path / "copy.json").hash == made.hash
    assert (tmp_path / "copy.json").read_text() == (tmp_path / "jobs.json").read_text()
    with pytest.raises(UnsupportedError, match="'mps': a job_order has no model; write 'optbench'"):
        ob.convert(tmp_path / "jobs.json", tmp_path / "copy.mps", to="mps")
    with pytest.raises(UnsupportedError, match="'psplib' is no format of a job_order; known: opt"):
        ob.convert(tmp_path / "jobs.json", tmp_path / "copy.sm", to="psplib")
    assert ob.verify(again, Order([1, 0])).objective == 5.0
    assert [each.constraint for each in ob.verify(made, Order([1])).violations] == ["once"]


def test_only_the_file_that_declares_a_shape_is_imported(cli: Cli, workspace: Path) -> None:
    cli("convert", "packing:services=3", "three.json")
    trap = '"""Mentions optbench.shapes."""\nraise RuntimeError("imported")\n'
    (workspace / "problems" / "trap.py").write_text(trap)
    (workspace / "solvers" / "_trap.py").write_text(trap)
    assert cli("solve", "three.json", "-s", "highs", "-q").code == 0


def test_a_broken_file_names_its_line(cli: Cli, workspace: Path) -> None:
    cli("convert", "packing:services=3", "three.json")
    (workspace / "problems" / "packing.py").write_text(PACKING + "\nnothing.there\n")
    done = cli("solve", "three.json")
    place = f"packing.py:{len(PACKING.splitlines()) + 2}: NameError"
    assert done.code == 2 and "shape 'packing' is unavailable" in done.err and place in done.err


def test_names_are_found_without_running_anything(tmp_path: Path) -> None:
    path = tmp_path / "several.py"
    path.write_text(
        "import optbench.shapes\n"
        "class _Base(optbench.shapes.DataShape):\n    name = 'hidden'\n"
        "class One(_Base):\n    name: ClassVar[str] = 'one'\n"
        "class Other:\n    name = 'none'\n"
        "class Two(PyomoShape):\n    name = NAME\n"
    )
    assert shape_search._names_in(path, 0) == (("one", "One"),)
    with pytest.raises(UnknownNameError, match=r"unknown shape 'none'; known: .*milp.*schedule"):
        shape_search.shape_named("none")
    assert shape_search.shape_named("schedule").name == "schedule"


def test_a_header_of_another_kind_is_left_to_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"name": "optbench-shaped", "format": "optbench-instance"}')
    assert not shape_files.has_shape_header(path)
    path.write_text(" " * 500 + '{"format": "optbench-shaped"}')
    assert not shape_files.has_shape_header(path)
    path.write_text('{"x": "' + "y" * 500 + '", "format": "optbench-shaped"}')
    assert shape_files.has_shape_header(path)
    with pytest.raises(FileFormatError, match=r"x.json: version is null; it must be 1"):
        ob.load(path)
    os.mkfifo(tmp_path / "pipe")
    assert not shape_files.has_shape_header(tmp_path / "pipe")


def test_schemas_follow_from_the_dataclasses(cli: Cli, workspace: Path) -> None:
    cli("convert", "packing:services=3", "three.json")
    cli("solve", "three.json", "-s", "first_fit", "-q", "-o", "placement.json")
    for file, words, wrong in (
        ("three.json", (), {"data": {"memory_gb": ["wide"]}}),
        ("placement.json", ("--decision",), {"decision": {"gpu": [0.5]}}),
    ):
        found = cli("schema", "packing", *words).json
        document = json.loads((workspace / file).read_text())
        jsonschema.validate(document, found)
        for bad in ({**document, "more": 1}, {**document, "shape": "x"}, {**document, **wrong}):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(bad, found)
    refused = cli("schema", "packng")
    assert refused.code == 2 and "unknown kind 'packng'; did you mean 'packing'?" in refused.err
    assert cli("schema", "result", "--decision").code == 2
