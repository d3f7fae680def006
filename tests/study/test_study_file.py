"""Study files: what is read, what is left out, and that anything in a field is read or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.errors import FileFormatError, OptbenchError
from optbench.study.fields import duration, memory
from optbench.study.study_file import KEYS, load_study, read
from tests.study.study_texts import CLAIM, PROBLEMS, SOLVERS, load

SHOP = "2 2\n0 3 1 2\n0 4 1 2\n"


EVERYTHING = """
        question = "Which?"
        problems = ["gpu_dag:tasks=[4,6],gpus=2", "shop.txt"]
        solvers = [
            "cpsat:time_limit=[1s,2s],threads=2",
            "random_rules[k=[8,16]]",
            { name = "tuned", solver = "fixed_dvfs:low_clock=0.5", memory_limit = "2GB", \
work_limit = 100 },
        ]
        seeds = [3, 1]
        repetitions = 2
        time_limit = "3s"
        memory_limit = "500MB"
        cpu_limit = "1m"
        bound_limit = "1s"
        metrics = ["energy_j", "j_per_job"]
        reference = "tuned"
        [gates]
        tuned = "j_per_job >= 0"
        "random_rules:k=8" = "gap <= 0.1"
        any = "rel(energy_j, fixed_dvfs, 'random_rules:k=16') <= 5%"
        [[claims]]
        text = "Less"
        source = "a paper"
        paper = "-34%"
        ours = "rel(energy_j, tuned, 'cpsat:time_limit=1s,threads=2')"
        tolerance = "5%"
        """


def test_a_study_with_everything(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text(SHOP)
    study = load(tmp_path, EVERYTHING)
    assert (study.name, study.question, study.path) == ("mine", "Which?", tmp_path / "mine.toml")
    assert study.problems == (
        "gpu_dag:tasks=4,gpus=2",
        "gpu_dag:tasks=6,gpus=2",
        str(tmp_path / "shop.txt"),
    )
    assert [entry.label for entry in study.solvers] == [
        "cpsat:time_limit=1s,threads=2",
        "cpsat:time_limit=2s,threads=2",
        "random_rules:k=8",
        "random_rules:k=16",
        "tuned",
    ]
    budgets = [entry.budget for entry in study.solvers]
    assert [budget.time_limit_s for budget in budgets] == [1.0, 2.0, 3.0, 3.0, 3.0]
    assert [budget.threads for budget in budgets] == [2, 2, 1, 1, 1]
    assert [budget.memory_limit_mb for budget in budgets] == [500.0, 500.0, 500.0, 500.0, 2048.0]
    assert [budget.work_limit for budget in budgets] == [None, None, None, None, 100.0]
    assert {budget.cpu_limit_s for budget in budgets} == {60.0}
    assert (study.seeds, study.repetitions, study.bound_limit_s) == ((3, 1), 2, 1.0)
    assert (study.metrics, study.reference) == (("energy_j", "j_per_job"), "tuned")
    assert (study.claims[0].paper, study.claims[0].tolerance, study.claims[0].better) == (
        -0.34,
        0.05,
        "lower",
    )
    assert study.solvers[-1].params["low_clock"] == 0.5


def test_what_is_left_out(tmp_path: Path) -> None:
    study = load(tmp_path, PROBLEMS + SOLVERS)
    assert (study.seeds, study.repetitions, study.bound_limit_s, study.reference) == (
        (0,),
        1,
        10.0,
        "best",
    )
    assert [entry.budget.time_limit_s for entry in study.solvers] == [60.0, 60.0]


def test_seeds_as_a_number_are_those_from_0_on(tmp_path: Path) -> None:
    assert load(tmp_path, PROBLEMS + SOLVERS + "seeds = 3").seeds == (0, 1, 2)


@pytest.mark.parametrize(
    ("keys", "solver", "expected"),
    [
        ("", '"fcfs"', (60.0, None)),
        ("work_limit = 10", '"fcfs"', (None, 10.0)),
        ("", '"fcfs:work_limit=10"', (None, 10.0)),
        ('work_limit = 10\ntime_limit = "5s"', '"fcfs"', (5.0, 10.0)),
        ('time_limit = "5s"', '"fcfs:work_limit=1e3"', (5.0, 1000.0)),
        ('time_limit = "5s"', '"fcfs:work_limit=10,time_limit=none"', (None, 10.0)),
        ("work_limit = 10", '"fcfs:work_limit=none"', (60.0, None)),
        ('time_limit = "none"', '"fcfs"', (None, None)),
        ("time_limit = 1.5", '"fcfs"', (1.5, None)),
        ('time_limit = "5s"', '{ solver = "fcfs", time_limit = "1m" }', (60.0, None)),
    ],
)
def test_a_work_limit_stands_instead_of_a_time_limit_that_nobody_gave(
    tmp_path: Path, keys: str, solver: str, expected: tuple[float | None, float | None]
) -> None:
    (entry,) = load(tmp_path, f"{PROBLEMS}solvers = [{solver}]\n{keys}").solvers
    assert (entry.budget.time_limit_s, entry.budget.work_limit) == expected


def test_of_nothing_a_tolerance_is_no_share(tmp_path: Path) -> None:
    text = CLAIM.format(paper=0, ours="wall_s(cpsat)", rest="tolerance = '10s'")
    assert load(tmp_path, PROBLEMS + SOLVERS + text).claims[0].tolerance == 10.0


def test_a_file_that_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"absent\.toml: cannot be read"):
        load_study(tmp_path / "absent.toml")
    path = tmp_path / "latin.toml"
    path.write_bytes(b'question = "\xe9"')
    with pytest.raises(FileFormatError, match="not UTF-8"):
        load_study(path)
    for text in ("a = " + "[" * 5000, "a = " + "9" * 5000):
        path.write_text(text)
        with pytest.raises(FileFormatError, match="not TOML"):
            load_study(path)
    with pytest.raises(OptbenchError, match="did you mean 'quickstart'"):
        load_study("quickstrat")


@pytest.mark.parametrize(
    ("given", "megabytes"),
    [
        ("4GB", 4096.0),
        ("500MB", 500.0),
        ("1 GiB", 1024.0),
        ("1.5gb", 1536.0),
        ("2e3", 2000.0),
        (64, 64.0),
        ("512KB", 0.5),
    ],
)
def test_memory_has_units(given: str | float, megabytes: float) -> None:
    assert memory(given, "memory_limit") == pytest.approx(megabytes)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("10s", 10.0), ("2m", 120.0), ("1.5h", 5400.0), ("250ms", 0.25), (3, 3.0)],
)
def test_durations_have_units(given: str | float, seconds: float) -> None:
    assert duration(given, "time_limit") == pytest.approx(seconds)


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["fcfs", "10s"]),
)
NAMES = st.sampled_from(["name", "solver", "text"])
PLAIN = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


@given(key=st.sampled_from(KEYS), value=PLAIN)
def test_whatever_stands_in_a_field_is_read_or_refused(key: str, value: object) -> None:
    table = {"problems": ["jobshop:jobs=2,machines=2"], "solvers": ["fcfs"], key: value}
    try:
        study = read(table, Path("any.toml"))
    except OptbenchError:
        return
    assert study.problems and study.solvers and study.seeds
