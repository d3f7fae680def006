"""The verdict in words: who is best, by how much, what is proven, and where a rule does as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from optbench.report.study_report import StudyReport, caveats, gather
from optbench.report.study_verdict import verdict
from optbench.study.cells import BOUNDS
from tests.evaluate.studies_by_hand import failure, record, records_of, stored, study_of

LABELS = ("cpsat", "fcfs", "lp_guided")


def reported(
    folder: Path,
    results: Mapping[tuple[str, str], Any],
    labels: tuple[str, ...] = LABELS,
    **fields: Any,
) -> StudyReport:
    plan = study_of(labels, ["a"], **fields)
    return gather(plan, stored(folder, records_of(plan, results)))


def objectives(**values: list[float]) -> dict[tuple[str, str], Any]:
    """One objective per seed, every instance bounded at 100."""
    out: dict[tuple[str, str], Any] = {}
    for label, row in values.items():
        for seed, value in enumerate(row):
            out[label, f"a-{seed}"] = (value, None)
            out[BOUNDS, f"a-{seed}"] = (None, 100.0)
    return out


def test_the_best_by_a_clear_margin(tmp_path: Path) -> None:
    """Gaps: 0, 0.2 and 0.5 on each of five. The optimum is proven, by the bound."""
    given = objectives(cpsat=[100] * 5, fcfs=[125] * 5, lp_guided=[200] * 5)
    assert verdict(reported(tmp_path, given, seeds=range(5))) == [
        "cpsat is best: its schedules are proven optimal over 5 instances.",
        (
            "Clearly behind cpsat are fcfs by 20.0 points (20.0 to 20.0), lp_guided by 50.0 points "
            "(50.0 to 50.0)."
        ),
        "The optimum of every instance is proven: the gaps are what is really lost.",
        "The simple rule fcfs does better than the method lp_guided.",
    ]


def test_few_instances_make_nobody_the_best(tmp_path: Path) -> None:
    report = reported(
        tmp_path, objectives(cpsat=[100] * 4, fcfs=[125] * 4), labels=LABELS[:2], seeds=range(4)
    )
    assert verdict(report)[0].startswith("cpsat and fcfs cannot be told apart")
    assert [each.words for each in caveats(report)] == [
        (
            "4 instances are too few for 95 % intervals: theirs are too narrow, and tell no "
            "solvers "
            "apart"
        )
    ]


def failing(**fields: Any) -> Any:
    return lambda cell: failure(cell, "crashed", **fields)


def test_where_nobody_has_a_schedule_nobody_is_first(tmp_path: Path) -> None:
    given: dict[tuple[str, str], Any] = {
        (BOUNDS, "a-0"): (None, 100.0),
        ("fcfs", "a-0"): (None, None),
    }
    given["cpsat", "a-0"] = failing()
    assert verdict(reported(tmp_path, given, labels=LABELS[:2])) == [
        "No solver has reached a schedule.",
        "1 cell failed and counts as a gap of 100 %.",
        "1 cell ended without a schedule and counts as a gap of 100 %.",
    ]


def test_solvers_on_different_instances_are_not_compared(tmp_path: Path) -> None:
    given = objectives(cpsat=[125, 125], fcfs=[100, 100])
    del given["cpsat", "a-0"], given["fcfs", "a-1"]
    found = verdict(reported(tmp_path, given, labels=LABELS[:2], seeds=(0, 1)))
    assert found == ["The solvers have run on different instances: nothing can be compared yet."]


def test_the_same_gaps_are_no_difference(tmp_path: Path) -> None:
    found = verdict(
        reported(
            tmp_path, objectives(cpsat=[125, 200], fcfs=[125, 200]), labels=LABELS[:2], seeds=(0, 1)
        )
    )
    assert found[1] == "cpsat and fcfs have the same gaps." and "chance" not in " ".join(found)


def test_the_bounding_of_an_instance_is_no_gap_of_a_solver(tmp_path: Path) -> None:
    given: dict[tuple[str, str], Any] = {
        (BOUNDS, "a-0"): failing(),
        ("cpsat", "a-0"): (100.0, 80.0),
    }
    found = verdict(reported(tmp_path, given, labels=LABELS[:1]))
    assert found[-1] == "The bounding of 1 instance failed: gaps there rest on what solvers proved."
    assert not any("100 %" in each for each in found)


def test_an_instance_that_cannot_be_solved_is_said(tmp_path: Path) -> None:
    given = objectives(cpsat=[100, 100], fcfs=[125, 125])
    given["cpsat", "a-0"], given["fcfs", "a-0"] = (
        lambda cell: record(cell, status="infeasible"),
        (None, None),
    )
    found = verdict(reported(tmp_path, given, labels=LABELS[:2], seeds=(0, 1)))
    assert found[-1] == (
        "No schedule refutes that 1 instance cannot be solved, as cpsat says without a certificate."
    )


def test_a_refused_schedule_says_nothing_of_the_instance(tmp_path: Path) -> None:
    given = objectives(cpsat=[100, 100], fcfs=[125, 125])
    given["fcfs", "a-0"] = lambda cell: failure(cell, "infeasible", "energy limit: 7 J")
    found = verdict(reported(tmp_path, given, labels=LABELS[:2], seeds=(0, 1)))
    assert "1 cell failed and counts as a gap of 100 %." in found
    assert "cannot be solved" not in " ".join(found)


def test_optima_that_only_a_run_of_its_own_proves_are_told_apart(tmp_path: Path) -> None:
    """The certified bounds close the first of two instances, cpsat's own both."""
    given = {
        ("cpsat", "a-0"): (100.0, 100.0),
        ("cpsat", "a-1"): (100.0, 100.0),
        (BOUNDS, "a-0"): (None, 100.0),
        (BOUNDS, "a-1"): (None, 80.0),
    }
    found = " ".join(verdict(reported(tmp_path, given, labels=LABELS[:1], seeds=(0, 1))))
    assert "proven optimal over 2 instances" in found
    assert "The optimum of 1 of 2 instances is proven by a certified or trusted bound;" in found
    given["cpsat", "a-1"] = (100.0, 90.0)
    found = " ".join(verdict(reported(tmp_path / "b", given, labels=LABELS[:1], seeds=(0, 1))))
    assert "The optimum of 1 of 2 instances is proven; elsewhere" in found


def test_of_levels_in_order_all_must_be_proven(tmp_path: Path) -> None:
    """The first level is closed by both, the second by nobody; then by cpsat."""
    given = {
        ("cpsat", "a-0"): ((10.0, 8.0), (10.0, 4.0)),
        ("fcfs", "a-0"): ((10.0, 9.0), (10.0, 1.0)),
    }
    study: dict[str, Any] = {"labels": LABELS[:2], "levels": 2, "trust": ("cpsat",)}
    assert "No optimum is proven" in " ".join(verdict(reported(tmp_path / "open", given, **study)))
    given["cpsat", "a-0"] = ((10.0, 8.0), (10.0, 8.0))
    closed = verdict(reported(tmp_path / "closed", given, **study))
    assert "The optimum of every instance is proven" in " ".join(closed)


def test_what_may_be_chance_is_called_so(tmp_path: Path) -> None:
    """x − y is −0.1, +0.1, −0.1 of 200, so that one of two is level with the other."""
    given = objectives(cpsat=[200, 200, 200], fcfs=[250, 160, 250])
    found = verdict(reported(tmp_path, given, labels=LABELS[:2], seeds=(0, 1, 2)))
    assert found[0].startswith(
        "cpsat and fcfs cannot be told apart: the schedules of cpsat, first by mean, are on average"
    )
    assert "within 50.0 %" in found[0]
    assert (
        found[1]
        == "The differences may be chance: behind cpsat are fcfs by 2.5 points (−12.5 to 10.0)."
    )
    assert found[2] == "No optimum is proven: the gaps are the most that may be lost, not what is."


def test_a_rule_that_does_as_well_as_a_method_is_said(tmp_path: Path) -> None:
    given = objectives(fcfs=[125, 125], lp_guided=[125, 150])
    found = verdict(reported(tmp_path, given, labels=("fcfs", "lp_guided"), seeds=(0, 1)))
    assert "The simple rule fcfs does as well as the method lp_guided." in found


def test_a_rule_that_beats_a_learner_is_said(tmp_path: Path) -> None:
    given = objectives(cpsat=[100] * 5, fcfs=[125] * 5, lp_guided=[200] * 5)
    report = reported(tmp_path, given, seeds=range(5))
    report = replace(report, kinds={**report.kinds, "lp_guided": "learned"})
    assert (
        verdict(report)[-1] == "The simple rule fcfs does better than the learned method lp_guided."
    )


def test_failures_are_counted(tmp_path: Path) -> None:
    given = objectives(cpsat=[100, 100], fcfs=[125, 125])
    given["fcfs", "a-0"] = lambda cell: failure(cell, "crashed")
    given["fcfs", "a-1"] = (None, None)
    found = verdict(reported(tmp_path, given, labels=LABELS[:2], seeds=(0, 1)))
    assert "1 cell failed and counts as a gap of 100 %." in found
    assert "1 cell ended without a schedule and counts as a gap of 100 %." in found
    assert "Without any schedule: fcfs." in found and found[0].startswith("cpsat is best: ")


def test_how_often_the_first_is_optimal(tmp_path: Path) -> None:
    """The optimum of a-0 is proven by the bounding; cpsat is there, and at a gap of 0.2 on a-1."""
    found = verdict(
        reported(
            tmp_path, objectives(cpsat=[100, 125], fcfs=[200, 200]), labels=LABELS[:2], seeds=(0, 1)
        )
    )
    assert found[2:] == [
        "The optimum of 1 of 2 instances is proven; elsewhere a gap is the most that may be lost.",
        "cpsat ends at a proven optimum in 1 of 2 cells (0 by its own proof).",
    ]


@pytest.mark.parametrize(
    ("labels", "given", "expected"),
    [
        (("cpsat",), {}, "Nothing has run yet."),
        (
            ("cpsat",),
            objectives(cpsat=[125]),
            "cpsat: its schedules are on average within 20.0 % of the best bounds over 1 instance.",
        ),
        (
            LABELS[:2],
            objectives(cpsat=[125], fcfs=[200]),
            "One instance alone, which says nothing of others: gaps of cpsat 20.0 %, fcfs 50.0 %.",
        ),
        (
            LABELS[:2],
            {("cpsat", "a-0"): (50.0, None), ("fcfs", "a-0"): (40.0, None)},
            "No instance has a lower bound, so nothing is proven and every gap counts as 100 %. "
            "By objective fcfs is first: average rank 1.00 of 2, 0 % above the best known.",
        ),
    ],
)
def test_the_first_sentence(
    labels: tuple[str, ...], given: dict[tuple[str, str], Any], expected: str, tmp_path: Path
) -> None:
    assert verdict(reported(tmp_path, given, labels=labels))[0] == expected
