"""What becomes of each entry of a bank: kept, proved again, changed or dropped, and why."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from optbench.bounds.auto import lower_bounds
from optbench.bounds.bank.bank_entries import Origin, Recheck, bank_key
from optbench.bounds.bank.bound_bank import BoundBank
from optbench.bounds.proving import prove
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.result import Bound
from optbench.model.schedule import Schedule
from tests.bounds.shops import shop


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[BoundBank]:
    with BoundBank(tmp_path / "one" / "two" / "bounds.sqlite") as opened:
        yield opened


@pytest.fixture
def instance() -> Instance:
    """Work 3 + 4 + 5 on two machines of equal speed: 6."""
    return shop([[[(0, d), (1, d)]] for d in (3, 4, 5)], [1, 1])


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Filled with every proof that is repeated: whether in full."""
    found: list[bool] = []

    def proved(of: Instance, certificate: str, *, again: bool = False) -> Bound:
        found.append(again)
        return prove(of, certificate, again=again)

    monkeypatch.setattr("optbench.bounds.bank.bound_bank.prove", proved)
    return found


def change(bank: BoundBank, assignment: str, where: str = "1") -> None:
    with sqlite3.connect(bank.path) as db:
        db.execute(f"update bounds set {assignment} where {where}")


def test_a_bank_counts_what_is_better(bank: BoundBank, instance: Instance) -> None:
    certified = lower_bounds(instance, "auto", 0.4)
    kinds = {bound.proof for bound in certified}
    assert kinds == {"combinatorial", "exact-lp"}
    best = [
        max((b for b in certified if b.proof == kind), key=lambda b: b.value)
        for kind in sorted(kinds)
    ]
    assert bank.record(instance, [*best, Bound(5.5, "cpsat", "solver")]) == 3
    assert bank.record(instance, [*best, Bound(5.7, "cpsat", "solver")]) == 1
    assert bank.record(instance, []) == 0
    assert [bound.value for bound in bank.bounds(instance)] == [6.0, 6.0, 5.7]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf")])
def test_only_finite_bounds_are_banked(bank: BoundBank, instance: Instance, value: float) -> None:
    with pytest.raises(
        ParameterError, match=f"bound {value!r} from cpsat on 'shop' must be finite"
    ):
        bank.record(instance, [Bound(5.0, "cpsat", "solver"), Bound(value, "cpsat", "solver")])
    assert bank.bounds(instance) == []


def test_a_contradiction_leaves_nothing_behind(bank: BoundBank, instance: Instance) -> None:
    mode = [instance.pairs.mode[instance.pairs.ptr[i] + (i == 2)] for i in range(3)]
    bank.observe(instance, Schedule.of(instance, mode, [0, 3, 0]))
    with pytest.raises(Exception, match=r"exceeds the verified objective 7\.0"):
        bank.record(instance, [Bound(5.0, "right", "solver"), Bound(8.0, "wrong", "solver")])
    assert bank.bounds(instance) == []


def test_a_forged_incumbent_refuses_no_bound(bank: BoundBank, instance: Instance) -> None:
    mode = [instance.pairs.mode[instance.pairs.ptr[i] + (i == 2)] for i in range(3)]
    bank.observe(instance, Schedule.of(instance, mode, [0, 3, 0]))
    with sqlite3.connect(bank.path) as db:
        db.execute("update incumbents set value = 5")
    assert bank.record(instance, [Bound(6.5, "right", "solver")]) == 1
    assert bank.notices == ["shop: schedule 5.0 from schedule changed: the verifier finds 7.0"]


def test_what_older_code_proved_is_proved_again_once(
    bank: BoundBank, instance: Instance, proofs: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr("optbench.bounds.bank.bound_bank.proof_code", lambda: "older")
        bank.record(instance, lower_bounds(instance, "fluid"))
        proofs.clear()
        assert [b.value for b in bank.bounds(instance)] == [6.0] and proofs == []
    assert [b.value for b in bank.bounds(instance)] == [6.0] and proofs == [False]
    assert [b.value for b in bank.bounds(instance)] == [6.0] and proofs == [False]
    assert bank.notices == []


def test_an_entry_without_a_seal_that_fits_is_proved_again(
    bank: BoundBank, instance: Instance, proofs: list[bool]
) -> None:
    bank.record(instance, lower_bounds(instance, "fluid"))
    change(bank, "seal = null")
    proofs.clear()
    assert [b.value for b in bank.bounds(instance)] == [6.0] and proofs == [False]
    assert [b.value for b in bank.bounds(instance)] == [6.0] and proofs == [False]


@pytest.mark.parametrize("certificate", ["null", "''"])
def test_an_entry_without_a_certificate_is_dropped(
    bank: BoundBank, instance: Instance, certificate: str
) -> None:
    bank.record(instance, lower_bounds(instance, "fluid"))
    change(bank, f"certificate = {certificate}")
    assert bank.bounds(instance) == []
    assert bank.notices == ["shop: exact-lp 6.0 from fluid_lp dropped: it has no certificate"]
    assert bank.bounds(instance) == [] and len(bank.notices) == 1


def test_an_entry_whose_certificate_cannot_be_read_is_dropped(
    bank: BoundBank, instance: Instance
) -> None:
    bank.record(instance, lower_bounds(instance, "fluid"))
    change(bank, "certificate = 'words'")
    assert bank.bounds(instance) == []
    assert bank.notices[0].startswith("shop: exact-lp 6.0 from fluid_lp dropped: ")
    assert [check.outcome for check in bank.recheck(instance)] == []


def test_a_solvers_bound_stays_as_it_is_when_it_is_taken_out(
    bank: BoundBank, instance: Instance
) -> None:
    origin = Origin("optbench.plugins.solvers.cpsat", "{}")
    bank.record(instance, [Bound(5.5, "cpsat", "solver")], origin)
    for _ in range(3):
        assert bank.bounds(instance) == [Bound(5.5, "cpsat", "solver")]
        (check,) = bank.recheck(instance)
        assert (check.outcome, check.proven, check.holds) == ("holds", None, None)
        assert (
            check.why
            == "unchanged; a solver's bound (optbench.plugins.solvers.cpsat) cannot be repeated"
        )
    assert bank.notices == []


def test_another_value_and_source_are_changed_to_what_is_proved(
    bank: BoundBank, instance: Instance
) -> None:
    bank.record(instance, lower_bounds(instance, "fluid"))
    change(bank, "source = 'mine'")
    (check,) = bank.recheck(instance)
    assert (check.outcome, check.proven, check.holds) == ("changed", 6.0, False)
    assert check.why == "its certificate proves 6.0 (fluid_lp, exact-lp)"
    assert bank.bounds(instance)[0].source == "fluid_lp" and bank.notices == []


def test_the_first_of_several_levels_is_kept_with_its_instance(
    bank: BoundBank, instance: Instance
) -> None:
    levels = instance.with_objective(Objective.in_order("makespan", "flow_time_s"))
    bank.record(levels, lower_bounds(levels, "fluid"))
    assert [check.outcome for check in bank.recheck_all()] == ["holds"]
    assert [bound.value for bound in bank.bounds(instance)] == [6.0]
    assert bank.bounds(instance.with_objective(levels.objective.level(1))) == []


def test_entries_of_an_instance_that_is_gone_are_dropped_by_kind(
    bank: BoundBank, instance: Instance
) -> None:
    bank.record(instance, [*lower_bounds(instance, "auto", 0.4), Bound(5.5, "cpsat", "solver")])
    with sqlite3.connect(bank.path) as db:
        db.execute("delete from instances")
    dropped = list(bank.recheck_all())
    assert {check.proof for check in dropped} == {"combinatorial", "exact-lp", "solver"}
    assert {(check.instance, check.outcome, check.why) for check in dropped} == {
        ("unknown", "dropped", "its instance is not in the bank")
    }
    assert all(check.value == 6.0 for check in dropped if check.proof != "solver")
    assert list(bank.recheck_all()) == [] and bank.bounds(instance) == []


def test_an_incumbent_that_cannot_be_read_is_dropped(bank: BoundBank, instance: Instance) -> None:
    mode = [instance.pairs.mode[instance.pairs.ptr[i] + (i == 2)] for i in range(3)]
    bank.observe(instance, Schedule.of(instance, mode, [0, 3, 0]))
    with sqlite3.connect(bank.path) as db:
        db.execute("update incumbents set schedule = 'words'")
    (check,) = bank.recheck(instance)
    assert (check.outcome, check.proven) == ("dropped", None) and check.why.startswith(
        "it cannot be read ("
    )
    assert bank.incumbent(instance) is None and bank.recheck(instance) == []


def test_a_changed_incumbent_is_sealed_again_with_what_it_is(
    bank: BoundBank, instance: Instance
) -> None:
    mode = [instance.pairs.mode[instance.pairs.ptr[i] + (i == 2)] for i in range(3)]
    bank.observe(instance, Schedule.of(instance, mode, [0, 3, 0]))
    with sqlite3.connect(bank.path) as db:
        db.execute("update incumbents set value = 5")
    (check,) = bank.recheck(instance)
    assert (check.outcome, check.value, check.proven, check.holds) == ("changed", 5.0, 7.0, False)
    assert len(bank.notices) == 1
    kept = bank.incumbent(instance)
    assert kept is not None and kept[0] == 7.0 and len(bank.notices) == 1
    # A worse schedule does not replace it, an equal one neither.
    assert not bank.observe(instance, Schedule.of(instance, mode, [0, 3, 0]))


def test_improving_keeps_what_is_better(bank: BoundBank, instance: Instance) -> None:
    bank.record(instance, [Bound(6.5, "cpsat", "solver")])
    found = bank.improve(instance, 0.4)
    assert [bound.value for bound in found] == [6.5, 6.0, 6.0]
    assert found[0].source == "cpsat"


def test_an_entry_that_another_process_has_taken_away_is_not_brought_back(
    bank: BoundBank, instance: Instance
) -> None:
    (bound,) = lower_bounds(instance, "fluid")
    bank.record(instance, [bound])
    key = bank_key(instance)
    (entry,) = bank._entries(key)
    with sqlite3.connect(bank.path) as db:
        db.execute("delete from bounds")
    bank._settle(key, entry, bound, Recheck("shop", 6.0, "fluid_lp", "exact-lp", 6.0, "changed"))
    assert bank.bounds(instance) == []
