"""Limit the threads of BLAS, OpenMP and torch: small arrays on many threads are slower than on one,
and on a busy machine fifty times slower, since the threads wait for each other by spinning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def math_threads(count: int) -> Iterator[None]:
    """Within the block, libraries that are loaded compute with at most ``count`` threads."""
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    if torch is not None:
        torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)
