"""Machines with made-up GPUs; see gpu_machine.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from tests.hardware.gpu_machine import GpuMachine, StubLibraries

MachineMaker = Callable[..., GpuMachine]


@pytest.fixture(scope="session")
def stub_libraries(tmp_path_factory: pytest.TempPathFactory) -> StubLibraries:
    """The stub of NVML, compiled once. Without gcc tests are skipped, but never under CI."""
    if shutil.which("gcc") is None:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail("gcc is missing; under CI the tests of GPUs are not optional")
        pytest.skip("gcc is missing: the stub of NVML cannot be compiled")
    return StubLibraries.compile(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def gpu_machines(
    stub_libraries: StubLibraries, tmp_path_factory: pytest.TempPathFactory
) -> MachineMaker:
    """Makes machines: ``gpu_machines(num_devices=2, old_driver=True, noise=0.01)``."""

    def make(**settings: float | bytes) -> GpuMachine:
        folder = tmp_path_factory.mktemp("machine")
        return GpuMachine(stub_libraries, folder, **settings)  # type: ignore[arg-type]

    return make


@pytest.fixture
def gpu_machine(gpu_machines: MachineMaker) -> GpuMachine:
    """A machine with one GPU that has everything."""
    return gpu_machines()
