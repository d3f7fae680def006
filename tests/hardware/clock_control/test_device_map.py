"""Which device stands for which: given, or the only choice; everything else is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from optbench.errors import OptbenchError, UnknownNameError
from optbench.hardware.clock_control.device_map import MappedDevices, map_devices, parse_map
from optbench.hardware.gpus.nvml_session import GpuDevice
from tests.hardware.clock_control.plans import device, plan_of, segment

ONE_POOL = plan_of(segment("x", 0, 1, (0, 1), 1.0, "a100"))
TWO_POOLS = plan_of(segment("x", 0, 1, (0,), 1.0, "a100"), segment("y", 0, 1, (0, 1), 1.0, "l4"))


def mapped(plan: object, texts: Sequence[str], devices: Sequence[GpuDevice]) -> MappedDevices:
    def find(name: str) -> GpuDevice:
        for each in devices:
            if name in (str(each.index), each.uuid):
                return each
        raise UnknownNameError("GPU", name, (each.uuid for each in devices))

    return map_devices(plan, parse_map(texts, plan), devices, find)  # type: ignore[arg-type]


def uuids(found: MappedDevices) -> dict[str, list[str]]:
    return {pool: [each.uuid for each in own] for pool, own in found.pools.items()}


def test_the_only_choice_needs_no_map() -> None:
    found = mapped(ONE_POOL, [], [device(0), device(1)])
    assert uuids(found) == {"a100": ["GPU-a0", "GPU-a1"]}
    # A device in MIG mode cannot be controlled, and so is no choice.
    found = mapped(ONE_POOL, [], [device(0), device(1, mig=True), device(2)])
    assert uuids(found) == {"a100": ["GPU-a0", "GPU-a2"]}


def test_devices_are_given_in_the_order_of_the_pool() -> None:
    found = mapped(ONE_POOL, ["a100=GPU-a2,0"], [device(k) for k in range(3)])
    assert uuids(found) == {"a100": ["GPU-a2", "GPU-a0"]}
    assert found.device("a100", 0).index == 2


def test_the_last_pool_takes_what_is_left() -> None:
    found = mapped(TWO_POOLS, ["a100=1"], [device(k) for k in range(3)])
    assert uuids(found) == {"a100": ["GPU-a1"], "l4": ["GPU-a0", "GPU-a2"]}


@pytest.mark.parametrize(
    ("texts", "devices", "message"),
    [
        ([], 1, r"too few devices: the schedule needs 2 of pool 'a100'; .* 0: A100 \(GPU-a0\)"),
        ([], 0, "too few devices: .* this machine has none"),
        (
            [],
            3,
            r"not unique: .* 2 of pool 'a100'; free are 0: .* Say it with --map a100=UUID,UUID",
        ),
        (["a100=0,0"], 2, r"--map a100: device '0' \(GPU-a0\) is given twice"),
        (["a100=0,GPU-a0"], 2, r"device 'GPU-a0' \(GPU-a0\) is given twice"),
        (["a100=0"], 2, "--map a100: 1 device is given; the schedule runs on 2 at once"),
        (["a100=0,1,2,3,4"], 5, "--map a100: 5 devices are given; the pool has 4"),
        (["a100=0,9"], 2, "unknown GPU '9'"),
        (["a10=0,1"], 2, "unknown pool in --map 'a10'; did you mean 'a100'"),
        (["a100"], 2, "--map 'a100' is not a mapping; write pool=UUID"),
        (["a100=0,,1"], 2, "--map 'a100=0,,1' is not a mapping"),
        (["a100=0,1", "a100=1,0"], 2, "names pool 'a100' twice"),
    ],
)
def test_what_is_wrong_with_a_map_is_named(texts: list[str], devices: int, message: str) -> None:
    with pytest.raises(OptbenchError, match=message):
        mapped(ONE_POOL, texts, [device(k) for k in range(devices)])


def test_devices_that_are_not_needed_are_said() -> None:
    found = mapped(ONE_POOL, ["a100=2,1,0"], [device(k) for k in range(3)])
    assert uuids(found) == {"a100": ["GPU-a2", "GPU-a1"]}
    (doubt,) = found.doubts
    assert "names 3 devices; the schedule uses the first 2 at most" in doubt
    assert "sets no clock on GPU 0." in doubt
    assert mapped(ONE_POOL, ["a100=0,1"], [device(0), device(1)]).doubts == ()


def test_devices_of_another_memory_are_taken_only_by_name() -> None:
    # The made-up device has 40 GB; 42.9 GB would be 40 GiB, and the same model.
    same = replace(ONE_POOL, memory_gb={"a100": 42.9})
    assert mapped(same, [], [device(0), device(1)]).doubts == ()
    other = replace(ONE_POOL, memory_gb={"a100": 80.0})
    with pytest.raises(OptbenchError, match=r"has 40 GB; .* have 80 GB .*: --map a100=0,1"):
        mapped(other, [], [device(0), device(1)])
    found = mapped(other, ["a100=0,1"], [device(0), device(1)])
    assert len(found.doubts) == 2
    assert all("of another model" in doubt for doubt in found.doubts)


def test_different_models_are_no_unique_choice() -> None:
    with pytest.raises(OptbenchError, match="not unique"):
        mapped(ONE_POOL, [], [device(0), device(1, "L4")])


def test_two_pools_left_are_no_unique_choice() -> None:
    with pytest.raises(OptbenchError, match="--map a100=UUID --map l4=UUID,UUID"):
        mapped(TWO_POOLS, [], [device(k) for k in range(3)])


def test_a_device_stands_for_one_pool() -> None:
    with pytest.raises(OptbenchError, match="of pool 'a100' already"):
        mapped(TWO_POOLS, ["a100=0", "l4=0,1"], [device(k) for k in range(3)])


def test_a_pool_without_clocks_takes_no_devices() -> None:
    plan = plan_of(segment("x", 0, 1, (0,), 1.0, "a100"))
    plan.sizes["cpu"] = 8
    with pytest.raises(OptbenchError, match="sets no clock on pool 'cpu'; it does on 1 of pool"):
        mapped(plan, ["cpu=0"], [device(0)])
