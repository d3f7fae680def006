"""``njit`` with a cache that several processes may fill: import it from here, never from numba.

numba names the inner functions of its library (those of sort and argsort, say) by a number counted from 1 in each process,
and two processes that compile different code can give one name to two of them. A third process that loads both from the
cache links whichever comes first into both: argsort then sorts by the wrong comparison, silently, or reads out of bounds.
Counting from a random number makes the names unique; tests/sim/test_compiled.py shows both sides.

numba's cache also looks at a function's own file only, so that a change in a function it calls, elsewhere, leaves old code in
use. Here a function is as old as its folder, and a plug-in's function as its folder and the event kernel.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import secrets
from collections.abc import Callable
from functools import cache as remembered
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.core.bytecode import FunctionIdentity

__all__ = ["in_cache", "njit", "write_caches_beneath"]


PACKAGE = Path(__file__).parents[1]
KERNEL = Path(__file__).parent / "kernel"


def njit(*, cache: bool = True, **options: Any) -> Callable[[Any], Any]:
    """``numba.njit`` with a cache that notices changes in the folder of the function, and in the kernel under it."""

    def decorate(function: Any) -> Any:
        return _stamped(numba.njit(cache=cache, **_unwrapped(function), **options)(function))

    return decorate


def _unwrapped(function: Any) -> dict[str, Any]:
    """No wrapper for Python around what takes tables of pointers, which only compiled code has: a quarter of compiling less."""
    first = next(iter(function.__annotations__.values()), None)
    only_inside = first in ("Plant", "State")
    return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} if only_inside else {}


def _stamped(dispatcher: Any) -> Any:
    file = getattr(dispatcher._cache, "_cache_file", None)
    if file is not None:
        folder = Path(dispatcher.py_func.__code__.co_filename).parent
        folders = (folder,) if folder.is_relative_to(PACKAGE) else (folder, KERNEL)
        file._source_stamp = (file._source_stamp, *(source_hash(each) for each in folders))
    return dispatcher


@remembered
def source_hash(folder: Path) -> str:
    """Hash of the Python files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_caches_beneath(folder: Path) -> None:
    """From now on this process only reads numba's caches where they are, and writes, and reads too, beneath ``folder``.

    For processes that must not write beside the source. Without this numba would not look there at all, and one that
    compiles a new signature would fail.
    """
    index: Any = caching.IndexDataCacheFile
    locator: Any = caching._CacheLocator
    load, save = index.load, index.save

    def beneath(file: Any) -> Any:
        """The same index elsewhere; a folder of its own per place, since names repeat."""
        other = copy.copy(file)
        other._cache_path = str(folder / hashlib.sha256(file._cache_path.encode()).hexdigest()[:16])
        other._index_path = os.path.join(other._cache_path, file._index_name)
        return other

    def read(file: Any, key: Any) -> Any:
        found = load(file, key)
        return found if found is not None else load(beneath(file), key)

    def write(file: Any, key: Any, data: Any) -> None:
        other = beneath(file)
        os.makedirs(other._cache_path, exist_ok=True)
        save(other, key, data)

    index.load, index.save = read, write
    locator.ensure_cache_path = _require_permission


def _require_permission(locator: Any) -> None:
    """What numba asks by writing a file there: whether the folder, or where it would be, is this user's to write."""
    path = locator.get_cache_path()
    while not os.path.exists(path):
        path = os.path.dirname(path)
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written")


def count_from_anywhere() -> None:
    """Begin numba's numbering at a number that no other process is near."""
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


def in_cache(*functions: Any) -> bool:
    """Whether each function, compiled from this very source by this very numba, lies in the cache on disk.

    numba's own index is empty when the hash of the source or the version has changed since; there is no public way to ask.
    """
    return all(function._cache._cache_file._load_index() for function in functions)


count_from_anywhere()
# A forked child would go on counting like its siblings.
os.register_at_fork(after_in_child=count_from_anywhere)
