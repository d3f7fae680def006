"""The table [statistics] of a study: what it may say, and the messages for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.study.declared import Statistics, Study
from tests.study.study_texts import PROBLEMS, SOLVERS, load, refusal

STUDY = PROBLEMS + SOLVERS + "[statistics]\n"


def test_a_study_without_the_table_asks_for_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, PROBLEMS + SOLVERS).statistics is None


def test_every_key_is_read_and_comes_back_from_a_stored_plan(tmp_path: Path) -> None:
    text = (
        'metric = "makespan_s * 2"\nreference = "fcfs"\nmargin = "5%"\nscale = "log"\n'
        'by_problem = true\nregress_on = ["jobs", "num_tasks", "threads", "machine_cores"]\n'
    )
    study = load(tmp_path, STUDY + text)
    columns = ("jobs", "num_tasks", "threads", "machine_cores")
    wanted = Statistics("makespan_s * 2", "fcfs", columns, "log", 0.05, True)
    assert study.statistics == wanted
    assert Study.from_dict(study.to_dict()).statistics == wanted


def test_it_decides_no_cell(tmp_path: Path) -> None:
    plain = load(tmp_path, PROBLEMS + SOLVERS)
    assert load(tmp_path, STUDY + 'metric = "objective"').config_hash == plain.config_hash


def test_numbers_of_the_problems_shape_are_known(tmp_path: Path) -> None:
    text = 'problems = ["gnn_training:graph=grid,nodes=16"]\nsolvers = ["ldg"]\n[statistics]\n'
    text += 'metric = "step_s"\nregress_on = ["num_edges", "gflops"]'
    found = load(tmp_path, text).statistics
    assert found is not None and found.regress_on == ("num_edges", "gflops")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "statistics.metric is missing; it must be a formula of one number per cell"),
        ('metrics = "objective"', "statistics.metrics"),
        ('metric = ""', "statistics.metric is ''"),
        ('metric = "makespann_s"', "statistics.metric: column 1: unknown metric 'makespann_s'"),
        ('metric = "gap <= 0.1"', "true or false for each cell; a number is expected"),
        ('metric = "gap"\nreference = "fcf"', "reference is 'fcf', which is not a solver"),
        ('metric = "gap"\nscale = "ln"', "statistics.scale is 'ln'"),
        ('metric = "gap"\nmargin = 0', "statistics.margin is 0; it must be a number above 0"),
        ('metric = "gap"\nby_problem = 1', "statistics.by_problem is 1; it must be true or false"),
        ('metric = "gap"\nregress_on = "jobs"', "statistics.regress_on is 'jobs'; it must be a"),
        ('metric = "gap"\nregress_on = ["jobs", "jobs"]', "names 'jobs' twice"),
        (
            'metric = "gap"\nregress_on = ["jobs", "machine"]',
            "statistics.regress_on[1] is 'machine', which is neither a number of the instances nor "
            "one of a problem's parameters; did you mean 'machines'?",
        ),
    ],
)
def test_mistakes_name_the_field(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, STUDY + text)


def test_the_table_is_a_table(tmp_path: Path) -> None:
    words = "statistics is 'gap'; it must be a table"
    assert words in refusal(tmp_path, 'statistics = "gap"\n' + PROBLEMS + SOLVERS)
