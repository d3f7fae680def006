"""Where a model and ``verify`` disagree, every command that has a decision stops at the row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.sample_files.disagreeing_shapes import write_disagreeing

# What verify forgets is a row of the model; what the model forgets is a constraint of verify.
ROW = "verify accepts a decision that the model forbids: row memory[0] is"
CONSTRAINT = "the model allows a decision that verify refuses: GPU "


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write_disagreeing(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("solve", "careless:services=3", "-s", "stack"), ROW),
        (("bound", "careless:services=3", "--method", "stack"), ROW),
        (("solve", "roomy:services=3"), CONSTRAINT),
        (("solve", "roomy:services=3", "-s", "cpsat"), CONSTRAINT),
        (("bound", "roomy:services=3", "--method", "highs"), CONSTRAINT),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_the_run_stops_at_the_row(
    cli: Cli, workspace: Path, words: tuple[str, ...], message: str
) -> None:
    done = cli(*words, "--json")
    assert done.code == 1 and message in done.json["error"]
    assert done.json["error"].startswith("contradiction: packing-3-0: ")
    assert "memory" in done.json["error"]


def test_a_start_that_the_model_forbids(cli: Cli, workspace: Path) -> None:
    assert cli("solve", "careless:services=3", "-o", "best.json", "-q").code == 0
    document = json.loads((workspace / "best.json").read_text())
    document["decision"]["gpu"] = [0, 0, 0]
    (workspace / "start.json").write_text(json.dumps(document))
    done = cli("solve", "careless:services=3", "--warm-start", "start.json")
    assert done.code == 1 and ROW in done.err


def test_what_they_agree_on_is_solved(cli: Cli, workspace: Path) -> None:
    """The model of the careless shape is right, and so is what HiGHS finds on it."""
    both = [
        cli("solve", f"{name}:services=3", "--json", "-q").json for name in ("careless", "packing")
    ]
    assert both[0]["status"] == both[1]["status"] == "optimal"
    assert both[0]["objective"] == both[1]["objective"]


def test_a_decision_that_the_model_lacks_breaks_verify(cli: Cli, workspace: Path) -> None:
    """No solver of the roomy shape may return what its verify refuses."""
    done = cli("solve", "roomy:services=3", "-s", "stack", "--json", "-q")
    assert done.code == 4 and not done.json["verified"]
    assert any(text.startswith("memory") for text in done.json["violations"])
