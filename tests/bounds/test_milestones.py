"""Milestones: ends, prices and shares by hand, and the certificate carried back to the instance."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds import milestones as module
from optbench.bounds.combinatorial import merging
from optbench.bounds.combinatorial.merging import merge_pools
from optbench.bounds.fluid import fluid_bound as bounding
from optbench.bounds.fluid.fluid_bound import solution_of
from optbench.bounds.lp.certificates import CertificateError
from optbench.bounds.lp.linear_program import LpSolution
from optbench.bounds.milestones import Milestones, expected_s, find_milestones, image_rows
from optbench.bounds.proving import prove
from optbench.model.classes import alike_pools
from optbench.model.instance import Instance
from optbench.model.result import Bound
from optbench.plugins.discovery import load_problem


def found_in(instance: Instance) -> Milestones:
    found = find_milestones(instance)
    assert found is not None
    return found


def chain(deadline_s: float | None = None) -> Instance:
    """Two tasks, one after the other, each 2 s and 100 J or 10 s and 20 J on a device of its own;
    a second of the makespan costs 6.
    """
    m = ob.Model("chain")
    first = None
    for k in range(2):
        pool = m.pool(f"gpu{k}")
        modes = [m.mode(pool, time_s=2, energy_j=100), m.mode(pool, time_s=10, energy_j=20)]
        dated: dict[str, Any] = {"deadline_s": deadline_s, "hard": False} if deadline_s else {}
        first = m.task(modes=modes, after=() if first is None else first, **dated)
    m.minimize(energy_j=1.0, makespan_s=6.0, tardiness_s=1.0)
    return m.build()


def test_ends_and_prices_of_a_chain_are_those_of_its_optimum() -> None:
    """8 s saved cost 80 J: not worth it at 6 per second. Both run slowly, 0 to 10 and 10 to 20 s;
    a second later of either end is a second of the makespan, 6, and devices are idle in between.
    """
    found = found_in(chain())
    assert found.value == pytest.approx(160) and found.makespan == pytest.approx(20)
    assert found.start == pytest.approx([0, 10]) and found.end == pytest.approx([10, 20])
    assert found.share == pytest.approx([0, 1, 0, 1])
    assert found.end_price == pytest.approx([6, 6])
    assert found.pool_price == pytest.approx([0, 0])
    # A fast task costs 80 J more and saves 48.
    assert found.loss == pytest.approx([32, 0, 32, 0])
    assert found.bound.value == pytest.approx(160) and found.bound.proof == "exact-lp"


def test_lateness_prices_an_end() -> None:
    """Due at 25 s nothing changes; due at 1 s every second later costs 1 more for each task whose
    end moves: the first delays the second.
    """
    assert found_in(chain(25)).end_price == pytest.approx([6, 6])
    found = found_in(chain(1))
    assert found.end_price == pytest.approx([8, 7])
    assert found.value == pytest.approx(40 + 6 * 20 + 9 + 19)


def alike_devices() -> Instance:
    """Six tasks on four single devices, two of each of two types, and one device for itself."""
    m = ob.Model("alike")
    pools = [m.pool(f"d{k}", idle_w=5.0) for k in range(4)]
    other = m.pool("other", idle_w=9.0)
    modes = [m.mode(pool, 3, 30.0) for pool in pools[:2]]
    modes += [m.mode(pool, 5, 20.0) for pool in pools[2:]]
    modes.append(m.mode(other, 4, 50.0))
    kind = m.kind(modes=modes)
    last = None
    for _ in range(6):
        last = m.task(units=1.0, kind=kind, after=() if last is None else last)
    m.minimize(energy_j=1.0, makespan_s=1.0)
    return m.build()


def test_classes_are_carried_back_to_their_pools() -> None:
    instance = alike_devices()
    classes = alike_pools(instance)
    assert classes.tolist() == [0, 0, 1, 1, 2]
    merged = merging.merge_classes(instance, classes)
    assert merged.pool.tolist() == [0, 0, 1, 1, 2]
    row, copies = image_rows(instance, merged)
    assert row[:5].tolist() == [0, 0, 1, 1, 2] and row[5:10].tolist() == [3, 3, 4, 4, 5]
    assert copies[:3].tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    "spec",
    [
        "gpu_dag:tasks=14,gpus=8,types=2,pooled=no,gang=1",
        "gpu_dag:tasks=30,gpus=6,deadlines=tight",
        "gpu_dag:tasks=20,gpus=6,price=yes,power_cap=0.7",
        "flexible_jobshop:jobs=4,machines=3,operations=3",
    ],
)
def test_the_certificate_proves_its_bound_of_the_instance_itself(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With merging and pricing from the first pair on: proved again from the instance, and below
    a verified schedule.
    """
    monkeypatch.setattr(merging, "SMALL", 0)
    monkeypatch.setattr(bounding, "LARGE", 0)
    monkeypatch.setattr(module, "LARGE", 0)
    instance: Instance = load_problem(spec).instance(1)
    found = found_in(instance)
    assert found.bound.certificate is not None
    proven: Bound = prove(instance, found.bound.certificate, again=True)
    assert proven.value == found.bound.value and proven.proof == "exact-lp"
    result = ob.solve(instance, "random_rules", work_limit=2, bound=False)
    assert isinstance(result.objective, float) and found.bound.value <= result.objective
    # A makespan is raised to a whole tick.
    assert found.value <= found.bound.value * (1 + 1e-3)
    assert found.bound.value <= found.value * (1 + 1e-3) + 1
    # Every task runs once, in its modes together; nothing ends before it began.
    assert np.bincount(instance.pairs.task, weights=found.share) == pytest.approx(
        np.ones(instance.num_tasks), abs=1e-6
    )
    assert (found.end >= found.start).all() and (found.loss >= 0).all()
    assert len(found.pool_price) == instance.num_pools
    edges = instance.edges
    slack = found.start[edges.target] - found.end[edges.source]
    assert slack.min(initial=0.0) > -1e-3 * found.makespan


def test_merged_and_unmerged_milestones_are_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single devices without transfers: as pools of their class they have the same LP."""
    spec = "gpu_dag:tasks=14,gpus=8,types=2,pooled=no,gang=1,transfers=no"
    instance: Instance = load_problem(spec).instance(2)
    alone = found_in(instance)
    monkeypatch.setattr(merging, "SMALL", 0)
    merged = found_in(instance)
    assert merge_pools(instance).instance.num_pools == 2
    assert merged.value == pytest.approx(alone.value, rel=1e-5)
    assert len(set(merged.pool_price[:4].tolist())) == 1


def test_without_time_or_for_too_many_pairs_nothing_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = chain()
    assert find_milestones(instance, 0.0) is None
    monkeypatch.setattr(module, "MOST_PAIRS", 3)
    assert expected_s(instance) == math.inf and find_milestones(instance) is None
    monkeypatch.setattr(module, "MOST_PAIRS", 4)
    assert find_milestones(instance) is not None


def test_with_little_time_two_modes_per_task_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third mode, of 4 s and 60 J, is left out: 40 J to save 6 s are worth it at 10 per second,
    80 J for 8 s are not. All three cost 2 · (60 + 40); of the others the fast one costs 240, and
    its duals prove no more than 200.
    """
    m = ob.Model("three modes")
    first = None
    for k in range(2):
        pool = m.pool(f"gpu{k}")
        each = ((2, 100), (4, 60), (10, 20))
        modes = [m.mode(pool, time_s=s, energy_j=j) for s, j in each]
        first = m.task(modes=modes, after=() if first is None else first)
    m.minimize(energy_j=1.0, makespan_s=10.0)
    instance = m.build()
    monkeypatch.setattr(bounding, "PAIRS_OF_A_SECOND", 6)
    whole, rough = find_milestones(instance, 1.3), find_milestones(instance, 1.19)
    assert whole is not None and rough is not None
    assert not whole.rough and whole.value == pytest.approx(200)
    assert whole.share == pytest.approx([0, 1, 0, 0, 1, 0])
    assert rough.rough and rough.share[[1, 4]].tolist() == [0, 0]
    assert rough.value == pytest.approx(240)
    assert rough.bound.value <= 200 and rough.bound.proof == "exact-lp"
    assert find_milestones(instance, 0.5) is not None
    assert find_milestones(instance, 0.39) is None


def test_an_interrupted_programme_has_no_milestones(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = chain()

    def interrupted(*given: Any) -> LpSolution:
        return replace(solution_of(*given), status="Time limit reached")

    monkeypatch.setattr(module, "solution_of", interrupted)
    assert find_milestones(instance) is None


def test_its_proof_is_not_repeated_for_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_in(chain())
    assert found.bound.certificate is not None
    monkeypatch.setattr("optbench.bounds.proving.recheck_fluid", lambda *_: None)
    assert prove(chain(), found.bound.certificate).value == found.bound.value
    with pytest.raises(CertificateError, match="proves nothing"):
        prove(chain(), found.bound.certificate, again=True)


def test_work_that_may_stay_undone_has_no_milestones() -> None:
    assert find_milestones(load_problem("geo_dc:days=0.02").instance(0)) is None
