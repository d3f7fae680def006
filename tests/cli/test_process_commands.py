"""Commands on a shape that unfolds in time, and on mistakes in its process and in a policy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.sample_files.serving_workspace import FIRST_ROOM, SERVING, TIGHTEST


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for folder in ("problems", "solvers"):
        (tmp_path / folder).mkdir()
    (tmp_path / "problems" / "serving.py").write_text(SERVING)
    (tmp_path / "solvers" / "first_room.py").write_text(FIRST_ROOM)
    (tmp_path / "solvers" / "tightest.py").write_text(TIGHTEST)
    (tmp_path / "optbench.toml").touch()
    return tmp_path


def test_the_commands(cli: Cli, workspace: Path) -> None:
    file = str(workspace / "placement.json")
    for policy in ("first_room", "tightest"):
        solved = cli("solve", "serving", "-s", policy, "-q", "--json", "-o", file)
        played = cli("simulate", "serving", "-s", policy, "--json")
        assert solved.code == played.code == 0
        assert solved.json["objective"] == played.json["objective"]
        assert played.json["verified"] and played.json["actions"] == 20
        assert cli("verify", "serving", file).code == 0
    best = cli("solve", "serving", "-s", "highs", "-q", "--json").json["objective"]
    assert solved.json["objective"] < best <= played.json["bound"] * (1 + 1e-9)
    shown = cli("simulate", "serving", "-s", "tightest")
    assert "everything done after 20 actions" in shown.out
    assert re.search(r"profit_usd +[\d.,]+ +USD\n", shown.out)
    document = json.loads(Path(file).read_text())
    document["decision"]["gpu"] = [0] * 20
    Path(file).write_text(json.dumps(document))
    broken = cli("verify", "serving", file)
    assert broken.code == 4 and "memory" in broken.out


def test_a_policy_is_chosen_where_none_is_named(cli: Cli, workspace: Path) -> None:
    shown = cli("simulate", "serving")
    assert shown.code == 0 and "without -s: first_room\n" in shown.out
    assert cli("simulate", "serving", "--json").json["policy"] == "first_room"
    assert cli("simulate", "gpu_dag:tasks=4", "--json").json["policy"] == "fcfs"
    # What knows the future is not chosen; where nothing else is left, it is named.
    solvers = workspace / "solvers"
    told = FIRST_ROOM.replace("    shapes =", "    clairvoyant = True\n    shapes =")
    (solvers / "first_room.py").write_text(told)
    assert cli("simulate", "serving", "--json").json["policy"] == "tightest"
    (solvers / "tightest.py").unlink()
    none = cli("simulate", "serving")
    assert none.code == 2 and "only clairvoyant ones do: first_room; name one with -s" in none.err
    (solvers / "first_room.py").unlink()
    none = cli("simulate", "serving")
    assert none.code == 2 and "no policy takes 'serving-0', which is a serving; write" in none.err


def test_a_clairvoyant_policy_is_shown_as_such(cli: Cli, workspace: Path) -> None:
    told = TIGHTEST.replace("    shapes =", "    clairvoyant = True\n    shapes =")
    (workspace / "solvers" / "tightest.py").write_text(told)
    assert "clairvoyant" in cli("simulate", "serving", "-s", "tightest").out
    assert cli("simulate", "serving", "-s", "tightest", "--json").json["clairvoyant"] is True
    assert cli("simulate", "serving", "-s", "first_room", "--json").json["clairvoyant"] is False
    assert "clairvoyant" in cli("simulate", "gpu_dag:tasks=4", "-s", "random_rules:k=5").out
    assert "clairvoyant" not in cli("simulate", "gpu_dag:tasks=4", "-s", "fcfs").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "serving", "-s", "fcfs"), "'fcfs' cannot run 'serving-0': it takes a sched"),
        (("simulate", "serving", "-s", "highs"), "'highs' is an offline solver"),
        (("simulate", "jobshop:jobs=2", "-s", "tightest"), "'tightest' takes a serving"),
        (("solve", "jobshop:jobs=2", "-s", "tightest"), "it takes a serving, and this is a schedu"),
        (("simulate", "serving", "-s", "tightest", "--horizon", "5s"), "only schedules of tasks"),
    ],
)
def test_what_does_not_fit_is_refused(
    cli: Cli, workspace: Path, words: tuple[str, ...], message: str
) -> None:
    done = cli(*words)
    assert done.code == 2 and message in done.err


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("return 7", 2, "tightest.py:11: action 1, 7: no such GPU"),
        ("return seen[2]", 1, "tightest.py:12: act() raised IndexError"),
        ("return None if 1 else x", 0, ""),
    ],
)
def test_mistakes_of_a_policy_are_named_by_file_and_line(
    cli: Cli, workspace: Path, line: str, code: int, message: str
) -> None:
    lines = TIGHTEST.splitlines()
    (workspace / "solvers" / "tightest.py").write_text("\n".join([*lines[:11], f"        {line}"]))
    done = cli("simulate", "serving", "-s", "tightest")
    assert done.code == code and message in done.err
    solved = cli("solve", "serving", "-s", "tightest", "-q")
    assert solved.code == code
    assert message.partition(": act() raised ")[0] in solved.err + solved.out


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("len(self.gpu) == len(self.data.gb)", "None", 2, "done is None, a NoneType; make it an"),
        ("        self.done =", "        self.nothing =", 1, "observe() raised IndexError"),
        ("        return Door(data)", "        Door(data)", 2, "process() returned nothing"),
        ("return Door(data)", "return data", 2, "Services has no 'observe'"),
        ("def observe", "def look", 2, "Door has no 'observe'"),
        ("return Placement(tuple(self.gpu))", "return self.gpu", 2, "return a Placement"),
        (
            "return self.data.gb[len(self.gpu)], self.data.free_gb(self.gpu, len(self.gpu))",
            "return self.data",
            2,
            "return what a policy may see",
        ),
    ],
)
def test_mistakes_of_a_process_are_named_by_file_and_line(
    cli: Cli, workspace: Path, old: str, new: str, code: int, message: str
) -> None:
    assert old in SERVING
    (workspace / "problems" / "serving.py").write_text(SERVING.replace(old, new))
    done = cli("simulate", "serving", "-s", "first_room")
    assert done.code == code and message in done.err and "problems/serving.py:" in done.err
