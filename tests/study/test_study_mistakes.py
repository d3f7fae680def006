"""Every mistake in a study file is named with its field, the value and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.study.study_texts import CLAIM, HUGE, PROBLEMS, SOLVERS, refusal


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
            '["fcfs:reserved_gpus=-1"]',
            "solvers[0].reserved_gpus is '-1'; it must be a whole number from 0 to 1,000,000",
        ),
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
