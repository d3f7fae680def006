"""``njit`` with a cache that several processes may fill: import it from here, never from numba.

numba names the inner functions of its library (those of sort and argsort, say) by a number counted from 1 in each process,
and two processes that compile different code can give one name to two of them. A third process that loads both from the
cache links whichever comes first into both: argsort then sorts by the wrong comparison, silently, or reads out of bounds.
Counting from a random number makes the names unique; tests/sim/test_compiled.py shows both sides.
"""

from __future__ import annotations

import itertools
import os
import secrets
from typing import Any

from numba import njit
from numba.core.bytecode import FunctionIdentity

__all__ = ["in_cache", "njit"]


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
