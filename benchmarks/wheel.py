"""The wheel in an empty environment and an empty folder, with nothing else: ``python
benchmarks/wheel.py``.

Builds the wheel, installs it with the pinned versions into a new environment, and in an empty
folder lists, solves, makes a workspace, and shadows a built-in solver. Writes
docs/results/wheel.md; exits 1 when a step does not do what it must.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "wheel.md"
MINE = '''"""A solver that takes the place of the built-in one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import optbench as ob


class Mine(ob.Solver):
    """Mine instead: one task after the other."""

    supports: ClassVar[frozenset[str]] = frozenset({"modes", "pooled", "energy"})

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        first = instance.pairs.ptr[:-1]
        length = instance.pairs.duration[first]
        return ob.Schedule.of(instance, instance.pairs.mode[first], np.cumsum(length) - length)
'''


@dataclass(frozen=True)
class Step:
    """One command, where it runs, and what its JSON must say."""

    words: tuple[str, ...]
    folder: Path
    meets: Callable[[Any], str]


def build_wheel(out: Path) -> Path:
    """The wheel of this tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def steps(folder: Path) -> Iterator[Step]:
    """What a newcomer does, in an empty folder."""
    yield Step(("list", "--json"), folder, lambda found: built_in(found))
    solve = ("solve", "jobshop:jobs=6,machines=4", "--time-limit", "20s", "--json")
    for solver in ("cpsat", "highs"):
        yield Step((*solve, "-s", solver), folder, lambda found: solved(found))
    week = ("convert", "geo_dc:days=0.01", "week.json", "--json")
    yield Step(week, folder, lambda found: f"{found['tasks']} tasks")
    yield Step(("init", "lab", "--json"), folder, lambda found: f"{len(found['files'])} files")
    lab = folder / "lab"
    yield Step(
        ("solve", "two_pools:jobs=5", "-s", "list_rule", "--json"), lab, lambda found: solved(found)
    )
    yield Step(
        ("new", "solver", "my_rule", "--json"), lab, lambda found: f"{len(found['files'])} files"
    )
    (lab / "solvers" / "cpsat.py").write_text(MINE)
    yield Step(("list", "solvers", "--json"), lab, lambda found: shadowed(found, lab))
    yield Step(
        ("solve", "two_pools:jobs=5", "-s", "cpsat", "--json"),
        lab,
        lambda found: solved(found, "feasible"),
    )
    yield Step(("list", "solvers", "--json"), folder, lambda found: built_in(found))


def built_in(entries: list[dict[str, Any]]) -> str:
    """Every plug-in is available, comes from the installed package, and hides nothing."""
    outside = [
        entry["path"] for entry in entries if f"optbench{os.sep}plugins" not in entry["path"]
    ]
    broken = [(entry["name"], entry["reason"]) for entry in entries if not entry["available"]]
    hiding = [entry["name"] for entry in entries if entry["shadows"]]
    if outside or broken or hiding or not entries:
        raise SystemExit(f"not only what is built in: {outside} {broken} {hiding}")
    return ", ".join(entry["name"] for entry in entries)


def solved(result: dict[str, Any], status: str | None = None) -> str:
    """Verified, bounded, and of the status that was asked for."""
    if (
        not result["verified"]
        or result["bound"] is None
        or (status is not None and result["status"] != status)
    ):
        raise SystemExit(f"not solved: {result}")
    return (
        f"{result['status']}, objective {result['objective']:g}, bound {result['bound']:.6g}, "
        f"gap {result['gap']:.2%}"
    )


def shadowed(entries: list[dict[str, Any]], lab: Path) -> str:
    """The user's cpsat is in force and says which file it hides."""
    (mine,) = (entry for entry in entries if entry["name"] == "cpsat")
    if Path(mine["path"]) != (lab / "solvers" / "cpsat.py").resolve() or not mine["shadows"]:
        raise SystemExit(f"not shadowed: {mine}")
    return (
        f"cpsat: “{mine['summary']}” from the workspace, hiding "
        f"…/{'/'.join(Path(mine['shadows']).parts[-4:])}"
    )


def try_out(command: Path, folder: Path, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Run every step; the commands and what they said."""
    rows = []
    for step in steps(folder):
        done = subprocess.run(
            [str(command), *step.words],
            cwd=step.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode != 0:
            raise SystemExit(
                f"optbench {' '.join(step.words)} ended with "
                f"{done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        rows.append((f"optbench {' '.join(step.words)}", step.meets(json.loads(done.stdout))))
    return rows


def clean_environment() -> dict[str, str]:
    """Without anything that could point back to this tree."""
    dropped = ("PYTHON", "OPTBENCH", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def install(wheel: Path, venv: Path) -> None:
    """As a user would: torch first, then the wheel, both pinned."""
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "-c",
        str(ROOT / "constraints.txt"),
    ]
    for wanted in ("torch==2.13.0", str(wheel)):
        subprocess.run([*pip, wanted], check=True, env=clean_environment())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        wheel = build_wheel(top)
        began = time.perf_counter()
        install(wheel, top / "venv")
        installed_s = time.perf_counter() - began
        (top / "empty").mkdir()
        rows = try_out(top / "venv" / "bin" / "optbench", top / "empty", clean_environment())
        size = f"{wheel.stat().st_size / 1e3:.0f} kB"
        lines = [
            "# The wheel, alone",
            "",
            f"`python benchmarks/wheel.py`: `{wheel.name}` ({size}), Python",
            f"{platform.python_version()}, {platform.system()}. Installed with `constraints.txt`",
            f"into an empty environment in {installed_s:.0f} s, tried in an empty folder, no",
            "variable that points to the source tree. `lab/solvers/cpsat.py` is written by the",
            "script.",
            "",
            "| command | outcome |",
            "| --- | --- |",
            *(f"| `{command}` | {outcome} |" for command, outcome in rows),
            "",
        ]
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text("\n".join(lines))
        print("\n".join(lines))


if __name__ == "__main__":
    main()
