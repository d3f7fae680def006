"""The energy of a run as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from optbench.hardware.run_energy import DeviceEnergy, RunEnergy

CPU = RunEnergy(30.0, "powercap", 2.0, 0.5, notes=("processors: a lower bound",))
GPUS = DeviceEnergy({"GPU-a": 100.0, "GPU-b": 20.0}, "counter and power", 3.0, True, ("seen",))


def test_the_parts_add_up_and_return_from_json() -> None:
    whole = CPU.with_devices(GPUS)
    data = json.loads(json.dumps(whole.to_dict()))
    assert (data["energy_j"], data["cpu_j"], data["device_j"]) == (150.0, 30.0, 120.0)
    assert data["notes"] == ["processors: a lower bound", "seen"] and not data["estimated"]
    assert RunEnergy.from_dict(data).to_dict() == data


def test_what_is_missing_in_a_part_is_missing_in_the_whole() -> None:
    assert CPU.with_devices(GPUS).complete and CPU.to_dict()["complete"]
    for whole in (
        replace(CPU, cpu_complete=False),
        CPU.with_devices(replace(GPUS, complete=False)),
    ):
        assert not whole.to_dict()["complete"]
        assert not RunEnergy.from_dict(whole.to_dict()).with_devices(GPUS).complete
    older = {name: each for name, each in CPU.to_dict().items() if name != "complete"}
    assert RunEnergy.from_dict(older).complete


def test_no_device_is_not_zero_joules_of_one() -> None:
    assert CPU.to_dict()["device_j"] is None and CPU.energy_j == 30.0
    assert CPU.shared_with_others().to_dict()["cpu_shared"]
