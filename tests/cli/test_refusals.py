"""Bad usage and bad input: exit code 2 and one message that names the value and what is allowed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, environment

REFUSED = {
    "solv x": "unknown verb 'solv'; did you mean 'solve'?",
    "solve jobshop --sovler cpsat": "unknown option '--sovler'; did you mean '--solver'?",
    "solve jobshop -s cpst": "unknown solver 'cpst'; did you mean 'cpsat'?",
    "solve jobshp": "unknown problem 'jobshp'; did you mean 'jobshop'?",
    "solve jobshop:job=3": "did you mean 'jobs'?",
    "solve jobshop:jobs=three": "jobs is 'three'",
    "solve nofile.json": "no such file: 'nofile.json'",
    "solve": "required: TARGET",
    "solve jobshop extra": "unexpected argument 'extra'",
    "solve jobshop jobs=3": "'jobs=3'; parameters are written NAME:key=value",
    "solve jobshop --time-limit 10x": "--time-limit: '10x' is no duration; write 10s",
    "solve jobshop --time-limit -3s": "'-3s' is not a positive duration",
    "solve jobshop --time-limit nan": "'nan' is not a positive duration",
    "solve jobshop --threads 0": (
        "--threads: '0' is not allowed; it takes a whole number of at least 1"
    ),
    "solve jobshop --seed 1.5": "--seed: '1.5' is not allowed",
    "solve jobshop -p time": "'time' is not a parameter; write key=value",
    "solve jobshop -p a=1 -p a=2": "-p a is given twice: '1' and '2'",
    "solve jobshop -p no_such=1": "'no_such'",
    "solve jobshop -o no/such/folder/s.json": "there is no folder 'no/such/folder'",
    "solve jobshop --html .": "--html '.' is a folder",
    "solve jobshop --warm-start none.json": "none.json: no such file",
    "solve jobshop --json -o -": "--json and a file on stdout (-) would mix",
    "bound jobshop --method atuo": "unknown bounding method 'atuo'; did you mean 'auto'?",
    "convert jobshop out.json --to optbnch": (
        "--to 'optbnch' is no format; did you mean 'optbench'?"
    ),
    "list solvrs": "unknown kind 'solvrs'; did you mean 'solvers'?",
    "schema shedule": "did you mean 'schedule'?",
    "data pth jobshop": "unknown action 'pth'; did you mean 'path'?",
    "data list jobsop": "unknown data set 'jobsop'; did you mean 'jobshop'?",
    "new solver Bad-Name": "'Bad-Name' cannot name a solver",
    "new solver my_rule": "run `optbench init` first",
}


@pytest.mark.parametrize("words", REFUSED)
def test_one_message_that_helps(cli: Cli, words: str) -> None:
    done = cli(*words.split())
    assert done.code == 2
    assert done.out == "" or "--json" in words
    assert REFUSED[words] in done.err
    assert done.err.startswith("optbench: ") and done.err.count("\n") == 1


def test_machines_get_the_same_message_as_json(cli: Cli) -> None:
    for words in (
        ["solve", "jobshp", "--json"],
        ["solv", "--json"],
        ["solve", "jobshop", "--oops", "--json"],
    ):
        done = cli(*words)
        assert done.code == 2
        assert done.err == f"optbench: {done.json['error']}\n"


def test_a_damaged_file_is_named_with_its_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"format": "optbench-instance", "version": 1, "tasks": {')
    done = cli("solve", "cut.json")
    assert done.code == 2 and "cut.json: line 1, column" in done.err
    (tmp_path / "empty.txt").write_text("")
    assert "the file is empty" in cli("bound", "empty.txt").err
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    assert cli("convert", "binary.txt", "out.json").code == 2


def test_a_schedule_of_another_instance_is_refused(cli: Cli, shop_file: Path) -> None:
    cli("solve", shop_file, "-o", "s.json", "-q")
    done = cli("verify", "jobshop:jobs=3,machines=3", "s.json")
    assert done.code == 2 and "a schedule of another instance" in done.err
    swapped = cli("verify", "s.json", shop_file)
    assert swapped.code == 2 and "s.json" in swapped.err


def test_an_unwritable_file_is_refused_before_the_work(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = cli("solve", "jobshop:jobs=30,machines=30", "--time-limit", "1h", "-o", "file/s.json")
    assert done.code == 2 and "there is no folder 'file'" in done.err


def test_a_result_is_saved_elsewhere_when_its_file_cannot_be_written_any_more(
    cli: Cli, shop_file: Path
) -> None:
    done = cli("solve", shop_file, "-q", "--json", "-o", "/dev/full")
    assert done.code == 0
    rescue = Path(done.json["schedule_file"])
    assert f"saved as {rescue} instead" in done.err
    assert json.loads(rescue.read_text())["format"] == "optbench-schedule"
    rescue.unlink()


def test_a_solver_that_crashes_is_an_internal_error(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    path = tmp_path / "solvers" / "crash.py"
    path.write_text(
        '"""Crashes."""\nimport optbench as ob\nfrom optbench.model.features import FEATURES\n\n\n'
        'class Crash(ob.Solver):\n    """Crashes."""\n\n    supports = frozenset(FEATURES)\n\n'
        '    def solve(self, instance, run):\n        raise ZeroDivisionError("by hand")\n'
    )
    done = cli("solve", "two_pools", "-s", "crash")
    assert done.code == 1
    assert "ZeroDivisionError: by hand" in done.out + done.err


def test_a_proven_infeasible_instance_is_exit_code_3(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(
        "import optbench as ob\nfrom optbench.model.files.instance_json import write_instance\n"
        "m = ob.Model('too late')\np = m.pool('p')\n"
        "for i in range(2):\n    m.task(modes=[m.mode(p, time_s=3)], deadline_s=5)\n"
        "m.minimize(makespan_s=1.0)\nwrite_instance(m.build(), 'i.json')\n"
    )
    subprocess.run([COMMAND[0], "make.py"], cwd=tmp_path, check=True, timeout=60)
    # Two tasks of 3 s on one device cannot both end by 5.
    done = cli("solve", "i.json", "--json", "-o", "s.json")
    assert done.code == 3
    assert (done.json["status"], done.json["objective"], done.json["schedule_file"]) == (
        "infeasible",
        None,
        None,
    )
    assert (done.json["infeasibility"]["source"], done.json["infeasibility"]["proof"]) == (
        "jackson:p",
        "combinatorial",
    )
    assert (
        "infeasible: proven by jackson:p (combinatorial): tasks that must end by 5"
        in cli("solve", "i.json").out
    )


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    command = f"{COMMAND[0]} -m {COMMAND[2]} schema instance | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_behind_stdout_is_told(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=tmp_path,
            timeout=60,
        )
    assert (
        done.returncode == 2 and "No space left" in done.stderr and "Traceback" not in done.stderr
    )


def test_the_traceback_is_one_variable_away(tmp_path: Path) -> None:
    command = [*COMMAND, "verify", "jobshop", "nothing.json"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OPTBENCH_DEBUG": "1"},
        timeout=60,
    )
    assert done.returncode == 2 and "nothing.json: no such file" in done.stderr
