"""Optimise code that only compiled code calls once, inside its caller, and do not translate it
separately.

numba links each function with everything that it calls, optimises the whole fully and makes machine
code of it. Of functions nested thirty deep nearly all of that is discarded, because a caller has
its own copy. Here the library of an inner function stays LLVM code; the function that Python calls
is optimised fully, as before, with its callees.

Functions of tables of pointers are optimised only lightly before linking, which halves the compile
time and makes the event kernel 5 to 15 % faster. Loops over arrays are optimised fully first:
without that the genetic search took a third longer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import codegen

# numba has no types.
Library: Any = codegen.JITCodeLibrary
Codegen: Any = codegen.JITCPUCodegen
# Kinds of libraries: with machine code, and without.
WHOLE, FULL, LIGHT = "whole", "full", "light"
_making = threading.local()


@contextmanager
def making_inner_code(lightly: bool) -> Iterator[None]:
    """Libraries that this thread makes meanwhile are only linked into others; with ``lightly`` they
    are optimised little before.
    """
    before = _kind()
    _making.kind = LIGHT if lightly else FULL
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


def _install() -> None:
    begin, optimise, finish = Library.__init__, Library._optimize_final_module, Library._finalize_final_module
    serialise, set_env = Library.serialize_using_object_code, Codegen.set_env

    def begin_library(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self._kind = _kind()

    def optimise_module(self: Any) -> None:
        if self._kind != LIGHT:
            optimise(self)
            return
        passes, builder = self._codegen._module_pass_manager(loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap")
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
    Library._finalize_final_module, Library.serialize_using_object_code = finish_module, serialise_library
    Codegen.set_env = set_environment


_install()
