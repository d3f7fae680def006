"""While it runs: progress, Ctrl-C, start-up, and the examples of the help."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest

import optbench as ob
from optbench.cli.main import VERBS
from tests.cli.command_server import CommandServer, FinishedCommand
from tests.cli.conftest import COMMAND, Cli, environment
from tests.sample_files.sample_records import sacct_text
from tests.shapes.milp.test_milp_texts import MPS

HEAVY = {
    "numpy",
    "scipy",
    "rich",
    "ortools",
    "highspy",
    "pyomo",
    "torch",
    "numba",
    "mlflow",
    "optuna",
    "gymnasium",
    "networkx",
}
# Large enough that CP-SAT is at work for minutes, small enough that a first schedule is there at
# once.
LONG = "jobshop:jobs=20,machines=15"
PATIENCE_S = 60.0


def interrupted(
    tmp_path: Path, *options: str, sign: signal.Signals = signal.SIGINT
) -> tuple[int, str, str]:
    """Solve something long and interrupt it once a first incumbent was announced."""
    command = [*COMMAND, "solve", LONG, "--time-limit", "10m", *options]
    errors = tmp_path / "stderr"
    with errors.open("w") as err:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=err, text=True, cwd=tmp_path, env=environment()
        )
        give_up = time.monotonic() + PATIENCE_S
        while not re.search(r"incumbent \d", errors.read_text()) and time.monotonic() < give_up:
            time.sleep(0.1)
        process.send_signal(sign)
        out, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, errors.read_text()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_the_incumbent(tmp_path: Path, cli: Cli, sign: signal.Signals) -> None:
    code, out, err = interrupted(tmp_path, "-o", "s.json", sign=sign)
    assert code == 130
    assert "the best schedule so far is kept" in err and "Traceback" not in err
    assert "interrupted after" in out and "schedule written to s.json" in out
    assert cli("verify", LONG, "s.json").code == 0


def test_progress_is_one_line_per_improvement_on_stderr(cli: Cli) -> None:
    done = cli("solve", "gpu_dag:tasks=8", "--time-limit", "10s")
    lines = done.err.splitlines()
    assert lines and all(
        re.match(r" *[\d.]+ s  incumbent .+ bound .+ gap ", line) for line in lines
    )
    assert "incumbent" not in done.out
    assert cli("solve", "gpu_dag:tasks=8", "--quiet").err == ""


def test_progress_is_one_refreshed_line_on_a_terminal(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ.update({"TERM": "xterm", "COLUMNS": "140"})
        # Its first schedule takes no time, however busy the machine is.
        os.execv(COMMAND[0], [*COMMAND, "solve", LONG, "-s", "random_rules", "--time-limit", "1s"])
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    text = shown.decode()
    assert "incumbent" in text and "of 1.00 s" in text
    assert "\x1b[2K" in text  # the line is erased and written anew
    assert "stopped at the time limit" in text


def test_help_starts_without_anything_heavy() -> None:
    script = (
        "import sys\nfrom optbench.cli.main import main\ntry:\n    main(['solve', "
        "'--help'])\nexcept SystemExit:\n    pass\n"
        "print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})), "
        "file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stderr.split()) & HEAVY == set()


def test_without_words_the_help_is_shown(cli: Cli) -> None:
    done = cli()
    assert done.code == 2
    assert all(re.search(rf"^ +{name}  ", done.out, re.MULTILINE) for name in VERBS)


def test_help_is_a_word_too(cli: Cli) -> None:
    assert cli("help", "bound").out == cli("bound", "--help").out
    assert cli("help").code == 0


def test_a_terminal_without_unicode_loses_no_result(real_cli: Cli) -> None:
    done = real_cli("solve", "jobshop:jobs=3,machines=3", "-q", PYTHONIOENCODING="ascii")
    assert done.code == 0 and "makespan" in done.out


def test_version(cli: Cli) -> None:
    assert cli("--version").out.strip() == f"optbench {ob.__version__}"


# In the workspace of the examples, in place of the built-in studies that take half a minute and
# more.
SHORT_STUDIES = {
    "quickstart": (
        'problems = ["jobshop:jobs=3,machines=3"]\nsolvers = ["cpsat", '
        '"fcfs"]\nbound_limit = "1s"\n'
    ),
    "gpu_dag_tune": 'problems = ["gpu_dag:tasks=5"]\nsolvers = ["fixed_dvfs"]\n[tune]\nsolver = '
    '"fixed_dvfs"\n'
    'seeds = [1000, 1001]\nminimize = ["objective"]\nspace = { load = { float = [0.0, 1.0] } }\n',
}
# Verbs with tests of their own: one runs a study, the other until Ctrl-C.
ALONE = ("quickstart", "ui")
SHELL_CHARACTERS = "|&;<>()$`*?~#\n"
EXAMPLE_TIMEOUT_S = 120


@dataclass(frozen=True)
class Reader:
    """Somebody who types the examples of the help in a folder of his own."""

    server: CommandServer
    folder: Path
    environment: dict[str, str]

    def type(self, line: str) -> FinishedCommand:
        """Run a line; one that only a shell understands runs in a shell."""
        words = shlex.split(line)
        if words[0] == "optbench" and not set(SHELL_CHARACTERS) & set(line):
            return self.server.run(words[1:], self.folder, self.environment, EXAMPLE_TIMEOUT_S)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=EXAMPLE_TIMEOUT_S,
            check=False,
        )
        return FinishedCommand(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def reader(
    tmp_path: Path, data_dir: Path, command_server: CommandServer, empty_database: Path
) -> Reader:
    """With all that the examples take for granted."""
    binary = tmp_path / "bin" / "optbench"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec "{COMMAND[0]}" -m {COMMAND[2]} "$@"\n')
    binary.chmod(0o755)
    path = f"{binary.parent}:{os.environ['PATH']}"
    env = {
        **environment(),
        "PATH": path,
        "OPTBENCH_DATA": str(data_dir),
        "BROWSER": "true",
    }  # which opens nothing
    (tmp_path / "optbench.toml").touch()
    for folder in ("studies", "mlflow"):
        (tmp_path / folder).mkdir()
    for study, text in SHORT_STUDIES.items():
        (tmp_path / "studies" / f"{study}.toml").write_text(text)
    shutil.copy(empty_database, tmp_path / "mlflow" / "mlflow.db")
    # What a reader brings along: a programme, a log, a profile and a bank of bounds.
    (tmp_path / "model.mps").write_text(MPS)
    (tmp_path / "march.sacct").write_text(sacct_text())
    (tmp_path / "mine.json").write_bytes(
        (resources.files("optbench.power") / "data" / "L4.json").read_bytes()
    )
    found = Reader(command_server, tmp_path, env)
    banked = "optbench solve jobshop:jobs=3,machines=3 -s fcfs --time-limit 5s --bank"
    assert found.type(banked).code == 0
    return found


@pytest.mark.first
def test_the_first_example_of_each_help_works(reader: Reader) -> None:
    assert failed_examples(reader, most=1) == {}


@pytest.mark.slow
def test_the_examples_of_the_help_work(reader: Reader) -> None:
    assert failed_examples(reader, most=None) == {}


def failed_examples(reader: Reader, most: int | None) -> dict[str, str]:
    """Run the examples of each verb as they stand, one after the other in one folder, as a reader
    would; return those that fail.
    """
    failed = {}
    for name in ("convert", *(verb for verb in VERBS if verb not in ("convert", *ALONE))):
        for example in VERBS[name].module.EXAMPLES[:most]:
            if "--backend ray" in example:  # these need a cluster: tests/execute/ray_cluster
                continue
            done = reader.type(example)
            if done.code != 0:
                failed[example] = done.err
    return failed
