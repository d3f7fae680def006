"""What a plug-in does while it is imported reaches neither the verifier of the runner nor its
store.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import optbench as ob
from optbench.sandbox import landlock
from optbench.store.run_store import Store
from tests.cli.conftest import COMMAND, environment

# Makes the judge believe everything, wherever it is imported, and the store begin with a line of
# its own.
FORGES = '''"""Everything at once."""

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import optbench as ob
import optbench.plugins.schedule_shape as shapes
import optbench.run.judge as judge
from optbench.model.verify import verify

from .fcfs import Fcfs


def believe(instance, schedule):
    true = verify(instance, schedule)
    return replace(true, violations=(), objectives=(0.001,) * instance.objective.num_levels)


judge.verify = shapes.verify = believe
store = Path({root!r}) / ".optbench" / "results.jsonl"
with contextlib.suppress(OSError):
    if not store.read_text():
        store.write_text("forged")


@dataclass(frozen=True)
class Forges(Fcfs):
    """All tasks begin at once."""

    def solve(self, instance, run):
        schedule = super().solve(instance, run)
        return replace(schedule, start=schedule.start * 0, end=schedule.end - schedule.start)
'''
STUDY = """
question = "Who is believed?"
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["fcfs", "forges"]
seeds = 2
bound_limit = "1s"
"""


def start(root: Path, source: str) -> subprocess.CompletedProcess[str]:
    for name in ("studies", "solvers"):
        (root / name).mkdir()
    (root / "optbench.toml").touch()
    (root / "solvers" / "forges.py").write_text(source)
    (root / "studies" / "who.toml").write_text(STUDY)
    Store(root / ".optbench").make()
    words = [*COMMAND, "run", "who", "--no-track", "-q"]
    return subprocess.run(
        words, cwd=root, env=environment(), capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.skipif(
    not landlock.landlock_version(), reason="without Landlock an import may write where it likes"
)
def test_an_import_that_patches_the_verifier_is_not_believed(tmp_path: Path) -> None:
    done = start(tmp_path, FORGES.replace("{root!r}", repr(str(tmp_path))))
    assert done.returncode == 5, done.stderr
    text = (tmp_path / ".optbench" / "results.jsonl").read_text()
    assert "forged" not in text and text.endswith("\n")
    records = [
        record
        for record in Store(tmp_path / ".optbench").records().values()
        if record.cell.kind == "solve"
    ]
    assert sorted(record.cell.label for record in records) == ["fcfs", "fcfs", "forges", "forges"]
    for record in records:
        if record.cell.label == "fcfs":
            honest = ob.solve(record.cell.target, "fcfs", seed=record.cell.seed, bound=False)
            assert record.verified and record.objective == honest.objective
        else:
            assert record.reason is not None and record.reason.kind in ("infeasible", "nonsense")


def test_a_plug_in_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    done = start(tmp_path, "raise OSError('no such licence')")
    assert done.returncode == 2
    assert (
        "who.toml" in done.stderr
        and "no such licence" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_reading_that_leaves_nothing_is_one_message(tmp_path: Path) -> None:
    """It survives its trial, and ends the process that reads."""
    ends = "import os, sys\nif 'read_in_child' in sys.orig_argv[3]:\n    os._exit(0)\n"
    done = start(tmp_path, ends + FORGES.replace("{root!r}", repr(str(tmp_path))))
    assert done.returncode == 2 and "could not be read with its plug-ins" in done.stderr


def test_json_comes_back_as_the_study(tmp_path: Path) -> None:
    """Keys and configuration are those of a study read here, or a resumed study would begin
    anew.
    """
    source = FORGES.replace("judge.verify = shapes.verify = believe\n", "")
    start(tmp_path, source.replace("{root!r}", repr(str(tmp_path / "nowhere"))))
    program = (
        "import json, sys\nfrom optbench.study.study_file import load_study\n"
        "from optbench.run.read_in_subprocess import load_study_in_subprocess\n"
        "there, here = load_study_in_subprocess('who'), load_study('who')\n"
        "print(json.dumps([there == here, there.config_hash == here.config_hash, "
        "sorted(there.sources)]))"
    )
    words = [COMMAND[0], "-c", program]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(done.stdout) == [True, True, ["jobshop:jobs=3,machines=3"]], done.stderr
