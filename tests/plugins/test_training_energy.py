"""The energy of a training: in the header of its checkpoint, in a ledger until it has ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from optbench.errors import FileFormatError
from optbench.hardware.run_energy import DeviceEnergy, RunEnergy
from optbench.plugins.training_energy import (
    added,
    energy_of_training,
    keep_with,
    ledger_of,
    read_ledger,
    read_training_energy,
    write_ledger,
)

PROCESSORS = energy_of_training(RunEnergy(30.0, "estimate", 2.5, assumed_w=12.0, notes=("why",)))
BOTH = energy_of_training(
    RunEnergy(5.0, "powercap", 1.0, 0.5, True).with_devices(DeviceEnergy({"GPU-a": 100.0}))
)


def test_it_travels_in_the_header_and_the_tensors_stay(tmp_path: Path) -> None:
    file, about = tmp_path / "net.safetensors", {"optbench": json.dumps({"format": "x"})}
    weights: dict[str, np.ndarray[Any, Any]] = {
        "a": np.arange(7, dtype=np.float32),
        "b": np.ones(6),
    }
    save_file(weights, file, metadata=about)
    assert read_training_energy(file) is None
    write_ledger(file, BOTH)
    keep_with(file, PROCESSORS)
    keep_with(file, BOTH)
    moved = file.rename(tmp_path / "elsewhere.safetensors")
    assert read_training_energy(moved) == BOTH and not ledger_of(file).exists()
    with safe_open(str(moved), framework="numpy") as found:
        assert found.metadata()["optbench"] == about["optbench"]
    for name, each in load_file(moved).items():
        np.testing.assert_array_equal(each, weights[name])


def test_a_checkpoint_in_json_has_it_as_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"theta": [1.5, 2.0]}))
    keep_with(file, PROCESSORS)
    assert json.loads(file.read_text())["theta"] == [1.5, 2.0]
    assert read_training_energy(file) == PROCESSORS


def test_beside_any_other_checkpoint_it_stays_in_the_ledger(tmp_path: Path) -> None:
    file = tmp_path / "net.bin"
    file.write_bytes(b"\x00\x01weights")
    keep_with(file, PROCESSORS)
    assert file.read_bytes() == b"\x00\x01weights"
    assert ledger_of(file).is_file() and read_training_energy(file) == PROCESSORS


@pytest.mark.parametrize("content", [b"", b"\x05\x00\x00\x00\x00\x00\x00\x00[1,2]", b"[1]", b"{"])
def test_a_file_that_says_nothing_is_unknown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "net"
    assert read_training_energy(file) is None
    file.write_bytes(content)
    assert read_training_energy(file) is None


def test_parts_of_a_training_add_up() -> None:
    whole = added(PROCESSORS, BOTH)
    # 30 + 105 J, of which 35 J of processors; half of it is estimated, so that all of it is.
    assert (whole["energy_j"], whole["cpu_j"], whole["cpu_s"]) == (135.0, 35.0, 3.5)
    assert (whole["device_j"], whole["runs"]) == (100.0, 2)
    assert whole["estimated"] and whole["shared"] and whole["notes"] == ["why"]
    assert whole["complete"] and not added(PROCESSORS, {**BOTH, "complete": False})["complete"]
    older = {name: each for name, each in BOTH.items() if name != "complete"}
    assert added(PROCESSORS, older)["complete"]


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    file = tmp_path / "net"
    write_ledger(file, BOTH)
    assert read_ledger(file) == BOTH
    ledger_of(file).write_text('{"energy_j": 3}')
    with pytest.raises(FileFormatError, match=r"net\.energy\.json: not the energy of a training"):
        read_ledger(file)
