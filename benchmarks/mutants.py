"""Mutants: one operator, constant or branch changed at a time; which of them do the tests notice?

    python benchmarks/mutants.py [--sample 12] [--seed 0] [--only FILE ...] [-o FILE]

Every file of the verifier, the metrics, the caps, the streams and the bounds is parsed; of its
changes a sample is drawn. For each of them a fork of this process, which has imported and compiled
everything, gives the changed function its new code and runs the tests that are named beside the
file, up to the first failure. A change that no test notices is a survivor. Survivors that change no
behaviour are listed with the reason in ``mutants_equivalent.json`` and do not count.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import platform
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._covering_tests import COVERED  # noqa: E402
from benchmarks._mutations import Changes, Mutant  # noqa: E402

EQUIVALENT = Path(__file__).with_name("mutants_equivalent.json")
TIMEOUT_S = 120
# Exit code of a fork that could not make the change: neither killed nor survived.
NOT_MADE = 70


def mutants_of(file: str) -> list[Mutant]:
    walk = Changes(file)
    walk.visit(ast.parse((ROOT / file).read_text()))
    return walk.found


def apply(mutant: Mutant) -> None:
    """Give the changed function its new code, wherever it has been imported already."""
    tree = Changes(mutant.file, mutant.number).visit(ast.parse((ROOT / mutant.file).read_text()))
    code = compile(ast.fix_missing_locations(tree), str(ROOT / mutant.file), "exec")
    for name in mutant.function:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    holder: Any = importlib.import_module(mutant.file.removesuffix(".py").replace("/", "."))
    interpret(holder)
    for name in mutant.function:
        holder = vars(holder)[name] if isinstance(holder, type) else getattr(holder, name)
    plain(holder).__code__ = code


def interpret(module: Any) -> None:
    """Every function that numba has compiled gives way to the Python that it was compiled from.

    Machine code that exists already would not change with the function.
    """
    for name, each in list(vars(module).items()):
        if hasattr(each, "py_func") and each.py_func.__module__ == module.__name__:
            setattr(module, name, each.py_func)


def plain(holder: Any) -> FunctionType:
    """The function in a property, a class method or a cache."""
    while not isinstance(holder, FunctionType):
        if isinstance(holder, cached_property):
            holder = holder.func
        elif isinstance(holder, property):
            holder = holder.fget
        else:
            holder = getattr(holder, "__func__", None) or holder.__wrapped__
    return holder


def run_tests(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """Exit code of pytest in a fork: 0 where nothing was noticed."""
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryFile() as sink:
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
            import pytest

            code = NOT_MADE
            try:
                if mutant is not None:
                    apply(mutant)
                code = int(pytest.ExitCode.INTERNAL_ERROR)
                code = int(
                    pytest.main(
                        [
                            "-x",
                            "-q",
                            "-p",
                            "no:cacheprovider",
                            "-p",
                            "no:xdist",
                            "-m",
                            "not slow",
                            *tests,
                        ]
                    )
                )
            finally:
                os._exit(code)
    ends = time.monotonic() + TIMEOUT_S
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def tests_of(file: str) -> tuple[str, ...]:
    return tuple(test for test in COVERED[file] if (ROOT / test).exists())


def preload() -> None:
    """What every fork would import and compile again."""
    import numpy  # noqa: F401
    import pytest  # noqa: F401

    import optbench as ob

    ob.simulate("gpu_dag:tasks=4", "fcfs")
    ob.solve("gpu_dag:tasks=4", "cpsat", time_limit_s=2)
    for file in COVERED:
        importlib.import_module(file.removesuffix(".py").replace("/", "."))


def equivalents() -> dict[str, str]:
    """Survivors that change no behaviour, with the reason; by function and statement, which do not
    move.
    """
    return dict(json.loads(EQUIVALENT.read_text())) if EQUIVALENT.exists() else {}


def name_of(mutant: Mutant) -> str:
    """Function, change and statement; with a number where several changes share these."""
    name = plain_name(mutant)
    alike = numbers_by_name(mutant.file)[name]
    return name if len(alike) == 1 else f"{name} | {alike.index(mutant.number) + 1} of {len(alike)}"


def plain_name(mutant: Mutant) -> str:
    statement = statements_of(mutant.file)[mutant.line]
    return f"{mutant.file} | {'.'.join(mutant.function)} | {mutant.what} | {statement}"


@cache
def statements_of(file: str) -> dict[int, str]:
    """The statement of each line, or its first line as Python prints it, however it is laid out."""
    found: dict[int, str] = {}
    # The walk goes from outer statements to inner ones, which overwrite them.
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, ast.stmt):
            text = ast.unparse(node).split("\n", 1)[0]
            found |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), text)
    return found


@cache
def numbers_by_name(file: str) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for mutant in mutants_of(file):
        out.setdefault(plain_name(mutant), []).append(mutant.number)
    return out


def judged(sample: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
    known = equivalents()
    for mutant in sample:
        if name_of(mutant) in known:
            yield mutant, "equivalent"
            continue
        own, others = tests_of(mutant.file)[:1], tests_of(mutant.file)[1:]
        # The file's own tests run first, alone: pytest takes longer to collect all the others.
        codes = (run_tests(mutant, tests) for tests in (own, others) if tests)
        noticed = next((code for code in codes if code != 0), 0)
        if noticed == NOT_MADE:
            raise RuntimeError(f"the change could not be made: {mutant}")
        yield mutant, "killed" if noticed else "survived"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sample", type=int, default=12, help="changes drawn per file (default 12)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="parts of file names")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "mutants.md"
    )
    args = parser.parse_args()
    os.chdir(ROOT)
    preload()
    if unknown := [part for part in args.only if not any(part in file for file in COVERED)]:
        parser.error(f"no file of the list holds {unknown[0]!r}; they are {', '.join(COVERED)}")
    rows, survivors, checked = [], [], set[str]()
    for file in COVERED:
        if args.only and not any(part in file for part in args.only):
            continue
        unchecked = tuple(test for test in tests_of(file) if test not in checked)
        if unchecked and run_tests(None, unchecked) != 0:
            print(f"{file}: its tests fail without any change: {' '.join(unchecked)}", flush=True)
            return 1
        checked.update(unchecked)
        every = mutants_of(file)
        sample = random.Random(f"{args.seed} {file}").sample(every, min(args.sample, len(every)))
        verdicts = []
        for mutant, verdict in judged(sample):
            verdicts.append(verdict)
            print(f"{verdict:10} {mutant}", flush=True)
            survivors += [mutant] if verdict == "survived" else []
        rows.append((file, len(every), verdicts))
    args.output.write_text(page(rows, survivors, args))
    return 0


def page(
    rows: list[tuple[str, int, list[str]]], survivors: list[Mutant], args: argparse.Namespace
) -> str:
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scipy", "ortools", "highspy", "pytest")
    )
    lines = [
        "# Mutants: what the tests notice",
        "",
        f"`python benchmarks/mutants.py --sample {args.sample} --seed {args.seed}`,",
        f"{platform.machine()}, Python {platform.python_version()}, {packages}. One operator,",
        "constant or branch changed at a time, drawn at random per file; killed: a test that",
        "covers the file fails.",
        "",
        "| file | possible changes | drawn | equivalent | killed | survived |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for file, count, verdicts in rows:
        counts = [verdicts.count(each) for each in ("equivalent", "killed", "survived")]
        lines.append(f"| `{file}` | {count} | {len(verdicts)} | {' | '.join(map(str, counts))} |")
    flat = [verdict for _, _, verdicts in rows for verdict in verdicts]
    killed, survived = flat.count("killed"), flat.count("survived")
    share = 100 * killed / max(1, killed + survived)
    lines += [
        "",
        f"Killed {killed} of {killed + survived} that change behaviour: {share:.1f} %.",
        "",
    ]
    if survivors:
        lines += ["## Survivors", "", *(f"- `{name_of(mutant)}`" for mutant in survivors), ""]
    if known := equivalents():
        lines += [
            "## Equivalent ones",
            "",
            *(f"- `{name}`: {why}" for name, why in sorted(known.items())),
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
