"""Recordings of devices as Parquet: a row per device and tick, and who measured what in the file's
metadata.

    columns   gpu (index), t_s (since the recording began), power_w, energy_j (the counter),
              clock_mhz, memory_clock_mhz, temperature_c, utilisation (0 to 1), throttle_reasons
    metadata  "optbench.recording": JSON of RecordingInfo

What the driver does not say is null. A file appears whole or not at all: it is written beside its
path and renamed at the end. The writer holds a lock on it, by which the next recording to the same
path knows the file of a killed one, and removes it.
"""

from __future__ import annotations

import fcntl
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench import __version__
from optbench.errors import FileFormatError
from optbench.files import replacing, unfinished
from optbench.hardware.gpus.gpu_device import reason_words
from optbench.hardware.gpus.sampling_loop import Ended

FORMAT = "optbench-gpu-recording"
FORMAT_VERSION = 1
KEY = b"optbench.recording"
FLOATS = ("t_s", "power_w", "energy_j", "clock_mhz", "memory_clock_mhz", "temperature_c")
COLUMNS = ("gpu", *FLOATS, "utilisation", "throttle_reasons")
# Rows that are collected before they are written.
ROWS_AT_ONCE = 8192
# Index, seconds, watts, joules, MHz, MHz of the memory, degrees, utilisation, bits of reasons.
Row = tuple[int, float, float, float, float, float, float, float, int]


@dataclass(frozen=True)
class RecordedGpu:
    """A device of a recording, and what its energy came to."""

    index: int
    uuid: str
    name: str
    driver: str
    power_window_s: float
    missing: Mapping[str, str]
    # Why it stopped answering; None if it did not.
    lost: str | None
    # An EnergyAccount with its figure.
    energy: Mapping[str, Any]


@dataclass(frozen=True)
class RecordingInfo:
    """Who measured what, when and how."""

    began_at: str  # ISO 8601, UTC
    host: str
    period_s: float
    seconds: float | None  # asked for; None: until stopped
    span_s: float
    ended: Ended
    ticks: int
    missed_ticks: int
    processor_s: float
    versions: Mapping[str, str]
    gpus: tuple[RecordedGpu, ...]


@dataclass(frozen=True)
class GpuRecording:
    """A recording read from its file: a numpy array per column, NaN for null."""

    info: RecordingInfo
    columns: Mapping[str, NDArray[Any]]

    def of(self, index: int) -> dict[str, NDArray[Any]]:
        """The columns of one device."""
        mine = self.columns["gpu"] == index
        return {name: column[mine] for name, column in self.columns.items()}


def versions() -> dict[str, str]:
    """What read the devices and wrote the file."""
    names = ("nvidia-ml-py", "pyarrow", "numpy")
    found = {"optbench": __version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in names}


class RecordingWriter:
    """Rows on their way into a file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter

        words = pa.dictionary(pa.int16(), pa.string())
        kinds = [pa.int16(), *[pa.float64()] * (len(FLOATS) + 1), words]
        self.schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
        self._writer = ParquetWriter(path, self.schema)
        self._rows: list[Row] = []
        self.num_rows = 0

    def add(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what has been collected."""
        import pyarrow as pa

        if not self._rows:
            return
        *numbers, bits = zip(*self._rows, strict=True)
        kinds = self.schema.types[:-1]
        columns = [
            pa.array(np.asarray(values), type=kind, from_pandas=True)
            for values, kind in zip(numbers, kinds, strict=True)
        ]
        words = {each: ", ".join(reason_words(each)) for each in set(bits)}
        reasons = pa.array([words[each] for each in bits]).dictionary_encode()
        columns.append(reasons.cast(self.schema.types[-1]))
        self._writer.write_table(pa.table(columns, schema=self.schema))
        self.num_rows += len(self._rows)
        self._rows.clear()

    def close(self, info: RecordingInfo | None) -> None:
        """Write the rest and the metadata; without them the file is not worth keeping. What is
        closed stays closed.
        """
        if info is not None:
            self.flush()
            document = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(info)}
            self._writer.add_key_value_metadata({KEY: json.dumps(document).encode()})
        self._writer.close()


@contextmanager
def writing(path: Path) -> Iterator[RecordingWriter]:
    """A writer whose file appears at ``path`` at the end, unless there was an exception."""
    remove_leftovers(path)
    with replacing(path) as fresh, fresh.open("xb") as locked:
        with suppress(OSError):  # a file system without locks: the process number has to do
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        writer = RecordingWriter(fresh)
        try:
            yield writer
        finally:
            writer.close(None)


def remove_leftovers(path: Path) -> None:
    """Remove what killed recordings to the same path have left: no process of this host has the
    number in the name, and none of any host holds the lock."""
    for fresh, pid in unfinished(path):
        with suppress(OSError):
            if not Path(f"/proc/{pid}").exists() and not _is_locked(fresh):
                fresh.unlink()


def _is_locked(path: Path) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def read_recording(path: str | Path) -> GpuRecording:
    """Read a recording; raise FileFormatError for any other file."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            table, text = file.read(), (file.metadata.metadata or {}).get(KEY)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise FileFormatError(
            f"{path} is no Parquet file: {error}; `optbench gpu record -o FILE` writes one"
        ) from None
    if text is None or not set(COLUMNS) <= set(table.column_names):
        raise FileFormatError(
            f"{path} has no metadata {KEY.decode()!r}: it is no recording of `optbench gpu record`"
        )
    document = json.loads(text)
    if document.pop("format", None) != FORMAT or document.pop("format_version") != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} is a recording of another version; this optbench reads version "
            f"{FORMAT_VERSION}"
        )
    gpus = tuple(RecordedGpu(**each) for each in document.pop("gpus"))
    columns = {name: _column(table, name) for name in COLUMNS}
    return GpuRecording(RecordingInfo(**document, gpus=gpus), columns)


def _column(table: Any, name: str) -> NDArray[Any]:
    if name == "throttle_reasons":
        return np.array(table.column(name).to_pylist(), dtype=object)
    found: NDArray[Any] = table.column(name).to_numpy()
    return found


def columns_of(rows: Sequence[Row]) -> tuple[NDArray[np.float64], ...]:
    """Seconds, watts and joules of rows."""
    picked = np.array([row[1:4] for row in rows], dtype=float).reshape(-1, 3)
    return picked[:, 0], picked[:, 1], picked[:, 2]
