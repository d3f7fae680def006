"""Our own load on the processor: its kernels do what they say, and it prints what was done."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from optbench.hardware.calibration import torch_load

CPU = torch.device("cpu")


def test_names_of_devices() -> None:
    assert torch_load.devices_of("0,3") == [torch.device("cuda:0"), torch.device("cuda:3")]
    assert torch_load.devices_of("cpu") == [CPU]


@pytest.mark.parametrize("kernel", sorted(torch_load.KERNELS))
def test_a_kernel_prints_the_units_of_all_devices(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cpu,cpu", "8", "--kernel", kernel, "--seconds", "0.05", "--warm-up", "0.01"]
    assert torch_load.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        units, seconds = (float(word.partition("=")[2]) for word in line.split())
        assert units % 2 == 0 and units >= 2 and 0 < seconds < 5


def test_a_program_of_its_own_that_a_calibration_starts() -> None:
    words = [sys.executable, "-m", "optbench.hardware.calibration.torch_load", "cpu", "200"]
    words += ["--seconds", "0.05", "--warm-up", "0.01"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("units=")


def test_a_product_is_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = torch.matmul

    def recorded(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        result = real(left, right, out=out)
        seen.append((left, right, out))
        return result

    monkeypatch.setattr(torch, "matmul", recorded)
    torch_load.matmul([CPU], 5)()
    ((left, right, out),) = seen
    assert out.shape == (5, 5)
    assert torch.allclose(out, torch.einsum("ik,kj->ij", left, right))


def test_gradients_are_averaged_over_devices() -> None:
    """Gradients 1 and 3 of one weight on two devices: both become 2."""
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    for weight, gradient in zip(weights, (1.0, 3.0), strict=True):
        weight.grad = torch.tensor([gradient])
    torch_load.average_gradients([[weight] for weight in weights])
    assert [weight.grad.item() for weight in weights if weight.grad is not None] == [2.0, 2.0]


def test_work_counts_what_it_repeats() -> None:
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1

    repeats, spent_s = torch_load.work(step, [CPU], 0.01)
    assert repeats == calls and spent_s >= 0.01
