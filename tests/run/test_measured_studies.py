"""Studies that measure: readings in records, means in claims and gates, never in the rank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.errors import FileFormatError
from optbench.execute.validate_answer import read_measured
from optbench.store.records import Record
from optbench.study.cells import Cell
from optbench.study.declared import CellBudget
from optbench.study.study_file import load_study
from tests.cli.command_server import CommandServer
from tests.sample_files.shaped_workspace import Workspace

WATCHED = '''"""A number to choose, and a clock that reads it."""

from __future__ import annotations

from dataclasses import dataclass

import optbench as ob
from optbench.shapes import DataShape, Findings, Measurements, Metric


@dataclass(frozen=True)
class Span:
    most: int


@dataclass(frozen=True)
class Chosen:
    number: int


class Watched(DataShape):
    """The least number that is chosen."""

    name = "watched_numbers"
    data, solution = Span, Chosen
    metrics = {
        "number": Metric("", "the number"),
        "clock_s": Metric("s", "by the clock", measured=True),
    }
    minimize = "number"

    def verify(self, data, decision):
        found = Findings()
        found.metrics = {"number": float(decision.number)}
        return found

    def measure(self, data, decision, machine):
        if decision.number > data.most:
            raise ob.UnsupportedError("the clock ends before")
        readings = tuple(decision.number + 0.5 * k for k in range(machine.repeats))
        return Measurements({"clock_s": readings}, {"tool": "arithmetic"})


@dataclass(frozen=True)
class WatchedNumbers(ob.Problem):
    """Numbers up to seven."""

    def instance(self, seed: int = 0):
        return Watched().instance(f"numbers-{seed}", Span(7))
'''
CHOICE = '''"""Chooses a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import optbench as ob


@dataclass
class Choice(ob.Solver):
    """A number that is given."""

    number: int = 1
    shapes: ClassVar = {"watched_numbers"}

    def solve(self, instance, run):
        return instance.shape.solution(self.number)
'''
STUDY = """\
problems = ["watched"]
solvers = ["choice:number=1", "choice:number=4", "choice:number=9"]
time_limit = "10s"
bound_limit = "1s"
measure = 3
[gates]
"choice:number=1" = "measured.clock_s <= 1.5"
[[claims]]
text = "four takes three times as long as one"
source = "these tests"
paper = 3
ours = "ratio(measured.clock_s, 'choice:number=4', 'choice:number=1')"
[[claims]]
text = "nine is not measured"
source = "these tests"
paper = 3
ours = "mean(measured.clock_s, 'choice:number=9')"
[[claims]]
text = "ten is heavy"
source = "these tests"
paper = 10
left_to = "a balance"
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, command_server: CommandServer) -> Workspace:
    root = tmp_path_factory.mktemp("watched")
    files = {
        "optbench.toml": "",
        "problems/watched.py": WATCHED,
        "solvers/choice.py": CHOICE,
        "studies/clock.toml": STUDY,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return Workspace(root, command_server)


def test_a_study_measures_and_claims_name_the_means(workspace: Workspace) -> None:
    """Readings of 1 are 1, 1.5, 2 with mean 1.5; of 4 they are 4, 4.5, 5: three times as long."""
    code, summary, _ = workspace.run("run", "clock", "--no-track")
    # One claim has no data.
    assert (code, summary["failed"]) == (6, 0)
    assert summary["gates"][0]["verdict"] == "holds"
    first, second, third = summary["claims"]
    assert first["ours"] == pytest.approx(3.0) and first["verdict"] == "holds"
    assert second["ours"] is None and "the clock ends before" in str(second)
    assert (third["verdict"], third["ours"]) == ("not checked", None)
    assert third["why"] == ["left to a balance"]
    (record,) = workspace.records("choice:number=1")
    assert record.measured["metrics"]["clock_s"]["readings"] == [1.0, 1.5, 2.0]
    assert record.measured["provenance"]["tool"] == "arithmetic"
    assert "clock_s" not in record.metrics
    (record,) = workspace.records("choice:number=9")
    assert record.verified and record.measured == {"reason": "the clock ends before"}


def test_solvers_are_not_ranked_by_what_is_measured(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'rank = "measured.clock_s"\n' + STUDY
    (workspace.root / "studies" / "ranked.toml").write_text(text)
    code, said, _ = workspace.run("run", "ranked", "--no-track")
    assert code == 2 and "measured.clock_s" in str(said)


def test_a_claim_is_checked_or_left_to_somebody(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    both = 'ours = "mean(objective, metis)"\nleft_to = "others"\n'
    head = 'problems = ["gnn_training"]\nsolvers = ["metis"]\n[[claims]]\ntext = "a"\n'
    for rest, words in ((both, "one of the two"), ("", r"ours is missing")):
        path.write_text(f'{head}source = "b"\npaper = 1\n{rest}')
        with pytest.raises(FileFormatError, match=words):
            load_study(path)


def test_keys_of_cells_without_readings_are_those_of_before() -> None:
    def cell(budget: CellBudget) -> Cell:
        return Cell("solve", "t", "i", "h", 0, "l", "s", {}, "c", 0, budget)

    assert "readings" not in CellBudget().content
    assert cell(CellBudget(readings=3)).key != cell(CellBudget()).key
    plain = Record(cell(CellBudget()), "feasible", "finished").to_dict()
    assert "measured" not in plain and "readings" not in plain["cell"]["budget"]
    again = Cell.from_dict(cell(CellBudget(readings=3)).to_dict())
    assert again.budget.readings == 3


def test_readings_of_another_process_are_checked() -> None:
    good: Any = {"metrics": {"s": {"readings": [1, 2.0], "mean": 9}}, "provenance": {"a": 1}}
    found = read_measured(good)
    # The mean is computed again.
    assert found["metrics"]["s"]["mean"] == 1.5 and found["provenance"] == {"a": 1}
    assert read_measured({}) == {} and read_measured({"reason": "no\x1bne"})["reason"] == "no?ne"
    bad: tuple[Any, ...] = ({"metrics": {"s": {"readings": ["x"]}}}, {"metrics": {"s": 1}}, [])
    for wrong in bad:
        with pytest.raises(FileFormatError):
            read_measured(wrong)


def test_a_study_of_the_families_knows_what_can_be_measured(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'problems = ["gnn_training"]\nsolvers = ["metis"]\nmeasure = 2\n'
        '[gates]\nmetis = "measured.step_s <= 1 and step_s <= 1"\n'
    )
    study = load_study(path)
    assert study.solvers[0].budget.readings == 2 and "measured.step_s" in study.metrics
