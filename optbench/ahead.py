"""``python -m optbench.ahead``: compile the numba kernels into their cache, once, so that no run has to wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

Part = tuple[Callable[[], bool], Callable[[], object]]


def parts() -> tuple[Part, ...]:
    """Each part of the compiled code: whether the cache holds it, and what compiles it."""
    from optbench.bounds import destructive
    from optbench.learn import warm as learning
    from optbench.plugins.solvers._lp_warm import compile_ahead as compile_lp_guided
    from optbench.plugins.solvers._lp_warm import is_compiled as is_lp_guided_compiled
    from optbench.sim import primal, sampling
    from optbench.views.env import warm

    return (
        (destructive.is_compiled, destructive.compile_deductions),
        (primal.is_compiled, primal.compile_ahead),
        (sampling.is_compiled, sampling.compile_ahead),
        (warm.is_compiled, warm.compile_ahead),
        (is_lp_guided_compiled, compile_lp_guided),
        (learning.is_compiled, learning.compile_ahead),
    )


def is_ready() -> bool:
    return all(is_compiled() for is_compiled, _ in parts())


def compile_missing() -> None:
    for is_compiled, compile_all in parts():
        if not is_compiled():
            compile_all()


def main() -> int:
    """Compile what is not in the cache yet, and say how long it took."""
    began = time.perf_counter()
    compile_missing()
    print(f"compiled kernels are ready ({time.perf_counter() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
