"""Commands on a shape of the workspace's own, and on MPS and LP files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import optbench as ob
from tests.cli.conftest import Cli
from tests.sample_files.packing_workspace import PACKING, write_workspace

KNAPSACK = """Maximize
 profit: 5 x + 4.5 y + 3 z + 0.1 w
Subject To
 weight: 2 x + 3.1 y + z + w <= 7.3
 logic: x - y >= -1
Bounds
 x <= 3
 y <= 2
 w <= 2.5
General
 x y z
End
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_workspace(tmp_path)


def test_a_solver_of_ten_lines_and_two_built_in_ones(cli: Cli, workspace: Path) -> None:
    costs = {}
    for solver in ("highs", "cpsat", "first_fit"):
        done = cli(
            "solve", "packing:services=4", "-s", solver, "--time-limit", "20s", "--json", "-q"
        )
        assert done.code == 0 and done.json["verified"] and done.json["metrics"]["gpus"] >= 1
        costs[solver] = done.json["objective"]
    assert costs["highs"] == costs["cpsat"] <= costs["first_fit"]


def test_bound_and_verify_from_the_command_line(cli: Cli, workspace: Path) -> None:
    found = cli("bound", "packing:services=4", "--json").json
    assert [row["proof"] for row in found["bounds"]] == ["exact-lp"]
    file = workspace / "placement.json"
    best = cli("solve", "packing:services=4", "-q", "--json", "-o", str(file)).json["objective"]
    assert found["best"] <= best
    assert cli("verify", "packing:services=4", str(file)).code == 0
    document = json.loads(file.read_text())
    document["decision"]["gpu"] = [0] * 4
    file.write_text(json.dumps(document))
    broken = cli("verify", "packing:services=4", str(file))
    assert broken.code == 4 and "memory" in broken.out and "GPU 0 holds" in broken.out


def test_what_serves_schedules_alone_refuses_other_shapes(cli: Cli, workspace: Path) -> None:
    done = cli("pareto", "packing:services=4")
    assert done.code == 2 and "a front needs tasks on pools, and 'packing-4-0' is a packing" in (
        done.err
    )
    (workspace / "knapsack.lp").write_text(KNAPSACK)
    instance = ob.load(workspace / "knapsack.lp")
    uses: list[Callable[[], object]] = [
        lambda: ob.environment(instance),
        lambda: ob.play_batch([instance], lambda seen, masks: masks.argmax(axis=1)),
        lambda: ob.explain(instance, None),  # type: ignore[arg-type]
        lambda: ob.path_bound(instance),
    ]
    for use in uses:
        with pytest.raises(ob.UnsupportedError, match="needs tasks on pools"):
            use()


def test_words_of_a_programme_that_is_maximised(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rising.lp").write_text("Maximize\n x\nSubject To\n c: x - y <= 3\nEnd\n")
    done = cli("solve", "rising.lp", "-q")
    assert done.code == 3 and "unbounded: the objective has no maximum" in done.out
    done = cli("bound", "rising.lp")
    assert done.code == 3 and "no bound was found for max objective" in done.out
    done = cli("simulate", "rising.lp")
    assert done.code == 2 and "'rising' has no process that could be simulated" in done.err
    (tmp_path / "knapsack.lp").write_text(KNAPSACK)
    assert "(first solution after" in cli("solve", "knapsack.lp", "-q").out


def test_other_solvers_are_refused(cli: Cli, workspace: Path) -> None:
    done = cli("solve", "packing:services=4", "-s", "fcfs")
    assert done.code == 2 and "it takes a schedule, and this is a packing" in done.err
    assert "These take it: cpsat, first_fit, highs." in done.err


def test_the_solvers_of_a_target(cli: Cli, workspace: Path) -> None:
    listed = cli("list", "packing:services=4", "--json").json
    assert [entry["name"] for entry in listed] == ["cpsat", "first_fit", "highs"]
    assert listed[1]["shapes"] == ["packing"] and listed[2]["shapes"] == ["formulate", "schedule"]
    shown = cli("list", "packing:services=4").out
    assert "4 memory_gb" in shown and "without -s: highs" in shown
    assert cli("solve", "packing:services=4", "--json", "-q").json["solver"] == "highs"
    some = cli("list", "gpu_dag:tasks=4", "-v").out
    assert "without -s: cpsat" in some and "ucb1 refuses it:" in some
    for words, message in (
        (("list", "solvrs"), "unknown kind 'solvrs'; did you mean 'solvers'?"),
        (("list", "packng"), "unknown problem 'packng'; did you mean 'packing'?"),
        (("list", "missing.json"), "no such file: 'missing.json'"),
    ):
        done = cli(*words)
        assert done.code == 2 and message in done.err


@pytest.fixture
def knapsack(tmp_path: Path) -> Path:
    (tmp_path / "knapsack.lp").write_text(KNAPSACK)
    return tmp_path


def test_an_lp_file_is_solved_exactly_and_converted(cli: Cli, knapsack: Path) -> None:
    lp, mps, point = (str(knapsack / f"knapsack{end}") for end in (".lp", ".mps", ".json"))
    assert cli("convert", lp, mps, "--to", "mps").code == 0
    page = str(knapsack / "knapsack.html")
    done = cli("solve", mps, "-q", "--json", "-o", point, "--html", page)
    assert "21.03" in Path(page).read_text() and "minimise" not in Path(page).read_text()
    # Seven of z weigh 7 and pay 21; 0.3 of w pay 0.03: three tenths exactly, not beside it.
    assert done.code == 0 and done.json["objective"] == 21.03 and done.json["status"] == "optimal"
    assert json.loads(Path(point).read_text())["values"] == {"z": 7, "w": 0.3}
    assert cli("verify", lp, point).code == 0
    bound = cli("bound", lp, "--json").json
    assert bound["bounds"][0]["proof"] == "exact-lp" and bound["best"] >= 21.03


def test_a_broken_point_is_refused_by_row(cli: Cli, knapsack: Path) -> None:
    point = knapsack / "point.json"
    point.write_text(
        json.dumps({"format": "optbench-decision", "values": {"x": 3, "y": "1/2", "w": 1}})
    )
    done = cli("verify", str(knapsack / "knapsack.lp"), str(point))
    assert done.code == 4
    assert "weight" in done.out and "column y is 1/2, which is not a whole number" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", "FILE", "-s", "cpsat"), "column 'z' is not bounded on both sides; use -s highs"),
        (("solve", "FILE", "--explain"), "this is a milp, and only schedules have that"),
        (
            ("convert", "FILE", "x.out", "--to", "psplib"),
            "--to: 'psplib' is no format of a milp; known: optbench, mps, lp, milp",
        ),
        (("verify", "FILE", "FILE"), "not JSON"),
    ],
)
def test_what_is_refused(cli: Cli, knapsack: Path, words: tuple[str, ...], message: str) -> None:
    done = cli(*(str(knapsack / "knapsack.lp") if word == "FILE" else word for word in words))
    assert done.code == 2 and message in done.err


def test_a_damaged_file_is_named_with_its_line(cli: Cli, knapsack: Path) -> None:
    (knapsack / "bad.lp").write_text(KNAPSACK.replace("<= 7.3", "<= 7.3 3"))
    done = cli("solve", str(knapsack / "bad.lp"))
    assert done.code == 2 and "bad.lp: line 5: 'logic'; expected" in done.err


@pytest.mark.parametrize("value", ["1e999999999", "9" * 20_000, "nan", "0x10", "1/0", True, None])
def test_a_value_that_is_no_number_is_refused_at_once(
    cli: Cli, knapsack: Path, value: object
) -> None:
    point = knapsack / "point.json"
    point.write_text(json.dumps({"format": "optbench-decision", "values": {"x": value}}))
    done = cli("verify", str(knapsack / "knapsack.lp"), str(point))
    assert done.code == 2 and "point.json: values: 'x'" in done.err


def test_measured_metrics_are_shown_apart(cli: Cli, workspace: Path) -> None:
    method = (
        "    def measure(self, data, decision, machine):\n"
        "        readings = {'load_s': (1.0, 2.0)[: machine.repeats]}\n"
        "        return Measurements(readings, {'tool': 'none'})\n"
    )
    text = PACKING.replace(
        '"gpus": Metric("", "in use")}',
        '"gpus": Metric("", "in use"), "load_s": Metric("s", "to load", measured=True)}',
    )
    text = text.replace("import Findings, Metric", "import Findings, Measurements, Metric")
    text = text.replace("\n\n@dataclass\nclass Problem", f"\n{method}\n\n@dataclass\nclass Problem")
    (workspace / "problems" / "packing.py").write_text(text)
    words = ("solve", "packing:services=3", "--measure", "2", "-q")
    document = cli(*words, "--json").json
    assert list(document)[-1] == "measured" and document["status"] == "optimal"
    assert document["measured"]["metrics"]["load_s"]["readings"] == [1.0, 2.0]
    assert document["measured"]["provenance"]["tool"] == "none"
    assert "load_s" not in document["metrics"]
    assert "95 % interval" in cli(*words).out
    assert "measured" not in cli("solve", "packing:services=3", "--json", "-q").json
    refused = cli("solve", "jobshop:jobs=2,machines=2", "--measure", "2")
    assert refused.code == 2 and "--measure: a schedule has no measured metrics" in refused.err
