"""The bank: only improves, tells contradictions, is shared by processes, and proves again."""

from __future__ import annotations

import base64
import json
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.bank.bank_entries import Origin
from optbench.bounds.bank.bound_bank import BoundBank
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.lp.certificates import certificate_text
from optbench.bounds.proving import labelled, prove
from optbench.errors import ContradictionError, FileFormatError, ParameterError
from optbench.model.features import FEATURES
from optbench.model.files.schedule_json import schedule_to_dict
from optbench.model.files.strict_json import render
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
    """3 and 4 on machine 0, 5 on machine 1, the second after ``wait`` idle ticks: 3 + wait + 4 in
    all.
    """
    mode = [instance.pairs.mode[instance.pairs.ptr[i] + (i == 2)] for i in range(3)]
    return Schedule.of(instance, mode, [0, 3 + wait, 0])


def test_a_bank_only_improves(bank: BoundBank, instance: Instance) -> None:
    assert bank.record(instance, [Bound(4.0, "a", "solver")])
    assert bank.record(instance, [Bound(5.0, "b", "solver")])
    assert not bank.record(instance, [Bound(4.5, "c", "solver")])
    assert bank.bounds(instance) == [Bound(5.0, "b", "solver")]


def test_instances_objectives_and_levels_are_kept_apart(
    bank: BoundBank, instance: Instance
) -> None:
    bank.record(instance, [Bound(5.0, "a", "solver")])
    assert bank.bounds(instance.with_objective(Objective.weighted({"makespan": 2.0}))) == []
    assert bank.bounds(instance.with_limits(makespan=9.0)) == []


def test_a_bound_above_a_verified_objective_is_a_contradiction(
    bank: BoundBank, instance: Instance
) -> None:
    bank.observe(instance, in_a_row(instance, 2))
    with pytest.raises(
        ContradictionError, match=r"bound 10\.0 from wrong exceeds the verified objective 9\.0"
    ):
        bank.record(instance, [Bound(10.0, "wrong", "solver")])
    assert bank.bounds(instance) == []
    bank.record(instance, [Bound(9.0, "right", "solver")])
    with pytest.raises(
        ContradictionError, match=r"bound 9\.0 from right exceeds the verified objective 8\.0"
    ):
        bank.observe(instance, in_a_row(instance, 1))


def test_proofs_are_repeated_and_a_solvers_word_is_not(bank: BoundBank, instance: Instance) -> None:
    bank.improve(instance, time_limit_s=0.4)
    bank.record(instance, [Bound(6.0, "cpsat", "solver")])
    checks = {check.proof: check for check in bank.recheck(instance)}
    assert {proof: check.holds for proof, check in checks.items()} == {
        "exact-lp": True,
        "combinatorial": True,
        "solver": None,
    }
    assert checks["exact-lp"].proven == 6


def test_what_is_sealed_is_taken_out_unproved_and_rechecked_in_full(
    bank: BoundBank, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.record(instance, lower_bounds(instance, "fluid"))
    proofs: list[bool] = []

    def proved(of: Instance, certificate: str, *, again: bool) -> Bound:
        proofs.append(again)
        return prove(of, certificate, again=again)

    monkeypatch.setattr("optbench.bounds.bank.bound_bank.prove", proved)
    assert [found.value for found in bank.bounds(instance)] == [6.0]
    assert proofs == []
    (check,) = bank.recheck(instance)
    assert check.holds and check.why == "proved again"
    assert proofs == [True]


def test_a_destructive_bound_is_proved_again(bank: BoundBank) -> None:
    ft06 = shop(FT06, [1] * 6)
    found = [bound for bound in combinatorial_bounds(ft06, 30.0) if bound.source == "destructive"]
    assert [bound.value for bound in found] == [55]
    bank.record(ft06, found)
    assert [(check.proven, check.holds) for check in bank.recheck(ft06)] == [(55, True)]


def test_a_certificate_of_a_higher_makespan_is_not_refuted_again(bank: BoundBank) -> None:
    ft06 = shop(FT06, [1] * 6)  # its optimum is 55
    forged = certificate_text("combinatorial", source="destructive", makespan=56)
    bank.record(ft06, [Bound(56.0, "destructive", "combinatorial", certificate=forged)])
    assert bank.bounds(ft06) == [Bound(56.0, "destructive", "solver")]


def test_a_changed_value_is_not_taken_out(bank: BoundBank, instance: Instance) -> None:
    bank.record(instance, lower_bounds(instance, "fluid"))
    with sqlite3.connect(bank.path) as db:
        db.execute("update bounds set value = 8, source = 'mine', seal = seal")
    assert [(b.value, b.source, b.proof) for b in bank.bounds(instance)] == [
        (6.0, "fluid_lp", "exact-lp")
    ]
    assert bank.notices == [
        "shop: exact-lp 8.0 from mine changed: its certificate proves 6.0 (fluid_lp, exact-lp)"
    ]
    # What was put right is sealed again: nothing is said twice.
    bank.notices.clear()
    assert [b.value for b in bank.bounds(instance)] == [6.0]
    assert bank.notices == []


class InARow(ob.Solver):
    """8, where 7 is the optimum."""

    supports = frozenset(FEATURES)

    def solve(self, instance: Instance, run: ob.Run) -> Schedule:
        return in_a_row(instance, 1)


def test_a_changed_bank_makes_no_rule_optimal(tmp_path: Path, instance: Instance) -> None:
    path = tmp_path / "bounds.sqlite"
    honest = ob.solve(instance, InARow(), bank=path)
    assert (honest.status, honest.objective) == ("feasible", 8.0)
    with sqlite3.connect(path) as db:
        db.execute("update bounds set value = ?", (honest.objective,))
        db.execute(
            "insert into bounds select physics, objective, 'solver', ?, 'word', null, code, "
            "null, null, seal from bounds "
            "limit 1",
            (honest.objective,),
        )
    again = ob.solve(instance, InARow(), bank=path)
    assert (again.status, again.objective, again.bound) == ("feasible", 8.0, honest.bound)
    assert "solver 8.0 from word dropped: it was changed" in again.info["bank"]
    assert "changed: its certificate proves 7.0" in again.info["bank"]


def test_forged_duals_prove_what_they_prove(bank: BoundBank, instance: Instance) -> None:
    (bound,) = lower_bounds(instance, "fluid")
    assert bound.certificate is not None
    fields = json.loads(bound.certificate)
    words = zlib.decompress(base64.b64decode(fields["duals"])).split(b",")
    more = base64.b64encode(zlib.compress(b",".join(b"9" + word for word in words))).decode()
    for change in (
        {"duals": more},
        {"duals": fields["duals"][:-8]},
        {"shift": -1},
        {"rows": "0" * 32},
        {"method": "stream_lp"},
    ):
        forged = Bound(7.0, "fluid_lp", "exact-lp", certificate=json.dumps(fields | change))
        assert labelled(instance, forged).proof == "solver"
        bank.record(instance, [forged])
    assert all(found.value <= 6 or found.proof == "solver" for found in bank.bounds(instance))


def test_a_certified_label_without_a_certificate_is_a_solvers(
    bank: BoundBank, instance: Instance
) -> None:
    bank.record(
        instance, [Bound(6.0, "fluid_lp", "exact-lp"), Bound(6.5, "critical_path", "combinatorial")]
    )
    assert bank.bounds(instance) == [Bound(6.5, "critical_path", "solver")]


def test_a_solvers_bound_counts_only_while_nothing_has_changed(
    bank: BoundBank, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = Origin("optbench.plugins.solvers.cpsat", '{"seed": 0}')
    bank.record(instance, [Bound(6.0, "cpsat", "solver")], origin)
    assert bank.bounds(instance) == [Bound(6.0, "cpsat", "solver")]
    monkeypatch.setattr("optbench.bounds.bank.bound_bank.solver_code", lambda module: "another")
    assert bank.bounds(instance) == []
    assert "are of another version than when it was proved" in bank.notices[0]
    monkeypatch.undo()
    bank.record(instance, [Bound(6.0, "cpsat", "solver")], origin)
    with sqlite3.connect(bank.path) as db:
        db.execute("update bounds set settings = '{}'")
    assert bank.bounds(instance) == []
    assert "a solver's bound cannot be proved again" in bank.notices[1]


def test_a_bank_from_another_machine_proves_again(
    bank: BoundBank, instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.record(instance, [*lower_bounds(instance, "fluid"), Bound(6.0, "cpsat", "solver")])
    bank.observe(instance, in_a_row(instance, 1))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    with BoundBank(bank.path) as moved:
        assert [found.proof for found in moved.bounds(instance)] == ["exact-lp"]
        assert moved.incumbent(instance) is not None
        assert len(moved.notices) == 1


def test_the_whole_bank_is_checked_again(bank: BoundBank, instance: Instance) -> None:
    other = instance.with_objective(Objective.weighted({"makespan": 2.0}))
    for each in (instance, other):
        bank.record(each, lower_bounds(each, "fluid"))
    assert [check.outcome for check in bank.recheck_all()] == ["holds", "holds"]
    with sqlite3.connect(bank.path) as db:
        db.execute(
            (
                "update instances set content = (select content from instances where objective = "
                "?) "
                "where objective != ?"
            ),
            (other.objective.hash,) * 2,
        )
    gone = [check for check in bank.recheck_all() if check.outcome == "dropped"]
    assert [check.why for check in gone] == ["its instance is not the one that it was proved for"]
    assert [check.outcome for check in bank.recheck_all()] == ["holds"]


def test_an_incumbent_is_kept_with_its_schedule_and_verified_again(
    bank: BoundBank, instance: Instance
) -> None:
    assert bank.incumbent(instance) is None
    assert bank.observe(instance, in_a_row(instance, 1))
    assert not bank.observe(instance, in_a_row(instance, 2))
    kept = bank.incumbent(instance)
    assert kept is not None
    assert kept[0] == verify(instance, kept[1]).objective == 8
    assert [(check.proof, check.proven, check.holds) for check in bank.recheck(instance)] == [
        ("schedule", 8.0, True)
    ]
    # A forged value, better than its schedule, does not hold.
    with sqlite3.connect(bank.path) as db:
        db.execute("update incumbents set value = 7")
    kept = bank.incumbent(instance)
    assert kept is not None and kept[0] == 8
    assert bank.notices == ["shop: schedule 7.0 from schedule changed: the verifier finds 8.0"]


def test_a_schedule_changed_to_an_infeasible_one_is_dropped(
    bank: BoundBank, instance: Instance
) -> None:
    bank.observe(instance, in_a_row(instance, 1))
    first = instance.pairs.mode[instance.pairs.ptr[:-1]]
    together = render(schedule_to_dict(Schedule.of(instance, first, np.zeros(3)), instance))
    with sqlite3.connect(bank.path) as db:
        db.execute("update incumbents set schedule = ?", (together,))
    assert bank.incumbent(instance) is None
    (notice,) = bank.notices
    assert "dropped: it is not feasible: capacity: pool m0" in notice
    # Nothing is left of it.
    assert bank.incumbent(instance) is None and len(bank.notices) == 1


def test_an_infeasible_schedule_is_refused(bank: BoundBank, instance: Instance) -> None:
    with pytest.raises(
        ParameterError, match="only feasible schedules are recorded; capacity: pool m0"
    ):
        bank.observe(
            instance,
            Schedule.of(instance, instance.pairs.mode[instance.pairs.ptr[:-1]], np.zeros(3)),
        )
    assert bank.incumbent(instance) is None


def test_a_later_level_is_banked_under_its_limits(bank: BoundBank, instance: Instance) -> None:
    # 8 ticks of makespan leave the flow time one bound, 7 another: their limits tell them apart.
    flow = instance.with_objective(Objective.weighted({"flow_time_s": 1.0}))
    bank.record(flow.with_limits(makespan=8.0), [Bound(12.0, "a", "solver")])
    assert bank.bounds(flow) == bank.bounds(flow.with_limits(makespan=7.0)) == []
    assert bank.bounds(flow.with_limits(makespan=8.0)) == [Bound(12.0, "a", "solver")]


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(FileFormatError, match="text is not a bank of bounds"):
        BoundBank(tmp_path / "text")
    with sqlite3.connect(tmp_path / "old") as db:
        db.execute("create table bounds (physics text)")
    with pytest.raises(FileFormatError, match="old is a bank of version 0; this optbench reads 3"):
        BoundBank(tmp_path / "old")


def test_a_bank_without_certificates_is_emptied_and_says_so(
    tmp_path: Path, instance: Instance
) -> None:
    with sqlite3.connect(tmp_path / "old") as db:
        db.execute(
            "create table bounds (physics text, objective text, proof text, value real, source "
            "text, certificate text)"
        )
        db.execute(
            "create table incumbents (physics text, objective text, value real, schedule text)"
        )
        db.execute(
            "insert into bounds values (?, ?, 'exact-lp', 99.0, 'fluid_lp', null)",
            (instance.physics_hash, instance.objective.hash),
        )
        db.execute("pragma user_version = 2")
    with BoundBank(tmp_path / "old") as bank:
        assert (
            "written by an older optbench, whose bounds have no certificates: 1 bounds and 0 "
            "schedules"
        ) in bank.notices[0]
        assert bank.bounds(instance) == []
    with BoundBank(tmp_path / "old") as bank:
        assert bank.notices == []


def test_processes_share_a_bank(bank: BoundBank, instance: Instance) -> None:
    code = (
        "import sys; from tests.bounds.shops import shop; from optbench.bounds.bank.bound_bank "
        "import BoundBank\n"
        "from optbench.model.result import Bound\n"
        "instance = shop([[[(0, d), (1, d)]] for d in (3, 4, 5)], [1, 1])\n"
        "bank = BoundBank(sys.argv[1])\n"
        "for i in range(40): bank.record(instance, [Bound(i / 10 + float(sys.argv[2]), 'p' + "
        "sys.argv[2], 'solver')])\n"
    )
    root = Path(__file__).parents[2]
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(bank.path), str(k)], cwd=root)
        for k in range(3)
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    # The highest of all: 39 / 10 + 2.
    assert bank.bounds(instance) == [Bound(5.9, "p2", "solver")]
