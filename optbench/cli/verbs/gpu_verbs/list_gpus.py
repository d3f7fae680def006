"""``optbench gpu list``: the devices of this host and what each says at the moment."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.gpu_devices import unit
from optbench.cli.terminal.output import BAD, DIM, emit_json, escape, figure, percent, show, table
from optbench.cli.terminal.parser import Parser
from optbench.hardware.clock_control.journal import locked_range
from optbench.hardware.gpus.locked_clocks import LockedClocks, locked_clocks
from optbench.hardware.gpus.nvml_session import (
    NO_GPU,
    GpuDevice,
    GpuError,
    GpuReading,
    GpuSession,
    GpuUnavailableError,
    gpu_session,
)

DESCRIPTION = (
    "Show the GPUs of this host: clocks that are supported and locked, power, energy counter, "
    "temperature, utilisation, and why a clock is not higher. NVIDIA's driver cannot say which "
    "clocks are locked: shown is what optbench itself set, else what can be inferred under load, "
    "else `unknown`. Without a driver the list is empty, the reason is shown, and the exit code is "
    "0."
)
EXAMPLES = ("optbench gpu list", "optbench gpu list --json")


@dataclass(frozen=True)
class ListedGpu:
    """A device with what it said."""

    device: GpuDevice
    reading: GpuReading
    locked: LockedClocks


def configure(parser: Parser) -> None:
    del parser  # it takes no arguments of its own


def run(args: argparse.Namespace) -> int:
    try:
        with gpu_session() as session:
            listed, failed = read_all(session)
            driver = session.driver
    except GpuUnavailableError as error:
        if args.json:
            emit_json({"driver": None, "reason": error.reason, "devices": [], "unreadable": []})
        else:
            show(f"no GPUs: {escape(error.reason)}")
        return exits.DONE
    reason = None if listed or failed else NO_GPU
    if args.json:
        document = {"driver": driver, "reason": reason, "devices": [as_json(e) for e in listed]}
        failures = [{"device": e.device, "call": e.call, "reason": e.words} for e in failed]
        emit_json({**document, "unreadable": failures})
    else:
        show_all(driver, listed, failed, reason)
    return exits.DONE


def read_all(session: GpuSession) -> tuple[list[ListedGpu], list[GpuError]]:
    """Every device, and the errors of those that do not answer."""
    listed = []
    devices = session.devices()
    failed = list(session.unreadable)
    for device in devices:
        try:
            reading = session.read(device)
        except GpuError as error:
            failed.append(error)
        else:
            locked = locked_clocks(device, reading, locked_range(device.uuid))
            listed.append(ListedGpu(device, reading, locked))
    return listed, failed


def as_json(listed: ListedGpu) -> dict[str, Any]:
    """A device with its reading under ``now`` and its locked clocks."""
    now = asdict(listed.reading)
    del now["t_s"]  # a clock of this host alone
    return {**asdict(listed.device), "now": now, "locked_clocks": asdict(listed.locked)}


def show_all(
    driver: str, listed: list[ListedGpu], failed: list[GpuError], reason: str | None
) -> None:
    """Show a table, and below it what is missing."""
    show(f"driver {escape(driver)}" if reason is None else f"no GPUs: {escape(reason)}")
    if listed:
        heads = ("GPU", "", "clock", "locked", "power", "counter", "temp", "used", "not higher for")
        right = ("GPU", "clock", "power", "counter", "temp", "used")
        show("", table(heads, [row_of(each) for each in listed], right=right))
    for each in listed:
        show("", f"[bold]{each.device.index}[/]  {escape(details_of(each.device))}")
        for capability, why in each.device.missing.items():
            words = capability.replace("_", " ")
            show(f"   [{DIM}]no {escape(words)}: {escape(why)}[/]")
    for error in failed:
        show(f"[{BAD}]{escape(str(error))}[/]")


def details_of(device: GpuDevice) -> str:
    """``GPU-...  40 GB, limit 400 W, clocks 210 to 1410 MHz (81)``."""
    parts = []
    if device.memory_gb is not None:
        parts.append(f"{figure(device.memory_gb)} GB")
    if device.power_limit_w is not None:
        parts.append(f"limit {figure(device.power_limit_w)} W")
    if device.clocks_mhz:
        low, high, count = device.clocks_mhz[0], device.clocks_mhz[-1], len(device.clocks_mhz)
        parts.append(f"clocks {low} to {high} MHz ({count})")
    if device.mig:
        parts.append("MIG is enabled")
    return f"{device.uuid}  {', '.join(parts)}"


def row_of(listed: ListedGpu) -> tuple[str, ...]:
    """The cells of a device."""
    device, now = listed.device, listed.reading
    mean = f" (mean of {now.power_window_s:g} s)" if now.power_window_s else ""
    return (
        str(device.index),
        escape(device.name),
        unit(now.clock_mhz, "MHz"),
        escape(listed.locked.words),
        unit(now.power_w, "W") + (mean if now.power_w is not None else ""),
        unit(now.energy_j, "J"),
        unit(now.temperature_c, "°C"),
        percent(now.utilisation),
        escape(", ".join(now.throttle_reasons) or "-"),
    )
