"""``assert_gap`` asserts in a test that a solver's optimality gap is at most a given value.

    assert_gap(ob.solve("gpu_dag:tasks=8", "cpsat"), at_most=0.01)      # one result
    assert_gap("cpsat", "gpu_dag:tasks=8", seeds=5, at_most=0.01)       # a solver on new instances

Cells are solved one after the other by ``ob.solve`` in the test's own process, so that breakpoints,
coverage and profilers work. A solver that kills its process also kills the test; such solvers
belong in a study, which runs each cell in a process of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from optbench import api
from optbench.errors import ContradictionError, ParameterError
from optbench.evaluate.rows import MISSING_GAP
from optbench.model.files.strict_json import render, write_text
from optbench.model.instance import Instance
from optbench.model.result import OPTIMAL_GAP, Result
from optbench.plugins import specs
from optbench.plugins.protocol import Problem, Solver
from optbench.plugins.schedule_shape import shape_of
from optbench.run.repeat_command import solve_command
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.testing.upper_mean import upper_mean

Target = str | Path | Instance | ShapedInstance | Problem
KINDS = (str, Path, Instance, ShapedInstance, Problem)
# Long enough for the instances of a test, short enough for five of them.
TIME_LIMIT_S = 10.0
# The number of cells that a failure message describes.
SHOWN = 5


@dataclass(frozen=True)
class GapCell:
    """One instance and seed.

    ``result`` is None where solver and verifier contradict each other; ``message`` describes it."""

    instance: Instance
    seed: int
    result: Result | None
    message: str | None
    command: str

    @property
    def missing(self) -> bool:
        return self.result is None or not self.result.verified or self.result.gap is None

    @property
    def gap(self) -> float:
        """The gap of the worst level of the objective; a missing gap counts as 1."""
        return MISSING_GAP if self.result is None or self.missing else _worst(self.result)

    @property
    def broken(self) -> bool:
        """Whether there was a crash or a contradiction, which fails the check whatever the mean."""
        return self.result is None or self.result.status == "error"


@dataclass(frozen=True)
class GapCheck:
    """All cells of a check and its outcome, for messages and further assertions."""

    solver: str
    at_most: float
    confidence: float | None
    cells: tuple[GapCell, ...]
    mean: float
    upper: float | None

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(cell.result for cell in self.cells if cell.result is not None)

    @property
    def worst(self) -> tuple[GapCell, ...]:
        """Broken cells first, then by gap, largest first."""
        return tuple(sorted(self.cells, key=lambda cell: (not cell.broken, -cell.gap)))

    @property
    def holds(self) -> bool:
        if any(cell.broken for cell in self.cells):
            return False
        if self.upper is None:
            return all(cell.gap <= self.at_most for cell in self.cells)
        return self.upper <= self.at_most

    def __str__(self) -> str:
        return _report(self)


@overload
def assert_gap(result: Result, at_most: float, /) -> None: ...
@overload
def assert_gap(result: Result, /, *, at_most: float) -> None: ...
@overload
def assert_gap(
    solver: str | Solver,
    targets: Target | Iterable[Target],
    /,
    *,
    at_most: float,
    seeds: int | Iterable[int] = ...,
    confidence: float | None = ...,
    time_limit_s: float | None = ...,
    work_limit: float | None = ...,
    threads: int = ...,
    params: Mapping[str, Any] | None = ...,
) -> GapCheck: ...


def assert_gap(
    subject: Any,
    over: Any = None,
    /,
    *,
    at_most: float | None = None,
    seeds: int | Iterable[int] = 5,
    confidence: float | None = 0.95,
    time_limit_s: float | None = None,
    work_limit: float | None = None,
    threads: int = 1,
    params: Mapping[str, Any] | None = None,
) -> GapCheck | None:
    """Assert that a result, or a solver on targets × seeds, is verified and has a gap of at most
    ``at_most``.

    With a ``confidence`` the upper confidence limit of the mean gap must be within ``at_most``
    (one-sided, ``upper_mean``); with None every single gap must be. The mean is over instances:
    several seeds on one instance are averaged first, unless there is no other instance. A missing
    gap counts as 1; a crash or a contradiction fails the check whatever the mean. For a
    lexicographic objective the worst level counts. The time limit is 10 s per cell, or none with a
    work limit.
    """
    __tracebackhide__ = True  # pytest then ends its traceback at the test's own line
    if isinstance(subject, Result):
        within = at_most if at_most is not None else over
        if within is None:
            raise ParameterError(
                "assert_gap(result, at_most) takes the largest gap allowed; at_most is None"
            )
        _assert_result(subject, _share(within))
        return None
    if at_most is None or over is None:
        raise ParameterError(
            "assert_gap(solver, targets, at_most=...) needs both: what to solve, and the largest "
            "gap allowed"
        )
    at_most = _share(at_most)
    if confidence is not None and not 0.5 <= confidence < 1:
        raise ParameterError(
            f"confidence is {confidence!r}; it must be at least 0.5 and below 1, or None: every "
            "cell"
        )
    limit_s = TIME_LIMIT_S if time_limit_s is None and work_limit is None else time_limit_s
    limits = {"time_limit_s": limit_s, "work_limit": work_limit}
    gate = _Gate(subject, dict(params or {}), limits, threads)
    pairs = _pairs(_targets(over), _seeds(seeds))
    units = len({instance.hash for _, instance, _ in pairs})
    if confidence is not None and max(units, len(pairs) if units == 1 else 0) < 2:
        raise ParameterError(
            "one cell gives no confidence limit; give more seeds or instances, or confidence=None"
        )
    cells = tuple(gate.cell(target, instance, seed) for target, instance, seed in pairs)
    values = _units(cells)
    upper = None if confidence is None else upper_mean(values, confidence, most=MISSING_GAP)
    check = GapCheck(gate.name, at_most, confidence, cells, sum(values) / len(values), upper)
    if not check.holds:
        raise AssertionError(str(check))
    return check


@dataclass(frozen=True)
class _Gate:
    """The settings with which every cell is solved."""

    solver: str | Solver
    params: dict[str, Any]
    limits: dict[str, Any]
    threads: int

    @property
    def name(self) -> str:
        return self.solver if isinstance(self.solver, str) else type(self.solver).__name__

    def cell(self, target: Target, instance: Instance, seed: int) -> GapCell:
        options = {**self.limits, "seed": seed, "threads": self.threads}
        command = self._command(target, instance, options)
        try:
            result = api.solve(instance, self.solver, **options, **self.params)
        except ContradictionError as error:
            return GapCell(instance, seed, None, f"contradiction: {error}", command)
        # Ob.solve would return its incumbent, but a test must end.
        if result.termination == "interrupted":
            raise KeyboardInterrupt
        broken = "; ".join(result.violations[:3])
        message = result.info.get("traceback") or result.message or broken or None
        return GapCell(instance, seed, result, message, command)

    def _command(self, target: Target, instance: Instance, options: dict[str, Any]) -> str:
        """The shell command that repeats the cell; a failure writes instances without spec
        or file.
        """
        where = str(target) if isinstance(target, (str, Path)) else str(_file(instance))
        where = str(Path(where).resolve()) if Path(where).is_file() else where
        if not isinstance(self.solver, str):
            words = ", ".join(f"{name}={value!r}" for name, value in options.items())
            return f"ob.solve({where!r}, {self.solver!r}, {words})"
        name, given = specs.parse(self.solver)
        return solve_command(where, name, given | self.params, **options)


def _assert_result(result: Result, at_most: float) -> None:
    """Raise the failure, since ``python -O`` removes ``assert``."""
    where = f"{result.solver} on {result.instance}, seed {result.seed}"
    if not result.verified:
        why = result.message or "; ".join(result.violations[:3]) or "no schedule"
        raise AssertionError(f"{where}: no verified schedule ({result.status}); {why}")
    if result.status == "error":
        raise AssertionError(f"{where}: crashed after its best schedule; {result.message}")
    if result.gap is None:
        raise AssertionError(f"{where}: no bound")
    if not _worst(result) <= at_most:
        raise AssertionError(f"{where}: gap {result.gap}, at most {at_most} was asked for")


def _worst(result: Result) -> float:
    """The largest gap of any level; 0 for one that is optimal (scaled integers leave a gap of
    1e-8).
    """
    gaps = result.gap if isinstance(result.gap, tuple) else (result.gap,)
    largest = max(MISSING_GAP if gap is None else gap for gap in gaps)
    return 0.0 if largest <= OPTIMAL_GAP else largest


def _share(at_most: Any) -> float:
    """Check ``at_most``: gaps never exceed 1, so that 5 was meant as 5 %."""
    if (
        isinstance(at_most, bool)
        or not isinstance(at_most, (int, float))
        or not at_most <= MISSING_GAP
    ):
        raise ParameterError(
            f"at_most is {at_most!r}; it must be a share of at most 1, such as 0.05 for 5 %"
        )
    return float(at_most)


def _targets(over: Any) -> list[Target]:
    found = [over] if isinstance(over, KINDS) else list(over)
    for target in found:
        if not isinstance(target, KINDS):
            raise ParameterError(f"{target!r} is not a target; give problems, files, or instances")
    if not found:
        raise ParameterError("no targets: give at least one problem, file, or instance")
    return found


def _seeds(seeds: int | Iterable[int]) -> Sequence[int]:
    found = range(seeds) if isinstance(seeds, int) else tuple(seeds)
    if not found:
        raise ParameterError(f"seeds is {seeds!r}; give a number of at least 1, or the seeds")
    return found


def _pairs(targets: Sequence[Target], seeds: Sequence[int]) -> list[tuple[Target, Instance, int]]:
    """Every target with every seed; duplicates are dropped, since they would add no information."""
    found: dict[tuple[str, int], tuple[Target, Instance, int]] = {}
    for target in targets:
        for seed in seeds:
            instance = api.load_target(target, seed)
            found.setdefault((instance.hash, seed), (target, instance, seed))
    return list(found.values())


def _units(cells: Sequence[GapCell]) -> list[float]:
    """Gaps by instance, or by seed where there is one instance only."""
    by_instance: dict[str, list[float]] = {}
    for cell in cells:
        by_instance.setdefault(cell.instance.hash, []).append(cell.gap)
    groups = list(by_instance.values())
    return groups[0] if len(groups) == 1 else [sum(group) / len(group) for group in groups]


def _report(check: GapCheck) -> str:
    """The mean and its limit, then the worst cells and how to repeat each."""
    missing = sum(cell.missing for cell in check.cells)
    broken = sum(cell.broken for cell in check.cells)
    missed = f", {missing} without a gap (each counts as 1)" if missing else ""
    lines = [f"{check.solver} on {len(check.cells)} cells: mean gap {_percent(check.mean)}{missed}"]
    if check.upper is None:
        outside = sum(cell.gap > check.at_most for cell in check.cells)
        lines.append(
            f"{outside} of them above {_percent(check.at_most)}, which every one must be within"
        )
    else:
        level = f"{100 * (check.confidence or 0):g} %"
        lines.append(
            f"with {level} confidence it is at most {_percent(check.upper)}; "
            f"{_percent(check.at_most)} was asked for"
        )
    if broken:
        lines.append(
            f"{broken} crashed or contradicted the verifier, which fails the check whatever the "
            "mean"
        )
    for cell in check.worst[:SHOWN]:
        lines += ["", *_describe(cell)]
    if len(check.cells) > SHOWN:
        lines += ["", f"and {len(check.cells) - SHOWN} more, no worse than these"]
    return "\n".join(lines)


def _describe(cell: GapCell) -> list[str]:
    _written(cell)
    head = f"{cell.instance.name}, seed {cell.seed}: "
    if cell.result is None:
        head += "no result"
    else:
        found = cell.result
        gap = "no gap" if cell.missing else f"gap {_percent(cell.gap)}"
        head += (
            f"{gap}, objective {found.objective}, bound {found.bound}, {found.status} "
            f"({found.termination})"
        )
    told = [f"    {line}" for line in (cell.message or "").strip().splitlines()]
    return [head, *told, f"    {cell.command}"]


def _file(instance: Instance) -> Path:
    return Path(tempfile.gettempdir()) / f"optbench-{instance.hash[:16]}.json"


def _written(cell: GapCell) -> None:
    """Write an instance that was made in Python to the file that the command names."""
    path = _file(cell.instance)
    if str(path) in cell.command and not path.exists():
        document = shape_of(cell.instance).write(cell.instance)
        write_text(path, render(document))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
