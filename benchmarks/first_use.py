"""The first use of compiled solvers: a wheel, an empty folder and an empty cache.

    python benchmarks/first_use.py [--before COMMIT] [-o FILE]

Builds the wheel of this source, and of an earlier commit, installs each into a virtual environment
of its own (libraries come from the environment that runs this, by a .pth file that is read after
the wheel), and asks in an empty folder, each time with an empty cache: what does ``optbench solve
TARGET -s SOLVER --time-limit 2s`` take, by its own clock and by that of the wall, and what does it
find, at first and the second time. Then the same from an installation that cannot be written, and
by two processes at once. The run fails where a solver needs more than 2.2 s by its own clock, or
compiles without a word.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "first_use.md"
BEFORE = "7f346a7"
LIMIT_S, MOST_S = 2.0, 2.2
CASES = (
    ("gpu_dag:tasks=12", "random_rules"),
    ("gpu_dag:tasks=12", "lp_guided"),
    ("jobshop:jobs=10,machines=5", "cpsat"),
)
TIMEOUT_S = 900


@dataclass(frozen=True)
class Use:
    """One call of ``optbench solve``: wall and processor seconds of the process, its result, what
    it said on stderr.
    """

    total_s: float
    cpu_s: float
    result: dict[str, Any]
    said: str

    @property
    def own_s(self) -> float:
        return float(self.result["wall_s"])

    @property
    def compile_s(self) -> float:
        return float(self.result.get("compile_s", 0.0))

    @property
    def gap(self) -> str:
        gap = self.result["gap"]
        return "none" if gap is None else f"{100 * gap:.1f} %"


def install(source: Path, folder: Path) -> Path:
    """A virtual environment with the wheel of a source tree; its interpreter."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, venv = folder / "wheels", folder / "venv"
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(source)],
        check=True,
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / "bin" / "python"
    (wheel,) = wheels.glob("*.whl")
    subprocess.run([*pip, "--python", str(python), "install", "--no-deps", str(wheel)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = venv / "lib" / version / "site-packages"
    (own / "zz_libraries.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    found = subprocess.run(
        [str(python), "-c", "import optbench; print(optbench.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    ).stdout
    if not found.startswith(str(own)):
        raise SystemExit(f"{found.strip()} is not the wheel's")
    return python


def begin(
    python: Path, cache: Path, target: str, solver: str, **more: str
) -> tuple[float, subprocess.Popen[str]]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in ("PATH", "OMP_NUM_THREADS", "LANG")
    }
    # The code before kept its files beside the source, and where it cannot be written in numba's
    # folder of the user.
    env = {**kept, "HOME": str(cache), "OPTBENCH_CACHE": str(cache / "optbench"), **more}
    words = [
        str(python),
        "-m",
        "optbench.cli.main",
        "solve",
        target,
        "-s",
        solver,
        "--time-limit",
        f"{LIMIT_S:g}s",
        "--json",
    ]
    folder = tempfile.mkdtemp(dir=cache)
    process = subprocess.Popen(
        words, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    return time.perf_counter(), process


def end(began: float, process: subprocess.Popen[str]) -> Use:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out, err = process.communicate(timeout=TIMEOUT_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {err}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Use(time.perf_counter() - began, cpu_s, json.loads(out), err)


def use(python: Path, cache: Path, target: str, solver: str, **more: str) -> Use:
    return end(*begin(python, cache, target, solver, **more))


def clear(python: Path) -> None:
    """What numba has left beside the source of the code before."""
    for kind in ("*.nbi", "*.nbc"):
        for file in python.parents[1].rglob(kind):
            file.unlink()


def measure(python: Path, folder: Path) -> list[tuple[Use, Use]]:
    """First and second use of each case, each case with an empty cache."""
    out = []
    for number, (target, solver) in enumerate(CASES):
        clear(python)
        cache = folder / f"cache-{number}"
        cache.mkdir()
        out.append((use(python, cache, target, solver), use(python, cache, target, solver)))
        print(f"{solver}: {out[-1][0].total_s:.1f} s, then {out[-1][1].total_s:.1f} s", flush=True)
    return out


def read_only(python: Path, folder: Path) -> tuple[Use, Use, int]:
    """From an installation without a writable folder; how many files appeared in it."""
    site = python.parents[1]
    clear(python)
    shutil.copytree(site, folder / "fixed", symlinks=True)
    fixed = folder / "fixed"
    for path in fixed.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else path.stat().st_mode & 0o555)
    cache = folder / "cache-fixed"
    cache.mkdir()
    count = sum(1 for _ in fixed.rglob("*"))
    moved = fixed / "bin" / "python"
    # Root may write wherever it likes; byte code is not ours.
    first, second = (use(moved, cache, *CASES[0], PYTHONDONTWRITEBYTECODE="1") for _ in range(2))
    return first, second, sum(1 for _ in fixed.rglob("*")) - count


def at_once(python: Path, folder: Path) -> tuple[Use, Use, Use]:
    """Two processes that begin together with an empty cache, and one after them."""
    cache = folder / "cache-both"
    cache.mkdir()
    both = [begin(python, cache, *CASES[0]) for _ in range(2)]
    first, second = (end(*each) for each in both)
    return first, second, use(python, cache, *CASES[0])


def check(uses: list[Use]) -> None:
    for each in uses:
        if each.own_s > MOST_S:
            raise SystemExit(
                f"{each.result['solver']}: {each.own_s:.2f} s by its own clock, with a limit of "
                f"{LIMIT_S:g} s"
            )
        if (each.compile_s > 0) != ("once per machine" in each.said):
            raise SystemExit(
                f"{each.result['solver']}: compiled for {each.compile_s} s, said {each.said!r}"
            )


def line(name: str, one: Use) -> str:
    compiled = f"{one.compile_s:.1f} s" if "compile_s" in one.result else "not said"
    return (
        f"| {name} | {one.own_s:.2f} s | {compiled} | {one.total_s:.1f} s | {one.cpu_s:.1f} s "
        f"| {one.gap} |"
    )


def report(
    before: list[tuple[Use, Use]],
    now: list[tuple[Use, Use]],
    fixed: tuple[Use, Use, int],
    both: list[Use],
) -> str:
    head = [
        "| | own clock | compiling | process | processor | gap |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines = [
        "# First use of compiled solvers",
        "",
        f"`optbench solve TARGET -s SOLVER --time-limit {LIMIT_S:g}s` from a wheel, in an empty",
        "folder with an empty cache.",
        (
            '"Own clock" is the solver\'s, which its limit is for; "process" is the whole command; '
            '"processor" its processor'
        ),
        "time, imports and solving included, which depends less on what else the machine does.",
        "Before, a solver that was short of time did without what was not compiled, and found",
        "less: cpsat has no heuristics and no destructive bounds there.",
        "",
    ]
    for number, (target, solver) in enumerate(CASES):
        lines += [f"## {target}, {solver}", "", *head]
        lines += [
            line(f"{BEFORE}, first", before[number][0]),
            line(f"{BEFORE}, second", before[number][1]),
        ]
        lines += [line("now, first", now[number][0]), line("now, second", now[number][1]), ""]
        old, new = before[number], now[number]
        more = [first.cpu_s - second.cpu_s for first, second in (old, new)]
        lines += [
            f"Processor time of the first use beyond the second: {more[0]:.1f} s before,",
            f"{more[1]:.1f} s now.",
            "",
        ]
    lines += ["## An installation that cannot be written, and two processes at once", "", *head]
    lines += [line("read-only, first", fixed[0]), line("read-only, second", fixed[1])]
    lines += [
        line("one of two", both[0]),
        line("the other", both[1]),
        line("after them", both[2]),
        "",
    ]
    lines += [
        f"Files that appeared in the read-only installation: {fixed[2]}. Of two processes one",
        "waits for the other.",
        "",
    ]
    load = os.getloadavg()[0]
    lines += [
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load",
        f"at the end {load:.1f}: other work ran beside it where that is more than 1.  ",
        f"Command: `{shlex.join(['python', *sys.argv])}`",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--before", default=BEFORE, help=f"the commit to compare with (default {BEFORE})"
    )
    parser.add_argument("-o", "--output", type=Path, default=REPORT, help="file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="optbench-first-use-") as name:
        old, new = Path(name) / "before", Path(name) / "now"
        source = old / "source"
        source.mkdir(parents=True)
        new.mkdir()
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", options.before], stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
        now_python = install(ROOT, new)
        now = measure(now_python, new)
        fixed, both = read_only(now_python, new), list(at_once(now_python, new))
        check([*(each for pair in now for each in pair), *fixed[:2], *both])
        before = measure(install(source, old), old)
        text = report(before, now, fixed, both)
    options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
