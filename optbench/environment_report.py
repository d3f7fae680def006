"""``report()`` checks versions, cores, memory, GPUs and folders, and names a remedy for each problem."""

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
from optbench.sandbox import landlock, seccomp
from optbench.sandbox.system_calls import IS_LINUX
from optbench.workspace import MARKER, activate, checkout

Status = Literal["ok", "note", "problem"]
OLDEST_PYTHON = (3, 11)
ORDERS = ("import highspy; from ortools.sat.python import cp_model", "from ortools.sat.python import cp_model; import highspy")


@dataclass(frozen=True)
class Check:
    """One finding: a ``note`` is information; a ``problem`` prevents something and has a remedy."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None


def report() -> list[Check]:
    """All checks, in the order shown; they take a few seconds, mostly for the two import orders."""
    return [
        _python(),
        *_packages(),
        _import_orders(),
        _mlflow(),
        _cores(),
        _memory(),
        _gpus(),
        _workspace(),
        _compiled_code(),
        _landlock(),
        _attributes(),
        _process_trees(),
        _data(),
        *_extras(),
    ]


def _python() -> Check:
    detail = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return Check("python", "problem", detail, "install Python 3.11 or later, then: make PYTHON=/path/to/python")
    return Check("python", "ok", detail)


def _packages() -> Iterator[Check]:
    """One check per core dependency, against what this installation of optbench asks for."""
    for requirement in _requirements(""):
        wanted, remedy = str(requirement.specifier) or "any version", f"pip install '{requirement}'"
        found = _installed(requirement.name)
        if found is None:
            yield Check(requirement.name, "problem", f"missing, {wanted} is needed", remedy)
        elif not requirement.specifier.contains(found, prereleases=True):
            yield Check(requirement.name, "problem", f"{found}, {wanted} is needed", remedy)
        else:
            yield Check(requirement.name, "ok", found)


def _requirements(extra: str) -> list[Requirement]:
    """The requirements of an extra; the extra '' stands for optbench itself."""
    every = [Requirement(text) for text in metadata.requires("optbench") or []]
    if not extra:
        return [each for each in every if each.marker is None or each.marker.evaluate({"extra": ""})]
    return [each for each in every if each.marker is not None and each.marker.evaluate({"extra": extra})]


def _import_orders() -> Check:
    """Try each import order in a subprocess: a process keeps the libhighs that it loads first."""
    for code in ORDERS:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            remedy = "pip install 'highspy==1.14.0' 'ortools>=9.15,<9.16'"
            return Check("highspy with ortools", "problem", f"`{code}` fails: {last}", remedy)
    return Check("highspy with ortools", "ok", "both import orders work")


def _mlflow() -> Check:
    """A folder mlflow/ with an ``__init__.py`` in the source tree or the current folder would be imported instead."""
    spec = util.find_spec("mlflow")
    origin = spec.origin if spec is not None else None
    impostors = [root / "mlflow" for root in (checkout(), Path.cwd()) if root is not None]
    if origin is None or Path(origin).parent in impostors:
        return Check("mlflow is the library", "problem", f"found at {origin}", "remove __init__.py from the folder mlflow/")
    return Check("mlflow is the library", "ok", origin)


def _cores() -> Check:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Check("cores", "ok", f"{usable} usable of {os.cpu_count()}")


def _memory() -> Check:
    total_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    if total_gb < 4:
        return Check("memory", "note", f"{total_gb:.1f} GB", "large instances may not fit")
    return Check("memory", "ok", f"{total_gb:.1f} GB")


def _gpus() -> Check:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return Check("gpus", "note", "no NVIDIA driver (libnvidia-ml.so.1 not found)", "needed only to measure or train on GPUs")
    except pynvml.NVMLError as error:
        return Check("gpus", "note", f"the NVIDIA driver reports: {error}", "`nvidia-smi` should run without an error")
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        names = [str(pynvml.nvmlDeviceGetName(handle)) for handle in handles]
        return Check("gpus", "ok", ", ".join(names) or "an NVIDIA driver is installed, but there is no GPU")
    finally:
        pynvml.nvmlShutdown()


def _workspace() -> Check:
    try:
        root = activate()
    except OptbenchError as error:
        return Check("workspace", "problem", str(error), "unset OPTBENCH_WORKSPACE")
    if root is None:
        return Check("workspace", "note", f"none: no {MARKER} here or above", "`optbench init` makes one")
    if not _writable(root):
        return Check("workspace", "problem", f"{root} cannot be written", "results go to .optbench/ in it; make it writable")
    return Check("workspace", "ok", str(root) + (" (the source tree)" if root == checkout() else ""))


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _compiled_code() -> Check:
    """Compiled code is stored in the user's cache folder, or in OPTBENCH_CACHE."""
    from optbench.compiling.kernel_cache import VARIABLE, kernels_folder
    from optbench.compiling.kernel_table import KERNELS, are_compiled

    folder = kernels_folder()
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    if not _writable(there):
        detail = f"{folder} cannot be written, so that every process compiles again"
        return Check("compiled code", "note", detail, f"set {VARIABLE} to a folder")
    missing = [name for name in KERNELS if not are_compiled([name])]
    if not missing:
        return Check("compiled code", "ok", f"{folder}, all of it compiled")
    detail = f"{folder}, {len(missing)} of {len(KERNELS)} parts are not compiled yet; their first use compiles them"
    return Check("compiled code", "note", detail, "`optbench compile` (once, about a minute)")


def _landlock() -> Check:
    """Whether Landlock confines the cells of a study, and what this kernel's version cannot prevent."""
    version = landlock.landlock_version()
    if not version:
        detail = "not available: cells of a study can write outside their folders, and signal other processes"
        return Check("landlock", "note", detail, "use a Linux kernel from 5.13 on in which it is enabled (lsm=landlock,...)")
    missing = [(words, kernel) for needed, kernel, words in landlock.LEFT_OPEN if version < needed]
    if missing:
        left_open, kernel = " and ".join(words for words, _ in missing), missing[-1][1]
        return Check("landlock", "note", f"version {version}: cells of a study can {left_open}", f"Linux {kernel} or later")
    return Check("landlock", "ok", f"version {version}: cells of a study can write and signal only among themselves")


def _attributes() -> Check:
    if seccomp.is_available():
        return Check("seccomp", "ok", "cells of a study cannot change modes, owners or times of files")
    detail = f"no filter for {platform.machine()}: cells of a study can change modes and owners of files"
    return Check("seccomp", "note", detail, "use Linux on x86_64 or aarch64")


def _process_trees() -> Check:
    if IS_LINUX:
        return Check("process trees", "ok", "limits of a study's cells also hold for the processes that they start")
    detail = "cells of a study are observed by psutil, which loses processes that leave both their parent and their session"
    return Check("process trees", "note", detail, "run solvers that you do not trust on Linux")


def _data() -> Check:
    named = os.environ.get("OPTBENCH_DATA")
    if not named:
        return Check("public data", "note", "OPTBENCH_DATA is not set", "`optbench data list` shows the public data sets")
    if not (Path(named) / "MANIFEST.csv").is_file():
        detail = f"OPTBENCH_DATA={named} holds no MANIFEST.csv"
        return Check("public data", "problem", detail, "name the folder that holds it, or unset it")
    return Check("public data", "ok", named)


def _extras() -> Iterator[Check]:
    """Optional packages, by the extra that installs them."""
    for extra in metadata.metadata("optbench").get_all("Provides-Extra") or []:
        core = _requirements("")
        wanted = [requirement.name for requirement in _requirements(extra) if requirement not in core]
        missing = [name for name in wanted if _installed(name) is None]
        remedy = f"pip install -e '.[{extra}]'" if checkout() else f"pip install 'optbench[{extra}]'"
        if missing:
            yield Check(f"extra {extra}", "note", f"without {', '.join(missing)}", remedy)
        else:
            yield Check(f"extra {extra}", "ok", ", ".join(wanted))


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
