"""A workspace of hostile solvers, what each must be recorded as, and how to run them next to honest
ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.store.records import Record
from optbench.store.run_store import Store

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "optbench.cli.main")
# In the environment of whatever a study starts, so that what is left of it can be found.
MARK = "OPTBENCH_HOSTILE_RUN"
TIMEOUT_S = 280
PROBLEMS = ("jobshop:jobs=4,machines=3",)
HONEST = ("fcfs", "heft", "random_rules:work_limit=20")


@dataclass(frozen=True)
class Case:
    """A hostile configuration. ``reason`` is one word of REASONS, None where it harms nobody and
    its result counts.

    ``later``: its record is in order, and only those of other solvers show that it lies.
    """

    spec: str
    reason: str | None
    says: str = ""
    later: bool = False

    def is_of(self, record: Record) -> bool:
        """Whether a record is that of this configuration."""
        name, _, words = self.spec.partition(":")
        how = dict(word.split("=") for word in words.split(","))["how"]
        return record.cell.solver == name and record.cell.params.get("how") == how


CASES = (
    Case(
        "loops:how=python,time_limit=500ms,wall_limit=1s", "time_limit", "still at work after 1 s"
    ),
    Case(
        "loops:how=native,time_limit=500ms,wall_limit=1s", "time_limit", "still at work after 1 s"
    ),
    Case("loops:how=deaf,time_limit=500ms,wall_limit=1s", "time_limit", "still at work after 1 s"),
    Case("spawns:how=busy,cpu_limit=1s,wall_limit=30s", "cpu_limit", "1 s are allowed"),
    Case("eats:how=touch,memory_limit=400", "memory_limit", "400 MB are allowed"),
    Case("eats:how=zeros,memory_limit=400", "memory_limit", "400 MB are allowed"),
    Case("eats:how=bytes,memory_limit=400", "memory_limit", "400 MB are allowed"),
    Case("eats:how=shared,memory_limit=400", "memory_limit", "400 MB are allowed"),
    Case("eats:how=child,memory_limit=400", "memory_limit", "400 MB are allowed"),
    Case("dies:how=segfault", "signal", "SIGSEGV"),
    Case("dies:how=abort", "signal", "SIGABRT"),
    Case("dies:how=os_exit", "exited", "exit code 0"),
    Case("dies:how=sys_exit", "exited", "exit code 0"),
    Case("dies:how=interrupt", "crashed", "KeyboardInterrupt"),
    Case("dies:how=recursion", "crashed", "RecursionError"),
    Case("dies:how=exception", "crashed", "an exception like any other"),
    Case("lies:how=nan_objective", "nonsense", "objective"),
    Case("lies:how=nan_times", "nonsense"),
    Case("lies:how=infeasible", "infeasible"),
    Case("lies:how=forged", "infeasible"),
    Case("lies:how=false_bound", "false_bound"),
    Case("lies:how=bound_above_others", "false_bound", "bound 1000000000.0", later=True),
    Case("lies:how=certified", None),
    Case("lies:how=huge", "nonsense", "256 MB are allowed"),
    Case("lies:how=link", "nonsense"),
    Case("lies:how=pipe", "nonsense", "not a regular file"),
    Case("spawns:how=orphan", "left_processes"),
    Case("spawns:how=bomb", "process_limit", "256"),
    Case("spawns:how=threads", "process_limit", "256"),
    Case("spawns:how=thread", None),
    Case("spawns:how=pool,threads=2", None),
    *(
        Case(f"trespasses:how={how},victim={{victim}}", "crashed", "Permission denied")
        for how in ("open", "append", "truncate", "rename", "remove", "symlink")
    ),
    Case("trespasses:how=link,victim={victim}", "crashed", "Invalid cross-device link"),
    Case("trespasses:how=chmod,victim={victim}", "crashed", "the mode has not changed"),
    Case("trespasses:how=kill", "crashed", "Operation not permitted"),
    Case("trespasses:how=close", None),
    Case("trespasses:how=flood", None),
)


@dataclass(frozen=True)
class Study:
    """A workspace in which a study has run."""

    root: Path
    summary: dict[str, Any]
    code: int
    errors: str

    def honest(self) -> list[tuple[str, object]]:
        """Keys and objectives of the honest solvers' cells that did not fail."""
        names = [spec.partition(":")[0] for spec in HONEST]
        found = [record for record in self.records().values() if record.cell.solver in names]
        return sorted(
            (record.key, record.objective)
            for record in found
            if record.verified and not record.failed
        )

    def records(self) -> dict[tuple[str, str], Record]:
        """By label of the solver and name of the instance."""
        found = Store(self.root / ".optbench").records()
        return {(record.cell.label, record.cell.instance): record for record in found.values()}


def make_workspace(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    shutil.copytree(
        HERE / "solvers", root / "solvers", ignore=shutil.ignore_patterns("__pycache__")
    )
    (root / "optbench.toml").touch()
    (root / "studies").mkdir()
    return root


def run(
    root: Path,
    solvers: Sequence[str],
    problems: Sequence[str] = PROBLEMS,
    seeds: int = 1,
    jobs: int = 2,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> Study:
    """Run a study of these solvers in a workspace, as anybody would from the command line; with
    more ``arguments``, such as those of another engine.
    """
    specs = [spec.format(victim=root / ".optbench") for spec in solvers]
    lines = [
        'question = "Who survives whom?"',
        f"problems = {json.dumps([*problems])}",
        f"solvers = {json.dumps(specs)}",
        f"seeds = {seeds}",
        'time_limit = "20s"',
        'bound_limit = "1s"',
    ]
    (root / "studies" / "hostile.toml").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [*COMMAND, "run", "hostile", "-n", str(jobs), "--no-track", "--json", *arguments],
        cwd=root,
        env={**environment, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Study(root, json.loads(done.stdout) if done.stdout else {}, done.returncode, done.stderr)


def marked(root: Path) -> list[str]:
    """Processes of this machine that a study in a workspace has started, by number and command
    line.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment, words = (
                    (entry / "environ").read_bytes(),
                    (entry / "cmdline").read_bytes(),
                )
            except OSError:
                continue
            if f"{MARK}={root}".encode() in environment.split(b"\0"):
                found.append(
                    f"{entry.name}: {words.replace(bytes(1), b' ').decode(errors='replace')[:200]}"
                )
    return found
