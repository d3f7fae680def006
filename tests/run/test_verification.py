"""What the runner believes of the process that verifies decisions: its answer's form, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from optbench.execute.base import JobOutcome
from optbench.run.judge import judge, kept_files
from optbench.run.verification import Verified, read_verified, verification
from optbench.shapes.protocol.shape_facts import CellShape, stand_in
from optbench.store.records import Reason, Record
from optbench.store.run_store import Store
from optbench.study.cells import Cell
from tests.run.judged_answers import AT
from tests.run.study_parts import cell_of, instance_of

SHAPE = CellShape("bag", "max", "0" * 32)
CELL = replace(cell_of(instance_of(), "mine"), shape=SHAPE)
RESULT = {
    "status": "feasible",
    "termination": "finished",
    "objective": 13.0,
    "bounds": [
        {"value": 15.0, "source": "mine", "proof": "solver", "level": 0},
        {"value": 14.0, "source": "mine", "proof": "solver", "level": 0},
    ],
    "violations": [],
    "wall_s": 0.1,
    "time_to_first_s": 0.1,
    "message": None,
    "info": {},
    "trajectory": [{"t_s": 0.1, "objective": 12.0, "bound": None, "level": 0}],
}
VERDICT = {"feasible": True, "objectives": [13.0], "metrics": {"earned": 13.0}, "violations": []}
CHECK = {
    "verdict": VERDICT,
    "decision": {"values": {"y": 1}},
    "bounds": [{"value": 14.0, "source": "mine", "proof": "solver", "level": 0}],
}


def solved(**values: Any) -> JobOutcome:
    answer = {"result": {**RESULT, **values}, "decision": {"values": {}}, "inside_s": 0.2}
    return JobOutcome("key", answer, total_s=1.0)


def checked(outcome: JobOutcome, answer: Any, reason: Reason | None = None) -> Record:
    """The record of a cell whose second process answered this."""
    check = JobOutcome("key", None if reason else answer, reason)
    whole = replace(outcome, check=check)
    record = judge(CELL, whole, stand_in("bag", SHAPE), AT)
    assert Record.from_dict(record.to_dict()).to_dict() == record.to_dict()
    return record


def test_the_verdict_of_the_second_process_counts() -> None:
    record = checked(solved(), CHECK)
    assert (record.objective, record.bound) == (13.0, 14.0)
    assert record.gap == pytest.approx(1 / 14)
    assert record.verified and record.metrics == {"earned": 13.0} and record.reason is None
    kept = kept_files(replace(solved(), check=JobOutcome("key", CHECK)), record)
    assert kept["decision.json"] == b'{"values": {"y": 1}}' and "schedule.json" not in kept


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ({"refusal": "disagreement", "message": "row"}, "disagreement", "row"),
        ({"refusal": "nonsense", "message": "the decision"}, "nonsense", "the decision"),
        ({"refusal": "unavailable", "message": "line 3"}, "unverified", "line 3"),
        ({"refusal": "crashed", "message": "IndexError"}, "unverified", "IndexError"),
        ({**CHECK, "verdict": {**VERDICT, "feasible": 1}}, "unverified", "true or false"),
        ({**CHECK, "verdict": {**VERDICT, "objectives": []}}, "unverified", "0 objectives"),
        ({**CHECK, "verdict": {**VERDICT, "metrics": {"x": None}}}, "unverified", "metric x"),
        ({**CHECK, "verdict": {**VERDICT, "metrics": [1]}}, "unverified", "metrics"),
        ({**CHECK, "bounds": None}, "unverified", "bounds"),
        (
            {
                **CHECK,
                "verdict": {
                    **VERDICT,
                    "violations": [{"constraint": "c", "message": "m", "amount": 1.0}],
                },
            },
            "unverified",
            "feasible, although",
        ),
    ],
)
def test_an_answer_without_a_verdict_fails_the_cell(answer: Any, kind: str, words: str) -> None:
    record = checked(solved(), answer)
    assert record.reason is not None and record.objective is None and not record.verified
    assert record.reason.kind == kind and words in record.reason.message


def test_a_second_process_that_was_killed_gives_no_verdict() -> None:
    record = checked(solved(), None, Reason("time_limit", "still at work after 120 s; killed"))
    assert record.reason is not None and record.reason.kind == "unverified"
    assert "time_limit: still at work" in record.reason.message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"objective": 14.0}, "the verifier computes"),
        ({"status": "infeasible"}, "but the decision is feasible"),
        (
            {"trajectory": [{"t_s": 0.1, "objective": 99.0, "bound": None, "level": 0}]},
            "the trajectory has an objective of 99.0",
        ),
    ],
)
def test_what_the_solver_says_of_its_decision_must_agree(values: Any, words: str) -> None:
    record = checked(solved(**values), CHECK)
    assert record.reason is not None and record.reason.kind == "nonsense"
    assert words in record.reason.message


def test_an_upper_bound_below_the_objective_is_false() -> None:
    low = [{"value": 12.0, "source": "mine", "proof": "solver", "level": 0}]
    record = checked(solved(), {**CHECK, "bounds": low})
    assert record.reason is not None and record.reason.kind == "false_bound"
    assert "is below the verified objective 13.0" in record.reason.message


def test_a_decision_that_breaks_a_constraint_is_infeasible() -> None:
    broken = [{"constraint": "weight", "message": "11 of 10", "amount": 1.0}]
    verdict = {"feasible": False, "objectives": [], "metrics": {}, "violations": broken}
    record = checked(solved(), {**CHECK, "verdict": verdict})
    assert record.reason is not None and record.reason.kind == "infeasible"
    assert record.reason.message == "weight: 11 of 10"


@pytest.mark.parametrize(
    "proof", [None, {"source": "farkas", "proof": "exact-lp", "argument": "a"}]
)
def test_that_no_decision_exists_is_certified_by_the_core_alone(proof: Any) -> None:
    boast = {"source": "mine", "proof": "exact-lp", "argument": "", "certificate": "{}"}
    said = solved(
        status="infeasible", objective=None, trajectory=[], bounds=[], infeasibility=boast
    )
    assert said.answer is not None
    said = replace(said, answer={**said.answer, "decision": None})
    answer = {"verdict": None, "decision": None, "bounds": [], "infeasibility": proof}
    record = checked(said, answer)
    assert record.reason is None and record.status == "infeasible"
    wanted = proof or {"source": "mine", "proof": "solver", "argument": ""}
    assert record.infeasibility == wanted


def test_without_an_answer_nothing_is_verified(tmp_path: Any) -> None:
    store = Store(tmp_path / ".optbench").make()
    for outcome in (
        JobOutcome("key", None, Reason("signal", "SIGSEGV")),
        JobOutcome("key", {"refusal": "refused", "message": "no"}),
        solved(status="wrong"),
    ):
        assert verification(CELL, store, tmp_path, outcome) is None
    job = verification(CELL, store, tmp_path, solved())
    assert job is not None and (job.kind, job.key) == ("verify", CELL.key)
    assert isinstance(read_verified(None, CELL), Verified)


def test_a_cell_of_a_shape_keeps_its_key_in_a_record_and_has_another_definition() -> None:
    again = Cell.from_dict(CELL.to_dict())
    assert again == CELL and again.key == CELL.key and again.sense == "max"
    other = replace(CELL, shape=replace(SHAPE, definition="1" * 32))
    built_in = replace(CELL, shape=CellShape("milp", "max"))
    plain = replace(CELL, shape=None)
    assert len({CELL.key, other.key, plain.key}) == 3
    # A shape of optbench counts by its version; its instances' hashes say what it is.
    assert built_in.key == plain.key and "shape" not in plain.to_dict()
