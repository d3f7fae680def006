"""Mixed-integer programmes as MPS files and as Pyomo models; writes docs/results/random_milps.md.

    python benchmarks/random_milps.py [--seconds 10] [--quick] [-o docs/results/random_milps.md]

200 tiny programmes of four kinds against enumeration in rationals: status, objective, and every
certified bound on the right side. Then 20 programmes in the manner of MIPLIB, optbench beside plain
HiGHS for equal time. Exit code 1 where anything disagrees. About ten minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import optbench as ob  # noqa: E402
from benchmarks.cells import machine  # noqa: E402
from optbench.errors import OptbenchError  # noqa: E402
from optbench.model.measures import gap  # noqa: E402
from optbench.model.result import Result  # noqa: E402
from optbench.shapes import Findings, PyomoShape  # noqa: E402
from optbench.shapes.milp.lp_relaxation import highs_model  # noqa: E402
from optbench.shapes.milp.milp_shape import MILPS  # noqa: E402
from optbench.shapes.milp.mps_format import read_mps  # noqa: E402
from optbench.shapes.milp.mps_writer import write_mps  # noqa: E402
from optbench.shapes.milp.program import Milp, milp  # noqa: E402
from tests.reference.random_milps import random_milp  # noqa: E402
from tests.reference.rational_lp import Answer, by_enumeration, decimal  # noqa: E402

ROUNDING = 1e-12
NUMBER = {"whole": 110, "mixed": 50, "infeasible": 20, "unbounded": 20}


@dataclass(frozen=True)
class Text:
    """A programme as the text of its MPS file."""

    mps: str


@dataclass(frozen=True)
class Values:
    """A point, by column."""

    values: tuple[str, ...]


class Lowest(PyomoShape):
    """Any programme as a Pyomo model, with a verifier that adds up in fractions by itself."""

    name = "lowest"
    data, solution = Text, Values
    minimize: ClassVar[str | None] = "value"

    def model(self, data: Text) -> Any:
        import pyomo.environ as pyo

        program = read_mps(data.mps, "x")
        m: Any = pyo.ConcreteModel()
        kinds = [pyo.Integers if whole else pyo.Reals for whole in program.integer]
        sides = [*zip(map(_side, program.lower), map(_side, program.upper), strict=True)]
        m.x = pyo.Var(
            range(program.num_columns), domain=lambda m, j: kinds[j], bounds=lambda m, j: sides[j]
        )
        terms = (float(c) * m.x[j] for j, c in enumerate(program.cost))
        sense = pyo.minimize if program.sense == "min" else pyo.maximize
        m.cost = pyo.Objective(expr=sum(terms) + program.constant, sense=sense)
        m.rows = pyo.ConstraintList()
        for i in range(program.num_rows):
            row = sum(float(a) * m.x[j] for j, a in program.entries(i))
            low, high = _side(program.row_lower[i]), _side(program.row_upper[i])
            if not isinstance(row, int):
                m.rows.add((low, row, high))
            elif (low or 0.0) > 0 or (high or 0.0) < 0:
                m.rows.add(pyo.Constraint.Infeasible)
        return m

    def encode(self, data: Text, decision: Values, model: Any) -> None:
        for j, value in enumerate(decision.values):
            model.x[j].set_value(float(Fraction(value)), skip_validation=True)

    def decode(self, data: Text, model: Any) -> Values:
        points = (model.x[j].value for j in sorted(model.x))
        return Values(tuple(repr(0.0 if x is None else float(x)) for x in points))

    def verify(self, data: Text, decision: Values) -> Findings:
        program = read_mps(data.mps, "x")
        x = [Fraction(value) for value in decision.values]
        cost = sum((decimal(c) * v for c, v in zip(program.cost, x, strict=True)), Fraction(0))
        found = Findings({"value": float(cost + decimal(program.constant))})
        for i, name in enumerate(program.rows):
            total = sum((a * x[j] for j, a in program.entries(i)), Fraction(0))
            # The values went through floats, as those of any Pyomo model.
            low, high = program.row_lower[i] - ROUNDING, program.row_upper[i] + ROUNDING
            found.require(low <= total <= high, name, f"{name} is {total}")
        return found


class Highest(Lowest):
    """The same, maximised."""

    name = "highest"
    minimize, maximize = None, "value"


def _side(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def instances(program: Milp) -> dict[str, Any]:
    text = write_mps(program)
    shape = Lowest() if program.sense == "min" else Highest()
    return {
        "MPS file": MILPS.instance(read_mps(text, program.name)),
        "Pyomo model": shape.instance(program.name, Text(text)),
    }


def disagreement(known: Answer, found: Result, sense: str) -> str | None:
    if found.status != known.status:
        return f"status {found.status}, known {known.status}"
    if known.status != "optimal":
        return None
    if found.objective is None or isinstance(found.objective, tuple):
        return "no objective"
    if abs(found.objective - float(known.value)) > 1e-9 * max(1.0, abs(float(known.value))):
        return f"objective {found.objective!r}, known {float(known.value)!r}"
    for bound in found.bounds:
        beyond = Fraction(bound.value) - known.value
        if bound.proof != "solver" and (beyond > 0 if sense == "min" else beyond < 0):
            return f"certified bound {bound.value!r} beyond {float(known.value)!r}"
    return None


def by_cpsat(instance: Any, program: Milp, known: Answer) -> tuple[str, str | None]:
    """What cpsat does with a programme that need not be of bounded integers, and what is wrong
    with that: it refuses one with the name of a column, or answers like enumeration.
    """
    try:
        found = ob.solve(instance, "cpsat", time_limit_s=20)
    except OptbenchError as error:
        in_pyomo = (f"x[{j}]" for j in range(program.num_columns))
        named = [name for name in (*program.columns, *in_pyomo) if repr(name) in str(error)]
        wrong = None if named else f"refused without the name of a variable: {error}"
        return "refused by cpsat", wrong
    columns = instance.formulation.program if hasattr(instance, "formulation") else program
    whole = all(columns.integer) and all(map(math.isfinite, (*columns.lower, *columns.upper)))
    wrong = disagreement(known, found, program.sense)
    return "cpsat", wrong if whole else "not refused"


def small(quick: bool) -> tuple[list[str], list[str]]:
    """Compare the tiny programmes; return lines of a table, and disagreements."""
    lines, wrong = list[str](), list[str]()
    for kind, number in NUMBER.items():
        number = 4 if quick else number
        counts: Counter[str] = Counter()
        for seed in range(number):
            program = random_milp(kind, seed)
            known = by_enumeration(program)
            counts[known.status] += 1
            for way, instance in instances(program).items():
                for solver in ("highs", "cpsat") if kind == "whole" else ("highs",):
                    try:
                        found = ob.solve(instance, solver, time_limit_s=20)
                        certified = ob.bound(instance, time_limit_s=5)
                        reason = disagreement(known, found, program.sense)
                        for bound in certified:
                            beyond = Fraction(bound.value) - known.value
                            side = beyond > 0 if program.sense == "min" else beyond < 0
                            if known.status == "optimal" and side:
                                reason = f"bound {bound.value!r} beyond {float(known.value)!r}"
                        counts["certified bounds"] += len(certified)
                    except OptbenchError as error:
                        reason = f"{type(error).__name__}: {error}"
                    else:
                        if found.infeasibility is not None:
                            counts[f"infeasible by {found.infeasibility.proof}"] += 1
                        counts["unbounded by a ray"] += "unbounded" in found.info
                    counts[f"{way}, {solver}"] += 1
                    if reason is not None:
                        wrong.append(f"{program.name}, {way}, {solver}: {reason}")
                if kind != "whole":
                    what, reason = by_cpsat(instance, program, known)
                    counts[f"{way}, {what}"] += 1
                    if reason is not None:
                        wrong.append(f"{program.name}, {way}, cpsat: {reason}")
        print(kind, dict(counts), flush=True)
        words = ", ".join(f"{key} {count}" for key, count in counts.items() if count)
        lines.append(f"| {kind} | {number} | {words} |")
    return lines, wrong


def knapsack(rng: Any) -> Milp:
    n, m = 60, 5
    weight = rng.integers(10, 100, (m, n)).astype(float)
    room = weight.sum(axis=1) // 3
    value = weight.mean(axis=0).round() + rng.integers(0, 20, n)
    return _programme("knapsack", "max", value, [True] * n, weight, [-math.inf] * m, room)


def set_cover(rng: Any) -> Milp:
    m, n = 150, 100
    inside = (rng.random((m, n)) < 0.06).astype(float)
    inside[np.arange(m), rng.integers(0, n, m)] = 1.0
    cost = rng.integers(1, 30, n).astype(float)
    return _programme("set_cover", "min", cost, [True] * n, inside, [1.0] * m, [math.inf] * m)


def facility(rng: Any) -> Milp:
    customers, sites = 30, 12
    demand = rng.integers(5, 35, customers).astype(float)
    where = rng.random((customers + sites, 2))
    far = np.linalg.norm(where[:customers, None] - where[None, customers:], axis=2)
    n = sites + customers * sites
    cost = np.concatenate(
        [rng.integers(200, 400, sites), (100 * demand[:, None] * far).round().ravel()]
    )
    rows, low, high = list[Any](), list[float](), list[float]()
    for c in range(customers):
        row = np.zeros(n)
        row[sites + c * sites : sites + (c + 1) * sites] = 1.0
        rows, low, high = [*rows, row], [*low, 1.0], [*high, 1.0]
    for s in range(sites):
        row = np.zeros(n)
        row[sites + s :: sites] = demand
        row[s] = -round(float(demand.sum()) / 4)
        rows, low, high = [*rows, row], [*low, -math.inf], [*high, 0.0]
    whole = [True] * sites + [False] * (n - sites)
    return _programme("facility", "min", cost, whole, np.array(rows), low, high)


def lot_sizing(rng: Any) -> Milp:
    items, periods = 6, 15
    demand = rng.integers(0, 60, (items, periods)).astype(float)
    # What every prefix of periods needs on average, and its set-ups.
    needed = demand.sum(axis=0).cumsum() / np.arange(1, periods + 1)
    room = float(round(1.1 * needed.max() + 8 * items))
    n = 3 * items * periods
    rows, low, high = list[Any](), list[float](), list[float]()
    at = np.arange(n).reshape(3, items, periods)  # made, stored, set up
    for i in range(items):
        for t in range(periods):
            row = np.zeros(n)
            row[at[0, i, t]], row[at[1, i, t]] = 1.0, -1.0
            if t:
                row[at[1, i, t - 1]] = 1.0
            rows, low, high = [*rows, row], [*low, demand[i, t]], [*high, demand[i, t]]
            row = np.zeros(n)
            row[at[0, i, t]], row[at[2, i, t]] = 1.0, -room
            rows, low, high = [*rows, row], [*low, -math.inf], [*high, 0.0]
    for t in range(periods):
        row = np.zeros(n)
        row[at[0, :, t]] = 1.0
        row[at[2, :, t]] = 8.0
        rows, low, high = [*rows, row], [*low, -math.inf], [*high, room]
    cost = np.zeros((3, items, periods))
    cost[1], cost[2] = rng.integers(1, 4, (items, 1)), rng.integers(60, 140, (items, 1))
    whole = [False] * (2 * items * periods) + [True] * (items * periods)
    upper = np.where(whole, 1.0, math.inf)
    return _programme("lot_sizing", "min", cost.ravel(), whole, np.array(rows), low, high, upper)


def _programme(
    name: str, sense: Any, cost: Any, whole: Any, rows: Any, low: Any, high: Any, upper: Any = 1.0
) -> Milp:
    n, m = len(cost), len(rows)
    row, column = np.nonzero(rows)
    columns, labels = [f"x{j}" for j in range(n)], [f"r{i}" for i in range(m)]
    sides = np.zeros(n), np.broadcast_to(np.asarray(upper, dtype=float), (n,))
    entries = (row, column, rows[row, column])
    return milp(name, sense, columns, cost, *sides, whole, labels, low, high, entries)


def plain_highs(program: Milp, seconds: float) -> tuple[float | None, float | None, float]:
    """What HiGHS alone says, with its own settings: objective, bound and seconds."""
    import highspy

    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("time_limit", seconds)
    highs.setOptionValue("threads", 1)
    began = time.perf_counter()
    highs.passModel(highs_model(program, whole=True))
    highs.run()
    info, sign = highs.getInfo(), 1.0 if program.sense == "min" else -1.0
    values = (info.objective_function_value, info.mip_dual_bound)
    found = [sign * v + program.constant if abs(v) < 1e29 else None for v in values]
    return found[0], found[1], time.perf_counter() - began


def classical(seconds: float, quick: bool) -> list[str]:
    lines = []
    for make in (knapsack, set_cover, facility, lot_sizing):
        for seed in range(1 if quick else 5):
            program = make(np.random.default_rng(seed))
            instance: Any = MILPS.instance(program)
            mine: Any = ob.solve(instance, "highs", time_limit_s=seconds)
            best = min if program.sense == "min" else max
            plain, bound, plain_s = plain_highs(program, seconds)
            certified = [b.value for b in mine.bounds if b.proof != "solver"]
            certified = certified or [b.value for b in ob.bound(MILPS.instance(program))]
            far = (
                gap(mine.objective, (max if best is min else min)(certified)) if certified else None
            )
            line = (
                f"| {program.name}-{seed} | {mine.objective:,.6g} | {100 * (mine.gap or 0):.2f} % "
                f"| {mine.wall_s:.1f} | {100 * (far or 0):.2f} % | {plain:,.6g} "
                f"| {100 * (gap(plain, bound) or 0):.2f} % | {plain_s:.1f} |"
            )
            print(line, flush=True)
            lines.append(line)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="per classical programme")
    parser.add_argument("--quick", action="store_true", help="a few of each")
    output = ROOT / "docs" / "results" / "random_milps.md"
    parser.add_argument("-o", "--output", type=Path, default=output)
    args = parser.parse_args()
    table, wrong = small(args.quick)
    rows = classical(args.seconds, args.quick)
    told = (
        f"In the manner of MIPLIB, {args.seconds:g} s each, one thread: optbench's `highs` (every "
        "point exact; presolve off in 1.14.0, whose presolve gives false optima) beside plain "
        "HiGHS with its default settings in the same run. *Certified* is the gap to the "
        "relaxation, proved again in rationals."
    )
    text = [
        "# Mixed-integer programmes",
        "",
        f"`python benchmarks/random_milps.py --seconds {args.seconds:g}`; {machine()}",
        "",
        "Tiny programmes, each as an MPS file and as a Pyomo model; answers by enumeration of",
        "the integers, with an exact simplex method for the rest (tests/reference/rational_lp.py).",
        "Each line counts answers by status, then comparisons, then certified bounds.",
        "",
        "| kind | programmes | counts |",
        "| --- | ---: | --- |",
        *table,
        "",
        f"**Disagreements: {len(wrong)}.**",
        *(f"- {each}" for each in wrong),
        "",
        told,
        "",
        "| programme | objective | gap | s | certified | plain HiGHS | gap | s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        *rows,
        "",
    ]
    args.output.write_text("\n".join(text))
    print(f"{len(wrong)} disagreements; written: {args.output}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
