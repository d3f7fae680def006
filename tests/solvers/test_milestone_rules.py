"""lp_guided by milestones, and the rule of tuned prices: what is played, and what is said."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid import fluid_bound as bounding
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.model.windows import windows
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.protocol import Run
from optbench.plugins.solvers import _lp_annealing
from optbench.plugins.solvers._lp_annealing import SharedPoint, anneal_beside
from optbench.plugins.solvers._lp_finder import Finder
from optbench.plugins.solvers._lp_guide import guide_from_windows
from optbench.plugins.solvers._lp_milestones import (
    GEOMETRIC,
    LEAST,
    SETS,
    STEPS,
    MilestoneRules,
    Multipliers,
    fixed_sets,
    guide_of,
    targets_of,
    targets_of_schedule,
)
from optbench.plugins.solvers._lp_search import BEST_VALUE, NOW_VALUE
from optbench.plugins.solvers.tuned_rule import TunedRule
from optbench.rules import find_milestones, list_rule, run_rule

SPEC = "gpu_dag:tasks=60,gpus=8,types=3"


def instance_of(spec: str = SPEC, seed: int = 20) -> Instance:
    made: Instance = load_problem(spec).instance(seed)
    return made


def rules_of(instance: Instance, seed: int = 0) -> MilestoneRules:
    found = find_milestones(instance)
    assert found is not None
    return MilestoneRules(
        Finder(instance, guide_of(instance, found), seed), targets_of(found), seed
    )


def slow_or_fast(limit_w: float = 6.0) -> Instance:
    """Two tasks, one after the other: 2 s and 100 J or 10 s and 20 J, on one device each."""
    m = ob.Model("slow or fast")
    first = None
    for k in range(2):
        pool = m.pool(f"gpu{k}")
        modes = [m.mode(pool, time_s=2, energy_j=100), m.mode(pool, time_s=10, energy_j=20)]
        first = m.task(modes=modes, after=() if first is None else first)
    m.minimize(energy_j=1.0, makespan_s=limit_w)
    return m.build()


def test_milestones_are_played_as_dates() -> None:
    """The LP ends the tasks after 10 and 20 s. In time both run slowly; with dates of half that,
    5 and 10 s, the slow mode is 5 s late, then 5 s after the fast first, which ends at 2 s, 2 s:
    80 J are worth it from 16 and 40 J per second on, 6 · late.
    """
    instance = slow_or_fast()
    rules = rules_of(instance)
    assert rules.targets.end == pytest.approx([10, 20])
    for stretch, late, modes in (
        (1.0, 10.0, [1, 3]),
        (0.5, 2.5, [1, 2]),
        (0.5, 2.8, [0, 3]),
        (0.5, 7.0, [0, 2]),
    ):
        rule = rules.rule(Multipliers(stretch=stretch, late=late))
        schedule = run_rule(instance, rule).schedule
        assert schedule is not None
        assert schedule.mode.tolist() == modes, (stretch, late)


def test_the_value_of_a_run_is_that_of_the_verifier() -> None:
    instance = instance_of()
    rules = rules_of(instance)
    for by in fixed_sets()[:4]:
        value = rules.finder.value_of(rules.rule(by))
        schedule = run_rule(instance, rules.rule(by)).schedule
        assert schedule is not None
        assert value == pytest.approx(verify(instance, schedule).objective, rel=1e-12)


def test_the_best_multipliers_are_kept_and_the_search_starts_from_them() -> None:
    rules = rules_of(instance_of())
    rules.first(len(fixed_sets()), lambda: math.inf)
    values = [rules.finder.value_of(rules.rule(by)) for by in fixed_sets()]
    assert rules.value == min(values) and rules.runs == len(values)
    assert rules.best == fixed_sets()[int(np.argmin(values))]
    before = rules.value
    better = [rules.search() for _ in range(40)]
    assert any(better) and rules.value < before
    assert rules.finder.value_of(rules.rule(rules.best)) == rules.value
    rules.keep_point()
    assert rules.finder.value <= rules.value


def test_drawn_multipliers_stay_within_their_range_and_repeat() -> None:
    rules, same = rules_of(instance_of()), rules_of(instance_of())
    rules.best = Multipliers(stretch=0.8, late=1e-4, devices=0.0, energy=0.05)
    same.best = rules.best
    drawn = [rules.drawn() for _ in range(200)]
    assert drawn == [same.drawn() for _ in range(200)]
    table = np.array([[getattr(by, name) for name in by.__dataclass_fields__] for by in drawn])
    assert (table.min(axis=0) == np.asarray(LEAST)).all()
    assert (table.max(axis=0) > np.asarray(LEAST)).all()
    assert len(STEPS) == len(GEOMETRIC) == len(LEAST) == table.shape[1]


def test_the_fixed_sets_are_distinct_and_the_first_number_is_obeyed() -> None:
    rows = json.loads(SETS.read_text(encoding="utf-8"))["multipliers"]
    assert len({json.dumps(row, sort_keys=True) for row in rows}) == len(rows) == 16
    rules = rules_of(instance_of())
    rules.first(3, lambda: math.inf)
    assert rules.runs == 3
    rules.first(16, lambda: 0.0)
    assert rules.runs == 4


@pytest.mark.parametrize("spec", [SPEC, "gpu_dag:tasks=25,gpus=6,deadlines=tight,power_cap=0.7"])
def test_no_improvement_is_the_best_of_k_runs(spec: str) -> None:
    instance = instance_of(spec)
    result = ob.solve(instance, "lp_guided:improve=none,runs=5", bound=False)
    rules = rules_of(instance)
    rules.first(5, lambda: math.inf)
    assert result.objective == pytest.approx(min(rules.value, rules.finder.value), rel=1e-12)
    assert "5 runs of its rule" in result.info["milestones"]
    assert "annealing" not in result.info["milestones"]
    # Its bound is the LP's, certified without a second one.
    assert result.bounds[0].source == "fluid_lp" and result.bounds[0].proof == "exact-lp"


def test_more_is_said_and_found_with_improvement() -> None:
    instance = instance_of()
    none = ob.solve(instance, "lp_guided:improve=none", bound=False)
    more = ob.solve(instance, "lp_guided", work_limit=3, bound=False)
    assert isinstance(none.objective, float) and isinstance(more.objective, float)
    assert more.objective < none.objective
    assert "3,000 steps of annealing" in more.info["milestones"]
    assert "linear programme in" in more.info["milestones"]
    again = ob.solve(instance, "lp_guided", work_limit=3, bound=False)
    assert again.objective == more.objective


def test_where_the_programme_takes_too_long_the_best_rule_is_played_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounding, "PAIRS_OF_A_SECOND", 1)
    instance = instance_of()
    rivals = ("tuned_rule", "min_energy", "heft")
    values = [
        float(verify(instance, schedule).objectives[0])
        for name in rivals
        if (schedule := ob.solve(instance, name, bound=False).schedule) is not None
    ]
    result = ob.solve(instance, "lp_guided:improve=none", time_limit_s=4, bound=False)
    assert "did not end in 3.6 s, most of the time left" in result.info["milestones"]
    assert "the best simple rule gave the milestones" in result.info["milestones"]
    assert len(values) == 3 and isinstance(result.objective, float)
    assert result.objective <= min(values)
    assert result.bound is None


def test_milestones_of_a_schedule_are_its_starts_and_ends() -> None:
    instance = slow_or_fast()
    trace = run_rule(instance, list_rule(instance, end_weight=1.0))
    assert trace.schedule is not None
    targets = targets_of_schedule(instance, trace.schedule)
    assert targets.start.tolist() == [0, 2] and targets.end.tolist() == [2, 4]
    assert targets.pool_price.tolist() == [0, 0]


def test_runs_must_be_at_least_one() -> None:
    with pytest.raises(ParameterError, match="runs is 0; it must be at least 1"):
        load_solver("lp_guided:runs=0", {})


def test_without_simple_rules_windows_are_milestones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has been found before the LP fails: the earliest starts and ends are the targets."""
    monkeypatch.setattr(
        "optbench.plugins.solvers._milestone_search.find_milestones", lambda *_: None
    )
    result = ob.solve(slow_or_fast(), "lp_guided:improve=none", work_limit=1, bound=False)
    assert result.info["milestones"].startswith("no linear programme; ")
    assert result.objective == pytest.approx(160)


@pytest.mark.parametrize(
    ("prices", "modes"),
    [
        # 8 s saved for 80 J: at 6 per second, the price of the makespan, they are not worth it, at
        # twice that they are.
        ({"time": 1.0, "price_1": 0.0, "price_2": 0.0}, [1, 3]),
        ({"time": 2.0, "price_1": 0.0, "price_2": 0.0}, [0, 2]),
        # Each of the two devices is a type, because it runs a task of its own; 8 s of one
        # cost 8 · 3 times its price.
        ({"time": 0.0, "price_1": 4.0, "price_2": 0.0}, [0, 3]),
        ({"time": 0.0, "price_1": 0.0, "price_2": 4.0}, [1, 2]),
        ({"time": 0.0, "price_1": 3.0, "price_2": 3.0}, [1, 3]),
    ],
)
def test_tuned_prices_choose_modes(prices: dict[str, Any], modes: list[int]) -> None:
    instance = slow_or_fast()
    rule = TunedRule(**prices).rule(instance, np.random.default_rng(0))
    schedule = run_rule(instance, rule).schedule
    assert schedule is not None
    assert schedule.mode.tolist() == modes


def test_the_queue_is_by_path_or_by_arrival() -> None:
    instance = slow_or_fast()
    rng = np.random.default_rng(0)
    assert TunedRule(order="arrival").rule(instance, rng).base.tolist() == [0, 0]
    by_path = TunedRule().rule(instance, rng).base
    assert by_path.tolist() == [-4, -2]


@pytest.mark.parametrize(("name", "value"), [("time", -0.1), ("price_3", math.inf)])
def test_prices_out_of_range_are_named(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"{name} is {value}; it must be at least 0"):
        TunedRule(**{name: value})


def test_two_threads_share_their_best_point() -> None:
    instance = instance_of("gpu_dag:tasks=40,gpus=6", 0)
    one = Finder(instance, guide_from_windows(instance, windows(instance)), 0)
    one.first(2, lambda: math.inf)
    other = one.twin(1)
    other.anneal(2_000, 0.5, 4_000)
    shared = SharedPoint()
    shared.exchange(other, adopts=False)
    before = float(one.search.value[BEST_VALUE])
    shared.exchange(one, adopts=True)
    after = float(one.search.value[BEST_VALUE])
    assert after == float(other.search.value[BEST_VALUE]) < before
    one.anneal(200, 0.9, 4_000)
    schedule = one.best_schedule()
    assert schedule is not None
    verdict = verify(instance, schedule)
    assert verdict.feasible
    assert verdict.objectives[0] <= after * (1 + 1e-9)


def test_a_fault_in_the_second_thread_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        if threading.current_thread().name.startswith("annealing"):
            raise RuntimeError("no more steps")
        return 1

    monkeypatch.setattr(_lp_annealing, "search_for_a_time", broken)
    result = ob.solve(
        "gpu_dag:tasks=30,gpus=6", "lp_guided", time_limit_s=1.0, threads=2, bound=False
    )
    assert result.termination == "crashed"
    assert result.verified


def test_cpsat_starts_from_milestones() -> None:
    result = ob.solve("gpu_dag:tasks=60,gpus=8", "cpsat", time_limit_s=3.0, bound=False)
    assert "linear programme" in result.info["milestones"]
    assert isinstance(result.gap, float)
    assert result.gap < 0.2


def test_annealing_goes_on_from_the_best_point() -> None:
    """What is considered in between leaves another point behind."""
    instance = instance_of("gpu_dag:tasks=40,gpus=6", 0)
    finder = Finder(instance, guide_from_windows(instance, windows(instance)), 0)
    finder.first(2, lambda: math.inf)
    finder.anneal(1, 1.0, 1.0)
    finder.consider(np.array(instance.pairs.mode[instance.pairs.ptr[:-1]]), np.zeros(40))
    finder.restart()
    finder.anneal(0, 1.0, 1.0)
    assert finder.search.value[NOW_VALUE] == finder.search.value[BEST_VALUE]
    assert (finder.rule.fixed == finder.search.best_mode).all()
    assert (finder.rule.base == finder.search.best_key).all()


def test_the_second_thread_ends_with_the_block_that_uses_it() -> None:
    instance = instance_of("gpu_dag:tasks=40,gpus=6", 0)
    finder = Finder(instance, guide_from_windows(instance, windows(instance)), 0)
    finder.first(2, lambda: math.inf)
    run = Run(instance, threads=2)
    with (
        pytest.raises(ZeroDivisionError),
        anneal_beside(finder, run, lambda: 60.0, SharedPoint()),
    ):
        raise ZeroDivisionError
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("annealing")]
