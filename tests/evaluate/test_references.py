"""Clairvoyant references on arriving work are shown after the others, and have no rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.cli.terminal.study_summary import solvers_table
from optbench.evaluate.references import clairvoyant_labels
from optbench.evaluate.rows import table
from optbench.evaluate.summaries import summaries
from optbench.report.ranking import CLAIRVOYANT, ranking
from optbench.report.study_report import gather
from optbench.report.study_verdict import verdict
from optbench.shapes.protocol.shape_facts import ShapeFacts
from tests.evaluate.studies_by_hand import record, records_of, stored, study_of

LABELS = ["random_rules", "fcfs", "edf", "gone_since"]


def results(arriving: bool) -> dict[tuple[str, str], Any]:
    """random_rules is best on both instances, then fcfs, then edf."""
    metrics = {"units_offered": 7.0} if arriving else {}

    def made(objective: float) -> Any:
        return lambda cell: record(cell, objective, 4.0, metrics=metrics)

    return {
        (label, f"{name}-0"): made(5.0 + k + (name == "b"))
        for k, label in enumerate(LABELS)
        for name in "ab"
    }


@pytest.mark.parametrize("arriving", [True, False])
def test_it_has_a_rank_only_where_nothing_arrives_later(arriving: bool, tmp_path: Path) -> None:
    plan = study_of(LABELS, ["a", "b"])
    records = records_of(plan, results(arriving))
    found = summaries(table(plan, records))
    assert clairvoyant_labels(table(plan, records)) == ({"random_rules"} if arriving else set())
    order = {each.label: each.rank for each in found}
    report = gather(plan, stored(tmp_path, records))
    page, words = ranking(report), " ".join(verdict(report))
    assert ("random_rules" in words) is not arriving
    if arriving:
        assert list(order) == ["fcfs", "edf", "gone_since", "random_rules"]
        assert list(order.values()) == [1.0, 2.0, 3.0, None]
        assert [each.wins for each in found] == [2, 0, 0, 0]
        assert found[0].behind is None and found[-1].behind is not None
        assert page.count(CLAIRVOYANT) == 1 and '<span class="place">4</span>' not in page
    else:
        assert list(order) == LABELS and list(order.values()) == [1.0, 2.0, 3.0, 4.0]
        assert CLAIRVOYANT not in page and '<span class="place">4</span>' in page


def test_where_a_process_is_played_it_never_has_a_rank() -> None:
    shape = ShapeFacts("serving", "max", "decision", "max profit_usd", "8 services", "m:Serving")
    plan = study_of(LABELS, ["a", "b"], shape=shape)
    records = records_of(plan, results(arriving=False))
    assert clairvoyant_labels(table(plan, records)) == {"random_rules"}


def test_the_terminal_says_so() -> None:
    row = dict.fromkeys(("failed", "missing_gaps", "optimal", "time_s", "mean_study_gap"))
    rows = [{**row, "solver": "x", "ran": 1, "cells": 1, "clairvoyant": k == 1} for k in range(2)]
    cells = [str(cell) for cell in solvers_table(rows).columns[0]._cells]
    assert ["not ranked" in cell for cell in cells] == [False, True]
