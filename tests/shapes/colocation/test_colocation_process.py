"""The process: what it shows, that it agrees with the verifier, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_data import Colocation
from optbench.shapes.colocation.colocation_process import ColocationProcess, Observation
from optbench.shapes.colocation.colocation_shape import ColocationShape
from optbench.shapes.protocol.plain_data import to_plain
from optbench.shapes.protocol.process import ActionError
from tests.shapes.colocation.other_verifier import other_metrics
from tests.shapes.colocation.random_play import played, random_cluster
from tests.shapes.colocation.two_gpus import ALONE, FAST, HEAVY, LIGHT, SLOW, cluster

SHAPE = ColocationShape()


@pytest.mark.parametrize("seed", range(12))
def test_what_is_played_is_verified_alike_twice(seed: int) -> None:
    data = random_cluster(seed, migration_s=15.0 * (seed % 2))
    decision, _ = played(data, seed)
    verdict = SHAPE.verdict_of(SHAPE.instance("random", data), decision)
    assert verdict.feasible, verdict.violations
    again = other_metrics(data, decision)
    for name, value in again.items():
        assert verdict.metrics[name] == pytest.approx(float(value), rel=1e-9, abs=1e-6), name


def shown(seen: Observation) -> Any:
    """An observation as plain data; what is not public is NaN, and left out."""
    public = seen.public
    hidden = replace(
        public,
        alone_per_s=np.nan_to_num(public.alone_per_s, nan=-1.0),
        beside_per_s=np.nan_to_num(public.beside_per_s, nan=-1.0),
    )
    leaves = np.nan_to_num(seen.jobs.leaves_s, posinf=-1.0)
    return to_plain(replace(seen, public=hidden, jobs=replace(seen.jobs, leaves_s=leaves)))


def test_observations_hold_no_throughput_that_was_not_measured() -> None:
    """Other true throughputs of what is not public, and of what does not run, change nothing."""
    data = random_cluster(3)
    unknown = replace(data, known=np.zeros_like(data.known))
    # Pairs that fit do not, and the other way round; jobs of several GPUs stay alone.
    single = data.gangs == 1
    flipped = np.where((data.beside_per_s == 0) & np.outer(single, single), 1.0, 0.0)
    changed = replace(unknown, alone_per_s=data.alone_per_s * 1.5, beside_per_s=flipped)
    first, second = (ColocationProcess(each, 0) for each in (unknown, changed))
    assert shown(first.observe()) == shown(second.observe())
    assert not np.isfinite(first.observe().public.alone_per_s).any()
    for process in (first, second):
        process.act(Placement.empty())
    assert shown(first.observe()) == shown(second.observe())


def test_a_policy_cannot_rewrite_what_it_did() -> None:
    data = cluster([(HEAVY, 0, 1, 500, 0), (LIGHT, 0, 1, 500, 0), (LIGHT, 0, 1, 50, 0)])
    process = ColocationProcess(data, 0)
    mine = Placement.of_rows([(FAST, 0, 1)])
    process.act(mine)
    mine.second[:] = -1
    seen = process.observe()
    assert seen.last.second.tolist() == [1]
    with pytest.raises(ValueError, match="read-only"):
        seen.last.second[:] = -1


def test_columns_of_another_type_are_refused() -> None:
    process = ColocationProcess(cluster([(HEAVY, 0, 1, 50, 0)]), 0)
    rows = Placement.of_rows([(FAST, 0, -1)])
    with pytest.raises(ActionError, match="profile is of int64"):
        process.act(replace(rows, profile=np.array([2])))
    with pytest.raises(ActionError, match="first is of float64"):
        process.act(replace(rows, first=np.array([0.5])))
    with pytest.raises(ActionError, match="gpu_type is no array"):
        process.act(replace(rows, gpu_type=[0]))  # type: ignore[arg-type]  # what a user may try


def test_later_jobs_change_no_earlier_observation() -> None:
    """A policy knows nothing of the future."""
    data = random_cluster(5, jobs=8)
    late = data.jobs.arrival_s > np.median(data.jobs.arrival_s)
    jobs = replace(data.jobs, required_per_s=np.where(late, 0.5, 1.0) * data.jobs.required_per_s)
    _, before = played(data, 1)
    _, after = played(replace(data, jobs=jobs), 1)
    first_late = float(data.jobs.arrival_s[late][0])
    early = [each for each in before if each.now_s < first_late]
    assert early
    assert [shown(each) for each in early] == [shown(each) for each in after[: len(early)]]


def measured(data: Colocation, placement: Placement) -> Observation:
    process = ColocationProcess(data, 0)
    process.act(placement)
    return process.observe()


def test_measurements_are_of_what_ran() -> None:
    # A third job waits, so that there is a next epoch.
    jobs = [(HEAVY, 0, 1, 500, 0), (LIGHT, 0, 1, 500, 0), (LIGHT, 0, 1, 50, 0)]
    seen = measured(cluster(jobs), Placement.of_rows([(FAST, 0, 1)]))
    assert [
        (each.gpu_type, each.job_type, each.partner_type, each.per_s) for each in seen.measurements
    ] == [
        (FAST, HEAVY, LIGHT, 1.0),
        (FAST, LIGHT, HEAVY, 3.0),
    ]
    assert seen.jobs.work_left.tolist() == [400.0, 200.0, 50.0]
    assert seen.jobs.before.tolist() == [FAST, FAST, -2]


def test_a_misfit_is_seen_and_measures_the_survivor_alone() -> None:
    data = cluster(
        [(ALONE, 0, 1, 500, 0), (HEAVY, 0, 1, 100, 0)], known=np.zeros((2, 4), dtype=bool)
    )
    seen = measured(data, Placement.of_rows([(FAST, 0, 1)]))
    assert [(each.gpu_type, each.job_type, each.partner_type) for each in seen.misfits] == [
        (FAST, HEAVY, ALONE)
    ]
    assert [(each.job, each.partner_type, each.per_s) for each in seen.measurements] == [
        (0, -1, 1.0)
    ]


def test_noise_is_drawn_by_the_seed() -> None:
    data = cluster([(HEAVY, 0, 1, 500, 0)], noise=0.1)
    one, same, other = (ColocationProcess(data, seed) for seed in (1, 1, 2))
    for process in (one, same, other):
        process.act(Placement.of_rows([(SLOW, 0, -1)]))
    rates = [each.observe().measurements[0].per_s for each in (one, same, other)]
    assert rates[0] == rates[1] != rates[2]


def test_an_impossible_action_is_refused() -> None:
    process = ColocationProcess(cluster([(HEAVY, 0, 1, 50, 0)]), 0)
    with pytest.raises(ActionError, match="2 GPUs of type fast are in use; 1 are available"):
        process.act(Placement.of_rows([(FAST, 0, -1), (FAST, 0, -1)]))
    with pytest.raises(ActionError, match=r"Placement\.of_rows"):
        process.act([(FAST, 0)])  # type: ignore[arg-type]  # what a user may try


def test_idle_epochs_are_passed() -> None:
    process = ColocationProcess(cluster([(HEAVY, 330, 1, 50, 0)]), 0)
    assert process.observe().epoch == 4
