"""Compiled functions with their signatures, and groups of them that are compiled together."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache as remembered
from typing import Any


@dataclass(frozen=True)
class NamedColumns:
    """The type of an argument that is a NamedTuple of arrays: its class and the arrays' types."""

    module: str
    name: str
    columns: tuple[str, ...]


Argument = str | NamedColumns


@dataclass(frozen=True)
class CompiledEntry:
    """One function, its module and its argument types; it is imported when it is needed."""

    module: str
    name: str
    arguments: tuple[Argument, ...]

    @property
    def function(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def signature(self) -> tuple[Any, ...]:
        return _types(self.arguments)

    def is_compiled(self) -> bool:
        """Whether it is loaded or cached."""
        from optbench.compiling.compiled import is_compiled

        return is_compiled(self.function, self.signature)

    def load(self) -> None:
        """Load or compile the function, unless this process has it."""
        if self.signature not in self.function.overloads:
            self.function.compile(self.signature)


@dataclass(frozen=True)
class Kernel:
    """Functions that are compiled together; ``users`` are the modules that call them, by which the
    kernels of an undeclared plug-in are found.
    """

    what: str
    entries: tuple[CompiledEntry, ...]
    users: tuple[str, ...]

    def is_compiled(self) -> bool:
        """Whether all of its functions are loaded or cached."""
        return all(entry.is_compiled() for entry in self.entries)

    def compile_missing(self) -> None:
        """Compile the functions that are neither loaded nor cached."""
        for entry in self.entries:
            if not entry.is_compiled():
                entry.load()


@remembered
def _types(arguments: tuple[Argument, ...]) -> tuple[Any, ...]:
    """Return numba's types for names as in its documentation."""
    from numba.core import sigutils, types

    normalized: Any = sigutils.normalize_signature
    named: Any = types.BaseTuple
    found = []
    for each in arguments:
        if isinstance(each, NamedColumns):
            kind = getattr(importlib.import_module(each.module), each.name)
            found.append(named.from_types(_types(each.columns), kind))
        else:
            found.append(normalized(f"({each},)")[0][0])
    return tuple(found)
