"""One calibration of two made-up GPUs, shared by the tests that look at its results."""

from __future__ import annotations

import pytest

from tests.hardware.calibration.gpu_calibrations import calibrated
from tests.hardware.gpu_machine import GpuMachine, StubLibraries


@pytest.fixture(scope="session")
def pair(stub_libraries: StubLibraries, tmp_path_factory: pytest.TempPathFactory) -> GpuMachine:
    """Two devices of one model, calibrated alone and together; the output is in said.json."""
    machine = GpuMachine(stub_libraries, tmp_path_factory.mktemp("pair"), num_devices=2)
    done = calibrated(machine, "--device", "0,1", "--sleep-w", "15", "--json")
    assert done.code == 0, done.err
    (machine.folder / "said.json").write_text(done.out)
    return machine
