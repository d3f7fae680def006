"""What a training drew, kept in the header of its checkpoint so that it travels with the file.

Most checkpoints are files of safetensors: eight bytes with the length of a JSON header, the header,
whose ``__metadata__`` holds texts by name, and the tensors. The energy is a text of its own there.
Readers of checkpoints ignore it, and the tensors stay as they are. In a checkpoint that is a JSON
object it is one more entry.

Until the training has ended the figure is in a ledger beside the checkpoint: a training that was
stopped or killed and continues adds to it. Beside a checkpoint of any other format the ledger
stays.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from optbench.errors import FileFormatError
from optbench.files import replacing, write_whole
from optbench.hardware.run_energy import RunEnergy

# The parameter by which a learned solver is given its checkpoint.
CHECKPOINT = "checkpoint"
KEY, METADATA, LENGTH_BYTES = "optbench_energy", "__metadata__", 8
# The specification allows no longer header.
MOST_HEADER_BYTES = 100_000_000
SUMMED = ("energy_j", "cpu_j", "cpu_s", "device_error_j", "runs")


def ledger_of(checkpoint: Path) -> Path:
    """The file that holds the energy of a training that has not ended."""
    return checkpoint.with_name(f"{checkpoint.name}.energy.json")


def energy_of_training(run: RunEnergy) -> dict[str, Any]:
    """Return the energy of a training that ran once, as plain JSON."""
    found = run.to_dict()
    shared = found["cpu_shared"] or found["device_shared"]
    names = ("energy_j", "cpu_j", "cpu_s", "device_j", "device_error_j", "estimated")
    out = {name: found[name] for name in (*names, "complete", "notes")}
    return {**out, "shared": shared, "runs": 1, "unknown": []}


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the energy of two parts of a training."""
    devices = [each["device_j"] for each in (one, other) if each["device_j"] is not None]
    out = {name: one[name] + other[name] for name in SUMMED}
    return {
        **out,
        "device_j": sum(devices) if devices else None,
        "estimated": one["estimated"] or other["estimated"],
        "complete": is_complete(one) and is_complete(other),
        "shared": one["shared"] or other["shared"],
        "notes": list(dict.fromkeys([*one["notes"], *other["notes"]])),
        "unknown": list(dict.fromkeys([*one["unknown"], *other["unknown"]])),
    }


def is_complete(energy: Mapping[str, Any]) -> bool:
    """Whether nothing of an energy is missing, as far as its record says: older ones do not."""
    return bool(energy.get("complete", True))


def write_ledger(checkpoint: Path, energy: Mapping[str, Any]) -> None:
    write_whole(ledger_of(checkpoint), json.dumps(energy, allow_nan=False))


def read_ledger(checkpoint: Path) -> dict[str, Any] | None:
    path = ledger_of(checkpoint)
    if not path.is_file():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        return added(found, {**found, **dict.fromkeys(SUMMED, 0), "device_j": None})
    except (ValueError, TypeError, KeyError):
        raise FileFormatError(
            f"{path}: not the energy of a training; remove it, and the energy of the training is "
            "counted from now on"
        ) from None


def read_training_energy(checkpoint: Path) -> dict[str, Any] | None:
    """Return what the training of a checkpoint drew; None where that is not known."""
    try:
        return _read(checkpoint, checkpoint.stat().st_mtime_ns) or read_ledger(checkpoint)
    except OSError:  # the solver that uses the checkpoint reports it
        return None


@lru_cache(maxsize=16)
def _read(checkpoint: Path, _modified_ns: int) -> dict[str, Any] | None:
    with checkpoint.open("rb") as file:
        header = _header(file)
        found = _json_object(file) if header is None else header.get(METADATA)
    kept = found.get(KEY) if isinstance(found, dict) else None
    with suppress(ValueError):
        energy = json.loads(kept) if isinstance(kept, str) else kept
        return energy if isinstance(energy, dict) and "energy_j" in energy else None
    return None


def keep_with(checkpoint: Path, energy: Mapping[str, Any]) -> None:
    """Put the energy of a finished training into its checkpoint, atomically, or else beside it."""
    with checkpoint.open("rb") as file:
        header = _header(file)
        found = _json_object(file) if header is None else None
        if header is not None:
            _write_header(checkpoint, header, file, energy)
        elif found is not None:
            text = json.dumps({**found, KEY: energy}, allow_nan=False)
            write_whole(checkpoint, f"{text}\n")
        else:
            write_ledger(checkpoint, energy)
            return
    ledger_of(checkpoint).unlink(missing_ok=True)


def _write_header(
    checkpoint: Path, header: dict[str, Any], tensors: BinaryIO, energy: Mapping[str, Any]
) -> None:
    header[METADATA] = header.get(METADATA, {}) | {KEY: json.dumps(energy, allow_nan=False)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH_BYTES)
    with replacing(checkpoint) as fresh, fresh.open("wb") as out:
        out.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        shutil.copyfileobj(tensors, out)


def _header(file: BinaryIO) -> dict[str, Any] | None:
    """Read the header of safetensors; the file then stands at the first tensor. None if there is
    no such header: the first eight bytes of a text are a far longer length than is allowed.
    """
    length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    header = _parsed(file.read(length)) if length <= MOST_HEADER_BYTES else None
    return header if header is not None and isinstance(header.get(METADATA, {}), dict) else None


def _json_object(file: BinaryIO) -> dict[str, Any] | None:
    """Read a file that is one JSON object; None for any other."""
    file.seek(0)
    return _parsed(file.read()) if file.read(1) == b"{" and not file.seek(0) else None


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
