"""From a clone to a report, with Python and make and nothing else: ``python
benchmarks/quickstart.py``.

Clones the last commit into an empty folder and runs `make quickstart` there, with an empty home, no
variables but where pip finds packages, and a PATH of Python, make, git, sh and the tools of POSIX:
no uv, no browser, no identity for git. Then the same command once more. Checks what it leaves,
writes docs/results/quickstart.md, exits 1 when something is missing.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "quickstart.md"
# What a bare machine has, beside its Python.
TOOLS = (
    "make",
    "git",
    "sh",
    "grep",
    "rm",
    "touch",
    "basename",
    "cat",
    "ls",
    "mkdir",
    "sed",
    "uname",
    "date",
)
# Lines that make echoes when a step begins. What make echoes when a step begins. The study's
# processes compile what they need and say how long it took.
STEPS = {"install": "sh .ci/install", "study": "/optbench quickstart"}
COMPILED = re.compile(r"compiled in ([0-9.]+) s")
# Seconds that everything after the installation may take.
MOST_AFTER_INSTALLING_S = 60.0
TIMEOUT_S = 1800


@dataclass(frozen=True)
class Done:
    """What a `make quickstart` took, step by step, and said."""

    seconds: dict[str, float]
    code: int
    text: str

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def after_installing_s(self) -> float:
        return self.total_s - self.seconds["install"]


def bare(folder: Path) -> dict[str, str]:
    """The variables of a machine with Python and make."""
    home, tools = folder / "home", folder / "bin"
    home.mkdir()
    tools.mkdir()
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    for name, place in {
        python.name: str(python),
        **{name: shutil.which(name) for name in TOOLS},
    }.items():
        if place is None:
            raise SystemExit(f"{name} is not here, which a bare machine is meant to have")
        (tools / name).symlink_to(os.path.realpath(place))
    packages = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    return {"PATH": str(tools), "HOME": str(home), **packages}


def quickstart(clone: Path, env: dict[str, str]) -> Done:
    """One command; when each step began is read from what make echoes."""
    process = subprocess.Popen(
        [str(Path(env["PATH"]) / "make"), "quickstart"],
        cwd=clone,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    seconds, step, since, lines = dict.fromkeys(STEPS, 0.0), "install", time.monotonic(), []
    for line in _lines(process):
        found = next((name for name, mark in STEPS.items() if mark in line), None)
        if found is not None:
            now = time.monotonic()
            seconds[step] += now - since
            step, since = found, now
        lines.append(line)
        sys.stdout.write(line)
    code = process.wait(timeout=60)
    seconds[step] += time.monotonic() - since
    compile_s = sum(map(float, COMPILED.findall("".join(lines))))
    rest_s = seconds["study"] - compile_s
    return Done(
        {"install": seconds["install"], "compile": compile_s, "study": rest_s}, code, "".join(lines)
    )


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    give_up = time.monotonic() + TIMEOUT_S
    assert process.stdout is not None
    for line in process.stdout:
        if time.monotonic() > give_up:
            process.kill()
            raise SystemExit(f"not done after {TIMEOUT_S} s")
        yield line


def left(clone: Path) -> dict[str, Any]:
    """What there is afterwards: records, the report, runs in MLflow's database."""
    records = [
        json.loads(line)
        for line in (clone / ".optbench" / "results.jsonl").read_text().splitlines()
    ]
    page = clone / ".optbench" / "studies" / "quickstart" / "report.html"
    with sqlite3.connect(clone / "mlflow" / "mlflow.db") as database:
        runs = database.execute("select status, count(*) from runs group by status").fetchall()
        experiments = [
            name
            for (name,) in database.execute(
                "select name from experiments where name like 'optbench/%'"
            )
        ]
    return {
        "solves": sum(record["cell"]["kind"] == "solve" for record in records),
        "bounds": sum(record["cell"]["kind"] == "bound" for record in records),
        "verified": sum(record["verified"] for record in records),
        "failed": Counter(record["reason"]["kind"] for record in records if record["reason"]),
        "report_kb": page.stat().st_size / 1e3 if page.is_file() else 0.0,
        "runs": dict(runs),
        "experiments": experiments,
        "disk_gb": sum(
            f.stat().st_size
            for f in (clone / ".venv").rglob("*")
            if f.is_file() and not f.is_symlink()
        )
        / 1e9,
    }


def complete(first: Done, again: Done, found: dict[str, Any]) -> list[str]:
    """What is not as it must be."""
    wanted = {
        f"`make quickstart` ended with {first.code}": first.code != 0,
        f"the same command again ended with {again.code}": again.code != 0,
        f"failed cells: {found['failed']}": bool(found["failed"]),
        f"{found['verified']} of {found['solves']} solves are verified": found["verified"]
        != found["solves"],
        f"{first.after_installing_s:.0f} s after installing": first.after_installing_s
        > MOST_AFTER_INSTALLING_S,
        "no report": found["report_kb"] == 0,
        f"{found['runs']} runs in MLflow for {found['solves']} solves": sum(found["runs"].values())
        < found["solves"],
        "no experiment optbench/quickstart": found["experiments"] != ["optbench/quickstart"],
    }
    return [words for words, wrong in wanted.items() if wrong]


def page(first: Done, again: Done, found: dict[str, Any], commit: str) -> str:
    shown = first.text[first.text.rindex(STEPS["study"]) :].split("\n", 1)[1].strip("\n")
    rows = [
        f"| {name} | {seconds:.1f} | {again.seconds[name]:.1f} |"
        for name, seconds in first.seconds.items()
    ]
    return "\n".join(
        [
            "# From a clone to a report",
            "",
            "`git clone`, then `make quickstart`: with an empty home, no variables but where pip",
            f"finds packages, and a PATH of Python, {', '.join(TOOLS)}. No uv, no browser, no",
            "identity for git.",
            "",
            "Command: `python benchmarks/quickstart.py`  ",
            f"Machine: {platform.platform()}, {os.cpu_count()} cores, Python",
            f"{platform.python_version()}, commit {commit}",
            "",
            "| step | first time (s) | the same command again (s) |",
            "| --- | ---: | ---: |",
            *rows,
            f"| after installing (at most {MOST_AFTER_INSTALLING_S:.0f}) "
            f"| {first.after_installing_s:.1f} | {again.after_installing_s:.1f} |",
            f"| together | {first.total_s:.1f} | {again.total_s:.1f} |",
            "",
            f"Afterwards: {found['solves']} solves ({found['verified']} verified) and",
            f"{found['bounds']} cells that bound, {sum(found['failed'].values())} failed; a report",
            f"of {found['report_kb']:.0f} kB; runs in MLflow's database:",
            f"{', '.join(f'{count} {status}' for status, count in found['runs'].items())}, in",
            f"{', '.join(found['experiments'])}; an environment of {found['disk_gb']:.1f} GB.",
            "",
            "What it printed after installing:",
            "",
            "```",
            shown,
            "```",
            "",
        ]
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="optbench-quickstart-") as name:
        folder = Path(name)
        env = bare(folder)
        clone = folder / "optbench"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, env=env)
        commit = subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
        first = quickstart(clone, env)
        found = left(clone)
        again = quickstart(clone, env)
        doubled = left(clone)
        text = page(first, again, found, commit.stdout.strip()).replace(str(clone), "~/optbench")
    REPORT.write_text(text)
    print(text)
    wrong = complete(first, again, found)
    if (doubled["runs"], doubled["solves"]) != (found["runs"], found["solves"]):
        wrong.append(
            f"the second time changed the runs in MLflow from {found['runs']} to {doubled['runs']}"
        )
    if wrong:
        raise SystemExit("; ".join(wrong))


if __name__ == "__main__":
    main()
