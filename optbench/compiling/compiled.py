"""``njit`` with a cache that several processes may fill: import it from here, never from numba.

numba names the inner functions of its library (those of sort and argsort, for example) by a number
counted from 1 in each process, so that two processes that compile different code can give one name
to two functions. A third process that loads both from the cache links whichever comes first into
both: argsort then sorts by the wrong comparison, silently, or reads out of bounds. Counting from a
random number makes the names unique; tests/compiling/test_compiled.py shows both cases.

numba's cache also checks a function's own file only, so that a change in a function of another file
leaves old code in use. Here the cache depends on the function's folder and on optbench's compiled
code. ``kernel_cache`` describes where the code is stored.

Code that only compiled code calls is optimised once, inside its caller, and is not translated
separately. numba links each function with everything that it calls, optimises the whole fully and
makes machine code of it. Of functions nested thirty deep nearly all of that is discarded, because a
caller has its own copy. Here the library of an inner function stays LLVM code; the function that
Python calls is optimised fully, as before, with its callees. Functions of tables of pointers are
optimised only lightly before linking, which halves the compile time and makes the event kernel 5 to
15 % faster. Loops over arrays are optimised fully first: without that the genetic search took a
third longer.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache as remembered
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, codegen, sigutils, types
from numba.core.bytecode import FunctionIdentity

from optbench.compiling.compile_meter import metered
from optbench.compiling.kernel_cache import CodeFiles, KernelCache

__all__ = ["inner", "is_compiled", "njit", "write_caches_beneath"]


PACKAGE = Path(__file__).parents[1]
# Packages whose functions and constants compiled code may use.
SHARED = (
    *(PACKAGE / "sim" / "kernel", PACKAGE / "sim" / "kernel" / "sites", PACKAGE / "sim" / "primal"),
    *(PACKAGE / "model" / "objective.py", PACKAGE / "units.py", Path(__file__)),
)
# numba has no types.
Library: Any = codegen.JITCodeLibrary
Codegen: Any = codegen.JITCPUCodegen
UNLITERAL: Any = types.unliteral
NORMALIZED: Any = sigutils.normalize_signature
# Tables of pointers, as annotations name them: of ``kernel`` and of lp_guided's search.
TABLES = (
    *("Plant", "State", "Rule", "RuleSearch", "Search", "Steering", "Routes", "SiteView", "Plans"),
    *("DecisionTable", "View"),
)
# Kinds of libraries: with machine code, and without.
WHOLE, FULL, LIGHT = "whole", "full", "light"
WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_making = threading.local()


def njit(*, cache: bool = True, **options: Any) -> Callable[[Any], Any]:
    """Decorate like ``numba.njit``, with a cache that depends on the folder of the function and on
    optbench's compiled code.
    """

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(**{**_unwrapped(function), **options})(function)
        if cache:
            dispatcher._cache = KernelCache(
                function, stamp_of(Path(function.__code__.co_filename).parent)
            )
        return _metered(dispatcher)

    return decorate


def inner(**options: Any) -> Callable[[Any], Any]:
    """Decorate a function that only compiled code calls, without wrappers for Python, which take a
    quarter of the compile time.
    """
    return njit(**WITHOUT_WRAPPERS, **options)


def _unwrapped(function: Any) -> dict[str, Any]:
    """Return options without wrappers for functions of tables of pointers, which only compiled code
    has.
    """
    first = next(iter(function.__annotations__.values()), None)
    return WITHOUT_WRAPPERS if first in TABLES else {}


def _metered(dispatcher: Any) -> Any:
    """Measure compiling and announce it for optbench's own code; constant arguments do not cause
    compiling again.
    """
    compile_anew, own = (
        dispatcher.compile,
        Path(dispatcher.py_func.__code__.co_filename).is_relative_to(PACKAGE),
    )
    is_inner = bool(dispatcher.targetoptions.get("no_cpython_wrapper"))
    takes_tables = bool(_unwrapped(dispatcher.py_func))
    what = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__name__}" if own else None

    def compile_one(signature: Any) -> Any:
        if isinstance(signature, tuple):
            signature = tuple(UNLITERAL(each) for each in signature)
        if is_inner:
            with making(LIGHT if takes_tables else FULL):
                return compile_anew(signature)
        # Python may call this function, also where an inner one is the first to need it.
        with making(WHOLE):
            if is_compiled(dispatcher, signature):
                return compile_anew(signature)
            with metered(what):
                out = compile_anew(signature)
                set_environments(dispatcher.overloads[NORMALIZED(signature)[0]])
            return out

    dispatcher.compile = compile_one
    return dispatcher


@contextmanager
def making(kind: str) -> Iterator[None]:
    """Libraries that this thread makes meanwhile are WHOLE, or are only linked into others: FULL
    after optimising them, LIGHT after optimising them little.
    """
    before = _kind()
    _making.kind = kind
    try:
        yield
    finally:
        _making.kind = before


def _kind() -> str:
    return str(getattr(_making, "kind", WHOLE))


def set_environments(compiled: Any) -> None:
    """Set environments, as numba does for each function with machine code, for those that are
    linked into this one.
    """
    for environment in compiled._find_referenced_environments():
        compiled.library.codegen.set_env(environment.env_name, environment)


def install_inner_code() -> None:
    """Let numba's libraries keep inner code as LLVM code; see the module's docstring."""
    begin, optimise, finish = (
        Library.__init__,
        Library._optimize_final_module,
        Library._finalize_final_module,
    )
    serialise, set_env = Library.serialize_using_object_code, Codegen.set_env

    def begin_library(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self._kind = _kind()

    def optimise_module(self: Any) -> None:
        if self._kind != LIGHT:
            optimise(self)
            return
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def finish_module(self: Any) -> None:
        if self._kind == WHOLE:
            finish(self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialise_library(self: Any) -> Any:
        return serialise(self) if self._kind == WHOLE else self.serialize_using_bitcode()

    def set_environment(self: Any, name: str, environment: Any) -> None:
        if _kind() == WHOLE:
            set_env(self, name, environment)

    Library.__init__, Library._optimize_final_module = begin_library, optimise_module
    Library._finalize_final_module, Library.serialize_using_object_code = (
        finish_module,
        serialise_library,
    )
    Codegen.set_env = set_environment


@remembered
def stamp_of(folder: Path) -> str:
    """Return a hash of the source from which a function of this folder is compiled."""
    parts = [source_hash(each) for each in (folder, *SHARED)]
    # Two workspaces may have the same file here with different callees elsewhere.
    parts.append("" if folder.is_relative_to(PACKAGE) else str(folder))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@remembered
def source_hash(place: Path) -> str:
    """Return the hash of a Python file, or of those of a folder."""
    digest = hashlib.sha256()
    for path in sorted(place.glob("*.py")) if place.is_dir() else [place]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_caches_beneath(folder: Path) -> None:
    """From now on, only read numba's caches in their places, and read and write beneath ``folder``.

    This is for processes that must not write beside the source. Without it numba would not read
    those caches at all, and a process that compiles a new signature would fail.
    """
    CodeFiles.extra = folder
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
    """Check whether the user may write the folder, or where it would be created. numba checks this
    by writing a file.
    """
    path = locator.get_cache_path()
    while not os.path.exists(path):
        path = os.path.dirname(path)
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{path} cannot be written")


def count_from_anywhere() -> None:
    """Start numba's numbering at a random number."""
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


def is_compiled(function: Any, signature: Any) -> bool:
    """Whether a function is loaded or cached for this signature and the current source."""
    if signature in function.overloads:
        return True
    kept = function._cache
    return isinstance(kept, KernelCache) and kept.files.has(kept.key(signature))


install_inner_code()
count_from_anywhere()
# A forked child would otherwise use the same numbers as its siblings.
os.register_at_fork(after_in_child=count_from_anywhere)
