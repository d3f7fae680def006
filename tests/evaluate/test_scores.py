"""A study that says what it ranks by: another winner, in the order, the headline, the table, the
terminal and in JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.cli.terminal.study_summary import solvers_table
from optbench.errors import FileFormatError
from optbench.evaluate.scores import ranked
from optbench.report.outline import outline
from optbench.report.study_page import render
from optbench.report.study_report import StudyReport, gather
from optbench.report.study_verdict import verdict
from optbench.study.study_file import load_study
from tests.evaluate.studies_by_hand import record, records_of, stored, study_of
from tests.run.study_parts import study_file

# Slow work is thrifty: least energy, furthest from what its time would have allowed.
POINTS = {"hasty": (130.0, 0.001), "patient": (101.0, 0.02), "steady": (110.0, 0.01)}


def results(seeds: int, missing: str = "") -> dict[tuple[str, str], Any]:
    out: dict[tuple[str, str], Any] = {}
    for label, (energy, distance) in POINTS.items():
        for seed in range(seeds):
            metrics = (
                {} if (label, seed) == (missing, 0) else {"gap_frontier": distance + 1e-5 * seed}
            )
            out[label, f"a-{seed}"] = lambda cell, e=energy, m=metrics: record(
                cell, e, 100.0, metrics=m
            )
    return out


def reported(folder: Path, seeds: int = 5, missing: str = "", **fields: Any) -> StudyReport:
    plan = study_of(tuple(POINTS), ["a"], seeds=range(seeds), **fields)
    return gather(plan, stored(folder, records_of(plan, results(seeds, missing))))


def test_without_it_the_least_energy_wins_with_it_the_nearest_to_the_front(tmp_path: Path) -> None:
    by_gap = reported(tmp_path / "gap")
    by_distance = reported(tmp_path / "distance", rank="gap_frontier")
    assert [each.label for each in by_gap.ranked] == ["patient", "steady", "hasty"]
    assert [each.label for each in by_distance.ranked] == ["hasty", "steady", "patient"]
    assert [each.label for each in ranked(by_distance.table)] == ["hasty", "steady", "patient"]
    first, second, _ = by_distance.ranked
    assert first.score is not None and first.score.value == pytest.approx(0.00102)
    assert second.behind is not None and second.behind.value == pytest.approx(0.009)


def test_the_headline_is_of_what_is_ranked_by(tmp_path: Path) -> None:
    """Means over seeds 0 to 4: 0.1 % + 2e-5."""
    words = verdict(reported(tmp_path, rank="gap_frontier"))
    assert words[0].startswith(
        "By distance from the certified front at its own units and its own mean time, hasty is "
        "best: 0.1 % ("
    )
    assert words[0].endswith(
        "on average over 5 instances; patient, the last of 3, is at 2.0 % (2.0 to 2.0 %)."
    )
    assert words[1].startswith("Clearly behind hasty are steady by 0.9 points")


def test_the_page_the_table_and_json_show_the_score(tmp_path: Path) -> None:
    report = reported(tmp_path, rank="gap_frontier")
    assert "ranked by gap_frontier" in render(report, None)
    said = outline(report)
    assert said["ranked_by"] == "gap_frontier"
    assert [each["solver"] for each in said["ranking"]] == ["hasty", "steady", "patient"]
    assert said["ranking"][0]["score"]["mean"] == pytest.approx(0.00102)
    assert outline(reported(tmp_path / "gap"))["ranked_by"] == "study_gap"
    row = {
        "solver": "x",
        "score": 0.00102,
        "ran": 1,
        "cells": 1,
        "failed": 0,
        "missing_gaps": 0,
        "mean_study_gap": 0.1,
        "mean_gap": 0.1,
        "optimal": 0,
    }
    shown = solvers_table([{**row, "median_wall_s": None}], "gap_frontier")
    assert [column.header for column in shown.columns][:2] == ["solver", "gap_frontier"]
    assert list(shown.columns[1].cells)[-1] == "0.102 %"


def test_a_formula_of_several_metrics_and_more_being_better(tmp_path: Path) -> None:
    report = reported(tmp_path, rank="-(objective / 2)")
    assert [each.label for each in report.ranked] == ["hasty", "steady", "patient"]
    assert "By -(objective / 2), hasty is best: −65" in verdict(report)[0].replace("-65", "−65")


def test_who_has_a_cell_without_a_value_stands_last_and_is_named(tmp_path: Path) -> None:
    report = reported(tmp_path, missing="hasty", rank="gap_frontier")
    assert [each.label for each in report.ranked] == ["steady", "patient", "hasty"]
    assert "Placed last, for cells without a value of gap_frontier: hasty." in verdict(report)


@pytest.mark.parametrize(
    ("formula", "complaint"),
    [
        ("gap_fronteer", "rank: column 1: unknown metric 'gap_fronteer'.*gap_frontier"),
        ("gap <= 0.1", "rank: column 1: this is true or false for each cell"),
        ("3", "rank: column 1: this does not read any cell"),
        ("mean(gap)", "rank: column 1: mean is computed over cells"),
    ],
)
def test_a_slip_is_found_when_the_study_is_read(
    formula: str, complaint: str, tmp_path: Path
) -> None:
    text = 'problems = ["jobshop:jobs=3,machines=3"]\nsolvers = ["fcfs"]\n'
    with pytest.raises(FileFormatError, match=f"(?s){complaint}"):
        study_file(tmp_path, f'{text}rank = "{formula}"\n')
    assert study_file(tmp_path, f'{text}rank = "gap_frontier"\n').rank == "gap_frontier"


def test_studies_of_different_budgets_say_what_they_rank_by() -> None:
    for name in ("geo_frontier", "geo_ablation", "geo_robust", "geo_tune"):
        assert load_study(name).rank == "gap_frontier"
