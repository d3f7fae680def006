"""Bounds of preemptive instances: never above what a search over all ticks finds, and none where
running on could pay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.streams.stream_bound import slotted_bound, stream_bound
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.streams import with_stream
from optbench.model.verify import verify
from tests.bounds.preemptive_search import choices, least, whole_ticks
from tests.bounds.stream_farms import POLICIES, small

TICKS = 6


def mixed_modes() -> Instance:
    """Two tasks of 1 unit on 2 devices, each in 1.01 s on both or in 4 s on one: 2 ticks and 4."""
    m = ob.Model(preemptive=True)
    gpu = m.pool("gpu", count=2)
    for _ in range(2):
        m.task(modes=[m.mode({gpu: 2}, time_s=1.01), m.mode({gpu: 1}, time_s=4)])
    m.minimize(makespan_s=1.0)
    return m.build()


def test_a_task_that_mixes_modes_is_no_faster_than_the_load_says() -> None:
    # Half of a task is 1 tick of both devices or 2 of one: 4 device-ticks for the whole, however it
    # is mixed; 8 / 2 = 4. Units were once rounded up per segment: 0.99 and 0.01 of a unit on both
    # devices in 1 tick each made 3.
    instance = mixed_modes()
    assert least(instance, 8)[0] == 4
    assert combinatorial_bounds(instance)[0].value == 4
    rows = [(0, 0, 0, 1), (0, 1, 1, 3), (1, 1, 1, 3), (1, 0, 3, 4)]
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    verdict = verify(instance, Schedule(*columns))
    assert verdict.feasible and verdict.objective == 4.0
    # One tick less, and a task is not complete.
    short = verify(instance, Schedule(*(column[:3] for column in columns)))
    assert not short.feasible and [each.constraint for each in short.violations] == ["assignment"]


def tiny(seed: int, *, fixed: bool, tick_s: float, idle: int = 4) -> Instance:
    """Up to three tasks of one or two kinds on one or two pools; times are fractions of a tick,
    energies and rest a few units.
    """
    rng = np.random.default_rng([seed, 41])
    m = ob.Model(
        f"tiny-{seed}", tick_s=tick_s, preemptive=True, horizon_s=TICKS * tick_s if fixed else None
    )
    counts = rng.integers(1, 4, rng.integers(1, 3)).tolist()
    pools = [
        m.pool(f"p{k}", count=count, idle_w=float(rng.integers(0, idle)))
        for k, count in enumerate(counts)
    ]
    kinds = []
    for _ in range(int(rng.integers(1, 3))):
        modes: list[Any] = []
        for pool, count in zip(pools, counts, strict=True):
            for n in range(1, count + 1):
                if not modes or rng.random() < 0.5:
                    time_s, energy_j = (
                        float(rng.integers(2, 18)) / 8 * tick_s,
                        float(rng.integers(1, 25)) * tick_s,
                    )
                    modes.append(m.mode({pool: n}, time_s=time_s, energy_j=energy_j))
        kinds.append(m.kind(modes=modes))
    before: Any = ()
    for _ in range(int(rng.integers(1, 4))):
        before = m.task(
            units=float(rng.integers(1, 3)),
            kind=kinds[int(rng.integers(len(kinds)))],
            release_s=float(rng.integers(0, 2)) * tick_s,
            after=before if rng.random() < 0.3 else (),
        )
    m.minimize(**({"energy_j": 1.0} if fixed else {"makespan_s": 1.0}))
    return m.build()


@pytest.mark.parametrize("tick_s", [1.0, 1e-9])
def test_no_bound_on_the_makespan_is_above_the_least(tick_s: float) -> None:
    met = known = 0
    for seed in range(60):
        instance = tiny(seed, fixed=False, tick_s=tick_s)
        found = least(instance, TICKS)[0]
        if found is None or len(choices(instance)) > 200:
            continue
        bounds = lower_bounds(instance)
        assert max(bound.value for bound in bounds) <= found * tick_s * (1 + 1e-12), (seed, bounds)
        known += 1
        met += bounds[0].value >= found * tick_s * (1 - 1e-12)
    assert known > 30 and met > known / 2


def waste_could_pay(instance: Instance) -> bool:
    """Whether some task has a mode that draws less, tick by tick, than its devices would at
    rest.
    """
    pairs = zip(instance.pairs.task.tolist(), instance.pairs.mode.tolist(), strict=True)
    return any(
        float(instance.tasks.units[i] * instance.modes.energy_per_unit_j[k])
        < whole_ticks(instance, i, k) * instance.tick_s * float(instance.mode_rest_w[k])
        for i, k in pairs
    )


@pytest.mark.parametrize("tick_s", [1.0, 1e-9])
def test_no_bound_on_the_energy_is_above_the_least(tick_s: float) -> None:
    bounded = wasteful = 0
    for seed in range(120):
        instance = with_stream(tiny(seed, fixed=True, tick_s=tick_s))
        found = least(instance, TICKS)[1]
        bounds = [stream_bound(instance), slotted_bound(instance, 2 * tick_s)]
        if waste_could_pay(instance):
            assert bounds == [None, None], seed
            wasteful += 1
        for bound in bounds:
            assert bound is None or found is None or bound.value <= found * (1 + 1e-12), (
                seed,
                bound,
                found,
            )
            bounded += bound is not None and found is not None
    assert bounded > 60 and wasteful > 10


def test_a_beaten_mode_that_draws_less_than_rest_leaves_no_bound() -> None:
    # On 8 devices that rest at 1 W, both modes need 4 or 5 J more than rest by their times; but
    # 1.0001 s are 2 ticks, in which 8 devices would rest for 16 J, and the mode takes 13 J: 1.5 J
    # less in each tick that it runs on.
    m = ob.Model(preemptive=True, horizon_s=50)
    gpu = m.pool("gpu", count=8, idle_w=1.0)
    m.task(
        modes=[
            m.mode({gpu: 8}, time_s=1.0001, energy_j=13.0002),
            m.mode({gpu: 1}, time_s=8, energy_j=12),
        ]
    )
    m.minimize(energy_j=1.0)
    instance = with_stream(m.build())
    once, all_along = (
        verify(instance, Schedule(*(np.array([value]) for value in (0, 0, 0, end)))).metrics[
            "energy_j"
        ]
        for end in (2, 50)
    )
    assert once == pytest.approx(400 - 3, rel=1e-3) and all_along == pytest.approx(
        400 - 75, rel=1e-3
    )
    # The programme's value would be 400 + 4 less the 8 J that whole ticks can hide.
    assert stream_bound(instance) is None and lower_bounds(instance) == []


@pytest.mark.parametrize("drained", [False, True])
def test_interrupted_streams_in_coarse_ticks_are_bounded_below_the_best_policy(
    drained: bool,
) -> None:
    """Devices that come and go, in ticks of half a second: many tasks take a quarter of a second
    less than their whole ticks.
    """
    bounded = 0
    for seed in range(40):
        instance = small(seed, drained=drained, tick_s=0.5)
        if not instance.preemptive:
            continue
        found = lower_bounds(instance)
        if waste_could_pay(instance):
            assert found == [], seed
            continue
        runs = [ob.simulate(instance, policy) for policy in POLICIES]
        assert all(run.verified for run in runs), seed
        reached = [
            run.objective for run in runs if isinstance(run.objective, float) and run.units_done > 0
        ]
        if found and reached:
            assert found[0].value <= min(reached) * (1 + 2.0**-40), seed
            bounded += 1
    assert bounded >= 5
