"""Where the instances of an environment come from, and what is said about an episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from optbench.model.instance import Instance
from optbench.views.env.batch import Batch
from optbench.views.env.layout import EnvError, Layout, layout_of


@runtime_checkable
class InstanceSource(Protocol):
    """A problem: anything with ``instance(seed)``."""

    def instance(self, seed: int = 0) -> Instance: ...


Source = Instance | InstanceSource | Callable[[int], Instance]
# Seeds of instances drawn by an environment's own generator.
SEEDS = 2**31


def draw(source: Source, seed: int | None, rng: np.random.Generator) -> Instance:
    """The instance of a seed; without one, of a seed drawn from the environment's generator."""
    if isinstance(source, Instance):
        return source
    number = int(rng.integers(SEEDS)) if seed is None else seed
    return source.instance(number) if isinstance(source, InstanceSource) else source(number)


def layout_for(source: Source, slots: int | None, modes: int | None, pools: int | None) -> Layout:
    """Room for the source's instance of seed 0, where nothing else is asked for."""
    like = layout_of(draw(source, 0, np.random.default_rng(0)), slots=slots)
    return Layout(like.slots, like.modes if modes is None else modes, like.pools if pools is None else pools)


def check_illegal(illegal: str) -> str:
    if illegal not in ("nothing", "error"):
        raise EnvError(f"illegal is {illegal!r}; an action that is not allowed either does 'nothing', or raises an 'error'")
    return illegal


def refuse(batch: Batch, b: int, action: int) -> None:
    """Raise over an action that is not allowed."""
    legal = batch.masks[b].nonzero()[0].tolist()
    raise EnvError(f"{batch[b].instance.name}: action {action} is not allowed now; allowed are {legal}")


def step_info(batch: Batch, b: int) -> dict[str, Any]:
    """What is said after every step."""
    return {
        "action_mask": batch.masks[b].copy(),
        "cost": float(batch.costs[b]),
        "illegal": bool(batch.illegal[b]),
        "time": float(batch.times[b]),
    }


def final_info(batch: Batch, b: int) -> dict[str, Any]:
    """What is said at the end: all of it the verifier's."""
    seat = batch[b]
    verdict = seat.verdict()
    return {
        "schedule": seat.schedule(),
        "verdict": verdict,
        "objective": None if verdict is None else verdict.objective,
        "instance": seat.instance,
    }
