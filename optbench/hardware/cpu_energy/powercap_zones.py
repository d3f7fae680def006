"""The zones of the powercap tree whose counters add up to what processors and memory draw.

A package counts with its memory (``dram``), which lies outside it. ``core`` and ``uncore`` are
parts of a package and ``psys`` is the platform that contains the packages: counting them as well
would count joules twice. The same holds for ``intel-rapl-mmio``, a second interface to a package
that ``intel-rapl`` has. AMD processors use the same names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from optbench.errors import OptbenchError

VARIABLE, DEFAULT = "OPTBENCH_POWERCAP_ROOT", "/sys/class/powercap"
UJ_PER_J = 1e6
ZONE = re.compile(r"intel-rapl(?P<mmio>-mmio)?(?P<place>(?::\d+)+)")
PACKAGE = re.compile(r"package-(\d+)")
DRAM = "dram"


class CpuEnergyError(OptbenchError):
    """Energy of processors that cannot be measured here; ``reason`` says why in words."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"the energy of the processors cannot be measured: {reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True)
class PowercapZone:
    """One counter: a package, or its memory. It runs from 0 to ``range_j`` and starts again."""

    label: str  # "package-0", "package-0 dram"
    package: int
    counter: Path
    range_j: float


def powercap_root() -> Path:
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def find_zones(root: Path | None = None) -> tuple[PowercapZone, ...]:
    """Return the zones that count, packages first; raise where there is none or none is readable.

    One that cannot be read while others can would make every sum too small: it raises, too.
    """
    root = powercap_root() if root is None else root
    folders = dict(_folders(root))
    names = {place: _text(folder / "name") for place, folder in folders.items()}
    zones = []
    for place in sorted(folders):
        owner = names[place] if names[place] != DRAM else names.get(place[:-1], "")
        found = PACKAGE.match(owner)
        if found is None:
            continue
        label = owner if names[place] == owner else f"{owner} {DRAM}"
        range_j = _number(folders[place] / "max_energy_range_uj") / UJ_PER_J
        zones.append(PowercapZone(label, int(found[1]), folders[place] / "energy_uj", range_j))
    if not zones:
        listed = ", ".join(sorted(names.values())) or "none"
        raise CpuEnergyError(
            f"{root} has no package among its zones ({listed})",
            "virtual machines and most containers expose no counters; where the tree lies "
            f"elsewhere, name it with {VARIABLE}",
        )
    for zone in zones:
        read_counter_j(zone)
    return tuple(sorted(zones, key=lambda zone: (DRAM in zone.label, zone.label)))


def _folders(root: Path) -> Iterator[tuple[tuple[int, ...], Path]]:
    """Yield the folder of each zone by its place in the tree, (0, 1) for ``intel-rapl:0:1``.

    /sys/class/powercap links all zones side by side; /sys/devices/virtual/powercap nests them.
    """
    if not root.is_dir():
        raise CpuEnergyError(
            f"there is no folder {root}",
            "the kernel module intel_rapl_msr makes it (`sudo modprobe intel_rapl_msr`), except "
            f"in virtual machines; where the tree lies elsewhere, name it with {VARIABLE}",
        )
    waiting, ordinary, mmio = [root], dict[tuple[int, ...], Path](), dict[tuple[int, ...], Path]()
    while waiting:
        for entry in sorted(waiting.pop().iterdir()):
            found = ZONE.fullmatch(entry.name)
            if found is not None and (entry / "name").is_file():
                place = tuple(map(int, found["place"].split(":")[1:]))
                (mmio if found["mmio"] else ordinary).setdefault(place, entry)
                waiting.append(entry)
            elif entry.name.startswith("intel-rapl") and entry.is_dir():
                waiting.append(entry)  # the control type, which holds the zones
    yield from (ordinary or mmio).items()


def read_counter_j(zone: PowercapZone) -> float:
    return _number(zone.counter) / UJ_PER_J


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except PermissionError:
        raise CpuEnergyError(
            f"only root may read {path}",
            f"allow it until the next start with `sudo chmod a+r {path.parent.parent}/"
            f"intel-rapl:*/{path.name}` (a rule of systemd-tmpfiles keeps it; other users could "
            "then observe the processor's load), or run as root",
        ) from None
    except OSError as error:
        raise CpuEnergyError(
            f"{path} cannot be read ({error.strerror})", "see `dmesg` for the driver's messages"
        ) from None


def _number(path: Path) -> float:
    text = _text(path)
    if not text.isdigit():
        raise CpuEnergyError(
            f"{path} holds {text[:40]!r}, expected a whole number of microjoules",
            f"point {VARIABLE} to a powercap tree",
        )
    return float(text)
