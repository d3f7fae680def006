"""Damaged files of every shape through the command line, each answer held against another reading.

What is read must say what the file says: JSON is compared value by value with Python's own reading,
MPS with what HiGHS reads, LP with a reading by patterns, verdicts with those of the second verifier
and of rules written again here.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import optbench as ob
from optbench.cli.main import main
from optbench.shapes.milp.lp_writer import write_lp
from optbench.shapes.milp.milp_shape import MILPS
from optbench.shapes.milp.mps_writer import write_mps
from tests.fuzz.damage import damaged
from tests.fuzz.lp_by_patterns import UnusualError
from tests.fuzz.other_readings import (
    Json,
    judged_packing,
    judged_point,
    judged_schedule,
    said_of_programme,
    same_programme,
    same_values,
)
from tests.reference.random_milps import random_milp

LP = """\\ by hand, of what HiGHS reads too
Minimize
 cost: 3 x - 2.5 y + 0.5 z
Subject To
 both: x + 2 y >= -1
 less: x - y + z <= 3.5
 same: 2 x + w = 7
Bounds
 x <= 9
 y free
 -3 <= z <= 4
General
 x
Binary
 w
End
"""
MPS = """NAME          sample
ROWS
 N  profit
 L  cap
 G  need
 E  up
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    x         profit    2.5   cap  1
    x         need      1
    MARKER                 'MARKER'                 'INTEND'
    y         cap       0.1   up   1
    z         need      1     profit  -0.5
RHS
    RHS       profit   -3     cap  7.3
    RHS       need      1     up   2
RANGES
    RNG       cap       0.2
    RNG       need      4
BOUNDS
 UP BND       x         9
 UP BND       y         4.5
 LO BND       z         -1
 UP BND       z         6
ENDATA
"""
# A message names a line, or the place in a JSON document, after the file.
PLACE = re.compile(
    r"line \d+|key '|unknown key|the key |shape is|format is|version is|^[\w.]+(\[\d+\])*[:. ,]"
    r"|^'[^']+'|column '|row '|task |pool |mode |tasks |kind |the (precedence|objective"
    r"|file|upper|lower)|two (columns|rows)|there are no columns|a whole number of more|byte "
    r"|not UTF-8|binary|empty|not a JSON|not JSON|not an optbench file|in no known format|UTF-16"
    r"|largest|gzip"
)


@dataclass(frozen=True)
class Answer:
    """What the command line made of a file."""

    code: int
    seconds: float
    message: str
    document: Json | None


@dataclass(frozen=True)
class Kind:
    """Files of one kind: how they are made, the command that reads them, and what is right."""

    name: str
    suffix: str
    original: Callable[[int], str]
    command: Callable[[Path, int], list[str]]
    # None where the answer is right; else what is wrong with it.
    wrong: Callable[[Path, int, Answer], str | None]
    allowed: tuple[int, ...] = (0, 2)


def run(words: list[str]) -> Answer:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    began = time.perf_counter()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    seconds = time.perf_counter() - began
    try:
        document = json.loads(out.getvalue())
    except ValueError:
        document = None
    return Answer(code, seconds, err.getvalue().strip(), document)


def fault_of(kind: Kind, path: Path, seed: int, answer: Answer) -> str | None:
    """What is wrong with an answer; None where nothing is."""
    text = answer.message
    if answer.code not in kind.allowed:
        return f"exit code {answer.code}: {text[:300]}"
    if "Traceback" in text or "internal error" in text:
        return f"a traceback: {text[:300]}"
    if answer.code != 2:
        return kind.wrong(path, seed, answer)
    start = f"optbench: {path}"
    if not text.startswith(start):
        return f"the message does not begin with the file: {text[:300]}"
    reason = text[len(start) :].lstrip(":, ")
    if len(text) > 3000 or not reason:
        return f"a message of {len(text)} characters"
    return None if PLACE.search(reason) else f"no place in the message: {reason[:300]}"


def judged(kind: Kind, path: Path, seed: int, answer: Answer) -> tuple[str | None, bool]:
    """What is wrong with an answer, and whether a second reading of the file had a say."""
    try:
        return fault_of(kind, path, seed, answer), True
    except UnusualError:
        return None, False


class Originals:
    """Undamaged files of every kind, and the instances that decisions belong to."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out.json"
        made: dict[str, Any] = {
            "dag": ob.load_problem("gpu_dag:tasks=4").instance(1),
            "shop": ob.load_problem("jobshop:jobs=2,machines=2").instance(0),
            "packing": ob.load_problem("packing:services=4").instance(0),
            "programme": MILPS.instance(random_milp("mixed", 1)),
        }
        self.instances = made
        solvers = {"dag": "heft", "shop": "fcfs", "packing": "first_fit", "programme": "highs"}
        self.decisions: dict[str, str] = {}
        for name, instance in made.items():
            ob.write_instance(instance, folder / f"{name}.json")
            result: Any = ob.solve(instance, solvers[name], time_limit_s=10, bound=False)
            ob.write_decision(result.schedule, folder / f"{name}_decision.json", instance)
            self.decisions[name] = (folder / f"{name}_decision.json").read_text()

    def kinds(self) -> list[Kind]:
        return [
            self._instance("schedules", self._schedule_instance, same_values),
            self._instance("packing", self._packing_instance, same_values),
            self._instance("milp", self._milp_json, said_of_programme),
            self._programme("mps", self._mps),
            self._programme("lp", self._lp),
            self._decision("schedule", ("dag", "shop"), judged_schedule),
            self._decision("placement", ("packing",), judged_packing),
            self._decision("point", ("programme",), judged_point),
        ]

    def _schedule_instance(self, seed: int) -> str:
        return (self.folder / ("dag.json" if seed % 2 else "shop.json")).read_text()

    def _packing_instance(self, seed: int) -> str:
        return (self.folder / "packing.json").read_text()

    def _milp_json(self, seed: int) -> str:
        path = self.folder / "one.json"
        ob.write_instance(MILPS.instance(random_milp("mixed", seed % 7)), path)
        return path.read_text()

    def _mps(self, seed: int) -> str:
        return MPS if seed % 2 else write_mps(random_milp("mixed", seed % 7))

    def _lp(self, seed: int) -> str:
        return LP if seed % 2 else write_lp(random_milp("mixed", seed % 7))

    def _convert(self, path: Path, seed: int) -> list[str]:
        return ["convert", str(path), str(self.out), "--json"]

    def _instance(
        self, name: str, original: Callable[[int], str], says: Callable[[Json, Json], str | None]
    ) -> Kind:
        def wrong(path: Path, seed: int, answer: Answer) -> str | None:
            return says(json.loads(path.read_bytes()), json.loads(self.out.read_text()))

        return Kind(name, ".json", original, self._convert, wrong)

    def _programme(self, suffix: str, original: Callable[[int], str]) -> Kind:
        def wrong(path: Path, seed: int, answer: Answer) -> str | None:
            return same_programme(path, json.loads(self.out.read_text()))

        return Kind(suffix, f".{suffix}", original, self._convert, wrong)

    def _decision(
        self,
        name: str,
        owners: tuple[str, ...],
        judge: Callable[[Json, Json], tuple[bool, Fraction | None]],
    ) -> Kind:
        def owner(seed: int) -> str:
            return owners[seed % len(owners)]

        def command(path: Path, seed: int) -> list[str]:
            return ["verify", str(self.folder / f"{owner(seed)}.json"), str(path), "--json"]

        def wrong(path: Path, seed: int, answer: Answer) -> str | None:
            instance = json.loads((self.folder / f"{owner(seed)}.json").read_text())
            feasible, objective = judge(instance, json.loads(path.read_bytes()))
            if feasible != (answer.code == 0):
                return f"the second reading says feasible = {feasible}"
            found: Any = None if answer.document is None else answer.document["objective"]
            if feasible and objective is not None:
                off = abs(Fraction(found) - objective)
                if off > Fraction(1, 2**40) * abs(objective):
                    return f"objective {found}, and {float(objective)} by the second reading"
            return None

        return Kind(
            name, ".json", lambda seed: self.decisions[owner(seed)], command, wrong, (0, 2, 4)
        )


def damaged_file(kind: Kind, folder: Path, seed: int) -> tuple[str, Path]:
    """Write a damaged file; returns what was done to it."""
    done, data = damaged(kind.original(seed).encode(), seed)
    path = folder / f"damaged{kind.suffix}"
    path.write_bytes(data)
    return done, path
