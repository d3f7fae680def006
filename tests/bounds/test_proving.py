"""Certificates: what they prove is computed from the instance, whoever made them; memory changes
nothing.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace

import pytest

import optbench as ob
from optbench.api import load_target
from optbench.bounds import proving
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.infeasible import certify_infeasible, farkas, refutation
from optbench.bounds.lp.certificates import CertificateError, certificate_text
from optbench.bounds.proving import labelled, prove, prove_infeasible
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.result import Bound
from tests.bounds.shops import FT06, shop

TWO = shop([[[(0, d), (1, d)]] for d in (3, 4, 5)], [1, 1])
LEVELS = (
    {"makespan": 1.0},
    {"energy_j": 1.0},
    {"energy_j": 1.0, "makespan_s": 50.0},
    {"flow_time_s": 1.0},
)


def graph(weights: dict[str, float]) -> Instance:
    found = load_target("gpu_dag:tasks=8,gpus=4")
    made: Instance = found.with_objective(Objective.weighted(weights))
    return made


@pytest.mark.parametrize("weights", LEVELS)
def test_every_bound_of_the_core_has_a_certificate_that_proves_it_again(
    weights: dict[str, float],
) -> None:
    instance = graph(weights)
    found = lower_bounds(instance, "auto", 2.0)
    assert found
    for bound in found:
        assert bound.certificate is not None
        again = prove(instance, bound.certificate, again=True)
        assert (again.value, again.source, again.proof) == (bound.value, bound.source, bound.proof)


@pytest.mark.parametrize(
    "spec", ["geo_dc:days=0.05", "geo_dc:days=0.05,drain=yes,minimize=cost,local_hours=yes"]
)
def test_stream_bounds_have_certificates(spec: str) -> None:
    instance = load_target(spec)
    found = lower_bounds(instance, "stream", 10.0)
    assert found
    for bound in found:
        assert bound.certificate is not None
        again = prove(instance, bound.certificate, costly=False, again=True)
        assert (again.value, again.source, again.proof) == (bound.value, bound.source, bound.proof)


def test_duals_of_another_instance_prove_nothing() -> None:
    other = shop([[[(0, d), (1, d)]] for d in (3, 4, 6)], [1, 1])
    (bound,) = lower_bounds(other, "fluid")
    assert bound.certificate is not None
    with pytest.raises(CertificateError, match="belong to other rows"):
        prove(TWO, bound.certificate)
    assert labelled(TWO, bound).proof == "solver"


def test_a_certificate_does_not_hold_where_the_relaxation_does_not() -> None:
    """Of an interrupted task the fluid rows do not hold."""
    (bound,) = lower_bounds(TWO, "fluid")
    assert bound.certificate is not None
    with pytest.raises(CertificateError, match="proves nothing for this instance"):
        prove(replace(TWO, preemptive=True), bound.certificate)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "names no method"),
        ('{"method": "oracle"}', "no method of the core is called 'oracle'"),
        (certificate_text("combinatorial", source="oracle"), "proves nothing"),
        (certificate_text("combinatorial", source="destructive", makespan=-1), "makespan is -1"),
        (
            certificate_text("combinatorial", source="destructive", makespan=True),
            "makespan is True",
        ),
        (certificate_text("fluid_lp"), "belong to other rows"),
        (certificate_text("stream_lp", slot_s="1"), "proves nothing"),
        (certificate_text("refutation"), "proves nothing"),
    ],
)
def test_foreign_certificates_are_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(CertificateError, match=reason):
        prove(TWO, text)


def test_a_compressed_bomb_is_not_unpacked() -> None:
    (bound,) = lower_bounds(TWO, "fluid")
    fields = json.loads(bound.certificate or "")
    bomb = base64.b64encode(zlib.compress(b"1" * 10_000_000)).decode()
    with pytest.raises(CertificateError, match="duals; the LP has"):
        prove(TWO, json.dumps(fields | {"duals": bomb}))


def test_what_takes_long_is_refused_unless_asked_for() -> None:
    ft06 = shop(FT06, [1] * 6)
    (found,) = [
        bound for bound in combinatorial_bounds(ft06, 30.0) if bound.source == "destructive"
    ]
    assert found.certificate is not None
    with pytest.raises(CertificateError, match="takes long"):
        prove(ft06, found.certificate, costly=False)
    assert labelled(ft06, found, costly=False) == replace(found, proof="solver")
    assert labelled(ft06, found) == found


def test_a_value_above_what_the_certificate_proves_is_a_solvers() -> None:
    (bound,) = lower_bounds(TWO, "fluid")
    assert labelled(TWO, replace(bound, value=bound.value + 1)) == Bound(
        bound.value + 1, "fluid_lp", "solver"
    )
    assert labelled(TWO, replace(bound, value=bound.value - 1)) == bound


def one_machine(**limits: float) -> Instance:
    """Two tasks of 5 on one device."""
    return shop([[[(0, 5)]], [[(0, 5)]]], [1]).with_limits(**limits)


def test_a_deadline_before_the_earliest_end_is_certified() -> None:
    m = ob.Model("late")
    gpu = m.pool("gpu", count=1)
    first = m.task("first", modes=[m.mode(gpu, time_s=5)])
    m.task("second", modes=[m.mode(gpu, time_s=4)], after=first, deadline_s=8, hard=True)
    m.minimize(makespan_s=1.0)
    instance = m.build()
    found = refutation(instance)
    assert found is not None and found.certificate is not None
    assert (found.proof, found.argument) == (
        "combinatorial",
        "task first ends at 5 at the earliest and must end by 4",
    )
    assert prove_infeasible(instance, found.certificate) == found


def test_a_limit_below_a_load_is_certified_and_one_at_it_is_not() -> None:
    found = refutation(one_machine(makespan=9.0))
    assert (
        found is not None
        and found.argument == "tasks that must end by 9 or before keep m0 busy until 10"
    )
    assert refutation(one_machine(makespan=10.0)) is None
    assert certify_infeasible(one_machine(makespan=10.0)) is None


def test_more_work_than_fits_before_its_deadlines_is_certified() -> None:
    """Two tasks of 3 on one device cannot both end by 5, whatever else may end later."""
    m = ob.Model("too much")
    gpu = m.pool("gpu", count=1)
    for deadline_s in (5.0, 5.0, None):
        m.task(modes=[m.mode(gpu, time_s=3)], deadline_s=deadline_s)
    m.minimize(makespan_s=1.0)
    found = refutation(m.build())
    assert found is not None and found.source == "jackson:gpu"
    assert found.argument == "tasks that must end by 5 or before keep gpu busy until 6"


def test_a_floor_above_a_limit_is_certified() -> None:
    m = ob.Model("dear")
    gpu = m.pool("gpu", count=1)
    m.task(modes=[m.mode(gpu, 2.0, 100.0), m.mode(gpu, 5.0, 40.0)])
    m.minimize(makespan_s=1.0)
    m.limit(energy_j=39.0)
    found = refutation(m.build())
    assert found is not None and found.argument == "energy_j is at least 40 and limited to 39"


def test_rows_that_contradict_each_other_are_certified_by_a_farkas_ray() -> None:
    """Each task takes 2 s and 10 J on one device, or 6 s and 1 J on the other. Within 6 s three of
    four take 10 J: 31 J in all, above the limit of 20 J, which no metric shows by itself.
    """
    m = ob.Model("torn")
    dear, cheap = m.pool("dear", count=1), m.pool("cheap", count=1)
    for k in range(4):
        m.task(f"t{k}", modes=[m.mode(dear, 2.0, 10.0), m.mode(cheap, 6.0, 1.0)])
    m.minimize(makespan_s=1.0)
    m.limit(makespan_s=6.0, energy_j=20.0)
    instance = m.build()
    assert refutation(instance) is None
    found = farkas(instance, 10.0)
    assert found is not None and found.certificate is not None
    assert found.proof == "exact-lp" and "energy" in found.argument
    assert prove_infeasible(instance, found.certificate) == found
    with pytest.raises(CertificateError):
        prove_infeasible(instance.with_limits(makespan_s=5.0), found.certificate)
    assert (
        farkas(
            replace(instance, limits=replace(instance.limits, metric_max={"makespan_s": 6.0})), 10.0
        )
        is None
    )


def test_an_outcome_is_remembered_unless_it_is_asked_for_again() -> None:
    (bound,) = lower_bounds(TWO, "fluid")
    assert bound.certificate is not None
    first = prove(TWO, bound.certificate, again=True)
    assert prove(TWO, bound.certificate) is first
    assert prove(TWO, bound.certificate, again=True) is not first


def test_slots_that_nobody_takes_are_refused_unless_asked_for() -> None:
    text = certificate_text("stream_lp", slot_s=1.0)
    with pytest.raises(CertificateError, match="slots are not those"):
        prove(TWO, text, costly=False)
    with pytest.raises(CertificateError, match="proves nothing"):
        prove(TWO, text)


def test_large_instances_are_not_proved_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Three tasks of two modes are six pairs.
    (bound,) = lower_bounds(TWO, "fluid")
    assert bound.certificate is not None
    monkeypatch.setattr(proving, "MOST_PAIRS", 6)
    assert prove(TWO, bound.certificate, costly=False).value == bound.value
    monkeypatch.setattr(proving, "MOST_PAIRS", 5)
    with pytest.raises(CertificateError, match=r"^6 \(task, mode\) pairs"):
        prove(TWO, bound.certificate, costly=False)
    assert prove(TWO, bound.certificate).value == bound.value
