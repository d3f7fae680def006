"""The source of an environment's instances, and the information about an episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from optbench.model.instance import Instance, task_instance
from optbench.views.env.batch import Batch
from optbench.views.env.layout import EnvError, Layout, layout_of


@runtime_checkable
class InstanceSource(Protocol):
    """A problem: any object with ``instance(seed)``."""

    def instance(self, seed: int = 0) -> Instance: ...


Source = Instance | InstanceSource | Callable[[int], Instance]
# The range of seeds that an environment's own generator draws.
SEEDS = 2**31


def draw(source: Source, seed: int | None, rng: np.random.Generator) -> Instance:
    """Return the instance of a seed; without one, of a seed drawn from the environment's
    generator.
    """
    if isinstance(source, Instance):  # first: the next test is a slow one, of a protocol
        return source
    if not (isinstance(source, InstanceSource) or callable(source)):
        return task_instance(source, "a scheduling environment")
    number = int(rng.integers(SEEDS)) if seed is None else seed
    return source.instance(number) if isinstance(source, InstanceSource) else source(number)


def layout_for(source: Source, slots: int | None, modes: int | None, pools: int | None) -> Layout:
    """Return a layout for the source's instance of seed 0, unless other sizes are given."""
    like = layout_of(draw(source, 0, np.random.default_rng(0)), slots=slots)
    return Layout(
        like.slots, like.modes if modes is None else modes, like.pools if pools is None else pools
    )


def check_illegal(illegal: str) -> str:
    if illegal not in ("nothing", "error"):
        raise EnvError(
            f"illegal is {illegal!r}; an action that is not allowed either does 'nothing', or "
            "raises an 'error'"
        )
    return illegal


def refuse(batch: Batch, b: int, action: int) -> None:
    """Raise for an action that is not allowed."""
    legal = batch.masks[b].nonzero()[0].tolist()
    raise EnvError(
        f"{batch[b].instance.name}: action {action} is not allowed now; allowed are {legal}"
    )


def step_info(batch: Batch, b: int) -> dict[str, Any]:
    """Return the information after every step."""
    return {
        "action_mask": batch.masks[b].copy(),
        "cost": float(batch.costs[b]),
        "illegal": bool(batch.illegal[b]),
        "time": float(batch.times[b]),
    }


def final_info(batch: Batch, b: int) -> dict[str, Any]:
    """Return the information at the end, all from the verifier."""
    seat = batch[b]
    verdict = seat.verdict()
    return {
        "schedule": seat.schedule(),
        "verdict": verdict,
        "objective": None if verdict is None else verdict.objective,
        "instance": seat.instance,
    }
