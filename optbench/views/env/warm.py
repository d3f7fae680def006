"""The kernel's entries for environments, compiled before anyone waits for them."""

from __future__ import annotations

from optbench.sim import warm
from optbench.sim.compiled import in_cache
from optbench.sim.kernel import fleet
from optbench.views.env.play import play_batch


def is_compiled() -> bool:
    """Whether every entry lies in the cache, those of policies included."""
    return warm.is_compiled() and in_cache(fleet.open_all, fleet.step_all)


def compile_ahead() -> None:
    """Compile what is not in the cache yet."""
    warm.load_kernel()
    play_batch([warm.smallest()], lambda seen, masks: masks.argmax(axis=1))
