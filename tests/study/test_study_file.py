"""Study files: what is read, and that every mistake is named with its field, the value and what is
allowed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.errors import FileFormatError, OptbenchError
from optbench.study.declared import Study
from optbench.study.fields import duration, memory
from optbench.study.study_file import KEYS, load_study, read

PROBLEMS = 'problems = ["jobshop:jobs=3,machines=2"]\n'
SOLVERS = 'solvers = ["cpsat", "fcfs"]\n'
SHOP = "2 2\n0 3 1 2\n0 4 1 2\n"
# A whole number that no float holds.
HUGE = "9" * 400


def load(folder: Path, text: str) -> Study:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_study(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(FileFormatError) as error:
        load(folder, text)
    message = str(error.value)
    assert message.startswith(f"{folder / 'mine.toml'}: ")
    return message


def test_a_study_with_everything(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text(SHOP)
    study = load(
        tmp_path,
        """
        question = "Which?"
        problems = ["gpu_dag:tasks=[4,6],gpus=2", "shop.txt"]
        solvers = [
            "cpsat:time_limit=[1s,2s],threads=2",
            "random_rules[k=[8,16]]",
            { name = "tuned", solver = "fixed_dvfs:low_clock=0.5", memory_limit = "2GB", work_limit = 100 },
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
        """,
    )
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("problems = [\n", "(at end of document)"),
        ("a = 1\nb = ?", "(at line 2, column 5)"),
        ("problem = []", "unknown key 'problem'; did you mean 'problems'?"),
        (PROBLEMS, "solvers is missing"),
        (SOLVERS, "problems is missing"),
        ('problems = "jobshop"\n' + SOLVERS, "problems is 'jobshop'; it must be a list"),
        ("problems = []\n" + SOLVERS, "problems is []; it must be a list with at least one entry"),
        ("problems = [3]\n" + SOLVERS, "problems[0] is 3; it must be text"),
        (PROBLEMS + "solvers = []", "solvers is []; it must be a list with at least one entry"),
    ],
)
def test_a_file_that_is_wrong_as_a_whole(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("solvers", "words"),
    [
        ('"cpsat"', "solvers is 'cpsat'; it must be a list"),
        ('["cpsat", 7]', "solvers[1] is 7; it must be text or a table"),
        ('["cpsat", "heff"]', "solvers[1]: unknown solver 'heff'; did you mean 'heft'?"),
        (
            '["random_rules:kk=3"]',
            (
                "solvers[0]: unknown parameter or limit of solver 'random_rules' 'kk'; did you "
                "mean "
                "'k'?"
            ),
        ),
        (
            '["cpsat:time_limt=1s"]',
            "parameter or limit of solver 'cpsat' 'time_limt'; did you mean 'time_limit'?",
        ),
        (
            '["random_rules:k=x"]',
            "solvers[0]: solver 'random_rules': k is 'x'; it must be an integer",
        ),
        (
            '["fcfs:time_limit=soon"]',
            "solvers[0].time_limit is 'soon'; it must be a duration above 0",
        ),
        ('["fcfs:time_limit=-1s"]', "solvers[0].time_limit is '-1s'"),
        (
            '["fcfs:threads=0"]',
            "solvers[0].threads is '0'; it must be a whole number from 1 to 1,000,000",
        ),
        (
            '["fcfs:time_limit=[]"]',
            "solvers[0]: fcfs: time_limit is '[]'; a list needs at least one value",
        ),
        ('[{ name = "x" }]', "solvers[0].solver is missing"),
        (
            '[{ solver = "fcfs", tme_limit = 1 }]',
            "unknown key 'solvers[0].tme_limit'; did you mean 'time_limit'?",
        ),
        ('[{ solver = "fcfs", name = "best" }]', "solvers[0].name is 'best'"),
        ('[{ solver = "fcfs", name = " " }]', "solvers[0].name is ' '; it must be text"),
        (
            '[{ solver = "random_rules:k=[1,2]", name = "x" }]',
            "solvers[0].name is 'x', but the solver's lists make 2",
        ),
        (
            '[{ solver = "fcfs:threads=2", threads = 3 }]',
            "solvers[0] gives threads twice: '2' in the spec, and 3",
        ),
        ('["fcfs", "cpsat", "fcfs"]', "solvers[2] is 'fcfs', the same configuration as solvers[0]"),
        (
            '["fcfs", "fcfs:time_limit=1m"]',
            "solvers[1] is 'fcfs:time_limit=1m', the same configuration as solvers[0]",
        ),
        (
            '["random_rules", "random_rules:k=0"]',
            "solvers[1] is 'random_rules:k=0', the same configuration",
        ),
        (
            '[{ solver = "fcfs", name = "cpsat" }, "cpsat"]',
            "solvers[1] and solvers[0] both have the label 'cpsat'",
        ),
        (
            '["fcfs:wall_limit=1s"]',
            "solvers[0].wall_limit is '1s'; it must be at least the time limit of 60 s",
        ),
    ],
)
def test_every_mistake_among_solvers_is_named(tmp_path: Path, solvers: str, words: str) -> None:
    assert words in refusal(tmp_path, f"{PROBLEMS}solvers = {solvers}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sedes = 2", "unknown key 'sedes'; did you mean 'seeds'?"),
        ("time_limit_s = 2", "unknown key 'time_limit_s'; did you mean 'time_limit'?"),
        ("seeds = 0", "seeds is 0; it must be a number of seeds from 1"),
        ("seeds = -1", "seeds is -1"),
        ("seeds = true", "seeds is True"),
        ("seeds = 1.5", "seeds is 1.5"),
        ("seeds = []", "seeds is []"),
        ("seeds = [0, -1]", "seeds[1] is -1; it must be a whole number of at least 0"),
        ("seeds = [0, 1, 0]", "seeds[2] is 0, which is seeds[0] again"),
        ('seeds = ["a"]', "seeds[0] is 'a'"),
        ("seeds = 1_000_000_000", "seeds is 1000000000"),
        ("repetitions = 0", "repetitions is 0; it must be a whole number from 1 to 1,000,000"),
        ('repetitions = "2"', "repetitions is '2'"),
        (f"repetitions = {HUGE}", "repetitions is 999"),
        (f"threads = {HUGE}", "threads is 999"),
        (f"time_limit = {HUGE}", "time_limit is 999"),
        (f"work_limit = {HUGE}", "work_limit is 999"),
        (f"memory_limit = {HUGE}", "memory_limit is 999"),
        (f"bound_limit = {HUGE}", "bound_limit is 999"),
        ("seeds = 100_000\nrepetitions = 6", "are 1,200,000 cells; at most 1,000,000"),
        ("time_limit = nan", "time_limit is nan; it must be a duration above 0"),
        ("time_limit = inf", "time_limit is inf"),
        ("time_limit = 0", "time_limit is 0"),
        ("time_limit = true", "time_limit is True"),
        ("time_limit = 2026-11-18", "time_limit is datetime.date(2026, 11, 18)"),
        ("work_limit = -5", "work_limit is -5; it must be a number above 0"),
        ("work_limit = nan", "work_limit is nan"),
        ('memory_limit = "4 lumps"', "memory_limit is '4 lumps'; it must be an amount of memory"),
        ("memory_limit = -4", "memory_limit is -4"),
        ("threads = 1.5", "threads is 1.5"),
        ('bound_limit = "0s"', "bound_limit is '0s'"),
        ("question = 3", "question is 3; it must be text"),
        ('metrics = "energy_j"', "metrics is 'energy_j'; it must be a list of names"),
        (
            'metrics = ["enrgy_j"]',
            "metrics[0] is 'enrgy_j', which no family reports; did you mean 'energy_j'?",
        ),
        ('metrics = ["a b"]', "metrics[0] is 'a b'"),
        (
            'metrics = ["energy_j", "energy_j"]',
            "metrics[1] is 'energy_j', which is metrics[0] again",
        ),
        (
            'reference = "cpsta"',
            "reference is 'cpsta', which is not a solver of the study; did you mean 'cpsat'?",
        ),
        ("[gates]\ncpsat = 3", "gates.cpsat is 3; it must be a condition in text"),
        (
            "[gates]\ncpsat = 'gap <= 5'",
            "gates.cpsat: column 1: gap is between 0 and 1, so that gap <= 5 is always",
        ),
        (
            "[gates]\ncpsat = 'gpa <= 1'",
            "gates.cpsat: column 1: unknown metric 'gpa'; did you mean 'gap'?",
        ),
        (
            "[gates]\ncpsta = 'gap <= 1'",
            "'cpsta' is not a solver of the study: did you mean 'cpsat'?",
        ),
        ("gates = ['gap']", "gates is ['gap']; it must be a table"),
        ("claims = 3", "claims is 3; it must be an array of tables"),
        ("[[claims]]\ntext = 'x'", "claims[0].source is missing"),
        ("[[claims]]\ntxt = 'x'", "unknown key 'claims[0].txt'; did you mean 'text'?"),
        ("[tune]\nsolver = 'fcfs'", "tune."),
    ],
)
def test_every_mistake_of_a_field_is_named(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, PROBLEMS + SOLVERS + text)


CLAIM = "[[claims]]\ntext = 'x'\nsource = 'y'\npaper = {paper}\nours = '{ours}'\n{rest}"


@pytest.mark.parametrize(
    ("paper", "ours", "rest", "words"),
    [
        ("'a lot'", "gap(cpsat)", "", "claims[0].paper: column 3"),
        ("nan", "gap(cpsat)", "", "claims[0].paper is nan; it must be a number"),
        (HUGE, "gap(cpsat)", "", "claims[0].paper is 999"),
        ("true", "gap(cpsat)", "", "claims[0].paper is True"),
        ("'gap'", "gap(cpsat)", "", "claims[0].paper is 'gap'"),
        ("1", "gap", "", "claims[0].ours: column 1: of which solver?"),
        (
            "1",
            "gap(cpsat) < 1",
            "",
            "claims[0].ours: column 1: this is a condition where a number is expected",
        ),
        ("1", "gap(heft)", "", "unknown solver"),
        ("1", "gap(cpsat)", "better = 'less'", "claims[0].better is 'less'; "),
        ("1", "gap(cpsat)", "tolerance = -1", "claims[0].tolerance is -1"),
        (
            "-0.3",
            "gap(cpsat)",
            "tolerance = 10",
            "claims[0].tolerance is 10; it must be a share of the figure below 1",
        ),
        ("1", "gap(cpsat)", "bound = 'bnd(cpsat)'", "claims[0].bound: column 1: unknown function"),
    ],
)
def test_claims_that_mean_nothing(
    tmp_path: Path, paper: str, ours: str, rest: str, words: str
) -> None:
    assert words in refusal(
        tmp_path, PROBLEMS + SOLVERS + CLAIM.format(paper=paper, ours=ours, rest=rest)
    )


def test_of_nothing_a_tolerance_is_no_share(tmp_path: Path) -> None:
    text = CLAIM.format(paper=0, ours="wall_s(cpsat)", rest="tolerance = '10s'")
    assert load(tmp_path, PROBLEMS + SOLVERS + text).claims[0].tolerance == 10.0


def test_a_gate_of_a_name_that_several_have(tmp_path: Path) -> None:
    text = PROBLEMS + 'solvers = ["random_rules:k=[1,2]"]\n[gates]\nrandom_rules = "gap <= 1"'
    assert (
        'gates.random_rules: \'random_rules\' is ambiguous: "random_rules:k=1", "random_rules:k=2"'
        in refusal(tmp_path, text)
    )
    text = PROBLEMS + 'reference = "random_rules"\nsolvers = ["random_rules:k=[1,2]"]'
    assert (
        "reference is 'random_rules', which is ambiguous: 'random_rules:k=1', 'random_rules:k=2'"
        in refusal(tmp_path, text)
    )


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
