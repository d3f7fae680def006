"""Gates and claims over studies made by hand, and the ledger on the command line over one that was
run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from optbench.cli.main import main
from optbench.evaluate.claim_ledger import ClaimResult, is_as_good
from optbench.evaluate.gates import GateResult
from optbench.evaluate.judging import evaluate, judge_claims
from optbench.evaluate.rows import table
from optbench.study.cells import BOUNDS
from optbench.study.declared import Claim
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan
from tests.evaluate.studies_by_hand import failure, records_of, study_of

OURS = {
    ("new", "x-0"): (60.0, None),
    ("new", "x-1"): (70.0, None),
    ("old", "x-0"): (100.0, None),
    ("old", "x-1"): (100.0, None),
}
BOUNDED = {(BOUNDS, "x-0"): (None, 50.0), (BOUNDS, "x-1"): (None, 60.0)}


def judged(
    results: Any = None, **study: Any
) -> tuple[tuple[GateResult, ...], tuple[ClaimResult, ...]]:
    plan = study_of(["new", "old"], ["x"], seeds=(0, 1), **study)
    return evaluate(plan, records_of(plan, {**OURS, **BOUNDED, **(results or {})}))


def claim(paper: float, ours: str = "rel(objective, new, old)", **fields: Any) -> Claim:
    return Claim("new against old", "table 3", paper, ours, **fields)


def one(the_claim: Claim, results: Any = None) -> ClaimResult:
    return judged(results, claims=(the_claim,))[1][0]


def test_a_claim_with_its_interval_its_bound_and_its_gap() -> None:
    """Ours: (-0.4 - 0.3) / 2. At the bounds: (-0.5 - 0.4) / 2. Gaps: 10/60, 10/70, 50/100 and
    40/100.
    """
    found = one(claim(-0.34))
    assert found.verdict == "holds"
    assert found.ours == pytest.approx(-0.35)
    assert (
        found.interval is not None
        and -0.4 <= found.interval[0] <= -0.35 <= found.interval[1] <= -0.3
    )
    assert found.bound == pytest.approx(-0.45)
    assert found.mean_gap == pytest.approx((1 / 6 + 1 / 7 + 0.5 + 0.4) / 4)
    assert found.solvers == ("new", "old")


@pytest.mark.parametrize(
    ("paper", "better", "tolerance", "held"),
    [
        (-0.34, "lower", 0.1, True),
        (-0.38, "lower", 0.1, True),  # -0.38 + 0.038 = -0.342, and ours is -0.35
        (-0.40, "lower", 0.1, False),  # -0.36
        (-0.40, "lower", 0.125, True),  # -0.35 itself
        (-0.40, "higher", 0.0, True),
        (-0.30, "higher", 0.1, False),  # -0.33
        (-0.34, "equal", 0.1, True),
        (-0.30, "equal", 0.1, False),
        (0.0, "lower", 0.0, True),
        (0.0, "higher", 0.35, True),  # of nothing the tolerance is absolute
        (0.0, "equal", 0.3, False),
    ],
)
def test_it_holds_when_ours_is_as_good_within_the_tolerance(
    paper: float, better: Any, tolerance: float, held: bool
) -> None:
    the_claim = claim(paper, better=better, tolerance=tolerance)
    assert is_as_good(the_claim, -0.35) is held
    assert one(the_claim).verdict == ("holds" if held else "not reproduced")


def test_what_has_no_data_is_neither_reproduced_nor_not() -> None:
    found = one(claim(-0.34), {("new", "x-1"): lambda cell: failure(cell, "memory_limit")})
    assert (found.verdict, found.ours, found.interval, found.bound) == ("no data", None, None, None)
    assert found.why == ("1 of 2 cells of new have no value: x-1, seed 1, failed: memory_limit",)
    assert not found.holds
    assert (
        one(claim(-0.34), {("old", "x-0"): None}).why[0].endswith("x-0, seed 0, has not been run")
    )


def test_a_bound_of_its_own_is_taken_as_it_stands() -> None:
    found = one(claim(-0.34, bound="rel(bound, new, bound, old) - 1"))
    assert found.bound == -1.0
    assert one(claim(-0.34, better="higher")).bound is None  # the certified bounds are from below


def test_an_interval_on_both_sides_of_the_figure_is_said() -> None:
    assert "contains the threshold" in one(claim(-0.35, tolerance=0.0)).remark
    assert one(claim(-0.1)).remark == ""


def test_gates_hold_fail_or_cannot_be_told() -> None:
    near, sure = "study_gap <= 20%", "failed(new) == 0 and failed(old) == 0"
    gates, _ = judged(gates={"new": near, "old": near, "sure": sure})
    assert [gate.verdict for gate in gates] == ["holds", "fails", "holds"]
    assert [part.value for part in gates[1].parts] == [pytest.approx(0.45)]
    assert [(each.cell.label, each.cell.instance) for each in gates[1].worst] == [("old", "x-0")]
    told = gates[1].to_dict()
    assert told["worst"][0]["command"].startswith("optbench solve x -s old")
    assert told["values"] == {"study_gap": pytest.approx(0.45)}
    gates, _ = judged({("new", "x-1"): None}, gates={"new": "study_gap <= 20%"})
    assert gates[0].verdict == "unknown" and not gates[0].holds
    assert gates[0].worst[0].why == "has not been run"


def test_instances_that_could_not_be_made_leave_gates_unknown() -> None:
    plan = study_of(["new", "old"], ["x"], seeds=(0, 1), gates={"new": "gap <= 0.9"})
    lost = replace(plan, made=(*plan.made, MadeInstance("y", 0, "y", None, error="no such file")))
    gates, _ = evaluate(lost, records_of(lost, {**OURS, **BOUNDED}))
    assert gates[0].verdict == "unknown"
    assert gates[0].why == ("1 of 3 instances could not be made: y, seed 0: no such file",)


def test_a_study_without_expectations_has_none() -> None:
    assert judged() == ((), ())


def test_a_gate_names_which_gap_it_means() -> None:
    """A rule has no bounds of its own: its gap counts as 1, whatever the instance's bounding
    proves.
    """
    gates, _ = judged(
        {("new", "x-0"): (60.0, 60.0), ("new", "x-1"): (70.0, 70.0)},
        gates={"new": "gap == 0", "old": "gap == 1"},
    )
    assert [gate.verdict for gate in gates] == ["holds", "holds"]


def test_a_gate_reads_the_gap_that_the_tables_show() -> None:
    plan = study_of(["new", "old"], ["x"], seeds=(0, 1), gates={"old": "study_gap <= 0"})
    records = records_of(plan, {**OURS, **BOUNDED, ("new", "x-0"): (60.0, 60.0)})
    (gate,), _ = evaluate(plan, records)
    shown = [row.counted_study_gap for row in table(plan, records).rows if row.cell.label == "old"]
    assert gate.parts[0].value == pytest.approx(sum(shown) / 2)


STUDY = """
question = "Does drawing help?"
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["fcfs", "random_rules"]
seeds = 2
work_limit = 20
bound_limit = "1s"
{rest}
"""
CLAIM = """
[[claims]]
text = "Drawing is no worse"
source = "by hand"
paper = {paper}
ours = "rel(objective, random_rules, fcfs)"
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a study that was run."""
    folder = tmp_path_factory.mktemp("claims")
    (folder / "optbench.toml").touch()
    (folder / "studies").mkdir()
    (folder / "studies" / "draws.toml").write_text(STUDY.format(rest=CLAIM.format(paper=0.0)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPTBENCH_WORKSPACE", str(folder))
        patch.chdir(folder)
        assert main(["run", "studies/draws.toml", "--no-track", "--quiet"]) == 0
    return folder


@pytest.fixture
def here(ran: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(ran))
    monkeypatch.chdir(ran)
    (ran / "studies" / "draws.toml").write_text(STUDY.format(rest=CLAIM.format(paper=0.0)))
    return ran


def test_the_ledger_of_a_study_that_was_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "studies/draws.toml"]) == 0
    out = capsys.readouterr().out
    assert "Drawing is no worse" in out and "holds" in out and "1 of 1 claims hold" in out
    assert main(["claims"]) == 0


def test_claims_of_the_file_as_it_is_now(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Claims decide no cell: they may be written after the run. A figure that cannot be reached is
    not reproduced.
    """
    (here / "studies" / "draws.toml").write_text(STUDY.format(rest=CLAIM.format(paper=-0.99)))
    assert main(["claims", "draws", "--json"]) == 6
    assert '"verdict": "not reproduced"' in capsys.readouterr().out


def test_the_ledger_outlives_the_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "studies" / "draws.toml").unlink()
    assert main(["claims", "draws"]) == 0
    out = capsys.readouterr().out
    assert "as it was last run" in out and "cannot be read" in out and "1 of 1 claims hold" in out


def test_other_cells_than_were_run_are_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = STUDY.format(rest=CLAIM.format(paper=0.0)).replace("seeds = 2", "seeds = 3")
    (here / "studies" / "draws.toml").write_text(changed)
    assert main(["claims", "draws"]) == 0
    assert "has changed since the last run (seeds)" in capsys.readouterr().out


def test_what_was_never_run_says_how(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "studies" / "other.toml").write_text(STUDY.format(rest=""))
    assert main(["claims", "studies/other.toml"]) == 2
    assert "optbench run studies/other.toml" in capsys.readouterr().err
    assert main(["claims", "drwas"]) == 2
    assert "did you mean 'draws'?" in capsys.readouterr().err
    (here / "studies" / "other.toml").unlink()


def test_a_study_without_claims_has_an_empty_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPTBENCH_WORKSPACE", str(tmp_path))
    assert main(["claims"]) == 0
    assert "no study has been run here" in capsys.readouterr().out


def test_judging_claims_alone_is_judging_them() -> None:
    plan: Plan = study_of(["new", "old"], ["x"], seeds=(0, 1), claims=(claim(-0.34),))
    records = records_of(plan, {**OURS, **BOUNDED})
    assert judge_claims(plan, records) == evaluate(plan, records)[1]
