"""Our own load: ``python -m optbench.hardware.calibration.torch_load DEVICES SIZE``.

DEVICES are numbers of CUDA devices or ``cpu``, with commas between. All devices do the same work at
the same time; a unit is one piece of work on one device, as in the law of time, whose term γ_t n is
what several devices spend on each other:

    matmul     a product of two matrices of SIZE × SIZE; devices wait for each other
    copy       a copy of SIZE MB within the memory of the device; devices wait for each other
    training   a step of a small network of width SIZE; devices average their gradients

Each line says what was done since the line before. Nothing counts before a warm-up.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

WARM_UP_S, LINE_S = 1.0, 0.25
LAYERS, BATCH, CLASSES = 3, 256, 10
FLOATS_PER_MB = 250_000

Step = Callable[[], None]


def matmul(devices: Sequence[torch.device], size: int) -> Step:
    """A product on every device."""
    import torch

    pairs = [
        (torch.rand(size, size, device=device), torch.rand(size, size, device=device))
        for device in devices
    ]
    outs = [torch.empty(size, size, device=device) for device in devices]

    def step() -> None:
        for (left, right), out in zip(pairs, outs, strict=True):
            torch.matmul(left, right, out=out)

    return step


def copy(devices: Sequence[torch.device], size: int) -> Step:
    """A copy on every device."""
    import torch

    floats = size * FLOATS_PER_MB
    froms = [torch.rand(floats, device=device) for device in devices]
    tos = [torch.empty(floats, device=device) for device in devices]

    def step() -> None:
        for source, goal in zip(froms, tos, strict=True):
            goal.copy_(source)

    return step


def training(devices: Sequence[torch.device], size: int) -> Step:
    """A step of stochastic gradient descent on every device, with averaged gradients."""
    import torch
    from torch import nn

    def network(device: torch.device) -> nn.Module:
        layers: list[nn.Module] = []
        for _ in range(LAYERS):
            layers += [nn.Linear(size, size), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(size, CLASSES)).to(device)

    networks = [network(device) for device in devices]
    weights = [list(each.parameters()) for each in networks]
    for other in weights[1:]:
        for mine, first in zip(other, weights[0], strict=True):
            mine.data.copy_(first.data)
    inputs = [torch.rand(BATCH, size, device=device) for device in devices]
    labels = [torch.randint(CLASSES, (BATCH,), device=device) for device in devices]
    optimisers = [torch.optim.SGD(each, lr=0.01) for each in weights]

    def step() -> None:
        for net, x, y in zip(networks, inputs, labels, strict=True):
            torch.autograd.backward(nn.functional.cross_entropy(net(x), y))
        if len(devices) > 1:
            average_gradients(weights)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()

    return step


def average_gradients(weights: Sequence[Sequence[torch.nn.Parameter]]) -> None:
    """Give every device the mean of all gradients, through the first device."""
    for same in zip(*weights, strict=True):
        gradients = [each.grad for each in same if each.grad is not None]
        total = gradients[0]
        for other in gradients[1:]:
            total = total + other.to(total.device)
        for each in gradients:
            each.copy_(total / len(gradients))


KERNELS: dict[str, Callable[[Sequence[torch.device], int], Step]] = {
    "matmul": matmul,
    "copy": copy,
    "training": training,
}


def synchronise(devices: Sequence[torch.device]) -> None:
    """Wait until the devices have done what was given to them."""
    import torch

    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def devices_of(words: str) -> list[torch.device]:
    import torch

    return [torch.device(f"cuda:{word}" if word.isdigit() else word) for word in words.split(",")]


def work(step: Step, devices: Sequence[torch.device], seconds: float) -> tuple[int, float]:
    """Repeat a step for some seconds; return its repeats and the time that they took.

    The batch between two synchronisations grows until it takes a tenth of the time, so that the
    launch of a short kernel does not wait for the one before."""
    began_s, done, batch = time.perf_counter(), 0, 1
    while True:
        for _ in range(batch):
            step()
        synchronise(devices)
        done += batch
        spent_s = time.perf_counter() - began_s
        if spent_s >= seconds:
            return done, spent_s
        batch = max(1, int(done / spent_s * min(seconds / 10, seconds - spent_s)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("devices")
    parser.add_argument("size", type=int)
    parser.add_argument("--kernel", choices=sorted(KERNELS), default="matmul")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=WARM_UP_S)
    args = parser.parse_args(argv)
    devices = devices_of(args.devices)
    step = KERNELS[args.kernel](devices, args.size)
    work(step, devices, args.warm_up)
    end_s = time.perf_counter() + args.seconds
    while (left_s := end_s - time.perf_counter()) > 0:
        repeats, spent_s = work(step, devices, min(LINE_S, left_s))
        sys.stdout.write(f"units={repeats * len(devices)} seconds={spent_s:.9f}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
