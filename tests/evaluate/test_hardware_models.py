"""Solvers that met an instance on different hardware are not compared as equals, and it is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from optbench.evaluate.hardware_models import hardware_of, unequal_instances, words_of
from optbench.evaluate.judging import evaluate
from optbench.evaluate.rows import table
from optbench.evaluate.summaries import rows_by_label, summaries
from optbench.report.outline import outline
from optbench.report.ranking import ranking
from optbench.report.study_report import caveats, gather
from optbench.store.records import Record
from optbench.study.declared import Claim
from optbench.study.planning import Plan
from tests.evaluate.studies_by_hand import MACHINE, record, records_of, stored, study_of

EPYC = {**MACHINE, "cpu": "EPYC"}
XEON = {**MACHINE, "cpu": "Xeon", "gpus": ["L4", "L4"]}
# Two solvers on three instances: on the first both had an EPYC, on the second one had a Xeon with
# GPUs, on the third one record does not name its processor.
WHERE: dict[tuple[str, str], dict[str, Any]] = {
    ("x", "a-0"): EPYC,
    ("y", "a-0"): EPYC,
    ("x", "b-0"): EPYC,
    ("y", "b-0"): XEON,
    ("x", "c-0"): EPYC,
    ("y", "c-0"): MACHINE,
}


def mixed() -> tuple[Plan, dict[str, Record]]:
    plan = study_of(["x", "y"], ["a", "b", "c"])
    # x is the better one everywhere.
    values = {"x": 100.0, "y": 110.0}
    made = {
        place: (lambda cell, place=place: record(cell, values[place[0]], machine=WHERE[place]))
        for place in WHERE
    }
    return plan, records_of(plan, made)


def test_only_known_differences_count() -> None:
    plan, records = mixed()
    rows = rows_by_label(table(plan, records))
    assert unequal_instances(rows["x"], rows["y"]) == {"hash-b-0"}
    assert unequal_instances(rows["x"], rows["x"]) == frozenset()
    assert [(each.label, each.unequal) for each in summaries(table(plan, records))] == [
        ("x", 0),
        ("y", 1),
    ]


def test_models_in_words() -> None:
    _, records = mixed()
    models = {hardware_of(each) for each in records.values()}
    # Two L4 are the model of one.
    assert models == {("EPYC", ()), ("Xeon", ("L4",)), None}
    assert words_of(("Xeon", ("L4",))) == "Xeon, L4" and words_of(("EPYC", ())) == "EPYC"


def test_claims_gates_and_plain_data_are_marked(tmp_path: Path) -> None:
    plan, records = mixed()
    claim = Claim("x is better", "here", 1.0, "rel(objective, x, y)")
    study = replace(plan.study, claims=(claim,), gates={"one": "mean(objective, x) > 0"})
    study = replace(study, gates={**study.gates, "two": "mean(objective, x) < mean(objective, y)"})
    plan = replace(plan, study=study)
    gates, claims = evaluate(plan, records)
    assert claims[0].remark.endswith("unequal hardware: 1 instance")
    assert claims[0].to_dict()["remark"] == claims[0].remark
    # One solver alone is compared with nobody.
    assert [gate.remark for gate in gates] == ["", "unequal hardware: 1 instance"]
    assert ["remark" in gate.to_dict() for gate in gates] == [False, True]
    ranks = outline(gather(plan, stored(tmp_path, records)))["ranking"]
    assert [each.get("unequal_hardware_instances") for each in ranks] == [None, 1]


def test_the_report_marks_the_comparison(tmp_path: Path) -> None:
    plan, records = mixed()
    report = gather(plan, stored(tmp_path, records))
    assert "unequal hardware: 1 instance" in ranking(report)
    assert any(
        each.words.startswith("unequal hardware: the cells of 1 instance of 3 ran on EPYC; Xeon, ")
        for each in caveats(report)
    )
