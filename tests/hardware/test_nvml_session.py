"""The session with NVML, and ``optbench gpu list``, against a made-up machine."""

from __future__ import annotations

import pytest

from tests.hardware.gpu_machine import GpuMachine


def test_list_shows_what_a_device_says(gpu_machine: GpuMachine) -> None:
    # P(1) = 150 + 50 + 50 = 250 W at the highest clock, 1410 MHz.
    load = gpu_machine.load([0], seconds=60)
    (found,) = gpu_machine.run(["gpu", "list", "--json"]).json["devices"]
    load.kill()
    load.communicate()
    assert found["uuid"] == gpu_machine.uuid() and found["missing"] == {}
    assert found["clocks_mhz"] == list(range(210, 1411, 15))
    assert (found["now"]["power_w"], found["now"]["power_window_s"]) == (250.0, 0.0)
    assert (found["now"]["clock_mhz"], found["now"]["utilisation"]) == (1410, 1.0)
    assert found["locked_clocks"]["state"] == "not locked"


@pytest.mark.parametrize("words", [["gpu", "list"], ["gpu", "list", "--json"]])
def test_the_list_is_empty_without_a_driver(gpu_machine: GpuMachine, words: list[str]) -> None:
    done = gpu_machine.run(words, LD_LIBRARY_PATH="")
    assert done.code == 0 and "libnvidia-ml.so.1 not found" in done.out
    if "--json" in words:
        assert done.json["devices"] == [] and done.json["driver"] is None
