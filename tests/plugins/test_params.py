"""Parameter files: what they set, what wins over them, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.errors import FileFormatError, ParameterError
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.specs import values_of

TUNED = (
    'solver = "fixed_dvfs"\n[params]\nlow_clock = 0.4\nload = 0.25\n[problem]\ngang = '
    "1\n[provenance]\ntrials = 7\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tuned.toml"
    path.write_text(TUNED)
    return path


def test_a_file_stands_for_its_parameters(file: Path) -> None:
    name, solver = load_solver(f"fixed_dvfs:params={file}")
    assert (name, values_of(solver)) == (
        "fixed_dvfs",
        {"low_clock": 0.4, "high_clock": 1.0, "load": 0.25},
    )
    assert load_solver("fixed_dvfs", {"params": str(file)})[1] == solver


def test_what_is_given_beside_a_file_wins(file: Path) -> None:
    assert values_of(load_solver(f"fixed_dvfs:load=0.75,params={file}")[1])["load"] == 0.75
    assert (
        values_of(load_solver(f"fixed_dvfs:params={file}", {"low_clock": "0.5"})[1])["low_clock"]
        == 0.5
    )


def test_seconds_are_the_same_parameter_with_their_unit_and_without(tmp_path: Path) -> None:
    for in_file, beside in (("tick = 2.0", "tick_s=0.5"), ("tick_s = 2.0", "tick=500ms")):
        path = tmp_path / "t.toml"
        path.write_text(f"[problem]\n{in_file}\n")
        assert values_of(load_problem(f"gpu_dag:params={path}"))["tick_s"] == 2.0
        assert values_of(load_problem(f"gpu_dag:{beside},params={path}"))["tick_s"] == 0.5


def test_a_problem_takes_its_own_part(file: Path) -> None:
    assert values_of(load_problem(f"gpu_dag:tasks=8,params={file}"))["gang"] == 1
    assert values_of(load_problem(f"gpu_dag:tasks=8,gang=2,params={file}"))["gang"] == 2


def test_a_file_is_found_in_the_workspace(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(tmp_path))
    assert values_of(load_solver("fixed_dvfs:params=tuned.toml")[1])["load"] == 0.25


def test_another_solver_s_file_is_refused(file: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"tuned.toml holds parameters of solver 'fixed_dvfs', not of 'fcfs'"
    ):
        load_solver(f"fcfs:params={file}")


def test_another_problem_s_file_is_refused(file: Path) -> None:
    file.write_text('problem_name = "gpu_dag"\n' + TUNED)
    assert values_of(load_problem(f"gpu_dag:params={file}"))["gang"] == 1
    with pytest.raises(
        ParameterError, match=r"holds parameters of problem 'gpu_dag', not of 'jobshop'"
    ):
        load_problem(f"jobshop:params={file}")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ParameterError, match=r"no parameter file 'tuned/nothing.toml'"):
        load_solver("fixed_dvfs:params=tuned/nothing.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'solver = "fixed_dvfs"\n[params]\nlow_clok = 0.4',
            r"t.toml: \[params\] 'low_clok' is not a parameter.*'low_clock'",
        ),
        (
            'solver = "fixed_dvfs"\n[params]\nload = "much"',
            r"t.toml.*load is 'much'; it must be a number",
        ),
        (
            'solver = "fixed_dvfs"\n[parms]\nload = 1',
            r"t.toml: unknown key 'parms'; did you mean 'params'",
        ),
        ('solver = "fixed_dvfs"\n', r"t.toml: no table \[params\]"),
        ("[params]\nload = 1", r"t.toml: \[params\] without a solver"),
        ("solver = 3\n[params]\nload = 1", r"t.toml: solver is 3"),
        ('solver = "fixed_dvfs"\nparams = 4', r"t.toml: params is 4; it must be a table"),
        ("solver = ", r"t.toml: Invalid value"),
    ],
)
def test_a_wrong_file_is_named_with_its_field(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text(text)
    with pytest.raises((ParameterError, FileFormatError), match=message):
        load_solver(f"fixed_dvfs:params={path}")


def test_a_value_that_the_solver_refuses_is_its_error(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text('solver = "fixed_dvfs"\n[params]\nload = 4\n')
    with pytest.raises(
        ParameterError,
        match=r"load is 4.0; it must be in \[0, 1\] \(with the parameters of .*t.toml",
    ):
        load_solver(f"fixed_dvfs:params={path}")
