"""The judge: nothing that a process says is believed, and everything it says becomes a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optbench as ob
from optbench.execute.base import JobOutcome
from optbench.execute.validate_answer import MAX_POINTS
from optbench.hardware.run_energy import RunEnergy
from optbench.plugins.training_energy import energy_of_training, keep_with
from optbench.run import judge as judging
from optbench.store.records import REASONS, Reason
from tests.run.judged_answers import (
    ANSWER,
    AT,
    BOUND,
    INSTANCE,
    TOTAL_S,
    changed,
    in_result,
    judged,
)
from tests.run.study_parts import cell_of


def test_a_true_answer_is_recomputed_from_its_schedule() -> None:
    answer = in_result(metrics={"makespan": 1.0}, gap=0.0, verified=False, bound=12.0, wall_s=0.25)
    record = judged(answer)
    assert (record.reason, record.verified, record.status, record.gap, record.bound) == (
        None,
        True,
        "feasible",
        None,
        None,
    )
    assert (
        record.objective
        == ob.solve(INSTANCE, "fcfs", bound=False).objective
        == record.metrics["makespan"]
    )
    assert (record.wall_s, record.total_s, record.began_at) == (0.25, TOTAL_S, AT)


def test_optimal_is_what_the_verified_gap_says() -> None:
    value = judged(ANSWER).objective
    assert isinstance(value, float)
    bound = {"value": value, "source": "told", "proof": "solver", "level": 0}
    assert judged(in_result(bounds=[bound], status="feasible")).status == "optimal"
    assert (
        judged(in_result(bounds=[bound | {"value": value / 2}], status="optimal")).status
        == "feasible"
    )
    assert judged(in_result(status="optimal")).status == "feasible"


def test_no_process_worked_longer_than_it_was_there() -> None:
    record = judged(in_result(wall_s=1e9, time_to_first_s=1e8))
    assert (record.wall_s, record.time_to_first_s) == (TOTAL_S, TOTAL_S)


@pytest.mark.parametrize(
    ("values", "culprit"),
    [
        ({"status": "splendid"}, "'splendid'"),
        ({"status": 7}, "status is 7"),
        ({"termination": "bored"}, "'bored'"),
        ({"termination": None}, "null"),
        ({"wall_s": -1.0}, "-1.0"),
        ({"wall_s": "fast"}, "'fast'"),
        ({"wall_s": 10**400}, "a huge whole number"),
        ({"wall_s": True}, "wall_s is true"),
        ({"wall_s": float("nan")}, "nan"),
        ({"time_to_first_s": -0.5}, "-0.5"),
        ({"objective": "12"}, "'12'"),
        ({"objective": [1.0, 2.0]}, "a list of 2"),
        ({"objective": 1.0}, "the objective (1.0,)"),
        ({"objective": None}, "the objective None"),
        ({"status": "infeasible"}, "'infeasible', but the schedule is feasible"),
        ({"bounds": {}}, "an object"),
        ({"bounds": [3]}, "a bound is 3"),
        ({"bounds": [BOUND | {"value": float("inf")}]}, "inf"),
        ({"bounds": [BOUND | {"value": "7"}]}, "'7'"),
        ({"bounds": [BOUND | {"proof": "trust me"}]}, "'trust me'"),
        ({"bounds": [BOUND | {"level": 1}]}, "level is 1"),
        ({"bounds": [BOUND | {"level": True}]}, "level is true"),
        ({"bounds": [BOUND | {"source": " "}]}, "no source"),
        ({"violations": "none"}, "'none'"),
        ({"violations": [3]}, "violations is 3"),
        ({"message": {}}, "message is an object"),
        ({"info": [1]}, "info is a list"),
        ({"trajectory": None}, "trajectory is null"),
        ({"trajectory": [{"t_s": -1, "objective": None, "bound": None}]}, "-1"),
        (
            {"trajectory": [{"t_s": 0.1, "objective": 1.0, "bound": None, "level": 0}]},
            "an objective of 1.0",
        ),
    ],
)
def test_nonsense_is_named(values: dict[str, Any], culprit: str) -> None:
    record = judged(in_result(**values))
    assert (
        record.reason is not None
        and record.reason.kind == "nonsense"
        and culprit in record.reason.message
    )
    assert (record.objective, record.gap, record.verified, record.status) == (
        None,
        None,
        False,
        "error",
    )


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (lambda a: a.pop("result"), "result is null"),
        (lambda a: a.update(schedule=None), "there is no schedule"),
        (lambda a: a.update(schedule=[1, 2]), "the schedule: the file is a list of 2"),
        (lambda a: a["schedule"].pop("segments"), "segments is missing"),
        (lambda a: a["schedule"]["segments"].update(task=[99] * 9), "segments.task[0] is 99"),
        (lambda a: a["schedule"]["segments"].update(units=[1] * 9), "unknown key 'segments.units'"),
        (lambda a: a.update(refusal="boredom"), "'boredom'"),
        (lambda a: a.update(refusal="refused", message=3), "message is 3"),
    ],
)
def test_an_answer_of_another_shape_is_nonsense(
    change: Callable[[dict[str, Any]], object], culprit: str
) -> None:
    record = judged(changed(change))
    assert (
        record.reason is not None
        and record.reason.kind == "nonsense"
        and culprit in record.reason.message
    )


@pytest.mark.parametrize("answer", [None, 3, "done", [], [1, 2], True])
def test_an_answer_that_is_no_object_is_nonsense(answer: Any) -> None:
    record = judged(answer)
    assert (
        record.reason is not None
        and record.reason.kind == "nonsense"
        and type(answer).__name__ in record.reason.message
    )


def test_a_broken_schedule_is_infeasible_and_says_where() -> None:
    record = judged(changed(lambda a: a["schedule"]["segments"].update(start=[0] * 9, end=[0] * 9)))
    assert (
        record.reason is not None
        and record.reason.kind == "infeasible"
        and "duration" in record.reason.message
    )
    assert record.objective is None and record.violations and record.metrics == {}


def test_a_rejected_schedule_that_is_not_shown_is_infeasible_too() -> None:
    answer = in_result(status="unknown", objective=None, violations=["capacity: 2 on m0"])
    record = judged(answer | {"schedule": None})
    assert record.reason == Reason("infeasible", "capacity: 2 on m0")


def test_no_schedule_and_no_claim_is_no_failure() -> None:
    record = judged(
        in_result(status="unknown", objective=None, termination="time_limit") | {"schedule": None}
    )
    assert (record.reason, record.status, record.termination, record.objective) == (
        None,
        "unknown",
        "time_limit",
        None,
    )


def test_a_crash_after_an_incumbent_has_no_objective() -> None:
    record = judged(
        in_result(status="error", termination="crashed", message="ValueError: 3 (x.py:7)")
    )
    assert record.reason == Reason("crashed", "ValueError: 3 (x.py:7)") and record.objective is None


def test_the_executors_reason_wins_over_any_answer() -> None:
    record = judged(ANSWER, reason=Reason("memory_limit", "900 MB"))
    assert (record.reason, record.termination) == (Reason("memory_limit", "900 MB"), "memory_limit")


def test_processes_left_behind_spoil_a_good_answer() -> None:
    record = judged(ANSWER, left_processes=3)
    assert (
        record.reason is not None
        and record.reason.kind == "left_processes"
        and "3" in record.reason.message
    )
    assert record.objective is None and record.metrics == {}


def test_refusals_keep_their_kind() -> None:
    assert judged({"refusal": "refused", "message": "too large"}).reason == Reason(
        "refused", "too large"
    )
    assert (
        judged({"refusal": "memory_limit", "message": "MemoryError"}).termination == "memory_limit"
    )


def test_remarks_are_kept_at_a_sensible_size() -> None:
    info = {
        "note": "x" * 10_000,
        "nan": float("nan"),
        "huge": 10**5000,
        "nodes": 12,
        "half": "\ud800",
        "deep": deep(50),
    }
    record = judged(in_result(info=info, message="y" * 10_000))
    assert len(record.info["note"]) < 5_000 and len(record.message or "") < 5_000
    assert (record.info["nan"], record.info["nodes"], record.info["huge"]) == (
        None,
        12,
        "a huge whole number",
    )
    assert record.info["half"] == "?"
    many = judged(in_result(info={str(k): "x" * 4_000 for k in range(40)}))
    assert list(many.info) == ["left_out"] and "160," in many.info["left_out"]


def test_what_is_kept_of_a_trajectory_is_what_was_read() -> None:
    rows = [{"t_s": 99.0}, {"t_s": 0.5, "objective": 1e9, "more": "x"}]
    outcome = JobOutcome("key", in_result(trajectory=rows), total_s=TOTAL_S)
    record = judging.judge(cell_of(INSTANCE), outcome, INSTANCE, AT)
    assert record.verified
    assert json.loads(judging.kept_files(outcome, record)["trajectory.json"]) == [
        {"t_s": TOTAL_S, "objective": None, "bound": None, "level": 0},
        {"t_s": 0.5, "objective": 1e9, "bound": None, "level": 0},
    ]
    long = [{"t_s": 0.0, "objective": 1e9}] * MAX_POINTS + [{"t_s": 0.0, "objective": 0.0}]
    outcome = JobOutcome("key", in_result(trajectory=long), total_s=TOTAL_S)
    kept = json.loads(
        judging.kept_files(outcome, judging.judge(cell_of(INSTANCE), outcome, INSTANCE, AT))[
            "trajectory.json"
        ]
    )
    assert len(kept) == MAX_POINTS and min(row["objective"] for row in kept) == 1e9
    refused = JobOutcome("key", ANSWER | {"refusal": "refused", "message": ""})
    assert (
        judging.kept_files(refused, judging.judge(cell_of(INSTANCE), refused, INSTANCE, AT)) == {}
    )


def test_a_terminal_is_told_nothing_that_it_might_obey() -> None:
    told = judged(None, reason=Reason("signal", "its last line: \x1b[2J\x9b31m\nred")).reason
    assert told == Reason("signal", "its last line: ?[2J?31m\nred")
    record = judged(in_result(info={"\x1b]0;title\x07": "\x1b[2J"}, message="\x1bc"))
    assert (dict(record.info), record.message) == ({"?]0;title?": "?[2J"}, "?c")


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


KEYS = st.sampled_from([*BOUND, "certificate", "argument"]) | st.text(max_size=6)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["solver", "finished", "optimal", "error", *REASONS]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
RESULT_KEYS = sorted(ANSWER["result"])
PARTS = ("result", "schedule", "refusal", "message", "inside_s")
SEGMENT_KEYS = ("task", "mode", "start", "end")


@given(ANYTHING, st.sampled_from(["solve", "bound"]))
def test_any_json_becomes_a_record(answer: Any, kind: str) -> None:
    judged(answer, kind=kind)


@given(st.dictionaries(st.sampled_from(RESULT_KEYS), ANYTHING, max_size=3))
def test_any_value_in_a_result_becomes_a_record(values: dict[str, Any]) -> None:
    record = judged(in_result(**values))
    assert record.failed or record.objective == judged(ANSWER).objective


@given(st.dictionaries(st.sampled_from(PARTS), ANYTHING, min_size=1, max_size=3))
def test_any_part_of_an_answer_becomes_a_record(values: dict[str, Any]) -> None:
    record = judged(changed(lambda answer: answer.update(values)))
    assert record.failed or "schedule" not in values


COLUMN = st.lists(st.integers(-5, 10**18) | st.floats() | ANYTHING, min_size=8, max_size=10)


@given(st.dictionaries(st.sampled_from(SEGMENT_KEYS), COLUMN, min_size=1))
def test_any_segments_become_a_record(columns: dict[str, Any]) -> None:
    record = judged(changed(lambda answer: answer["schedule"]["segments"].update(columns)))
    assert record.failed or record.verified


DRAWN = RunEnergy(30.0, "powercap", 2.0, 0.5).to_dict()


def test_what_a_cell_drew_is_what_was_measured_outside_of_it() -> None:
    record = judged(in_result(energy={"energy_j": 0.0}), energy=DRAWN)
    assert record.verified and record.energy == DRAWN
    assert record.metrics == judged(ANSWER).metrics
    crashed = judged(None, reason=Reason("signal", "SIGSEGV"), energy=DRAWN)
    assert crashed.energy == DRAWN
    assert judged(ANSWER).energy == {}


def test_what_the_training_of_its_checkpoint_drew_goes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "net.json"
    file.write_text("{}")
    training = energy_of_training(RunEnergy(600.0, "estimate", 50.0, assumed_w=12.0))
    outcome = JobOutcome("key", ANSWER, total_s=TOTAL_S, energy=DRAWN)
    cell = cell_of(INSTANCE, params={"checkpoint": str(file)})
    assert judging.judge(cell, outcome, INSTANCE, AT).energy == DRAWN
    keep_with(file, training)
    found = judging.judge(cell, outcome, INSTANCE, AT).energy
    assert found == {**DRAWN, "training": training}
