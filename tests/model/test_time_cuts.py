"""Cuts on work between two times: against every schedule of tiny instances, and by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from optbench.model import time_cuts as module
from optbench.model.builder import Model
from optbench.model.instance import Edges, Instance
from optbench.model.time_cuts import TimeCut, time_cuts
from tests.reference.brute_force import _grow, evaluate, mode_choices
from tests.reference.random_instances import tiny_instance

MORE = 10**6


def schedules(instance: Instance) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every choice of modes, with the starts of every feasible schedule in those modes."""
    for mode in mode_choices(instance):
        starts = _grow(instance, mode)
        if len(starts):
            yield mode, starts[evaluate(instance, mode, starts).feasible]


def violations(instance: Instance, cuts: list[TimeCut]) -> tuple[int, int]:
    """Feasible schedules, and pairs of a cut and a feasible schedule that it cuts off."""
    pairs, feasible, wrong = instance.pairs, 0, 0
    for mode, starts in schedules(instance):
        row = [
            int(np.flatnonzero((pairs.task == i) & (pairs.mode == k))[0])
            for i, k in enumerate(mode)
        ]
        ends = starts + pairs.duration[row]
        feasible += len(starts)
        for cut in cuts:
            weight = dict(zip(cut.rows, cut.weights, strict=True))
            work = sum(weight.get(r, 0) * int(pairs.duration[r]) for r in row)
            left = 0 if cut.after is None else ends[:, cut.after]
            right = ends.max(axis=1) if cut.before is None else starts[:, cut.before]
            wrong += int((work > cut.room * (right - left - cut.wait)).sum())
    return feasible, wrong


def dense(instance: Instance, seed: int) -> Instance:
    """The instance with more edges, pools of three devices, and some tasks of no duration."""
    rng = np.random.default_rng(seed)
    n, pools, modes = instance.num_tasks, instance.pools, instance.modes
    order = rng.permutation(n)
    edges = [
        (int(order[a]), int(order[b]))
        for a, b in zip(*np.triu_indices(n, 1), strict=True)
        if rng.random() < 0.6
    ]
    source, target = np.asarray(edges, dtype=np.int64).reshape(-1, 2).T
    no_gb = np.zeros(len(edges))
    units = np.where(rng.random(n) < 0.15, 0.0, instance.tasks.units)
    count = np.where(rng.random(len(pools.count)) < 0.5, 3, pools.count)
    need = np.minimum(modes.req_count + rng.integers(0, 2, len(modes.req_count)), 3)
    return dataclasses.replace(
        instance,
        tasks=dataclasses.replace(instance.tasks, units=units),
        edges=Edges(source, target, no_gb),
        pools=dataclasses.replace(pools, count=count),
        modes=dataclasses.replace(modes, req_count=np.minimum(need, count[modes.req_pool])),
    )


def test_no_feasible_schedule_is_cut_off() -> None:
    made = feasible = chains = 0
    for seed in range(150):
        for instance in (tiny_instance(seed), dense(tiny_instance(seed), seed)):
            cuts = time_cuts(instance, MORE, MORE)
            if cuts:
                found, wrong = violations(instance, cuts)
                assert wrong == 0, instance.name
                made, feasible = made + len(cuts), feasible + found
                chains += sum(cut.chain for cut in cuts)
    assert made > 200
    assert chains > 20
    assert feasible > 100_000


def beside(devices: int) -> Instance:
    """On a pool of so many devices: the chain a → b with one device each, and c on two, all before
    a task that needs no device; a and b take two ticks, c three.
    """
    m = Model("beside")
    pool = m.pool("p", count=devices, idle_w=1.0)
    one, two = (m.mode({pool: n}, time_s=n + 1, energy_j=10.0) for n in (1, 2))
    first = m.task("a", modes=[one])
    second = m.task("b", modes=[one], after=first)
    third = m.task("c", modes=[two])
    m.task("end", modes=[m.mode(None, time_s=1)], after=[second, third])
    m.minimize(makespan_s=1.0)
    return m.build()


def before_the_end(cuts: list[TimeCut]) -> list[TimeCut]:
    return [cut for cut in cuts if cut.after is None and cut.before == 3]


def test_area_and_chain_of_two_devices_by_hand() -> None:
    # Two devices: a, b and c on both devices run one after another, s_end >= 7. The area is
    # 2 · 1 + 2 · 1 + 3 · 2 = 10 <= 2 s_end.
    area, chain = sorted(before_the_end(time_cuts(beside(2))), key=lambda cut: cut.chain)
    assert (area.room, area.rows, area.weights, area.wait) == (2, (0, 1, 2), (1, 1, 2), 0)
    assert (chain.room, chain.rows, chain.weights, chain.wait) == (1, (0, 1, 2), (1, 1, 1), 0)


def test_a_chain_runs_beside_a_pair_on_three_devices() -> None:
    # c on two of three devices runs beside a and b: s_end = 4 is feasible. The area is
    # 10 <= 3 s_end, which the chain's length of 4 implies.
    assert before_the_end(time_cuts(beside(3))) == []
    assert violations(beside(3), time_cuts(beside(3), MORE, MORE))[1] == 0


def test_the_search_for_violations_finds_one() -> None:
    (chain,) = [cut for cut in before_the_end(time_cuts(beside(2))) if cut.chain]
    assert violations(beside(3), [chain])[1] > 0


def test_numbers_are_capped_and_the_strongest_stay() -> None:
    every = time_cuts(beside(2), MORE, MORE)
    assert len(every) == 4
    for chain in (False, True):
        (kept,) = time_cuts(beside(2), int(not chain), int(chain))
        family = [cut for cut in every if cut.chain == chain]
        assert kept.strength == max(cut.strength for cut in family)


@pytest.mark.parametrize("changed", [{"preemptive": True}, {"many": True}])
def test_no_cuts_where_they_do_not_hold_or_are_too_many(
    changed: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = beside(2)
    assert time_cuts(instance)
    if "many" in changed:
        monkeypatch.setattr(module, "MAX_TASKS", instance.num_tasks - 1)
    else:
        instance = dataclasses.replace(instance, preemptive=True)
    assert time_cuts(instance) == []
