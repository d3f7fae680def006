"""Whose fault a gap is: parts of an instance, the experiments, and the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench import api
from optbench.blaming import (
    Blame,
    SolvedPart,
    blame,
    draw_part,
    searcher_of,
    without_data,
)
from optbench.model.instance_part import part_of
from optbench.model.validate import validate


@pytest.fixture(scope="module")
def solved() -> ob.Result:
    return ob.solve("gpu_dag:tasks=60,gpus=8", "heft", time_limit_s=5, bound=False)


@pytest.fixture(scope="module")
def instance() -> ob.Instance:
    made: ob.Instance = api.load_target("gpu_dag:tasks=60,gpus=8")
    return made


def found(**changes: object) -> Blame:
    settings: dict[str, object] = {
        "gap": 0.1,
        "searched_s": 1.0,
        "schedule_falls": 0.0,
        "bounded_s": 1.0,
        "bound_rises": 0.0,
        "unseen_transfers": None,
        "parts": (),
        "solver": "heft",
        "searcher": "lp_guided",
    }
    return Blame(**(settings | changes))  # type: ignore[arg-type]


def test_the_side_with_the_evidence_is_blamed() -> None:
    part = SolvedPart(9, 2, bound=90.0, optimum=100.0, found=100.0)
    assert found().verdict == "unknown"
    assert found(schedule_falls=0.06).verdict == "schedule"
    assert found(bound_rises=0.06).verdict == "bound"
    assert found(bound_rises=0.04, schedule_falls=0.04).verdict == "both"
    assert found(parts=(part,)).verdict == "bound"
    assert found(unseen_transfers=0.06).verdict == "bound"
    assert found(unseen_transfers=0.06, schedule_falls=0.05).verdict == "both"
    assert found(parts=(SolvedPart(9, 2, 100.0, 100.0, 109.0),)).verdict == "schedule"


def test_evidence_for_less_than_half_of_the_gap_blames_nobody() -> None:
    assert found(unseen_transfers=0.02, schedule_falls=0.02).verdict == "unknown"
    assert "too weak" in found(schedule_falls=0.02).sentences[0]


def test_a_part_is_an_instance_of_its_own(instance: ob.Instance, solved: ob.Result) -> None:
    assert solved.schedule is not None
    rng = np.random.default_rng(0)
    for _ in range(20):
        part = draw_part(without_data(instance), solved.schedule, rng)
        validate(part)
        assert part.num_tasks == 9
        assert (np.diff(part.pairs.ptr) > 0).all()
        assert part.pools.count.sum() <= instance.pools.count.sum()


def test_the_whole_as_a_part_has_the_same_optimum() -> None:
    whole = ob.load_problem("gpu_dag:tasks=5,gpus=3").instance(3)
    same = part_of(whole, np.arange(5), whole.pools.count, 0)
    one, other = (ob.solve(each, "cpsat", time_limit_s=20) for each in (whole, same))
    assert one.status == other.status == "optimal"
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


def test_a_part_on_fewer_devices_costs_no_rest_of_the_others() -> None:
    whole = ob.load_problem("gpu_dag:tasks=5,gpus=6").instance(3)
    count = np.zeros_like(whole.pools.count)
    count[0] = whole.pools.count[0]
    part = part_of(whole, np.arange(5), count, 0)
    assert part.num_pools == 1
    assert set(part.modes.req_pool.tolist()) == {0}
    assert part.links.latency_s.shape == (1, 1)


def test_a_poor_schedule_is_to_blame(instance: ob.Instance, solved: ob.Result) -> None:
    bound = max(b.value for b in ob.bound(instance, time_limit_s=2))
    assert solved.schedule is not None
    why = blame(instance, solved.schedule, "heft", bound, time_limit_s=8)
    assert why.verdict == "schedule"
    assert why.schedule_falls > 0.1
    assert "heft" in " ".join(why.sentences) and "lp_guided" in why.sentences[1]
    assert why.to_dict()["verdict"] == "schedule"


def test_a_closed_gap_has_nobody_to_blame(instance: ob.Instance, solved: ob.Result) -> None:
    assert isinstance(solved.objective, float)
    assert solved.schedule is not None
    with pytest.raises(ob.UnsupportedError, match="no gap"):
        blame(instance, solved.schedule, "heft", solved.objective)


def test_who_searches_again_takes_the_instance() -> None:
    shop = api.load_target("jobshop:jobs=2,machines=2")
    assert searcher_of(shop) == "cpsat"
    with_outages = api.load_target("geo_dc:days=0.005,drain=yes,minimize=cost")
    assert searcher_of(with_outages) == "lp_guided"
    preemptive = replace(shop, preemptive=True)
    with pytest.raises(ob.UnsupportedError, match="neither cpsat nor lp_guided can search it"):
        searcher_of(preemptive)
