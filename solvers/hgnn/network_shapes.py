"""The names and shapes of the network's weights, by its settings, without loading torch."""

from __future__ import annotations

from collections.abc import Iterator

from .answers import FACTORS, TASK_ANSWERS, WHOLE_ANSWERS
from .network_settings import LEVEL_HEADS, NetworkSettings
from .seen_arrays import (
    CLASS_COLUMNS,
    LINK_COLUMNS,
    PAIR_COLUMNS,
    SET_COLUMNS,
    TASK_COLUMNS,
    WHOLE_COLUMNS,
)

Shape = tuple[int, ...]
# Terms of the Chebyshev polynomial.
CHEBYSHEV = 3


def network_shapes(settings: NetworkSettings) -> dict[str, Shape]:
    """Return the shape of each weight of a network of these settings."""
    return dict(_shapes(settings))


def linear(name: str, inputs: int, outputs: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _shapes(settings: NetworkSettings) -> Iterator[tuple[str, Shape]]:
    h = settings.hidden
    task, device, whole = len(TASK_COLUMNS), len(CLASS_COLUMNS), len(WHOLE_COLUMNS)
    for name, inputs in (("task_in", task), ("device_in", device), ("whole_in", whole)):
        yield from linear(f"{name}.0", inputs, h)
        yield from linear(f"{name}.2", h, h)
    for k in range(settings.rounds):
        yield from linear(f"rounds.{k}.mix", 6 * h, h)
        yield f"rounds.{k}.norm.weight", (h,)
        yield f"rounds.{k}.norm.bias", (h,)
    for name in ("to_device", "to_task"):
        yield from _attention(name, settings, len(PAIR_COLUMNS))
    if settings.convolves("spectral"):
        yield from ((f"spectral.lins.{k}.weight", (h, h)) for k in range(CHEBYSHEV))
        yield "spectral.bias", (h,)
    if settings.convolves("spatial"):
        yield from _attention("spatial", settings, len(LINK_COLUMNS))
    if settings.levels == "hierarchy":
        yield from _levels(settings)
    outputs = {
        "mix_task": (3 * h, h), "whole_out": (3 * h, WHOLE_ANSWERS), "device_out": (2 * h, 1),
        "task_out": (h, TASK_ANSWERS), "task_factor": (h, FACTORS),
        "whole_skip": (whole, WHOLE_ANSWERS), "device_skip": (device, 1),
        "task_skip": (task, TASK_ANSWERS), "set_in": (h + len(SET_COLUMNS), h),
        "set_factor": (h, FACTORS),
    }  # fmt: skip
    for name, (inputs, width) in outputs.items():
        yield from linear(name, inputs, width)


def _attention(name: str, settings: NetworkSettings, edge: int) -> Iterator[tuple[str, Shape]]:
    h, wide = settings.hidden, settings.heads * (settings.hidden // settings.heads)
    yield f"{name}.att", (1, settings.heads, settings.hidden // settings.heads)
    yield from linear(f"{name}.lin_l", h, wide)
    yield from linear(f"{name}.lin_r", h, wide)
    yield f"{name}.lin_edge.weight", (wide, edge)
    yield f"{name}.bias", (wide,)


def _levels(settings: NetworkSettings) -> Iterator[tuple[str, Shape]]:
    h = settings.hidden
    wide = len(LEVEL_HEADS) * (h // settings.heads)
    if settings.pools_by("differentiable"):
        yield from linear("soft.assign", h, settings.clusters)
    if settings.pools_by("edge"):
        yield from linear("contracted.pool.lin", 2 * h, 1)
    ways = {"coarse": "coarsening", "soft": "differentiable", "contracted": "edge"}
    for name, way in ways.items():
        if settings.pools_by(way):  # type: ignore[arg-type]
            yield from linear(f"{name}.between.own", h, h)
            yield f"{name}.between.others.weight", (h, h)
    for name in ("query", "key", "value"):
        yield from linear(name, h, wide)
    yield from linear("cluster", h + wide, h)
    yield from linear("down", 3 * h, h)
