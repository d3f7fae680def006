"""How far tasks have come, in rationals: against ``Fraction`` on histories in many modes, and sums
beyond 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.task_progress import exact_progress, progress, segment_energy_j, ticks_left
from optbench.model.verify import verify
from tests.sim import driver

Rng = np.random.Generator
Parts = list[tuple[int, int]]


def durations(rng: Rng, count: int) -> list[int]:
    """Durations of modes: of any magnitude, small, almost alike, or multiples of one another."""
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return [int(d) for d in np.exp2(rng.uniform(0, 52, count)).astype(np.int64)]
    if kind == 1:
        return [int(d) for d in rng.integers(1, 30, count)]
    base = int(rng.integers(1, 2**51))
    if kind == 2:
        return [max(1, base + int(step)) for step in rng.integers(-3, 4, count)]
    unit = max(1, base // 1024)
    return [unit * int(factor) for factor in rng.integers(1, 1024, count)]


def history(rng: Rng) -> tuple[Parts, int]:
    """Up to eight parts and the duration in the mode that goes on; what is left is often next to
    nothing, or exactly whole.
    """
    count = int(rng.integers(1, 9))
    *behind, whole = durations(rng, count + 1)
    parts: Parts = []
    for d in behind:
        how = rng.random()
        if how < 0.5:  # its share of what is left, so that several fit
            length = int(rng.integers(0, d // count + 1))
        elif how < 0.75:  # up to a tick before the end
            length = max(0, ticks_left(parts, d) - int(rng.integers(1, 3)))
        else:
            length = int(rng.integers(0, d + 1))
        parts.append((max(1, length), d))
    return parts, whole


def compiled_ticks_left(histories: list[tuple[Parts, int]]) -> list[int]:
    ptr = np.cumsum([0, *(len(parts) for parts, _ in histories)])
    length, duration = (
        np.array([part for parts, _ in histories for part in parts], dtype=np.int64)
        .reshape(-1, 2)
        .T.copy()
    )
    whole, out = (
        np.array([whole for _, whole in histories]),
        np.zeros(len(histories), dtype=np.int64),
    )
    driver.lengths_left(ptr, length, duration, whole, out)
    return [int(left) for left in out]


def check_histories(seed: int, number: int) -> None:
    """The least L ≥ 0 with L / D + Σ l_j / D_j ≥ 1, multiplied out in whole numbers; both functions
    give it.
    """
    rng = np.random.default_rng([seed, 11])
    left = 0
    histories = [history(rng) for _ in range(number)]
    for (parts, whole), compiled in zip(histories, compiled_ticks_left(histories), strict=True):
        length = ticks_left(parts, whole)
        common = lcm(whole, *(d for _, d in parts))
        behind = sum(done * (common // d) for done, d in parts)
        step = common // whole
        assert length * step + behind >= common and (
            length == 0 or (length - 1) * step + behind < common
        ), (parts, whole)
        assert compiled == length, (parts, whole)
        left += length > 0
    assert 0.2 * number < left < 0.95 * number, "histories that are over, and others that go on"


def test_what_is_left_in_whole_numbers_and_compiled() -> None:
    check_histories(0, 20_000)


@pytest.mark.slow
def test_what_is_left_on_a_million_histories() -> None:
    for seed in range(1, 11):
        check_histories(seed, 100_000)


@pytest.mark.parametrize(
    ("parts", "whole", "left"),
    [
        ([], 7, 7),
        ([(1, 3), (1, 3)], 3, 1),
        ([(1, 3), (1, 3), (1, 3)], 10**15, 0),
        # 1/3 + 1/3 of a float falls short of 2/3, and 3 · 0.1 is more than 0.3.
        ([(1, 3), (2, 6)], 3, 1),
        ([(1, 10), (1, 10), (1, 10)], 10, 7),
        ([(2, 3)], 2**52, (2**52 + 2) // 3),
        # 1 − 1/2^52 is done: one tick of the slowest mode, and one of the fastest.
        ([(2**52 - 1, 2**52)], 2**52, 1),
        ([(2**52 - 1, 2**52)], 1, 1),
        ([(2**52 - 1, 2**52), (1, 2**52 - 1)], 2**52, 0),
        # 1/D − 1/(D + 1) is less than a tick of anything shorter than D (D + 1).
        ([(2**50 - 1, 2**50), (1, 2**50 + 1)], 2**52, 1),
        ([(0, 0)], 5, 0),
        ([(3, 2)], 5, 0),
    ],
)
def test_what_is_left_by_hand(parts: Parts, whole: int, left: int) -> None:
    assert ticks_left(parts, whole) == left
    if parts and all(d > 0 for _, d in parts):
        assert compiled_ticks_left([(parts, whole)]) == [left]


def many_modes(seed: int, tasks: int, modes: int = 48) -> Instance:
    """One kind in modes of durations of every magnitude, one of them of none."""
    rng = np.random.default_rng([seed, 12])
    m = ob.Model(preemptive=True)
    gpu = m.pool("gpu")
    lengths = [0, *(d for _ in range(modes // 4) for d in durations(rng, 4))]
    m.tasks(
        np.ones(tasks),
        kind=m.kind(modes=[m.mode(gpu, time_s=float(d), energy_j=float(d)) for d in lengths]),
    )
    m.minimize(makespan=1.0)
    return m.build()


def segments(instance: Instance, rng: Rng) -> Iterator[tuple[int, int, int]]:
    """(task, mode, length) of up to six segments of each task; the last one ends it, or stops a
    tick before or after.
    """
    whole = instance.duration(np.arange(instance.num_modes), 1.0).tolist()
    for task in range(instance.num_tasks):
        parts: Parts = []
        count = int(rng.integers(0, 7))
        for k in range(count):
            mode = int(rng.integers(0 if rng.random() < 0.02 else 1, instance.num_modes))
            left = ticks_left(parts, whole[mode])
            length = (
                int(rng.integers(0, left + 1)) if k < count - 1 else left + int(rng.integers(-1, 2))
            )
            length = 0 if whole[mode] == 0 else max(1, length)
            parts.append((length, whole[mode]))
            yield task, mode, length


def test_complete_tasks_are_told_exactly() -> None:
    instance, rng = many_modes(0, 6000), np.random.default_rng(2)
    task, mode, length = np.array(list(segments(instance, rng))).T
    order = rng.permutation(len(task))
    task, mode, length = task[order], mode[order], length[order]
    start = np.zeros(len(task), dtype=np.int64)
    found = progress(instance, Schedule(task, mode, start, start + length))
    share = [Fraction(0)] * instance.num_tasks
    whole = instance.duration(mode, 1.0).tolist()
    for i, l, d in zip(task.tolist(), length.tolist(), whole, strict=True):
        share[i] += Fraction(l, d) if d else Fraction(1)
    assert found.complete.tolist() == [each >= 1 for each in share]
    assert found.share.tolist() == pytest.approx([float(each) for each in share], rel=1e-15, abs=0)
    assert found.units_done(instance).tolist() == pytest.approx(
        [min(1.0, float(each)) for each in share], rel=1e-15, abs=0
    )
    # Floats alone would be wrong on some of them.
    assert (found.complete != (found.share >= 1.0)).any() and 1000 < found.complete.sum() < 5000


def test_exact_progress_adds_up_fractions() -> None:
    assert exact_progress([(1, 3), (1, 6), (2, 3)]) == Fraction(7, 6)
    assert exact_progress([]) == 0 and exact_progress([(0, 0), (1, 2)]) == Fraction(3, 2)


def test_energy_follows_progress() -> None:
    """A third of 90 J and two thirds of 60 J; an empty segment of a mode of no length is the whole
    of its 7 J.
    """
    m = ob.Model(preemptive=True)
    gpu = m.pool("gpu")
    m.task(
        modes=[
            m.mode(gpu, time_s=3, energy_j=90),
            m.mode(gpu, time_s=6, energy_j=60),
            m.mode(gpu, time_s=0, energy_j=7),
        ]
    )
    m.minimize(energy_j=1.0)
    instance = m.build()
    parts = Schedule(*np.array([[0, 0, 0, 1], [0, 1, 1, 5]]).T)
    assert segment_energy_j(instance, parts).tolist() == pytest.approx([30.0, 40.0])
    verdict = verify(instance, parts)
    assert verdict.feasible and verdict.objective == pytest.approx(70.0)
    empty = verify(instance, Schedule(*np.array([[0, 2, 4, 4]]).T))
    assert empty.feasible and empty.objective == 7.0


def test_energy_of_segments_of_a_task_of_one_tick() -> None:
    """None of its 5 J in an empty segment, all in one tick, twice as much in two ticks."""
    m = ob.Model(preemptive=True)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=1, energy_j=5)])
    m.minimize(energy_j=1.0)
    parts = Schedule(*np.array([[0, 0, 0, 0], [0, 0, 1, 2], [0, 0, 3, 5]]).T)
    assert segment_energy_j(m.build(), parts).tolist() == [0.0, 5.0, 10.0]


LATE = 2**52


def test_sums_of_times_beyond_64_bits() -> None:
    """5,000 tasks that each end at 2^52: flow times of 2.3e19 ticks; 10,000 devices at rest until
    then: 4.5e19 device-ticks.
    """
    m = ob.Model(horizon_s=float(LATE))
    gpu = m.pool("gpu", count=10_000, idle_w=1.0)
    m.tasks(np.ones(5000), modes=[m.mode(gpu, time_s=1.0)])
    m.minimize(flow_time_s=1.0)
    instance = m.build()
    n = instance.num_tasks
    schedule = Schedule.of(instance, np.zeros(n, dtype=np.int64), np.full(n, LATE - 1))
    verdict = verify(instance, schedule)
    assert n * LATE > 2**63 and verdict.feasible
    assert verdict.objective == float(n * LATE)
    assert verdict.metrics["rest_energy_j"] == float(10_000 * LATE - n)
    assert verdict.metrics["makespan"] == LATE


def test_busy_devices_beyond_64_bits() -> None:
    """4,000 devices are at work from 0 to 2^52, of 4,001: what is left of 1.8e19 device-ticks is
    exact.
    """
    m = ob.Model()
    gpu = m.pool("gpu", count=4001, idle_w=1.0)
    m.task(modes=[m.mode({gpu: 4000}, time_s=float(LATE), energy_j=1.0)])
    m.task(modes=[m.mode(gpu, time_s=float(LATE - 3), energy_j=1.0)])
    m.minimize(energy_j=1.0)
    instance = m.build()
    verdict = verify(instance, Schedule.of(instance, [0, 1], [0, 1]))
    assert verdict.feasible and verdict.metrics["rest_energy_j"] == 3.0
    late = verify(instance, Schedule.of(instance, [0, 1], [1, 0]))
    assert [str(violation) for violation in late.violations] == [
        f"horizon: task t0 ends at {LATE + 1}, the horizon is {LATE}"
    ]
