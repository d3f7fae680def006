"""Names and kinds: every slip is found before there are results, and says what was meant."""

from __future__ import annotations

import pytest

from optbench.study.formula_binding import condition, number
from optbench.study.formula_lexer import FormulaError
from optbench.study.formula_names import Scope

SOLVERS = (
    ("cpsat", "cpsat"),
    ("heft", "heft"),
    ("rules:k=8", "rules"),
    ("rules:k=16", "rules"),
    ("tuned", "fixed_dvfs"),
)
OF_HEFT = Scope(SOLVERS, "heft")
OF_NOBODY = Scope(SOLVERS)


@pytest.mark.parametrize(
    ("source", "solvers"),
    [
        ("gap", ("heft",)),
        ("gap(cpsat)", ("cpsat",)),
        ("gap('rules:k=8')", ("rules:k=8",)),
        ("mean(gap, fixed_dvfs)", ("tuned",)),
        ("energy_j / energy_j(cpsat)", ("heft", "cpsat")),
        ("mean(energy_j / makespan_s)", ("heft",)),
        ("rel(energy_j, cpsat)", ("heft", "cpsat")),
        ("rel(energy_j, tuned, cpsat)", ("tuned", "cpsat")),
        ("rel(bound, tuned, objective, tuned)", ("tuned",)),
        ("count()", ("heft",)),
        ("count(cpsat)", ("cpsat",)),
        ("count(failed)", ("heft",)),
        ("count(failed, cpsat)", ("cpsat",)),
        ("share(gap <= 1% and not failed, cpsat)", ("cpsat",)),
        ("p(95%, wall_s)", ("heft",)),
        ("gm(wall_s, 10s, cpsat)", ("cpsat",)),
        ("abs(gap - gap(cpsat))", ("heft", "cpsat")),
        ("mean(abs(rpd))", ("heft",)),
        ("sojourn_p99_s", ("heft",)),
    ],
)
def test_who_is_read(source: str, solvers: tuple[str, ...]) -> None:
    assert number(source, OF_HEFT).solvers == solvers


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("gpa", "unknown metric 'gpa'; did you mean 'gap'?"),
        ("enrgy_j", "did you mean 'energy_j'?"),
        ("j_per_job", "unknown metric 'j_per_job'"),
        ("cpsat", "'cpsat' is a solver; name a metric of it, such as gap(cpsat)"),
        ("mean", "'mean' is a function; it is written mean(x, solver)"),
        ("'heft'", "a name in quotation marks is a solver"),
        ("men(gap)", "unknown function 'men'; did you mean 'mean'?"),
        ("eval(gap)", "unknown function 'eval'"),
        ("gap(hft)", "unknown solver 'hft'; did you mean 'heft'?"),
        (
            "gap(rules)",
            "'rules' is ambiguous: 'rules:k=8', 'rules:k=16'; write the label in quotation marks",
        ),
        ("gap(1)", "a solver is expected here"),
        ("gap()", "gap takes one solver, as in gap(cpsat)"),
        ("mean()", "mean with 0 arguments; it is written mean(x, solver)"),
        ("mean(gap, heft, cpsat)", "mean with 3 arguments"),
        ("p(gap, 95)", "the percentage must be a number"),
        ("p(101, gap)", "the percentage is 101; it must be between 0 and 100"),
        ("p(0.95, gap)", "the percentage is 0.95; write 95% if that is meant, or 0.95%"),
        ("gm(wall_s)", "gm with 1 argument; it is written gm(x, shift, solver)"),
        ("rel(energy_j, heft, heft)", "heft is compared with itself"),
        ("rel(failed, heft, cpsat)", "rel takes a number for each cell"),
        ("share(gap)", "share takes a condition for each cell, such as gap <= 0.1"),
        ("count(gap)", "count takes a condition for each cell"),
        (
            "median(failed)",
            "median takes a number for each cell; failed is true or false: use share",
        ),
        ("mean(mean(gap))", "cannot stand within another function over cells"),
        ("mean(gap(heft))", "within a function the solver is the last argument: mean(gap,"),
        ("mean(failed + 1)", "failed is true or false for each cell; a number is expected here"),
        ("share(not gap)", "gap is a number for each cell; a condition"),
        ("mean(foo(gap))", "unknown function 'foo'"),
        ("gap < 1", "this is a condition where a number is expected"),
        ("1 + 2", "this does not read any cell"),
    ],
)
def test_numbers_that_mean_nothing(source: str, words: str) -> None:
    with pytest.raises(FormulaError, match="column") as error:
        number(source, OF_HEFT)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("gap", "gap is a number; a condition compares it with another, such as gap <= 0.1"),
        ("failed", "failed is a number"),
        ("not gap", "gap is a number"),
        ("gap < 1 and energy_j", "energy_j is a number"),
        ("(gap < 1) + 1 <= 2", "this is a condition where a number is expected"),
        ("1 <= 2", "this does not read any cell"),
        ("gpa <= 1", "did you mean 'gap'?"),
        (
            "gap <= 5",
            (
                "gap is between 0 and 1, so that gap <= 5 is always or never true; write 5% for 5 "
                "hundredths"
            ),
        ),
        ("gap <= 1", "so that gap <= 1 is always or never true; write 1% for a hundredth"),
        ("0 <= study_gap", "so that 0 <= study_gap is always or never true"),
        ("own_gap <= 0.1", "'own_gap' is now called 'gap'"),
        (
            "p(95, gap) < 20",
            "p(95, gap) is between 0 and 1, so that p(95, gap) < 20 is always or never true",
        ),
        ("share(optimal) >= 95", "share(optimal) is between 0 and 1"),
        (
            "share(gap <= 2) >= 95%",
            "gap is between 0 and 1, so that gap <= 2 is always or never true",
        ),
        ("2 > failed(cpsat)", "failed(cpsat) is between 0 and 1"),
    ],
)
def test_conditions_that_mean_nothing(source: str, words: str) -> None:
    with pytest.raises(FormulaError) as error:
        condition(source, OF_HEFT)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "source",
    ["gap < 1", "gap == 0", "share(optimal) == 1", "share(optimal) >= 1", "failed <= 0",
     "rpd <= 5", "sum(gap) <= 3", "gap + gap(cpsat) <= 2", "count(failed) <= 5",
     "p(0.5%, gap) <= 1%"],
)  # fmt: skip
def test_conditions_that_may_hold_or_not(source: str) -> None:
    assert condition(source, OF_HEFT).condition


@pytest.mark.parametrize("source", ["gap", "mean(gap)", "count()", "rel(energy_j, cpsat)"])
def test_without_a_solver_of_its_own_a_formula_names_one(source: str) -> None:
    with pytest.raises(FormulaError, match="of which solver"):
        number(source, OF_NOBODY)


def test_a_metric_that_the_study_declares_is_known() -> None:
    assert number("j_per_job", Scope(SOLVERS, "heft", ("j_per_job",))).solvers == ("heft",)


def test_a_label_wins_over_the_plain_name_of_another() -> None:
    scope = Scope((("heft", "fixed_dvfs"), ("mine", "heft")))
    assert number("gap(heft)", scope).solvers == ("heft",)
