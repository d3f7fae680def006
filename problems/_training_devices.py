"""Devices that train: modelled ones of given relative speeds, or the shipped profiles of GPUs.

A modelled device of speed 1 is one core of a server: ``CORE``. A device of relative speed s < 1 is
that core at work for the share s of the time, which divides both of its rates and its power above
idle. Profiles give rates (``peak_tflops``, of which training reaches ``REACHED``), memory, clocks
and the law of power for training.

A drawn history of speeds has a chain of two states for each device: at full speed up to a jitter,
or slowed down by other work, which lasts for some windows. Drawn links are slower or faster than
the given one by a factor, alike in both directions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.errors import ParameterError
from optbench.power.profiles import Profile, profile, profile_names
from optbench.shapes.gnn_training.training_data import DeviceLinks, Floats, TrainingDevice

CORE = TrainingDevice("core", 20.0, 8.0, 4.0, 6.0, 4.0, 4.0, (0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
# The share of the peak rate that dense products in float32 reach, and seconds of a kernel launch.
REACHED, LAUNCH_S = 0.1, 5e-6
EQUAL = "equal"
# Of drawn histories: the shares of windows at which a slowdown begins and ends, and the jitter.
BEGINS, ENDS, JITTER = 0.15, 0.4, 0.05


def training_devices(text: str, num_parts: int) -> tuple[TrainingDevice, ...]:
    """Return the devices of ``equal`` (one for each part), ``2:1`` or ``A100+L4``."""
    if text == EQUAL:
        return _cores([1.0] * num_parts)
    words = [each.strip() for each in text.split("+")]
    if len(words) > 1 or words[0] in profile_names():
        return tuple(_of_profile(profile(name)) for name in words)
    try:
        speeds = [float(each) for each in text.split(":")]
    except ValueError:
        if text.strip() and ":" not in text:
            return (_of_profile(profile(text)),)
        speeds = []
    if not speeds or not all(0 < each < np.inf for each in speeds):
        raise ParameterError(
            f"devices is {text!r}; it must be relative speeds, positive numbers such as 2:1, "
            "profiles such as A100+L4, a file such as cores.json, or equal"
        )
    return _cores(speeds)


def _cores(speeds: list[float]) -> tuple[TrainingDevice, ...]:
    """Cores at work for a share of the time; the fastest one works all the time."""
    shares = [each / max(speeds) for each in speeds]
    return tuple(
        replace(
            CORE,
            name=f"core{number}",
            gflops=CORE.gflops * share,
            gb_per_s=CORE.gb_per_s * share,
            alpha_w=CORE.alpha_w * share,
            beta_w=CORE.beta_w * share,
        )
        for number, share in enumerate(shares)
    )


def _of_profile(given: Profile) -> TrainingDevice:
    if given.peak_tflops is None or given.bandwidth_gb_s is None:
        raise ParameterError(
            f"devices: profile {given.name!r} has no peak_tflops or bandwidth_gb_s; add both to "
            "its file"
        )
    law = given.law("training")
    return TrainingDevice(
        given.name,
        given.peak_tflops * 1000 * REACHED,
        given.bandwidth_gb_s,
        given.idle_w,
        law.alpha_p,
        law.beta_p,
        law.gamma_p,
        given.clocks,
        given.memory_gb,
        LAUNCH_S,
    )


def uniform_links(count: int, gb_per_s: float, latency_s: float, overlap: float) -> DeviceLinks:
    """Return alike links between all devices."""
    square = (count, count)
    return DeviceLinks(np.full(square, gb_per_s), np.full(square, latency_s), overlap)


def drawn_speeds(count: int, windows: int, drop: float, rng: np.random.Generator) -> Floats:
    """Return shares of speed by window and device; a slowdown takes up to ``drop`` of the speed."""
    slowed = rng.random(count) < BEGINS / (BEGINS + ENDS)
    level = rng.uniform(0.3, 1.0, count)
    speeds = np.empty((windows, count))
    for w in range(windows):
        speeds[w] = (1.0 - JITTER * rng.random(count)) * np.where(slowed, 1.0 - drop * level, 1.0)
        chance, fresh = rng.random(count), rng.uniform(0.3, 1.0, count)
        begun = ~slowed & (chance < BEGINS)
        level = np.where(begun, fresh, level)
        slowed = begun | (slowed & (chance >= ENDS))
    return speeds


def drawn_links(links: DeviceLinks, factor: float, rng: np.random.Generator) -> DeviceLinks:
    """Return links whose bandwidths are up to ``factor`` times lower or higher."""
    exponent = np.triu(rng.uniform(-1.0, 1.0, links.gb_per_s.shape), 1)
    return replace(links, gb_per_s=links.gb_per_s * factor ** (exponent + exponent.T))
