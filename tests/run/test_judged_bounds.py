"""The judge of bounds: what certificates prove, what a level and a bounding may claim, and when
infeasible is believed.
"""

from __future__ import annotations

import json

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.infeasible import certify_infeasible
from optbench.model.files.result_json import result_to_dict
from optbench.model.files.schedule_json import schedule_to_dict
from optbench.model.instance import Instance
from optbench.model.result import Bound
from tests.run.judged_answers import ANSWER, BOUND, INSTANCE, in_result, judged
from tests.run.study_parts import answer_of


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
