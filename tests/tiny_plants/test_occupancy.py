"""Tiny plants as Markov chains: closed forms, brute force over all deterministic policies, and
randomisation where it must be.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from optbench.bounds.lp.linear_program import LinearProgram, LpSolution
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.builder import Model
from optbench.model.instance import Floats, Instance
from tests.tiny_plants import occupancy
from tests.tiny_plants.chain import Chain, chain_of
from tests.tiny_plants.occupancy import Moves, OccupancyProgramme, num_randomised, occupancy_bound


def plant(
    *pools: tuple[int, float, list[tuple[int, float, float, float]]], factor: float = 1.0
) -> Instance:
    """Pools of (devices, sleep watts, modes); a mode is (devices, clock, seconds per unit,
    watts).
    """
    m = Model("tiny", time="seconds")
    modes = []
    for k, (count, sleep_w, ways) in enumerate(pools):
        pool = m.pool(f"p{k}", count, sleep_w=factor * sleep_w, sleeps=True)
        modes += [
            m.mode({pool: n}, time_s, factor * watts * time_s, clock=clock)
            for n, clock, time_s, watts in ways
        ]
    m.tasks(np.ones(3), kind=m.kind(modes=modes))
    m.minimize(energy_j=1.0)
    return m.build()


def only_policy(moves: Moves) -> Floats:
    """Where every state has one action."""
    assert len(np.unique(moves.act_from)) == len(moves.act_from)
    return np.ones(len(moves.act_from))


def test_one_device_is_a_queue_with_one_server_and_finite_room() -> None:
    # M/M/1/4, Λ = 0.1/s, service 5 units of 1 s: ρ = 1/2, p_k = ρ^k (1 − ρ) / (1 − ρ^5) = 16, 8, 4,
    # 2, 1 over 31. Accepted Λ · 30/31; L = (8 + 2·4 + 3·2 + 4) / 31 = 26/31, so W = L / (Λ 30/31) =
    # 26/3 s. A device draws 100 W busy (15/31 of the time) and 20 W asleep: (1500 + 320) / 31 W;
    # per accepted unit: / (0.1 · 30/31 · 5).
    chain = chain_of(plant((1, 20.0, [(1, 1.0, 1.0, 100.0)])), 0.1, 5.0, room=3)
    programme = OccupancyProgramme(chain)
    found = programme.value(only_policy(programme.moves))
    assert found.lost == pytest.approx(1 / 31)
    assert found.sojourn_s == pytest.approx(26 / 3)
    assert found.power_w == pytest.approx(1820 / 31)
    assert found.j_per_unit == pytest.approx(1820 / 15)
    # Queue: one, two, three waiting with 4, 2, 1 of 31.
    assert found.queue_mean == pytest.approx([(4 + 2 * 2 + 3 * 1) / 31])


def test_two_devices_without_room_lose_what_erlang_says() -> None:
    # a = Λ E[S] = 1 erlang on two devices: B = (1/2) / (1 + 1 + 1/2) = 0.2; who is served stays
    # E[S] = 5 s.
    programme = OccupancyProgramme(
        chain_of(plant((2, 0.0, [(1, 1.0, 1.0, 100.0)])), 0.2, 5.0, room=0)
    )
    found = programme.value(only_policy(programme.moves))
    assert found.lost == pytest.approx(0.2)
    assert found.sojourn_s == pytest.approx(5.0)
    assert found.j_per_unit == pytest.approx(100.0)


def test_a_budget_between_two_clocks_is_met_by_tossing_a_coin() -> None:
    # One device, no room, Λ = 0.1: 10 s of work at 60 W or 6 s at 150 W. Fast with probability p: 6
    # p + 10 (1 − p) = 7, p = 3/4. Energy per job: 3/4 · 900 + 1/4 · 600 = 825 J, and 1 / Λ = 10 s
    # of sleep at 20 W: 1025 J.
    chain = chain_of(
        plant((1, 20.0, [(1, 0.5, 10.0, 60.0), (1, 1.0, 6.0, 150.0)])), 0.1, 1.0, room=0
    )
    programme = OccupancyProgramme(chain)
    found = programme.minimum(7.0, max_lost=0.9)
    assert found is not None and found.proven_j_per_unit is not None
    assert found.j_per_unit == pytest.approx(1025.0, rel=1e-6)
    assert found.j_per_unit * (1 - 1e-6) <= found.proven_j_per_unit <= 1025.0
    assert found.sojourn_s == pytest.approx(7.0, rel=1e-6)
    assert num_randomised(programme.moves, found.flow) == 1
    # A second more lets a quarter of the jobs go slow: 300 J / 4 s.
    assert found.price == pytest.approx(75.0, rel=1e-6)
    assert found.lost == pytest.approx(0.7 / 1.7)


def test_no_policy_is_faster_than_the_fastest_mode() -> None:
    chain = chain_of(
        plant((1, 20.0, [(1, 0.5, 10.0, 60.0), (1, 1.0, 6.0, 150.0)])), 0.1, 1.0, room=0
    )
    programme = OccupancyProgramme(chain)
    assert programme.minimum(5.9, max_lost=0.9) is None
    assert programme.minimum(6.1, max_lost=0.9) is not None


def two_sites(factor: float = 1.0, rate: float = 0.08) -> Chain:
    fast = (1, 30.0, [(1, 1.0, 1.0, 220.0)])
    lean = (1, 8.0, [(1, 0.5, 3.0, 50.0), (1, 1.0, 2.0, 90.0)])
    return chain_of(plant(fast, lean, factor=factor), rate, 5.0, room=1)


def every_policy(programme: OccupancyProgramme) -> list[tuple[float, float]]:
    """Sojourn and J per unit of every deterministic policy."""
    moves, points = programme.moves, []
    choices = [np.flatnonzero(moves.act_from == s) for s in np.unique(moves.act_from)]
    for taken in itertools.product(*choices):
        share = np.zeros(len(moves.act_from))
        share[list(taken)] = 1.0
        found = programme.value(share)
        points.append((found.sojourn_s, found.j_per_unit))
    return points


def test_the_programme_is_the_lower_hull_of_all_deterministic_policies() -> None:
    programme = OccupancyProgramme(two_sites())
    points = every_policy(programme)
    assert len(points) > 500
    least = min(energy for _, energy in points)
    free = programme.minimum(max_lost=0.99)
    assert free is not None and free.j_per_unit == pytest.approx(least, rel=1e-6)
    for sojourn_s in (8.0, 10.0, 12.0):
        found = programme.minimum(sojourn_s, max_lost=0.99)
        # Randomised policies are mixtures, job by job: the hull of two points, or one within the
        # budget.
        hull = min(
            e if w <= sojourn_s else e + (f - e) * (w - sojourn_s) / (w - v)
            for (w, e), (v, f) in itertools.product(points, points)
            if v <= sojourn_s and (w > sojourn_s or (w, e) == (v, f))
        )
        assert found is not None and found.j_per_unit == pytest.approx(hull, rel=1e-5)
        assert found.proven_j_per_unit is not None and found.proven_j_per_unit <= hull * (1 + 1e-12)


def test_looser_limits_never_cost_more_and_tighter_queues_never_less() -> None:
    programme = OccupancyProgramme(two_sites())
    values = [
        programme.minimum(sojourn_s, max_lost=0.5) for sojourn_s in (8.0, 9.0, 11.0, 14.0, None)
    ]
    energies = [each.j_per_unit for each in values if each is not None]
    assert len(energies) == 5 and energies == sorted(energies, reverse=True)
    free = programme.minimum(max_lost=0.5)
    assert free is not None
    limit = 0.5 * float(free.queue_mean.max())
    tight = programme.minimum(queue_mean=limit, max_lost=0.5)
    assert tight is not None
    assert tight.queue_mean.max() <= limit * (1 + 1e-4)
    assert tight.j_per_unit > free.j_per_unit


def test_doubling_all_powers_doubles_the_least_energy() -> None:
    one, two = (
        OccupancyProgramme(two_sites(factor)).minimum(9.0, max_lost=0.5) for factor in (1.0, 2.0)
    )
    assert one is not None and two is not None
    assert two.j_per_unit == pytest.approx(2 * one.j_per_unit, rel=1e-6)


def test_what_is_stated_of_the_best_policy_is_its_own_stationary_value() -> None:
    programme = OccupancyProgramme(two_sites())
    best = programme.minimum(9.0, max_lost=0.5)
    assert best is not None
    again = programme.value(best.share)
    assert again.j_per_unit == best.j_per_unit and again.sojourn_s == best.sojourn_s
    assert again.sojourn_s == pytest.approx(9.0, rel=1e-5)
    sums = np.bincount(programme.moves.act_from, weights=best.share)
    assert sums[sums > 0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("limits", "culprit"),
    [
        ({"sojourn_s": -1.0}, "sojourn_s is -1.0"),
        ({"queue_mean": 0.0}, "queue_mean is 0.0"),
        ({"max_lost": 1.0}, "max_lost is 1.0"),
    ],
)
def test_limits_are_checked(limits: dict[str, float], culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        OccupancyProgramme(two_sites()).minimum(**limits)


def test_overload_cannot_be_accepted() -> None:
    # 1 / 5 s of work per second arrives at most twice over: no policy loses less than one in
    # 100,000.
    assert occupancy_bound(two_sites(rate=1.0), None) is None


def test_a_programme_that_is_not_solved_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    status, dual = "Time limit reached", True

    def unsolved(lp: LinearProgram, time_limit_s: float) -> LpSolution:
        found = np.zeros(lp.num_rows) if dual else None
        return LpSolution(status, 0.0, np.zeros(lp.num_columns), found)

    monkeypatch.setattr(occupancy, "solve", unsolved)
    with pytest.raises(UnsupportedError, match=r"no answer for \d+ columns \(Time limit reached\)"):
        OccupancyProgramme(two_sites()).minimum(9.0)
    status, dual = "Optimal", False
    with pytest.raises(UnsupportedError, match="no answer"):
        OccupancyProgramme(two_sites()).minimum(9.0)
    status = "Infeasible"
    assert OccupancyProgramme(two_sites()).minimum(9.0) is None


def test_what_is_lost_is_limited_by_its_share_of_all_jobs() -> None:
    # One device without room, Λ E[S] = 0.1 · 10 = 1: half of the jobs are lost, whoever decides.
    chain = chain_of(plant((1, 20.0, [(1, 1.0, 10.0, 60.0)])), 0.1, 1.0, room=0)
    programme = OccupancyProgramme(chain)
    found = programme.minimum(max_lost=0.6)
    assert found is not None and found.lost == pytest.approx(0.5)
    assert programme.minimum(max_lost=0.4) is None
