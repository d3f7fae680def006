"""Which device of the machine stands for which device of a pool: ``--map pool=UUID,UUID``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optbench.errors import OptbenchError, ParameterError, UnknownNameError
from optbench.hardware.clock_control.planned_clocks import ClockPlan

if TYPE_CHECKING:
    from optbench.hardware.gpus.nvml_session import GpuDevice

# GB of a data sheet may be GiB of the driver, a difference of 7 %, and some of it is reserved.
SAME_MEMORY = 0.15


@dataclass(frozen=True)
class MappedDevices:
    """The devices of each pool, in the order of their numbers in the plan."""

    pools: Mapping[str, tuple[GpuDevice, ...]]
    given: bool
    # What a user should know before clocks are locked, in sentences.
    doubts: tuple[str, ...] = ()

    def device(self, pool: str, place: int) -> GpuDevice:
        return self.pools[pool][place]

    @property
    def all(self) -> tuple[GpuDevice, ...]:
        return tuple(device for own in self.pools.values() for device in own)


def parse_map(texts: Iterable[str], plan: ClockPlan) -> dict[str, tuple[str, ...]]:
    """``pool=UUID,UUID`` as a mapping; pools are those of the plan."""
    out: dict[str, tuple[str, ...]] = {}
    for text in texts:
        pool, equals, words = text.partition("=")
        named = tuple(word.strip() for word in words.split(","))
        if not equals or not all(named):
            raise ParameterError(
                f"--map {text!r} is not a mapping; write pool=UUID, or pool=UUID,UUID for several "
                "devices (`optbench gpu list` shows them)"
            )
        if pool in out:
            raise ParameterError(f"--map names pool {pool!r} twice; give its devices in one --map")
        if pool not in plan.needs:
            if pool in plan.sizes:
                raise ParameterError(
                    f"--map {text!r}: the schedule sets no clock on pool {pool!r}; it does on "
                    f"{_listed(plan.needs)}"
                )
            raise UnknownNameError("pool in --map", pool, plan.needs)
        out[pool] = named
    return out


def map_devices(
    plan: ClockPlan,
    named: Mapping[str, tuple[str, ...]],
    devices: Sequence[GpuDevice],
    find: Callable[[str], GpuDevice],
    unreadable: Sequence[OptbenchError] = (),
) -> MappedDevices:
    """The devices of each pool that the plan needs, all different.

    Without a mapping the choice must be unique: one pool is left, and as many devices of one model,
    all of them controllable, as it needs; and nothing may say that they are of another model than
    the schedule was made for. ``unreadable`` are errors of devices that do not answer.
    """
    chosen: dict[str, tuple[GpuDevice, ...]] = {}
    doubts: list[str] = []
    taken: dict[str, str] = {}
    for pool, names in named.items():
        found = tuple(find(name) for name in names)
        for name, device in zip(names, found, strict=True):
            if device.uuid in taken:
                raise ParameterError(
                    f"--map {pool}: device {name!r} ({device.uuid}) is given twice; it stands for a"
                    f" device of pool {taken[device.uuid]!r} already"
                )
            taken[device.uuid] = pool
        _check_number(plan, pool, len(found))
        chosen[pool] = found[: plan.needs[pool]]
        doubts += _unused(pool, found, plan.needs[pool])
        doubts += _unlike(plan, pool, chosen[pool])
    missing = [pool for pool in plan.needs if pool not in chosen]
    if missing:
        free = tuple(each for each in devices if each.uuid not in taken and not each.mig)
        chosen[missing[0]] = _only_choice(plan, missing, free, devices, unreadable)
        if unlike := _unlike(plan, missing[0], chosen[missing[0]]):
            indices = ",".join(str(each.index) for each in chosen[missing[0]])
            raise ParameterError(
                f"{' '.join(unlike)} Map the pool to devices of its model, or say that you mean "
                f"these: --map {missing[0]}={indices}"
            )
    return MappedDevices(dict(sorted(chosen.items())), bool(named), tuple(doubts))


def _unused(pool: str, given: Sequence[GpuDevice], need: int) -> list[str]:
    """What becomes of devices of a map that the schedule does not need."""
    if len(given) <= need:
        return []
    rest = ", ".join(str(each.index) for each in given[need:])
    return [
        f"--map {pool} names {len(given)} devices; the schedule uses the first {need} at most, and "
        f"sets no clock on GPU {rest}."
    ]


def _unlike(plan: ClockPlan, pool: str, chosen: Sequence[GpuDevice]) -> list[str]:
    """What says that devices are of another model than the schedule was made for: an instance
    knows the memory of its devices, not their names.
    """
    wanted = plan.memory_gb.get(pool)
    if wanted is None:
        return []
    return [
        f"GPU {each.index} ({each.name}) has {each.memory_gb:.3g} GB; devices of pool {pool!r} "
        f"have {wanted:.3g} GB in the instance: its times, energies and clocks are probably those "
        "of another model."
        for each in chosen
        if each.memory_gb is not None
        and abs(each.memory_gb / wanted - 1.0) > SAME_MEMORY
        and wanted > 0.0
    ]


def _check_number(plan: ClockPlan, pool: str, given: int) -> None:
    need, size = plan.needs[pool], plan.sizes.get(pool, plan.needs[pool])
    if given < need:
        raise ParameterError(
            f"--map {pool}: {given} device{'s are' if given != 1 else ' is'} given; the schedule "
            f"runs on {need} at once"
        )
    if given > size:
        raise ParameterError(f"--map {pool}: {given} devices are given; the pool has {size}")


def _only_choice(
    plan: ClockPlan,
    missing: Sequence[str],
    free: tuple[GpuDevice, ...],
    devices: Sequence[GpuDevice],
    unreadable: Sequence[OptbenchError],
) -> tuple[GpuDevice, ...]:
    """The free devices, where nothing else is possible."""
    need = sum(plan.needs[pool] for pool in missing)
    if len(free) < need:
        raise ParameterError(
            f"too few devices: the schedule needs {_listed(plan.needs)}; this machine has "
            f"{_machine(devices)}{''.join(f'; {error}' for error in unreadable)}"
        )
    if len(missing) > 1 or len(free) > need or len({each.name for each in free}) > 1:
        example = " ".join(
            f"--map {pool}={','.join(['UUID'] * plan.needs[pool])}" for pool in missing
        )
        raise ParameterError(
            "which device is which is not unique: the schedule needs "
            f"{_listed({pool: plan.needs[pool] for pool in missing})}; free are {_machine(free)}. "
            f"Say it with {example}"
        )
    return free


def _listed(needs: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of pool {pool!r}" for pool, count in needs.items()) or "none"


def _machine(devices: Sequence[GpuDevice]) -> str:
    """Devices in words."""
    if not devices:
        return "none"
    return ", ".join(
        f"{each.index}: {each.name} ({each.uuid}{', in MIG mode' if each.mig else ''})"
        for each in devices
    )
