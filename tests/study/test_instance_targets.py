"""The problems of a study: grids, files, globs, public instances."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.errors import OptbenchError
from optbench.plugins.discovery import load_class
from optbench.plugins.specs import parse
from optbench.study.grids import expand_grid, spec_text
from optbench.study.instance_targets import natural, read_targets

SHOP = "2 2\n0 3 1 2\n0 4 1 2\n"


def refusal(folder: Path, *specs: str) -> str:
    with pytest.raises(OptbenchError) as error:
        read_targets(list(specs), folder)
    return str(error.value)


def combinations(spec: str) -> list[str]:
    name, params = parse(spec)
    return [
        spec_text(name, each) for each in expand_grid(name, params, load_class("problem", name))
    ]


def test_grids_are_written_out_the_last_parameter_varying_fastest() -> None:
    assert combinations("jobshop:jobs=[3, 4],machines=2") == [
        "jobshop:jobs=3,machines=2",
        "jobshop:jobs=4,machines=2",
    ]
    assert combinations("jobshop[jobs=[1,2],machines=[3,4]]") == [
        "jobshop:jobs=1,machines=3",
        "jobshop:jobs=1,machines=4",
        "jobshop:jobs=2,machines=3",
        "jobshop:jobs=2,machines=4",
    ]
    assert combinations("jobshop") == ["jobshop"]


def test_a_grid_of_millions_is_refused() -> None:
    digits = ",".join(map(str, range(101)))
    with pytest.raises(OptbenchError, match="10,201 combinations; at most 10,000"):
        combinations(f"jobshop:jobs=[{digits}],machines=[{digits}]")


def test_files_lie_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b10.txt", "b2.txt", "a.txt"):
        (tmp_path / "in" / name).write_text(SHOP)
    found = read_targets(["in/b2.txt", "in/*.txt"], tmp_path)
    assert [Path(target).name for target in found] == ["b2.txt", "a.txt", "b10.txt"]
    assert all(Path(target).is_absolute() for target in found)
    found = read_targets([str(tmp_path / "in" / "b*.txt")], tmp_path / "elsewhere")
    assert [Path(target).name for target in found] == ["b2.txt", "b10.txt"]


def test_numbers_within_names_are_ordered_as_numbers() -> None:
    assert sorted(["la10", "la9", "ft06", "la"], key=natural) == ["ft06", "la", "la9", "la10"]


def test_what_is_not_there(tmp_path: Path) -> None:
    message = refusal(tmp_path, "jobshop:jobs=3", "in/x.json")
    assert message.startswith("problems[1]: no such file: " + str(tmp_path / "in" / "x.json"))
    assert "no public data set 'in'" in message
    assert "did you mean 'jobshop'?" in refusal(tmp_path, "jobshp/ft06")
    assert "no file matches 'in/*.json'" in refusal(tmp_path, "in/*.json")
    assert "unknown problem 'jobshp'; did you mean 'jobshop'?" in refusal(tmp_path, "jobshp:jobs=3")
    assert "problems[0]: problem 'jobshop': jobs is 0" in refusal(tmp_path, "jobshop:jobs=0")
    assert "did you mean 'jobs'?" in refusal(tmp_path, "jobshop:job=3")


def test_the_same_problem_twice(tmp_path: Path) -> None:
    assert "problems[1] is 'jobshop:machines=2,jobs=3', the same as problems[0]" in refusal(
        tmp_path, "jobshop:jobs=3,machines=2", "jobshop:machines=2,jobs=3"
    )
    assert "problems[1] is 'jobshop:jobs=2', the same as problems[0]" in refusal(
        tmp_path, "jobshop:jobs=[2,3]", "jobshop:jobs=2"
    )


def test_public_instances_and_globs_of_them(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    assert read_targets(["jobshop/ft06", "rcpsp/j30/j30_1_*"], tmp_path)[0] == "jobshop/ft06"
    shops = read_targets(["jobshop/la*"], tmp_path)
    assert shops[:2] == ("jobshop/la01", "jobshop/la02") and "jobshop/bounds" not in shops
    assert set(read_targets(["rcpsp/j30/*"], tmp_path)) == set(
        read_targets(["rcpsp/j30_*"], tmp_path)
    )
    assert len(read_targets(["jobshop/la*", "jobshop/la01"], tmp_path)) == len(shops)
    assert "the same as problems[0]" in refusal(tmp_path, "jobshop/ft06", "jobshop/ft06")
    assert "no instance of the public data set matches 'jobshop/zz*'" in refusal(
        tmp_path, "jobshop/zz*"
    )
    assert "did you mean 'jobshop/ft06'?" in refusal(tmp_path, "jobshop/ft6")


def test_without_the_data_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPTBENCH_DATA", raising=False)
    monkeypatch.setenv("OPTBENCH_CACHE", str(tmp_path / "cache"))
    for spec in ("jobshop/la*", "jobshop/la01"):
        message = refusal(tmp_path, spec)
        assert "optbench data fetch jobshop/la01" in message and "OPTBENCH_DATA" in message


def test_a_file_of_the_study_comes_before_a_public_instance_of_the_same_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "jobshop").mkdir()
    (tmp_path / "jobshop" / "ft06").write_text(SHOP)
    assert read_targets(["jobshop/ft06"], tmp_path) == (str(tmp_path / "jobshop" / "ft06"),)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("~nobody_of_that_name/shop.txt", "no such home folder: '~nobody_of_that_name'"),
        ("~nobody_of_that_name/*.txt", "no such home folder: '~nobody_of_that_name'"),
        ("a" * 5000 + ".json", "cannot be read: File name too long"),
    ],
)
def test_a_place_that_cannot_be(tmp_path: Path, entry: str, words: str) -> None:
    message = refusal(tmp_path, entry)
    assert words in message and len(message) < 300
