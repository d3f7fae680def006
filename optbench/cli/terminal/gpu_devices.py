"""Arguments and lines that the verbs on GPUs share: which devices, and one line on a reading."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from optbench.cli.terminal.output import figure
from optbench.cli.terminal.parser import Parser, UsageError, seconds
from optbench.errors import OptbenchError
from optbench.hardware.gpus.nvml_session import (
    NO_GPU,
    GpuDevice,
    GpuSession,
    GpuUnavailableError,
)

# Shorter than this, a driver has no new readings.
SHORTEST_PERIOD_S = 0.01


def add_devices(parser: Parser) -> None:
    parser.option(
        "--devices LIST", "indices or UUIDs with commas between them (default: all that answer)"
    )


def period(text: str) -> float:
    """A period of sampling: ``50ms``."""
    value = seconds(text)
    if value < SHORTEST_PERIOD_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is too short; drivers have new readings every 20 to 100 ms, it takes "
            f"{1e3 * SHORTEST_PERIOD_S:g}ms or more"
        )
    return value


def chosen_devices(session: GpuSession, text: str | None) -> tuple[GpuDevice, ...]:
    """The devices that ``--devices`` names; what does not answer is told on stderr."""
    if text is not None:
        words = [word for word in text.split(",") if word.strip()]
        found = tuple({device.uuid: device for device in map(session.find, words)}.values())
    else:
        found = session.devices()
        for error in session.unreadable:
            sys.stderr.write(f"optbench: {error}\n")
    if not found:
        if session.unreadable:
            raise OptbenchError("no GPU answers; `optbench gpu list` shows what each of them says")
        if text is not None:
            raise UsageError(f"--devices {text!r} names no device; known: `optbench gpu list`")
        raise GpuUnavailableError(NO_GPU)
    return found


def unit(value: float | None, name: str, write: Callable[[float], str] = figure) -> str:
    """A figure with its unit; ``-`` for None."""
    return "-" if value is None else f"{write(value)} {name}"
