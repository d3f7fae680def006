"""The declarations of a study file after reading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from optbench.model.files.strict_json import jsonable
from optbench.study.canonical import canonical, digest

# Seconds beyond its time limit after which a cell is killed: verification, bounding of later levels
# and loading take some of it, a solver that checks the clock rarely the rest.
GRACE_SHARE, GRACE_S = 0.5, 15.0
# The hard limit where a study gives a cell no time limit.
LONGEST_S = 3600.0
# At most this many processes and threads of one cell, which stops a fork bomb early.
MAX_PROCESSES = 256
# The reference that means the best known objective instead of a solver.
BEST = "best"

# Fields of a budget that came later: keys of cells do not name them where they are 0.
LATER_LIMITS = ("gpus", "readings")

T = TypeVar("T")


@dataclass(frozen=True)
class CellBudget:
    """The resources that one cell may use. The solver receives its time and work limits and
    threads; the other limits are enforced on its process tree, where None means derived from the
    time limit or the machine's limit. ``gpus`` are reserved on a cluster, and a cell sees no others
    there. ``readings`` of each measured metric are taken of a verified decision; 0: none.
    """

    time_limit_s: float | None = 60.0
    work_limit: float | None = None
    threads: int = 1
    wall_limit_s: float | None = None
    cpu_limit_s: float | None = None
    memory_limit_mb: float | None = None
    max_processes: int = MAX_PROCESSES
    gpus: int = 0
    readings: int = 0

    @property
    def hard_wall_s(self) -> float:
        """Seconds after which the cell is killed."""
        if self.wall_limit_s is not None:
            return self.wall_limit_s
        return (
            LONGEST_S
            if self.time_limit_s is None
            else self.time_limit_s * (1 + GRACE_SHARE) + GRACE_S
        )

    @property
    def content(self) -> dict[str, Any]:
        """Return what it adds to the key of a cell: keys of cells without GPUs and readings do not
        name them.
        """
        out = asdict(self)
        return {key: value for key, value in out.items() if value or key not in LATER_LIMITS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CellBudget:
        return known_fields(cls, data)


@dataclass(frozen=True)
class SolverEntry:
    """One configuration of a solver: a column of the study. ``params`` are typed values."""

    label: str
    name: str
    params: Mapping[str, Any]
    budget: CellBudget

    @property
    def content(self) -> dict[str, Any]:
        """Return what determines its cells: everything but the label."""
        return {"name": self.name, "params": dict(self.params), "budget": self.budget.content}


@dataclass(frozen=True)
class Claim:
    """A published figure and the expression for the study's figure. ``better`` is the direction
    that is better, ``tolerance`` is relative to the figure (absolute where that is 0), ``bound``
    is an expression for what the certified bounds allow. A claim that the study does not check has
    no expression: ``left_to`` says where it belongs.
    """

    text: str
    source: str
    paper: float
    ours: str
    better: Literal["lower", "higher", "equal"] = "lower"
    tolerance: float = 0.1
    bound: str | None = None
    left_to: str = ""


@dataclass(frozen=True)
class Statistics:
    """The hypothesis tests of a report. ``metric`` is a formula of one number per cell, ``scale``
    "log" tests its logarithm. Solvers are tested against the one labelled ``reference`` (empty: the
    first of the ranking), for equivalence within ``margin``, and by problem where ``by_problem``;
    ``regress_on`` names facts of instances, parameters of problems and properties of machines.
    """

    metric: str
    reference: str = ""
    regress_on: tuple[str, ...] = ()
    scale: Literal["linear", "log"] = "linear"
    margin: float | None = None
    by_problem: bool = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Statistics:
        found = known_fields(cls, data)
        return replace(found, regress_on=tuple(found.regress_on))


@dataclass(frozen=True)
class Study:
    """A study file. ``problems`` are targets and ``solvers`` configurations, both with grids
    expanded.

    ``trust`` names the solvers whose own bounds count for all others without proof.
    """

    name: str
    question: str
    problems: tuple[str, ...]
    solvers: tuple[SolverEntry, ...]
    seeds: tuple[int, ...] = (0,)
    repetitions: int = 1
    bound_limit_s: float = 10.0
    metrics: tuple[str, ...] = ()
    reference: str = BEST
    trust: tuple[str, ...] = ()
    # A formula of one number per cell, lower being better; empty: the gap to the best bounds.
    rank: str = ""
    gates: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    statistics: Statistics | None = None
    tune: Mapping[str, Any] | None = None
    path: Path | None = None
    # Digests of targets whose plug-ins this process must not import.
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    # By solver, the shapes that it takes, where this process must not import it.
    takes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def configuration(self) -> dict[str, Any]:
        """What determines the cells, independent of order and labels."""
        return {
            "problems": sorted(self._portable(target) for target in self.problems),
            "solvers": sorted(self.labels),
            "seeds": sorted(self.seeds),
            "repetitions": self.repetitions,
            "bound_limit_s": self.bound_limit_s,
        }

    @property
    def config_hash(self) -> str:
        """Hash of the configuration: the same one continues the same parent run."""
        return digest(self.configuration)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the configurations, by what determines their cells."""
        return {canonical(self._portable_entry(entry)): entry.label for entry in self.solvers}

    def _portable(self, target: str) -> str:
        """Return a file relative to the study's folder, so that both can be moved together."""
        if self.path is None or not os.path.isabs(target):
            return target
        return Path(os.path.relpath(target, self.path.absolute().parent)).as_posix()

    def _portable_entry(self, entry: SolverEntry) -> dict[str, Any]:
        params = {
            name: self._portable(str(v)) if isinstance(v, (str, Path)) else v
            for name, v in entry.params.items()
        }
        return {**entry.content, "params": params}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON that suffices for reports, gates and claims without file and plug-ins."""
        out = {**asdict(replace(self, sources={}, takes={}))}
        out["path"] = self.path and self.path.absolute()
        del out["sources"], out["takes"]
        for claim in out["claims"]:
            if not claim["left_to"]:
                del claim["left_to"]
        for entry in out["solvers"]:
            entry["budget"] = without_readings(entry["budget"])
        plain: dict[str, Any] = jsonable(out)
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Study:
        study = known_fields(cls, data)
        tests = data.get("statistics")
        return replace(
            study,
            problems=tuple(data["problems"]),
            solvers=tuple(_entry(entry) for entry in data["solvers"]),
            seeds=tuple(data["seeds"]),
            metrics=tuple(data["metrics"]),
            trust=tuple(data.get("trust", ())),
            claims=tuple(known_fields(Claim, claim) for claim in data["claims"]),
            statistics=None if tests is None else Statistics.from_dict(tests),
            path=None if data["path"] is None else Path(data["path"]),
        )


def _entry(data: Mapping[str, Any]) -> SolverEntry:
    return replace(known_fields(SolverEntry, data), budget=CellBudget.from_dict(data["budget"]))


def without_readings(budget: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a budget; readings only where some are taken."""
    return {key: value for key, value in budget.items() if value or key != "readings"}


def known_fields(cls: type[T], data: Mapping[str, Any]) -> T:
    """Create an object from known fields: other versions of optbench may have written more."""
    known = {entry.name for entry in fields(cls) if entry.init}  # type: ignore[arg-type]
    return cls(**{key: value for key, value in data.items() if key in known})
