"""Records: the result of a cell, one JSON object per line; a failed cell has a reason."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib import metadata
from typing import Any

from optbench import __version__
from optbench.errors import FileFormatError
from optbench.hardware.cpu_model import cpu_model
from optbench.model.files.strict_json import jsonable
from optbench.model.measures import Value
from optbench.study.cells import Cell
from optbench.workspace import checkout

FORMAT, VERSION = "optbench-cell", 1
LIBRARIES = ("ortools", "highspy", "pyomo", "numpy", "numba", "torch")
# Seconds that starting, verifying and bounding of later levels may take beyond the time limit
# before the overrun is shown.
OVERRUN_S, OVERRUN_SHARE = 2.0, 0.1
# Reasons why a cell failed: a key each, and its meaning.
REASONS = {
    "crashed": "the solver raised an exception",
    "signal": "the process was ended by a signal, such as a segmentation fault",
    "exited": "the process ended without an answer",
    "time_limit": "still running long after its time limit; killed",
    "cpu_limit": "its processes used more processor time than allowed; killed",
    "memory_limit": "its processes used more memory than allowed; killed",
    "process_limit": "it started more processes than allowed; killed",
    "left_processes": "it left processes running after its answer; killed",
    "nonsense": "the answer is invalid, or contradicts the verifier",
    "infeasible": "the decision it returned violates a constraint",
    "false_bound": "its bound exceeds a verified objective",
    "disagreement": "the shape's model and its verify disagree on a decision",
    "unverified": "the code of the instance's shape failed: there is no verdict",
    "refused": "the solver does not take this instance",
    "unavailable": "the plug-in cannot be imported, or its parameters do not fit",
}


@dataclass(frozen=True)
class Reason:
    """Why a cell failed: a key of REASONS, and a message."""

    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class Record:
    """A finished cell. With a ``reason`` it failed: it has no objective and its gap counts as 1."""

    cell: Cell
    status: str
    termination: str
    reason: Reason | None = None
    objective: Value | None = None
    bound: Value | None = None
    gap: Value | None = None
    verified: bool = False
    violations: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    bounds: tuple[Mapping[str, Any], ...] = ()
    infeasibility: Mapping[str, Any] | None = None
    wall_s: float | None = None
    time_to_first_s: float | None = None
    total_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_mb: float = 0.0
    message: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    began_at: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    code_version: str = ""
    # Whether the judge has proved the certified bounds again. In records of older versions the
    # label of a bound is the solver's claim.
    labelled: bool = False
    # What the cell's processes drew (``hardware.run_energy``), and the training of its checkpoint
    # (``training``). It stands apart from ``metrics``: it can only be measured. Empty in records of
    # older versions and of lost cells.
    energy: Mapping[str, Any] = field(default_factory=dict)
    # Readings of measured metrics with their provenance, or the reason why there are none. They
    # stand apart from ``metrics``; empty, and left out, where none were asked for.
    measured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.cell.key

    @property
    def failed(self) -> bool:
        return self.reason is not None

    @property
    def overrun_s(self) -> float:
        """Return the process's time beyond its limit and the allowance; 0 within them."""
        limit = self.cell.budget.time_limit_s
        over = 0.0 if limit is None else self.total_s - limit
        return over if limit is not None and over > OVERRUN_S + OVERRUN_SHARE * limit else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return one JSON object; the key comes first."""
        out: dict[str, Any] = {"format": FORMAT, "version": VERSION, "key": self.key}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "measured" and not value:
                continue
            if isinstance(value, Cell):
                value = value.to_dict()
            out[entry.name] = jsonable(asdict(value) if isinstance(value, Reason) else value)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise FileFormatError(
                f"not a record: format {data.get('format')!r}, version {data.get('version')!r}"
            )
        known = {entry.name: data[entry.name] for entry in fields(cls) if entry.name in data}
        known["cell"] = Cell.from_dict(data["cell"])
        known["reason"] = Reason(**data["reason"]) if data.get("reason") else None
        for name in ("objective", "bound", "gap"):
            known[name] = (
                tuple(known[name]) if isinstance(known.get(name), list) else known.get(name)
            )
        for name in ("violations", "bounds"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


@cache
def machine() -> dict[str, Any]:
    """Return the machine on which a figure was measured."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        **({"gpus": models} if (models := gpu_models()) else {}),
        "cores": usable,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "python": platform.python_version(),
        "optbench": __version__,
        **{name: version for name in LIBRARIES if (version := installed_version(name)) is not None},
    }


def gpu_models() -> list[str]:
    """Return the models of the GPUs, sorted; none where there is no driver."""
    from optbench.hardware.gpus.nvml_errors import GpuError, GpuUnavailableError
    from optbench.hardware.gpus.nvml_session import gpu_session

    try:
        with gpu_session() as session:
            return sorted(device.name for device in session.devices())
    except (GpuError, GpuUnavailableError):
        return []


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def code_version() -> str:
    """Return optbench's version and, in a source tree, the commit and whether files differ."""
    root = checkout()
    if root is None:
        return __version__
    words = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (
        OSError,
        subprocess.CalledProcessError,
    ):
        # No git, or the source tree is not a repository
        return __version__
    return f"{__version__}+{done.stdout.strip()}"
