"""CP-SAT on the formulation of an instance that is no schedule: whole, bounded columns only.

Each row is multiplied by the common denominator of its coefficients, so that everything is whole
and exact. What CP-SAT cannot hold (a column without sides or not whole, numbers beyond 2^53) is
refused by name.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any

from optbench.errors import UnsupportedError
from optbench.model.result import Termination
from optbench.plugins.protocol import Run
from optbench.shapes.milp.program import Milp, exact

# CP-SAT adds up in 64 bits; sums of products stay below.
LARGEST = 2**53


def refusal(program: Milp) -> str | None:
    """Return why CP-SAT cannot take a programme; the column or row is named."""
    for j, name in enumerate(program.columns):
        if not program.integer[j]:
            return f"column {name!r} is not whole; use -s highs"
        sides = (float(program.lower[j]), float(program.upper[j]))
        if not all(math.isfinite(side) and abs(side) < LARGEST for side in sides):
            return f"column {name!r} is not bounded on both sides; use -s highs"
    for i, name in enumerate(program.rows):
        terms, scale = _whole_row(program, i)
        if sum(abs(a) * _reach(program, j) for j, a in terms) >= LARGEST or scale >= LARGEST:
            return f"row {name!r} has coefficients too large for exact integers; use -s highs"
    costs = [exact(float(cost)) for cost in program.cost]
    scale = math.lcm(*(cost.denominator for cost in costs)) if costs else 1
    if sum(abs(c * scale) * _reach(program, j) for j, c in enumerate(costs)) >= LARGEST:
        return "the objective has coefficients too large for exact integers; use -s highs"
    return None


def _reach(program: Milp, column: int) -> int:
    return int(max(abs(float(program.lower[column])), abs(float(program.upper[column])), 1.0)) + 1


def _whole_row(program: Milp, row: int) -> tuple[list[tuple[int, int]], int]:
    """Return (column, whole coefficient) of a row, and what it was multiplied by."""
    entries = list(program.entries(row))
    scale = math.lcm(*(a.denominator for _, a in entries)) if entries else 1
    return [(j, int(a * scale)) for j, a in entries], scale


def solve_formulated(run: Run) -> None:
    """Solve the instance of a run by its formulation."""
    from ortools.sat.python import cp_model

    instance: Any = run.instance
    formulation = instance.formulation
    program: Milp = formulation.program
    reason = refusal(program)
    if reason is not None:
        raise UnsupportedError(f"solver 'cpsat' cannot run {run.instance.name!r}: {reason}")
    model = cp_model.CpModel()
    columns: list[Any] = []
    for j, name in enumerate(program.columns):
        low, high = (
            math.ceil(exact(float(program.lower[j]))),
            math.floor(exact(float(program.upper[j]))),
        )
        if low > high:
            run.report_infeasible("cpsat")
            return
        columns.append(model.new_int_var(low, high, name))
    for i in range(program.num_rows):
        _add_row(model, program, i, columns)
    costs = [exact(float(cost)) for cost in program.cost]
    scale = math.lcm(*(cost.denominator for cost in costs))
    total = sum(int(c * scale) * columns[j] for j, c in enumerate(costs) if c)
    if any(costs):
        model.minimize(total) if program.sense == "min" else model.maximize(total)
    # A formulation may come with a decision of its own to start from.
    start = run.warm_start or getattr(formulation, "start", None)
    if start is not None:
        run.report(start)
        for column, value in zip(columns, formulation.encode(start), strict=True):
            model.add_hint(column, int(value))
    _search(run, model, columns, formulation, scale)


def _add_row(model: Any, program: Milp, row: int, columns: list[Any]) -> None:
    terms, scale = _whole_row(program, row)
    low, high = float(program.row_lower[row]), float(program.row_upper[row])
    least = -LARGEST * 4 if low == -math.inf else math.ceil(exact(low) * scale)
    most = LARGEST * 4 if high == math.inf else math.floor(exact(high) * scale)
    if terms:
        model.add_linear_constraint(sum(a * columns[j] for j, a in terms), least, most)
    elif not least <= 0 <= most:
        model.add_bool_or([])


def _report(run: Run, formulation: Any, point: tuple[Fraction, ...]) -> None:
    verdict = run.report(formulation.decode(point))
    run.shape.check_decoded(run.instance, point, verdict)


def _search(run: Run, model: Any, columns: list[Any], formulation: Any, scale: int) -> None:
    from ortools.sat.python import cp_model

    program: Milp = formulation.program

    class Reporter(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            _report(run, formulation, tuple(Fraction(self.value(c)) for c in columns))
            if run.time_left() <= 0:
                self.stop_search()

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = run.threads
    # Its own handler would end the process where Python waits for the thread of a search.
    solver.parameters.catch_sigint_signal = False
    solver.parameters.random_seed = run.seed % 2**31
    if math.isfinite(run.time_left()):
        solver.parameters.max_time_in_seconds = max(0.01, run.time_left())
    if run.work_limit is not None:
        solver.parameters.max_deterministic_time = run.work_limit
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            if run.stop_requested.is_set():
                solver.stop_search()

    threading.Thread(target=watch, daemon=True).start()
    try:
        status = solver.solve(model, Reporter())
    finally:
        ended.set()
    if status == cp_model.INFEASIBLE:
        run.report_infeasible("cpsat")
        return
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        point = tuple(Fraction(solver.value(column)) for column in columns)
        _report(run, formulation, point)
    bound = Fraction(round(solver.best_objective_bound)) / scale + exact(program.constant)
    if any(program.cost):
        run.report_bound(float(bound), "cpsat")
    elif status == cp_model.OPTIMAL:
        run.report_bound(program.constant, "cpsat")
    if status != cp_model.OPTIMAL:
        work = run.work_limit is not None and run.time_left() > 0
        stopped: Termination = "interrupted" if run.stop_requested.is_set() else "time_limit"
        run.report_termination("work_limit" if work else stopped)
