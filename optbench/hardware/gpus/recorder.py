"""Record devices into a file: sampling, energy and provenance put together.

Whatever ends a recording early (a stop, a lost device), what was read until then is a whole file,
whose metadata say how it ended.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optbench.hardware.gpus.device_reader import DeviceReader, QuickValues, SlowValues
from optbench.hardware.gpus.energy_integral import EnergyAccount, EnergyIntegral
from optbench.hardware.gpus.gpu_device import GpuDevice
from optbench.hardware.gpus.nvml_errors import GpuError
from optbench.hardware.gpus.nvml_session import GpuSession
from optbench.hardware.gpus.recording_file import (
    RecordedGpu,
    RecordingInfo,
    RecordingWriter,
    Row,
    columns_of,
    versions,
    writing,
)
from optbench.hardware.gpus.sampling_loop import SamplingListener, SamplingResult, sample

# Readings of a device that are collected before its integral takes them.
READINGS_AT_ONCE = 1024


@dataclass(frozen=True)
class RecordingEnd:
    """A recording that is on disk: its description, and the errors of devices that were lost."""

    info: RecordingInfo
    energies: tuple[EnergyAccount, ...]
    errors: tuple[GpuError, ...]


class Recorder(SamplingListener):
    """Takes readings, into the file and into the integrals."""

    def __init__(
        self,
        readers: Sequence[DeviceReader],
        period_s: float,
        writer: RecordingWriter,
        tick: Callable[[float], None],
        lose: Callable[[GpuError], None],
    ) -> None:
        self.readers, self.writer = readers, writer
        self._tick, self._lose = tick, lose
        self.integrals = [
            EnergyIntegral(period_s, each.power_window_s, each.device.missing.get("energy_counter"))
            for each in readers
        ]
        self._pending: list[list[Row]] = [[] for _ in readers]
        self.began_s = time.monotonic()

    def take(self, position: int, moment: QuickValues, slow: SlowValues) -> None:
        """One reading of one device."""
        t_s, power_w, energy_j, clock_mhz, reasons = moment
        index = self.readers[position].device.index
        row = (index, t_s - self.began_s, power_w, energy_j, clock_mhz, *slow, reasons)
        self.writer.add(row)
        pending = self._pending[position]
        pending.append(row)
        if len(pending) >= READINGS_AT_ONCE:
            self._integrate(position)

    def tick(self, passed_s: float) -> None:
        self._tick(passed_s)

    def lose(self, position: int, error: GpuError) -> None:
        self._lose(error)

    def _integrate(self, position: int) -> None:
        self.integrals[position].add(*columns_of(self._pending[position]))
        self._pending[position].clear()

    def accounts(self) -> tuple[EnergyAccount, ...]:
        """The energy of every device."""
        for position in range(len(self.readers)):
            self._integrate(position)
        return tuple(integral.account() for integral in self.integrals)


def record(
    session: GpuSession,
    devices: Sequence[GpuDevice],
    path: Path,
    period_s: float,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    tick: Callable[[float], None] = lambda passed_s: None,
    lose: Callable[[GpuError], None] = lambda error: None,
) -> RecordingEnd:
    """Record devices for ``seconds``, or until ``stop`` is set; ``lose`` is called for a device
    that stops answering.
    """
    readers = [session.reader(device) for device in devices]
    with writing(path) as writer:
        began_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        recorder = Recorder(readers, period_s, writer, tick, lose)
        result = sample(readers, period_s, seconds, stop or threading.Event(), recorder)
        accounts = recorder.accounts()
        if not any(account.num_readings for account in accounts):
            raise next(iter(result.lost.values()))  # the file does not appear
        gpus = tuple(
            _recorded(reader, account, result.lost.get(position))
            for position, (reader, account) in enumerate(zip(readers, accounts, strict=True))
        )
        info = _info(began_at, period_s, seconds, result, gpus)
        writer.close(info)
    return RecordingEnd(info, accounts, tuple(result.lost.values()))


def _info(
    began_at: str,
    period_s: float,
    seconds: float | None,
    result: SamplingResult,
    gpus: tuple[RecordedGpu, ...],
) -> RecordingInfo:
    return RecordingInfo(
        began_at,
        platform.node(),
        period_s,
        seconds,
        result.span_s,
        result.ended,
        result.ticks,
        result.missed_ticks,
        result.processor_s,
        versions(),
        gpus,
    )


def _recorded(reader: DeviceReader, account: EnergyAccount, error: GpuError | None) -> RecordedGpu:
    device = reader.device
    return RecordedGpu(
        device.index,
        device.uuid,
        device.name,
        device.driver,
        reader.power_window_s,
        device.missing,
        None if error is None else f"{error.call}: {error.words}",
        energy_document(account),
    )


def energy_document(account: EnergyAccount) -> dict[str, Any]:
    """An account with its figure, for JSON."""
    derived = ("energy_j", "error_j", "source", "difference", "agrees", "within_error")
    return {name: getattr(account, name) for name in derived} | asdict(account)
