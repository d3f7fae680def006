"""The solver ``cpsat``: optima by hand and by brute force, determinism, warm starts, statuses,
interrupts.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import optbench as ob
from optbench.formats import format_registry
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.protocol import Run
from optbench.plugins.solvers.cpsat import CpSat
from optbench.sim.primal import Improver
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance

# la01 without its name: 10 jobs on 5 machines, optimum 666 = the work of machine 4 with its least
# head and tail.
FT06 = """6 6
2 1 0 3 1 6 3 7 5 3 4 6
1 8 2 5 4 10 5 10 0 10 3 4
2 5 3 4 5 8 0 9 1 1 4 7
1 5 0 5 2 5 3 3 4 8 5 9
2 9 1 3 4 5 5 4 0 3 3 1
1 3 3 3 5 9 0 10 4 4 2 1
"""


def run_on(instance: Instance, **options: object) -> Run:
    run = Run(instance, **{"time_limit_s": 60.0, **options})  # type: ignore[arg-type]
    CpSat().solve(instance, run)
    return run


def two_machines() -> Instance:
    """Jobs of (2, 3), (4, 1) on machines a then b: Johnson's rule 2 + 3 .. a: 0-2-6, b: 2-5, 6-7:
    makespan 7.
    """
    m = ob.Model("johnson")
    a, b = m.pool("a"), m.pool("b")
    for first, second in ((2, 3), (4, 1)):
        m.task(modes=[m.mode(b, second)], after=m.task(modes=[m.mode(a, first)]))
    m.minimize(makespan_s=1.0)
    return m.build()


def test_an_optimum_by_hand() -> None:
    run = run_on(two_machines())
    assert (run.objective, run.bound, run.termination) == (7.0, 7.0, "finished")


@pytest.mark.parametrize("seed", range(150))
def test_the_same_as_brute_force(seed: int) -> None:
    instance = tiny_instance(seed)
    best, run = brute_force(instance), run_on(instance)
    if best is None:
        assert run.proven_infeasible and run.best is None
        return
    assert run.objective == pytest.approx(best.objective, rel=1e-9, abs=1e-9)
    assert run.bound is not None
    assert run.bound <= best.objective + 1e-9 * max(1.0, abs(best.objective))
    assert run.bound == pytest.approx(best.objective, rel=1e-6, abs=1e-6)


def test_a_job_shop_through_probe_and_heuristics(tmp_path: Path) -> None:
    (tmp_path / "ft06.txt").write_text(FT06)
    run = run_on(format_registry.load(tmp_path / "ft06.txt"), threads=2)
    assert (run.objective, run.bound, run.termination) == (55.0, 55.0, "finished")


@pytest.mark.parametrize("seed", [0, 3])
def test_same_seed_and_work_limit_same_decision(seed: int, tmp_path: Path) -> None:
    (tmp_path / "ft06.txt").write_text(FT06)
    instance = format_registry.load(tmp_path / "ft06.txt")
    first, second = (run_on(instance, seed=seed, work_limit=0.05, threads=2) for _ in range(2))
    assert first.best is not None and second.best is not None
    assert np.array_equal(first.best.start, second.best.start)
    assert np.array_equal(first.best.mode, second.best.mode)
    assert first.bound == second.bound


def test_never_worse_than_the_warm_start(tmp_path: Path) -> None:
    (tmp_path / "ft06.txt").write_text(FT06)
    instance = format_registry.load(tmp_path / "ft06.txt")
    best = run_on(instance).best
    assert best is not None
    run = run_on(instance, warm_start=best, time_limit_s=1e-3)
    assert run.objective == 55.0


def test_a_warm_start_later_than_any_sensible_schedule() -> None:
    """It lies beyond the model's end of time, which is no contradiction."""
    instance = two_machines()
    late = Schedule.of(instance, [0, 1, 2, 3], [100, 200, 300, 400])
    run = run_on(instance, warm_start=late)
    assert run.objective == 7.0


def test_infeasible_is_proved() -> None:
    m = ob.Model("late")
    pool = m.pool("p")
    for _ in range(2):
        m.task(modes=[m.mode(pool, 3)], deadline_s=5, hard=True)
    m.minimize(makespan_s=1.0)
    run = run_on(m.build())
    assert run.proven_infeasible and run.best is None


def test_a_stop_request_ends_the_search_and_keeps_the_incumbent(data_dir: Path) -> None:
    instance = format_registry.load(data_dir / "jobshop" / "ta21.txt")
    run = Run(instance, time_limit_s=120.0)
    threading.Timer(2.0, run.stop_requested.set).start()
    CpSat().solve(instance, run)
    assert run.best is not None and run.termination == "interrupted"
    assert run.elapsed_s() < 60


def test_a_time_limit_leaves_incumbent_and_bound(data_dir: Path) -> None:
    run = run_on(format_registry.load(data_dir / "jobshop" / "ta41.txt"), time_limit_s=2.0)
    assert run.termination == "time_limit"
    assert (
        run.objective is not None and run.bound is not None and 1850 <= run.bound <= run.objective
    )


@pytest.mark.parametrize(
    "path", ["jobshop/la01.txt", "flexible-jobshop/mk01.txt", "rcpsp/j30/j30_10_7.rcp"]
)
def test_the_compiled_heuristics_find_verified_schedules(path: str, data_dir: Path) -> None:
    instance = format_registry.load(data_dir / path)
    found = []
    for _ in range(2):
        run = Run(instance)
        Improver(instance, None, seed=1).run(lambda: 0, run.report, lambda: False, 60, chunks=3)
        assert not run.rejected and run.objective is not None
        found.append(run.objective)
    assert found[0] == found[1]
    best_known = {"la01": 666, "mk01": 40, "j30_10_7": 49}[Path(path).stem]
    assert best_known <= found[0] <= 1.2 * best_known
