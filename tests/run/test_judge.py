"""The judge: nothing that a process says is believed, and everything it says becomes a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.infeasible import certify_infeasible
from optbench.execute.base import JobOutcome
from optbench.execute.validate_answer import MAX_POINTS
from optbench.model.files.result_json import result_to_dict
from optbench.model.files.schedule_json import schedule_to_dict
from optbench.model.instance import Instance
from optbench.model.result import Bound
from optbench.run import judge as judging
from optbench.store.records import REASONS, Reason, Record
from tests.run.study_parts import answer_of, cell_of, instance_of

INSTANCE = instance_of()
ANSWER = answer_of(INSTANCE)
TOTAL_S = 2.0
AT = "2026-11-18T12:00:00.000+00:00"


def judged(answer: Any, instance: Instance = INSTANCE, **fields: Any) -> Record:
    kind = fields.pop("kind", "solve")
    outcome = JobOutcome("key", answer, **{"total_s": TOTAL_S, **fields})
    record = judging.judge(cell_of(instance, kind=kind), outcome, instance, AT)
    line = json.dumps(record.to_dict(), allow_nan=False)
    assert Record.from_dict(json.loads(line)).to_dict() == record.to_dict()
    kept = judging.kept_files(outcome, record)
    assert all(isinstance(content, bytes) for content in kept.values())
    assert not record.verified or {"schedule.json", "trajectory.json"} <= set(kept)
    return record


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(json.dumps(ANSWER))
    change(answer)
    return answer


def in_result(**values: Any) -> dict[str, Any]:
    return changed(lambda answer: answer["result"].update(values))


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


BOUND = {"value": 1.0, "source": "told", "proof": "solver", "level": 0}


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


def fluid_bound_of(instance: Instance) -> Bound:
    (found,) = lower_bounds(instance, "fluid", 10.0)
    return found


def test_a_label_is_what_its_certificate_proves() -> None:
    """A process may call its bound certified; only what the judge proves again is."""
    true = fluid_bound_of(INSTANCE)
    row = true.to_dict() | {"certificate": true.certificate}
    weaker = combinatorial_bounds(INSTANCE)[-1]
    assert weaker.value < true.value
    higher = weaker.to_dict() | {"value": true.value, "certificate": weaker.certificate}
    bare, named = (
        row | {"certificate": None},
        BOUND | {"proof": "combinatorial", "certificate": "{}"},
    )
    for told, proof in ((row, "exact-lp"), (higher, "solver"), (bare, "solver"), (named, "solver")):
        (kept,) = judged(in_result(bounds=[told])).bounds
        assert kept == {key: told[key] for key in ("value", "source", "level")} | {"proof": proof}
    wrong = judged(in_result(bounds=[row | {"certificate": 3}]))
    assert (
        wrong.reason is not None and "a certificate is 3; it must be text" in wrong.reason.message
    )


def test_only_a_few_certificates_of_a_process_are_proved() -> None:
    true = fluid_bound_of(INSTANCE)
    rows = [true.to_dict() | {"source": f"s{k}", "certificate": true.certificate} for k in range(9)]
    assert [each["proof"] for each in judged(in_result(bounds=rows)).bounds] == ["exact-lp"] * 4 + [
        "solver"
    ] * 5


def test_levels_carry_their_certificates() -> None:
    model = ob.Model("levels")
    pool = model.pool("gpu", count=1, idle_w=1.0)
    model.task(
        "a",
        modes=[model.mode({pool: 1}, time_s=t, energy_j=e) for t, e in ((4.0, 5.0), (2.0, 9.0))],
    )
    model.minimize_in_order("makespan_s", "energy_j")
    instance = model.build()
    result = ob.solve(instance, "fcfs", seed=0)
    schedule = schedule_to_dict(result.schedule, instance) if result.schedule is not None else None
    told = result_to_dict(result) | {
        "bounds": [b.to_dict() | {"certificate": b.certificate} for b in result.bounds]
    }
    record = judged(json.loads(json.dumps({"result": told, "schedule": schedule})), instance)
    assert [(each["level"], each["proof"]) for each in record.bounds] == [
        (b.level, b.proof) for b in result.bounds
    ]
    assert {each["level"] for each in record.bounds if each["proof"] != "solver"} == {0, 1}


def test_infeasible_is_a_claim_until_it_is_certified() -> None:
    late = INSTANCE.with_limits(makespan=1.0)
    certain = certify_infeasible(late)
    assert certain is not None
    nothing = {"status": "infeasible", "objective": None, "termination": "finished"}
    for claim, proof in (
        (certain.to_dict() | {"certificate": certain.certificate}, "combinatorial"),
        (certain.to_dict(), "solver"),
        (
            {"source": "me", "proof": "exact-lp", "certificate": '{"method": "fluid_farkas"}'},
            "solver",
        ),
        (None, "solver"),
    ):
        answer = in_result(**nothing, infeasibility=claim) | {"schedule": None}
        record = judged(answer, late)
        assert (record.status, record.reason) == ("infeasible", None)
        assert record.infeasibility is not None and record.infeasibility["proof"] == proof
    # Of an instance that has schedules, the very certificate proves nothing.
    answer = in_result(
        **nothing, infeasibility=certain.to_dict() | {"certificate": certain.certificate}
    ) | {"schedule": None}
    assert (judged(answer).infeasibility or {})["proof"] == "solver"


def test_a_bound_above_the_own_objective_is_false() -> None:
    value = judged(ANSWER).objective
    assert isinstance(value, float)
    record = judged(in_result(bounds=[BOUND | {"value": value + 1.0}]))
    assert (
        record.reason is not None
        and record.reason.kind == "false_bound"
        and repr(value + 1.0) in record.reason.message
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


def test_levels_are_judged_one_by_one() -> None:
    model = ob.Model("levels")
    pool = model.pool("gpu", count=1, idle_w=1.0)
    slow, fast = (model.mode({pool: 1}, time_s=t, energy_j=e) for t, e in ((4.0, 5.0), (2.0, 9.0)))
    model.task("a", modes=[slow, fast])
    model.minimize_in_order("makespan_s", "energy_j")
    instance = model.build()
    answer = answer_of(instance, "cpsat")
    record = judged(answer, instance)
    # The fast mode is the shortest, 2 s; its energy is then 9 J. Each is its own bound where the
    # solver proves it.
    assert (
        record.objective == (2.0, 9.0) and record.status == "optimal" and record.gap == (0.0, 0.0)
    )
    lows = [BOUND | {"value": 2.0}, BOUND | {"value": 9.5, "level": 1}]
    wrong = judged({**answer, "result": {**answer["result"], "bounds": lows}}, instance)
    assert (
        wrong.reason is not None
        and wrong.reason.kind == "false_bound"
        and "9.5" in wrong.reason.message
    )
    half = judged({**answer, "result": {**answer["result"], "bounds": lows[:1]}}, instance)
    assert (half.status, half.gap, half.bound) == ("feasible", None, None) and half.bounds[0][
        "value"
    ] == 2.0


def test_a_bounding_is_a_list_of_bounds() -> None:
    bounds = [BOUND | {"value": v} for v in (3.0, 7.0, 5.0)]
    record = judged({"bounds": bounds, "inside_s": 0.5}, kind="bound")
    assert (
        record.bound,
        record.wall_s,
        record.status,
        [each["value"] for each in record.bounds],
    ) == (7.0, 0.5, "unknown", [7.0])
    wrong = judged({"bounds": bounds}, kind="bound")
    assert wrong.reason is not None and "inside_s is null" in wrong.reason.message


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
