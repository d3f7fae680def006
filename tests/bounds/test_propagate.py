"""Compiled propagation through its two entry points: deductions derived by hand, and no schedule is
ever cut off.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tests.bounds.window_states import State, Window, on_one_pool


def test_precedence_moves_starts_forward_and_ends_backward() -> None:
    # 2 long, then a lag of 1, then 3 long: the second starts at 3, the first ends by 10 − 3 − 1.
    state = State([(0, 10), (0, 10)], [[2], [3]], [(0, 1, 1)])
    assert state.propagate()
    assert state.found == [(0, 6), (3, 10)]
    assert State([(0, 6), (0, 6)], [[2], [3]], [(0, 1, 1)]).propagate()
    assert not State([(0, 5), (0, 5)], [[2], [3]], [(0, 1, 1)]).propagate()


def test_modes_that_do_not_fit_are_dropped() -> None:
    state = State([(0, 6)], [[3, 6, 7]])
    assert state.propagate()
    assert state.alive.tolist() == [True, True, False]
    assert not State([(1, 6)], [[6, 7]]).propagate()
    # The shorter mode is gone with its window; of what is left the shortest is 4 long, so that the
    # next starts at 1 + 4.
    state = State([(1, 9), (0, 9)], [[4, 9], [2]], [(0, 1, 0)])
    assert state.propagate()
    assert state.found == [(1, 7), (5, 9)]


# On one device. b and c are 4 and 3 long.


def test_what_cannot_end_before_others_comes_after_them() -> None:
    # With A from 0 on, A, b and c take until 11 > 9: A is last, after 1 + 7. No pair of tasks says
    # so.
    state = on_one_pool(1, (0, 15, 4, 1), (1, 9, 4, 1), (2, 9, 3, 1))
    assert state.propagate()
    assert state.found == [(8, 15), (1, 9), (2, 9)]
    # A comes later than b and c can: from 3 on, 2 long; b and c from 1 on need until 8, 10 with A.
    state = on_one_pool(1, (3, 15, 2, 1), (1, 9, 4, 1), (2, 9, 3, 1))
    assert state.propagate()
    assert state.found == [(8, 15), (1, 9), (2, 9)]
    # Where b and c end by 10 there is room for A before, between or after them.
    state = on_one_pool(1, (3, 15, 2, 1), (1, 10, 4, 1), (2, 10, 3, 1))
    assert state.propagate()
    assert state.found == [(3, 15), (1, 10), (2, 10)]


def test_the_same_from_behind() -> None:
    # The first case mirrored in time: A ends before b and c begin.
    state = on_one_pool(1, (-15, 0, 4, 1), (-9, -1, 4, 1), (-9, -2, 3, 1))
    assert state.propagate()
    assert state.found == [(-15, -8), (-9, -1), (-9, -2)]


def test_a_set_without_room_is_a_contradiction() -> None:
    assert on_one_pool(1, (0, 9, 4, 1), (1, 9, 2, 1), (1, 9, 3, 1)).propagate()
    assert not on_one_pool(1, (0, 8, 4, 1), (1, 8, 2, 1), (1, 8, 3, 1)).propagate()
    # Neither order fits: 5 and 5 long between 0 and 8, and a third elsewhere.
    assert not on_one_pool(1, (0, 8, 5, 1), (0, 8, 5, 1), (20, 30, 1, 1)).propagate()


def single_device_reference(windows: Sequence[Window], p: Sequence[int]) -> list[Window] | None:
    """Edge finding and detectable precedences as they are defined, over all sets of tasks, to a
    fixed point.
    """
    n = len(p)
    lows, highs = [w[0] for w in windows], [w[1] for w in windows]
    sets = [set(s) for k in range(1, n + 1) for s in itertools.combinations(range(n), k)]

    def once(a: list[int], b: list[int]) -> list[int] | None:
        if any(min(a[j] for j in s) + sum(p[j] for j in s) > max(b[j] for j in s) for s in sets):
            return None
        out = list(a)
        for i in range(n):
            for s in (s for s in sets if i not in s):
                last = max(b[j] for j in s)
                if min(a[j] for j in s | {i}) + sum(p[j] for j in s) + p[i] > last or all(
                    a[i] + p[i] > b[j] - p[j] for j in s
                ):
                    parts = (t for t in sets if t <= s)
                    out[i] = max(
                        out[i], *(min(a[j] for j in t) + sum(p[j] for j in t) for t in parts)
                    )
        return out

    while True:
        low = once(lows, highs)
        high = once([-x for x in highs], [-x for x in lows])
        if low is None or high is None:
            return None
        ends = [-x for x in high]
        if any(a + d > b for a, b, d in zip(low, ends, p, strict=True)):
            return None
        if (low, ends) == (lows, highs):
            return list(zip(low, ends, strict=True))
        lows, highs = low, ends


def test_one_device_is_propagated_as_edge_finding_is_defined() -> None:
    rng, outcomes = np.random.default_rng(5), []
    for _ in range(120):
        p = rng.integers(1, 6, 4).tolist()
        a = rng.integers(0, 8, 4)
        windows = list(zip(a.tolist(), (a + p + rng.integers(0, 12, 4)).tolist(), strict=True))
        state = on_one_pool(1, *((*w, d, 1) for w, d in zip(windows, p, strict=True)))
        expected = single_device_reference(windows, p)
        assert state.propagate() == (expected is not None), windows
        if expected is not None:
            assert state.found == expected
        outcomes.append(0 if expected is None else 1 if expected == windows else 2)
    assert min(outcomes.count(k) for k in range(3)) > 10


# On two devices. What must run is what lies between latest start and earliest end.


def test_starts_move_past_what_must_run() -> None:
    # X runs at least in [1, 4) on both devices: 3 units long from 0 would overlap it; 1 unit long
    # would not.
    for length, start in ((3, 4), (2, 4), (1, 0)):
        state = on_one_pool(2, (0, 5, 4, 2), (0, 30, length, 1))
        assert state.propagate()
        assert state.found[1] == (start, 30)
        state = on_one_pool(2, (-5, 0, 4, 2), (-30, 0, length, 1))
        assert state.propagate()
        assert state.found[1] == (-30, -start)
    # Of one device of two, another is free beside it.
    state = on_one_pool(2, (0, 5, 4, 1), (0, 30, 3, 1))
    assert state.propagate()
    assert state.found[1] == (0, 30)
    # Three must run at once on two.
    assert not on_one_pool(2, (0, 4, 3, 1), (0, 4, 3, 1), (0, 4, 3, 1)).propagate()
    # Past the first of two blocks there is no room for 3 before the second.
    state = on_one_pool(2, (2, 4, 2, 2), (6, 8, 2, 2), (1, 30, 3, 1))
    assert state.propagate()
    assert state.found[2] == (8, 30)
    assert not on_one_pool(2, (2, 4, 2, 2), (6, 8, 2, 2), (1, 10, 3, 1)).propagate()
    # The same where the blocks have a second of play: they must run in [2, 3) and [6, 7), between
    # which 4 do not fit.
    state = on_one_pool(2, (1, 4, 2, 2), (5, 8, 2, 2), (1, 30, 4, 1))
    assert state.propagate()
    assert state.found[2] == (7, 30)


def test_of_many_tasks_only_what_must_run_counts() -> None:
    # Of more than 150 tasks device time is not added up: four that fill [0, 6) do not keep Z from
    # it; X, which must run, does.
    others = [(1000 + i, 1001 + i, 1, 1) for i in range(147)]
    state = on_one_pool(2, *[(0, 6, 3, 1)] * 4, (0, 30, 2, 1), *others)
    assert state.propagate() and state.found[4] == (0, 30)
    state = on_one_pool(2, *[(0, 6, 3, 1)] * 4, (0, 30, 2, 1), *others[:145])
    assert state.propagate() and state.found[4] == (6, 30)
    assert on_one_pool(2, (0, 5, 4, 2), (0, 7, 3, 1), *others, *others[:5]).propagate()
    assert not on_one_pool(2, (0, 5, 4, 2), (0, 6, 3, 1), *others, *others[:5]).propagate()


def test_device_time_leaves_no_room() -> None:
    # Four of 3 fill two devices over [0, 6), none of them must run at any time: what is 2 long
    # comes at 6.
    full = [(0, 6, 3, 1)] * 4
    state = on_one_pool(2, *full, (0, 30, 2, 1))
    assert state.propagate()
    assert state.found == [(0, 6)] * 4 + [(6, 30)]
    assert not on_one_pool(2, *full, (0, 6, 2, 1)).propagate()
    # The same from 2 on: Z, 3 long from 0, would lie within.
    state = on_one_pool(2, *[(2, 8, 3, 1)] * 4, (0, 30, 3, 1))
    assert state.propagate()
    assert state.found == [(2, 8)] * 4 + [(8, 30)]
    # With 11 of 12 taken one unit may lie inside: 5; on two devices none.
    for devices, start in ((1, 5), (2, 6)):
        state = on_one_pool(2, *full[:3], (0, 6, 2, 1), (0, 30, 2, devices))
        assert state.propagate()
        assert state.found[4] == (start, 30)
    # With 10 of 12 taken both may.
    state = on_one_pool(2, *full[:2], (0, 6, 2, 1), (0, 6, 2, 1), (0, 30, 2, 1))
    assert state.propagate()
    assert state.found[4] == (0, 30)


def test_tasks_that_stick_out_count_where_they_are_asked_to() -> None:
    # Three of 3 within [0, 6), and S: 5 long until 8, at least 3 of them inside. Only then are [0,
    # 6) full, and Z comes at 6.
    tasks = [(0, 6, 3, 1)] * 3 + [(0, 8, 5, 1), (0, 30, 2, 1)]
    for partial, start in ((False, 0), (True, 6)):
        state = on_one_pool(2, *tasks)
        assert state.propagate(partial)
        assert state.found == [(0, 6)] * 3 + [(3, 8), (start, 30)]
    # S alone may have at most 12 − 9 inside.
    assert not on_one_pool(2, *tasks[:3], (0, 7, 5, 1), (0, 7, 2, 1)).propagate(True)


def test_a_task_belongs_to_a_resource_while_all_its_modes_do() -> None:
    # Mode 1 of the first task is on another pool: no reason to move the second, until that pool is
    # too slow.
    pools = [(1, {0: 1, 2: 1}), (1, {1: 1})]
    state = State([(0, 4), (0, 9)], [[4, 4], [3]], (), pools)
    assert state.propagate()
    assert state.found == [(0, 4), (0, 9)]
    state = State([(0, 4), (0, 9)], [[4, 5], [3]], (), pools)
    assert state.propagate()
    assert state.found == [(0, 4), (4, 9)]
    # 2 devices for 2 or one for 4: 4 of device-time, at least one device for at least 2 in [0, 4):
    # 4 + 4 fill two devices.
    either = State(
        [(0, 4), (0, 4), (0, 9)], [[4, 2], [4, 2], [1]], (), [(2, {0: 1, 1: 2, 2: 1, 3: 2, 4: 1})]
    )
    assert either.propagate()
    assert either.found == [(0, 4), (0, 4), (4, 9)]
    # What has no length is in nobody's way.
    state = State([(0, 4), (2, 2)], [[4], [0]], (), [(1, {0: 1, 1: 1})])
    assert state.propagate()


def test_work_is_counted_and_stops_the_deductions() -> None:
    state = on_one_pool(1, (0, 9, 2, 1), (0, 9, 2, 1))
    state.left[0] = 100
    assert state.propagate() and state.left[0] == 100 - 2 * 2
    state = on_one_pool(2, *[(0, 9, 2, 1)] * 3)
    state.left[0] = 100
    assert state.propagate() and state.left[0] == 100 - 3**3
    assert not state.dirty.any()
    state = on_one_pool(1, (0, 4, 4, 1), (0, 9, 2, 1))
    state.left[0] = 0
    assert state.propagate() and state.found == [(0, 4), (0, 9)] and state.dirty.all()
    # The first task's longer mode goes, and its successor begins at 4; that its longer mode then is
    # too long, is left for later.
    state = State([(0, 5), (0, 8)], [[4, 9], [3, 5]], [(0, 1, 0)])
    state.left[0] = 0
    assert state.propagate() and state.alive.tolist() == [True, False, True, True]
    state.left[0] = 1
    assert state.propagate() and state.alive.tolist() == [True, False, True, False]
    # With one unit of work the first resource is still looked at, the second is left for later.
    state = State([(0, 4), (0, 9)], [[4], [2]], (), [(1, {0: 1, 1: 1}), (1, {0: 1, 1: 1})])
    state.left[0] = 1
    assert state.propagate() and state.found == [(0, 4), (4, 9)]
    assert state.dirty.tolist() == [True, True]  # what has moved is on both


def test_clean_resources_wait_until_something_of_theirs_moves() -> None:
    state = on_one_pool(1, (0, 4, 4, 1), (0, 9, 2, 1))
    state.dirty[:] = False
    assert state.propagate() and state.found == [(0, 4), (0, 9)]
    # Precedence moves the second task, and so its pool: X and it do not fit side by side in [3, 6).
    state = State([(3, 6), (0, 9), (0, 3)], [[3], [2], [3]], [(2, 1, 0)], [(1, {0: 1, 1: 1})])
    state.dirty[:] = False
    assert state.propagate() and state.found == [(3, 6), (6, 9), (0, 3)]


def test_shaving_cuts_windows_and_modes() -> None:
    # X has the device until 4: starts 0 to 3 are refuted, together or one by one.
    state = on_one_pool(1, (0, 4, 4, 1), (0, 12, 2, 1))
    assert state.shave(1) == 1 and state.found[1] == (4, 12)
    state = on_one_pool(1, (-4, 0, 4, 1), (-12, 0, 2, 1))
    assert state.shave(1) == 1 and state.found[1] == (-12, -4)
    # Until 3: of 11 starts half are tried, then a quarter of that, one by one.
    state = on_one_pool(1, (0, 3, 3, 1), (0, 12, 2, 1))
    assert state.shave(1) == 1 and state.found[1] == (3, 12)
    # Until 36, 38 starts: 19 are refuted together, the next 19 are not; of those 4 at a time until
    # 35. Of the 3 that are left a quarter is none, so that they stay.
    state = on_one_pool(1, (0, 36, 36, 1), (0, 38, 1, 1))
    assert state.shave(1) == 1 and state.found[1] == (35, 38)
    assert on_one_pool(1, (0, 4, 4, 1), (0, 5, 2, 1)).shave(1) == -1
    assert on_one_pool(1, (0, 4, 4, 1), (4, 9, 2, 1)).shave(1) == 0
    # X and Y keep pools 0 and 1 until 6: in [0, 7] only the mode of pool 1, 1 long, fits.
    pools = [(1, {0: 1, 2: 1}), (1, {1: 1, 3: 1})]
    state = State([(0, 6), (0, 6), (0, 7)], [[6], [6], [2, 1]], (), pools)
    assert state.shave(2) == 1 and state.alive.tolist() == [True, True, False, True]
    assert state.found[2] == (6, 7)


def test_a_window_is_tried_with_room_for_the_longest_mode() -> None:
    # Pool 0 is free from 4 on, where the task takes 2; pool 1 always, where it takes 5: no start is
    # impossible.
    state = State([(0, 4), (0, 12)], [[4], [2, 5]], (), [(1, {0: 1, 1: 1}), (1, {2: 1})])
    assert state.shave(1) == 0 and state.found[1] == (0, 12)


def schedules(state: State) -> list[tuple[list[int], list[int]]]:
    """Every choice of pairs and starts within the windows that keeps precedence and capacity."""
    (ptr, length), out = state.tables[0], []
    choices = [
        [(k, s) for k in range(ptr[i], ptr[i + 1]) for s in range(a, b - length[k] + 1)]
        for i, (a, b) in enumerate(state.windows)
    ]
    for chosen in itertools.product(*choices):
        if any(
            chosen[i][1] + length[chosen[i][0]] + lag > chosen[j][1] for i, j, lag in state.edges
        ):
            continue
        times = {s for _, s in chosen}
        if all(
            sum(use.get(k, 0) for k, s in chosen if s <= t < s + length[k]) <= capacity
            for capacity, use in state.resources
            for t in times
        ):
            out.append(([k for k, _ in chosen], [s for _, s in chosen]))
    return out


@pytest.mark.parametrize("partial", [False, True])
def test_no_schedule_is_cut_off(partial: bool) -> None:
    rng, cut, refuted = np.random.default_rng(11), 0, 0
    for _ in range(60):
        modes = [rng.integers(1, 5, rng.integers(1, 3)).tolist() for _ in range(4)]
        windows = [
            (a, a + max(each) + int(rng.integers(0, 5)))
            for each in modes
            for a in [int(rng.integers(0, 5))]
        ]
        number = sum(map(len, modes))
        pools = rng.integers(0, 2, number)
        resources = [
            (2, {k: int(rng.integers(1, 3)) for k in range(number) if pools[k] == 0}),
            (int(rng.integers(1, 3)), {k: 1 for k in range(number) if pools[k] == 1}),
        ]
        state = State(windows, modes, [(0, 1, 1)] if rng.random() < 0.3 else [], resources)
        every = schedules(state)
        feasible = state.propagate(partial) and all(state.shave(i, partial) >= 0 for i in range(4))
        assert feasible or not every, (windows, modes, resources)
        refuted += not feasible
        if feasible and state.found != windows:
            cut += 1
            for pairs, starts in every:
                assert all(state.alive[k] for k in pairs)
                assert all(
                    a <= s and s + state.tables[0][1][k] <= b
                    for k, s, (a, b) in zip(pairs, starts, state.found, strict=True)
                )
    assert cut > 10 and refuted > 3
