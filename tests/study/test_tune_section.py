"""The [tune] section: what it says, and what is said of a mistake in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.errors import FileFormatError
from optbench.study.study_file import load_study
from optbench.study.tune_section import Goal, SpaceAxis, read_tune

GOOD: dict[str, Any] = {
    "solver": "fixed_dvfs:load=0.3",
    "seeds": [100, 101],
    "minimize": ["objective"],
    "space": {"low_clock": {"float": [0.3, 1.0]}},
}
STUDY: dict[str, Any] = {"seeds": (0, 1), "problems": ("gpu_dag:tasks=5",)}


def test_what_it_says() -> None:
    space = {
        "low_clock": {"float": [0.3, 1.0], "log": True},
        "load": {"float": [0.0, 1.0], "step": 0.25},
        "problem": {"gang": {"int": [1, 4]}},  # problem.gang without quotation marks
        "problem.shape": {"choice": ["layered", "chains"]},
    }
    found = read_tune(
        {
            **GOOD,
            "space": space,
            "minimize": "energy_j",
            "maximize": ["makespan_s"],
            "time_limit": "3s",
        },
        **STUDY,
    )
    assert found.space == (
        SpaceAxis("low_clock", "solver", "float", 0.3, 1.0, log=True),
        SpaceAxis("load", "solver", "float", 0.0, 1.0, step=0.25),
        SpaceAxis("gang", "problem", "int", 1, 4),
        SpaceAxis("shape", "problem", "choice", choices=("layered", "chains")),
    )
    assert found.goals == (Goal("energy_j"), Goal("makespan_s", maximize=True))
    assert (found.sampler, found.pruner) == ("nsga2", "none")
    assert found.budget == {"time_limit": "3s"}
    single = read_tune(GOOD, **STUDY)
    assert (single.sampler, single.pruner, single.validation, single.problems) == (
        "tpe",
        "median",
        None,
        None,
    )
    assert read_tune({**GOOD, "minimize": "p(95, energy_j)"}, **STUDY).pruner == "none"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solvr": "x"}, r"tune: unknown key 'solvr'; did you mean 'solver'"),
        (
            {"solver": "fixed_dvs"},
            r"tune.solver: unknown solver 'fixed_dvs'; did you mean 'fixed_dvfs'",
        ),
        ({"solver": "fixed_dvfs:load=[0.1,0.2]"}, r"tune.solver is .* 2 configurations"),
        ({"solver": "fixed_dvfs:load=7"}, r"load is 7.0; it must be in \[0, 1\]"),
        ({"solver": "fixed_dvfs:time_limit=soon"}, r"'soon'"),
        ({"seeds": 5}, r"tune.seeds is 5; it must be a list"),
        ({"seeds": [100, 100]}, r"tune.seeds is \[100, 100\]; it must be a list of different"),
        (
            {"seeds": [1, 100]},
            r"tune.seeds and the study's seeds share 1: .* such as seeds = \[2, 3\]",
        ),
        ({"validation": [100, 7]}, r"tune.seeds and tune.validation share 100"),
        ({"space": {}}, r"tune.space is \{\}"),
        (
            {"space": {"low_clok": {"float": [0, 1]}}},
            r"tune.space.low_clok: solver 'fixed_dvfs' has no .*mean 'low_clock'",
        ),
        ({"space": {"low_clock": {"float": [1, 0]}}}, r"tune.space.low_clock.float is \[1, 0\]"),
        (
            {"space": {"low_clock": {"float": [0, 1], "log": True}}},
            r"tune.space.low_clock is logarithmic from 0",
        ),
        (
            {"space": {"low_clock": {"float": [0, 1], "int": [0, 1]}}},
            r"tune.space.low_clock has float and int",
        ),
        (
            {"space": {"low_clock": {"float": [0, 1], "lgo": True}}},
            r"tune.space.low_clock: unknown key 'lgo'; .*'log'",
        ),
        ({"space": {"low_clock": {"choice": [0.5]}}}, r"tune.space.low_clock.choice is \[0.5\]"),
        (
            {"space": {"low_clock": {"choice": ["much", "more"]}}},
            r"tune.space.low_clock: .*'much'; it must be a number",
        ),
        ({"space": {"low_clock": 3}}, r"tune.space.low_clock is 3; write"),
        (
            {"space": {"problem.gangs": {"int": [1, 2]}}, "minimize": "energy_j"},
            r"problem 'gpu_dag' has no parameter 'gangs'",
        ),
        (
            {"space": {"problem.gang": {"int": [1, 2]}}},
            r"names 'objective' while the space varies the problem",
        ),
        ({"minimize": []}, r"tune.minimize is \[\]"),
        ({"minimize": ["objective", "objective"]}, r"'objective' is named twice"),
        ({"minimize": "enrgy_j"}, r"unknown metric 'enrgy_j'; did you mean 'energy_j'"),
        ({"minimize": "rpd"}, r"reads rpd, which a search does not have"),
        ({"minimize": "study_gap"}, r"reads study_gap, which a search does not have"),
        ({"constraints": ["tardiness_s"]}, r"tardiness_s is a number; a condition compares"),
        ({"constraints": ["bound <= 1"]}, r"reads bound"),
        ({"trials": 0}, r"tune.trials is 0; it must be a whole number of at least 2"),
        ({"sampler": "tp"}, r"tune.sampler is 'tp'; did you mean 'tpe'"),
        (
            {"pruner": "median", "minimize": ["energy_j", "makespan_s"]},
            r"tune.pruner is 'median'; pruning needs one goal",
        ),
        ({"time_limit": "soon"}, r"time_limit is 'soon'"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read_tune({**GOOD, **change}, **STUDY)


def test_what_is_missing_is_named() -> None:
    for key in ("solver", "seeds", "space", "minimize"):
        with pytest.raises(FileFormatError, match=rf"tune.{key} is missing"):
            read_tune({name: value for name, value in GOOD.items() if name != key}, **STUDY)
    with pytest.raises(FileFormatError, match="tune is 3; it must be a table"):
        read_tune(3, **STUDY)  # type: ignore[arg-type]


def test_seeds_of_files_may_be_the_same() -> None:
    """An instance file is the same for every seed: only the solver draws from it."""
    assert read_tune({**GOOD, "seeds": [0]}, seeds=(0,), problems=("mine.json",)).seeds == (0,)


def test_a_study_is_refused_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'problems = ["gpu_dag:tasks=5"]\nsolvers = ["fcfs"]\ntime_limit = "4s"\n[tune]\nsolver = '
        '"fixed_dvfs"\n'
    )
    with pytest.raises(FileFormatError, match=r"mine.toml: tune.space is missing"):
        load_study(path)
    path.write_text(
        path.read_text()
        + 'seeds = [9]\nminimize = "objective"\nspace = { load = { float = [0, 1] } }\n'
    )
    assert load_study(path).tune is not None
    assert read_tune(load_study(path).tune or {}, **STUDY).budget == {"time_limit": "4s"}
