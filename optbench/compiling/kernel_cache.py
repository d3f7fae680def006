"""Compiled code on disk: in the user's cache folder, one file per function, signature and state of
the source.

numba keeps an index and numbered files per function, beside the source. Two processes that add
different signatures at the same time can leave an index that names the other's file, and an
installation that cannot be written has no place for either. Here the name of a file says what is in
it, it appears whole or not at all, and nothing is written elsewhere:

    FOLDER/kernels/PLATFORM/SOURCE/function-signature.nbc

FOLDER is $OPTBENCH_CACHE, else the platform's cache folder for optbench; PLATFORM a digest of the
versions of Python, numba, llvmlite and numpy, and of the CPU; SOURCE a digest of the source that
the function is compiled from.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import shutil
import sys
import time
from functools import cache as remembered
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import caching, codegen, serialize

from optbench.files import write_whole
from optbench.units import DAY_S

# numba has no types.
CONFIG: Any = numba.config
DUMPS: Any = serialize.dumps
CPU_FEATURES: Any = codegen.get_host_cpu_features
VARIABLE = "OPTBENCH_CACHE"
SUFFIX = ".nbc"
# A version of the source that no process has used for this long is removed when another one is
# compiled.
UNUSED_S = 90 * DAY_S


def cache_root() -> Path:
    """Return the folder for everything that optbench can produce again."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "optbench"
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
            / "optbench"
            / "Cache"
        )
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optbench"


def kernels_folder() -> Path:
    """Return the folder of compiled code; numba's own variable is used if ours is not set."""
    numbas = CONFIG.CACHE_DIR
    root = Path(numbas) / "optbench" if numbas and VARIABLE not in os.environ else cache_root()
    return root / "kernels" / platform_digest()


@remembered
def platform_digest() -> str:
    """Return a digest of what machine code depends on beside its source."""
    versions = (
        platform.python_implementation(),
        sys.version_info[:2],
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
    )
    machine = (sys.platform, platform.machine(), binding.get_host_cpu_name(), CPU_FEATURES())
    options = (CONFIG.OPT, CONFIG.BOUNDSCHECK, CONFIG.DEBUGINFO_DEFAULT)
    return hashlib.sha256(repr((versions, machine, tuple(map(str, options)))).encode()).hexdigest()[
        :16
    ]


class CodeFiles:
    """The files of one function. If ``extra`` is set, files beneath it are read too, and only there
    are files written.
    """

    extra: Path | None = None

    def __init__(self, folder: Path, name: str, stamp: str) -> None:
        self.folder, self.name, self.stamp = folder, name, stamp

    def file(self, key: Any, root: Path) -> Path:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return root / self.stamp / f"{self.name}-{digest}{SUFFIX}"

    def load(self, key: Any) -> Any:
        for root in self._places():
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
                path = self.file(key, root)
                data = pickle.loads(path.read_bytes())
                _mark_as_used(path.parent)
                return data
        return None

    def has(self, key: Any) -> bool:
        return any(self.file(key, root).is_file() for root in self._places())

    def save(self, key: Any, data: Any) -> None:
        """Write a file atomically; where it cannot be written, the next process compiles again."""
        with contextlib.suppress(OSError):
            write_whole(self.file(key, self._places()[-1]), DUMPS(data))

    def _places(self) -> list[Path]:
        return [self.folder, *([self.extra] if self.extra is not None else [])]


class KernelCache(caching.FunctionCache):
    """numba's cache of a function, with our files in place of its own."""

    def __init__(self, function: Any, stamp: str) -> None:
        # The super class looks for a writable folder; only its conversion of a result is used.
        self._name, self._py_func = repr(function), function
        self._impl = _Storable(function)
        name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        self.files = CodeFiles(
            kernels_folder(), f"{name}-{function.__code__.co_firstlineno}", stamp
        )
        self._cache_path = str(self.files.folder / stamp)
        self._enabled = True

    def flush(self) -> None:
        shutil.rmtree(self._cache_path, ignore_errors=True)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        data = self.files.load(self.key(sig)) if self._enabled else None
        return None if data is None else self._impl.rebuild(target_context, data)

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self._enabled and self._impl.check_cachable(data):
            self.files.save(self.key(sig), self._impl.reduce(data))

    def key(self, sig: Any) -> Any:
        """Return the key of one signature; the byte code distinguishes closures of one function."""
        cells = tuple(cell.cell_contents for cell in self._py_func.__closure__ or ())
        closed = hashlib.sha256(DUMPS(cells)).hexdigest() if cells else ""
        return str(sig), hashlib.sha256(self._py_func.__code__.co_code).hexdigest(), closed


class _Storable(caching.CompileResultCacheImpl):
    """Converts a result to bytes."""

    def __init__(self, function: Any) -> None:
        self._locator = _Place(function)
        self._lineno = function.__code__.co_firstlineno


class _Place:
    """The location that numba names in its warning about code that cannot be stored."""

    def __init__(self, function: Any) -> None:
        self._py_file = function.__code__.co_filename


def _mark_as_used(folder: Path) -> None:
    """Touch the folder, at most once a day."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > DAY_S:
            os.utime(folder)


def remove_unused() -> None:
    """Remove versions of the source and platforms that were not used for a long time."""
    with contextlib.suppress(OSError):
        for place in kernels_folder().parent.glob("*/*"):
            with contextlib.suppress(OSError):
                if place.is_dir() and time.time() - place.stat().st_mtime > UNUSED_S:
                    shutil.rmtree(place, ignore_errors=True)
