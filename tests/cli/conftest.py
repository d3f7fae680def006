"""Commands in processes of their own, in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_server import READ_EARLY, CommandServer

COMMAND = (sys.executable, "-m", "optbench.cli.main")
TIMEOUT_S = 120


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Outcome]


def environment() -> dict[str, str]:
    """This process's, without what would change the output."""
    return {
        k: v
        for k, v in os.environ.items()
        if k not in ("OPTBENCH_WORKSPACE", "OPTBENCH_DEBUG", "FORCE_COLOR", "COLUMNS")
    }


@pytest.fixture
def cli(tmp_path: Path, command_server: CommandServer) -> Cli:
    """Runs ``optbench WORDS`` in ``tmp_path`` and checks that no traceback was printed."""

    def run(*words: str | Path, **variables: str) -> Outcome:
        assert not any(name.startswith(READ_EARLY) for name in variables), "this needs real_cli"
        arguments, variables = [*map(str, words)], {**environment(), **variables}
        done = command_server.run(arguments, tmp_path, variables, TIMEOUT_S)
        assert "Traceback" not in done.err
        return Outcome(done.code, done.out, done.err)

    return run


@pytest.fixture
def real_cli(tmp_path: Path) -> Cli:
    """As ``cli``, from the start of the interpreter on: for what Python reads before the command,
    and for imports.
    """

    def run(*words: str | Path, **variables: str) -> Outcome:
        command = [*COMMAND, *map(str, words)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=tmp_path,
            env={**environment(), **variables},
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def shop_file(cli: Cli, tmp_path: Path) -> Path:
    """Two jobs on two machines; the optimum is 9 by hand.

    Job 0: machine 0 for 3, machine 1 for 2. Job 1: machine 0 for 4, machine 1 for 2. Machine 0
    works 7, and whatever comes last on it still needs 2 on machine 1: no schedule is shorter than
    9. Job 0 first, then job 1: 3, 7, and 7 + 2 = 9.
    """
    path = tmp_path / "shop.txt"
    path.write_text("2 2\n0 3 1 2\n0 4 1 2\n")
    return path
