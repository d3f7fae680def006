"""The bank: only improves, tells contradictions, is shared by processes, and proves again."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from optbench.bounds.bank import BoundBank
from optbench.bounds.fluid_bound import fluid_bound
from optbench.errors import ContradictionError, FileFormatError, ParameterError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.result import Bound
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.bounds.shops import FT06, shop


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[BoundBank]:
    with BoundBank(tmp_path / ".optbench" / "bounds.sqlite") as opened:
        yield opened


@pytest.fixture
def instance() -> Instance:
    """Work 3 + 4 + 5 on two machines of equal speed: 6."""
    return shop([[[(0, d), (1, d)]] for d in (3, 4, 5)], [1, 1])


def in_a_row(instance: Instance, wait: int) -> Schedule:
    """3 and 4 on machine 0, 5 on machine 1, the second after ``wait`` idle ticks: 3 + wait + 4 in all."""
    mode = [instance.pairs.mode[instance.pairs.ptr[i] + (i == 2)] for i in range(3)]
    return Schedule.of(instance, mode, [0, 3 + wait, 0])


def test_a_bank_only_improves(bank: BoundBank, instance: Instance) -> None:
    assert bank.record(instance, [Bound(4.0, "a", "solver")])
    assert bank.record(instance, [Bound(5.0, "b", "solver")])
    assert not bank.record(instance, [Bound(4.5, "c", "solver")])
    assert bank.bounds(instance) == [Bound(5.0, "b", "solver")]


def test_instances_objectives_and_levels_are_kept_apart(bank: BoundBank, instance: Instance) -> None:
    bank.record(instance, [Bound(5.0, "a", "solver")])
    assert bank.bounds(instance.with_objective(Objective.weighted({"makespan": 2.0}))) == []
    assert bank.bounds(instance.with_limits(makespan=9.0)) == []


def test_a_bound_above_a_verified_objective_is_a_contradiction(bank: BoundBank, instance: Instance) -> None:
    bank.observe(instance, in_a_row(instance, 2))
    with pytest.raises(ContradictionError, match=r"bound 10\.0 from wrong exceeds the verified objective 9\.0"):
        bank.record(instance, [Bound(10.0, "wrong", "solver")])
    assert bank.bounds(instance) == []
    bank.record(instance, [Bound(9.0, "right", "solver")])
    with pytest.raises(ContradictionError, match=r"bound 9\.0 from right exceeds the verified objective 8\.0"):
        bank.observe(instance, in_a_row(instance, 1))


def test_proofs_are_repeated_and_a_solvers_word_is_not(bank: BoundBank, instance: Instance) -> None:
    bank.improve(instance, time_limit_s=0.4)
    bank.record(instance, [Bound(6.0, "cpsat", "solver")])
    checks = {check.proof: check for check in bank.recheck(instance)}
    assert {proof: check.holds for proof, check in checks.items()} == {"exact-lp": True, "combinatorial": True, "solver": None}
    assert checks["exact-lp"].proven == 6


def test_a_destructive_bound_is_proved_again(bank: BoundBank) -> None:
    ft06 = shop(FT06, [1] * 6)
    bank.record(ft06, [Bound(55.0, "destructive", "combinatorial")])
    assert [check.holds for check in bank.recheck(ft06)] == [True]
    assert [check.proven for check in bank.recheck(ft06)] == [55]


def test_a_forged_value_and_forged_duals_do_not_hold(bank: BoundBank, instance: Instance) -> None:
    proof = fluid_bound(instance)
    assert proof is not None
    bank.record(instance, [proof])
    bank.record(instance, [Bound(100.0, "critical_path", "combinatorial")])
    with sqlite3.connect(bank.path) as db:
        db.execute("update bounds set value = 50 where proof = 'exact-lp'")
    assert [check.holds for check in bank.recheck(instance)] == [False, False]
    with sqlite3.connect(bank.path) as db:
        db.execute("update bounds set value = 6, certificate = replace(certificate, '[\"', '[\"9') where proof = 'exact-lp'")
    forged = next(check for check in bank.recheck(instance) if check.proof == "exact-lp")
    assert forged.proven is not None
    assert forged.proven <= 6


def test_an_lp_bound_without_duals_is_solved_again(bank: BoundBank, instance: Instance) -> None:
    bank.record(instance, [Bound(6.0, "fluid_lp", "exact-lp")])
    assert [(check.proven, check.holds) for check in bank.recheck(instance)] == [(6.0, True)]


def test_an_incumbent_is_kept_with_its_schedule_and_verified_again(bank: BoundBank, instance: Instance) -> None:
    assert bank.incumbent(instance) is None
    assert bank.observe(instance, in_a_row(instance, 1))
    assert not bank.observe(instance, in_a_row(instance, 2))
    kept = bank.incumbent(instance)
    assert kept is not None
    assert kept[0] == verify(instance, kept[1]).objective == 8
    assert [(check.proof, check.proven, check.holds) for check in bank.recheck(instance)] == [("schedule", 8.0, True)]
    # A forged value, better than its schedule, does not hold.
    with sqlite3.connect(bank.path) as db:
        db.execute("update incumbents set value = 7")
    assert [check.holds for check in bank.recheck(instance)] == [False]


def test_an_infeasible_schedule_is_refused(bank: BoundBank, instance: Instance) -> None:
    with pytest.raises(ParameterError, match="only feasible schedules are banked; capacity: pool m0"):
        bank.observe(instance, Schedule.of(instance, instance.pairs.mode[instance.pairs.ptr[:-1]], np.zeros(3)))
    assert bank.incumbent(instance) is None


def test_a_later_level_is_banked_under_its_limits(bank: BoundBank, instance: Instance) -> None:
    # 8 ticks of makespan leave the flow time one bound, 7 another: their limits tell them apart.
    flow = instance.with_objective(Objective.weighted({"flow_time_s": 1.0}))
    bank.record(flow.with_limits(makespan=8.0), [Bound(12.0, "a", "solver")])
    assert bank.bounds(flow) == bank.bounds(flow.with_limits(makespan=7.0)) == []
    assert bank.bounds(flow.with_limits(makespan=8.0)) == [Bound(12.0, "a", "solver")]


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(FileFormatError, match="text is no bank of bounds"):
        BoundBank(tmp_path / "text")
    with sqlite3.connect(tmp_path / "old") as db:
        db.execute("create table bounds (physics text)")
    with pytest.raises(FileFormatError, match="old is a bank of version 0; this optbench reads 2"):
        BoundBank(tmp_path / "old")


def test_processes_share_a_bank(bank: BoundBank, instance: Instance) -> None:
    code = (
        "import sys; from tests.bounds.shops import shop; from optbench.bounds.bank import BoundBank\n"
        "from optbench.model.result import Bound\n"
        "instance = shop([[[(0, d), (1, d)]] for d in (3, 4, 5)], [1, 1])\n"
        "bank = BoundBank(sys.argv[1])\n"
        "for i in range(40): bank.record(instance, [Bound(i / 10 + float(sys.argv[2]), 'p' + sys.argv[2], 'solver')])\n"
    )
    root = Path(__file__).parents[2]
    workers = [subprocess.Popen([sys.executable, "-c", code, str(bank.path), str(k)], cwd=root) for k in range(3)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    # The highest of all: 39 / 10 + 2.
    assert bank.bounds(instance) == [Bound(5.9, "p2", "solver")]
