"""``report()`` checks versions, cores, memory, GPUs and folders, and names a remedy for each
problem.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from optbench.errors import OptbenchError
from optbench.hardware.gpus.nvml_session import NO_GPU, GpuUnavailableError, gpu_session
from optbench.sandbox import landlock, seccomp
from optbench.sandbox.system_calls import IS_LINUX
from optbench.store.records import installed_version, machine
from optbench.workspace import MARKER, activate, checkout

Status = Literal["ok", "note", "problem"]
# A status, what was found, and the remedy if there is one.
Finding = tuple[Status, str, str | None]
OLDEST_PYTHON = (3, 11)
ORDERS = (
    "import highspy; from ortools.sat.python import cp_model",
    "from ortools.sat.python import cp_model; import highspy",
)


@dataclass(frozen=True)
class Check:
    """One finding: a ``note`` is information; a ``problem`` prevents something and has a remedy."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None


def report() -> list[Check]:
    """All checks, in the order shown; they take a few seconds, mostly for the two import orders."""
    environment = {
        "highspy with ortools": _import_orders,
        "mlflow is the library": _mlflow,
        "cores": _cores,
        "memory": _memory,
        "gpus": _gpus,
        "workspace": _workspace,
        "compiled code": _compiled_code,
        "landlock": _landlock,
        "seccomp": _attributes,
        "process trees": _process_trees,
        "public data": _data,
    }
    found = {"python": _python(), **dict(_packages())}
    found |= {name: check() for name, check in environment.items()} | dict(_extras())
    return [Check(name, *finding) for name, finding in found.items()]


def _python() -> Finding:
    detail = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return "problem", detail, "install Python 3.11 or later, then: make PYTHON=/path/to/python"
    return "ok", detail, None


def _packages() -> Iterator[tuple[str, Finding]]:
    """One check per core dependency, against what this installation of optbench asks for."""
    for requirement in _requirements(""):
        name, allowed = requirement.name, requirement.specifier
        found, remedy = installed_version(name), f"pip install '{requirement}'"
        if found is not None and allowed.contains(found, prereleases=True):
            yield name, ("ok", found, None)
        else:
            needed = f"{found or 'missing'}, {str(allowed) or 'any version'} is needed"
            yield name, ("problem", needed, remedy)


def _requirements(extra: str) -> list[Requirement]:
    """The requirements of an extra; the extra '' stands for optbench itself."""
    every = [Requirement(text) for text in metadata.requires("optbench") or []]
    core = [each for each in every if each.marker is None or each.marker.evaluate({"extra": ""})]
    if not extra:
        return core
    others = [(each, each.marker) for each in every if each not in core]
    return [each for each, marker in others if marker and marker.evaluate({"extra": extra})]


def _import_orders() -> Finding:
    """Try each import order in a subprocess: a process keeps the libhighs that it loads first."""
    for code in ORDERS:
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            remedy = "pip install 'highspy==1.14.0' 'ortools>=9.15,<9.16'"
            return "problem", f"`{code}` fails: {last}", remedy
    return "ok", "both import orders work", None


def _mlflow() -> Finding:
    """A folder mlflow/ with an ``__init__.py`` in the source tree or here would be imported."""
    spec = util.find_spec("mlflow")
    origin = spec.origin if spec is not None else None
    impostors = [root / "mlflow" for root in (checkout(), Path.cwd()) if root is not None]
    if origin is None or Path(origin).parent in impostors:
        return "problem", f"found at {origin}", "remove __init__.py from the folder mlflow/"
    return "ok", origin, None


def _cores() -> Finding:
    return "ok", f"{machine()['cores']} usable of {os.cpu_count()}", None


def _memory() -> Finding:
    total_gb = machine()["memory_gb"]
    if total_gb < 4:
        return "note", f"{total_gb:.1f} GB", "large instances may not fit"
    return "ok", f"{total_gb:.1f} GB", None


def _gpus() -> Finding:
    try:
        with gpu_session() as session:
            names = [device.name for device in session.devices()]
            failed = [str(error) for error in session.unreadable]
    except GpuUnavailableError as error:
        if error.has_library:
            return "note", error.reason, "`nvidia-smi` should run without an error"
        return "note", error.reason, "needed only to measure or train on GPUs"
    if failed:
        return "problem", "; ".join([*names, *failed]), "`optbench gpu list` shows every device"
    return "ok", ", ".join(names) or NO_GPU, None


def _workspace() -> Finding:
    try:
        root = activate()
    except OptbenchError as error:
        return "problem", str(error), "unset OPTBENCH_WORKSPACE"
    if root is None:
        return "note", f"none: no {MARKER} here or above", "`optbench init` makes one"
    if not _writable(root):
        remedy = "results go to .optbench/ in it; make it writable"
        return "problem", f"{root} cannot be written", remedy
    return "ok", str(root) + (" (the source tree)" if root == checkout() else ""), None


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _compiled_code() -> Finding:
    """Compiled code is stored in the user's cache folder, or in OPTBENCH_CACHE."""
    from optbench.compiling.kernel_cache import VARIABLE, kernels_folder
    from optbench.compiling.kernel_table import KERNELS, are_compiled

    folder = kernels_folder()
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    if not _writable(there):
        detail = f"{folder} cannot be written, so that every process compiles again"
        return "note", detail, f"set {VARIABLE} to a folder"
    missing = [name for name in KERNELS if not are_compiled([name])]
    if not missing:
        return "ok", f"{folder}, all of it compiled", None
    share = f"{len(missing)} of {len(KERNELS)} parts"
    detail = f"{folder}, {share} are not compiled yet; their first use compiles them"
    return "note", detail, "`optbench compile` (once, about a minute)"


def _landlock() -> Finding:
    """Whether Landlock confines the cells of a study, and what this kernel's version cannot
    prevent.
    """
    version = landlock.landlock_version()
    if not version:
        detail = "cells of a study can write outside their folders, and signal other processes"
        remedy = "use a Linux kernel from 5.13 on in which it is enabled (lsm=landlock,...)"
        return "note", f"not available: {detail}", remedy
    missing = [(words, kernel) for needed, kernel, words in landlock.LEFT_OPEN if version < needed]
    cells = f"version {version}: cells of a study can"
    if missing:
        left_open, kernel = " and ".join(words for words, _ in missing), missing[-1][1]
        return "note", f"{cells} {left_open}", f"Linux {kernel} or later"
    return "ok", f"{cells} write and signal only among themselves", None


def _attributes() -> Finding:
    if seccomp.is_available():
        return "ok", "cells of a study cannot change modes, owners or times of files", None
    detail = "cells of a study can change modes and owners of files"
    return "note", f"no filter for {platform.machine()}: {detail}", "use Linux on x86_64 or aarch64"


def _process_trees() -> Finding:
    if IS_LINUX:
        return "ok", "limits of a study's cells also hold for the processes that they start", None
    what = "processes that leave both their parent and their session"
    detail = f"cells of a study are observed by psutil, which loses {what}"
    return "note", detail, "run solvers that you do not trust on Linux"


def _data() -> Finding:
    named = os.environ.get("OPTBENCH_DATA")
    if not named:
        remedy = "`optbench data list` shows the public data sets"
        return "note", "OPTBENCH_DATA is not set", remedy
    if not (Path(named) / "MANIFEST.csv").is_file():
        detail = f"OPTBENCH_DATA={named} holds no MANIFEST.csv"
        return "problem", detail, "name the folder that holds it, or unset it"
    return "ok", named, None


def _extras() -> Iterator[tuple[str, Finding]]:
    """Optional packages, by the extra that installs them."""
    for extra in metadata.metadata("optbench").get_all("Provides-Extra") or []:
        wanted = [requirement.name for requirement in _requirements(extra)]
        missing = [name for name in wanted if installed_version(name) is None]
        own = f"pip install -e '.[{extra}]'" if checkout() else f"pip install 'optbench[{extra}]'"
        if missing:
            yield f"extra {extra}", ("note", f"without {', '.join(missing)}", own)
        else:
            yield f"extra {extra}", ("ok", ", ".join(wanted), None)
