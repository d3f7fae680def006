"""A made-up powercap tree whose counters follow known watts and wrap around as RAPL's do.

    python tests/hardware/made_up_powercap.py ROOT --watts package-0=50 --watts 'package-0 dram=6'

advances the counters of an existing tree by the clock until it is ended.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

UJ = 1_000_000
# What a package holds beside its memory, and the platform: parts that must not be counted again.
INSIDE = ("core", "uncore")
PERIOD_S = 0.001


class MadeUpPowercap:
    """A tree with packages, each with core, uncore and dram, beside the zone of the platform."""

    def __init__(self, root: Path, packages: int = 1, range_j: float = 262_143.328850) -> None:
        self.root, self.range_uj = root, round(range_j * UJ)
        self.zones: dict[str, Path] = {}
        for index in range(packages):
            top = f"intel-rapl:{index}"
            self._make(f"package-{index}", top, f"package-{index}")
            for part, name in enumerate((*INSIDE, "dram")):
                self._make(f"package-{index} {name}", f"{top}:{part}", name)
        self._make("psys", f"intel-rapl:{packages}", "psys")
        self._make("mmio", "intel-rapl-mmio:0", "package-0")

    def _make(self, label: str, folder: str, name: str) -> None:
        place = self.root / folder
        place.mkdir(parents=True)
        (place / "name").write_text(f"{name}\n")
        (place / "max_energy_range_uj").write_text(f"{self.range_uj}\n")
        self.zones[label] = place
        self.put(label, 0)

    def put(self, label: str, total_uj: int) -> None:
        """Show what a counter shows after this much; readers never see half a number."""
        path = self.zones[label] / "energy_uj"
        fresh = path.with_name(".fresh")
        fresh.write_text(f"{total_uj % self.range_uj}\n")
        os.replace(fresh, path)

    def add(self, label: str, joules: float) -> None:
        shown = int((self.zones[label] / "energy_uj").read_text())
        self.put(label, shown + round(joules * UJ))

    @contextmanager
    def drawing(self, watts: Mapping[str, float]) -> Iterator[None]:
        """Advance the counters in a process of its own."""
        words = [f"--watts={label}={value}" for label, value in watts.items()]
        process = subprocess.Popen(
            [sys.executable, __file__, str(self.root), *words], stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None and process.stdout.readline() == b"drawing\n"
            yield
        finally:
            process.kill()
            process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--watts", action="append", default=[], metavar="LABEL=W")
    options = parser.parse_args()
    pairs = (text.rpartition("=") for text in options.watts)
    watts = {label: float(value) for label, _, value in pairs}
    tree = MadeUpPowercap.__new__(MadeUpPowercap)
    tree.root, tree.zones = options.root, dict(_labels(options.root))
    first = next(iter(tree.zones.values()))
    tree.range_uj = int((first / "max_energy_range_uj").read_text())
    began = {label: int((tree.zones[label] / "energy_uj").read_text()) for label in watts}
    began_s = time.monotonic()
    print("drawing", flush=True)
    while True:
        for label, power_w in watts.items():
            passed_s = time.monotonic() - began_s
            tree.put(label, began[label] + round(power_w * passed_s * UJ))
        time.sleep(PERIOD_S)


def _labels(root: Path) -> Iterator[tuple[str, Path]]:
    for place in sorted(root.glob("intel-rapl:*")):
        name = (place / "name").read_text().strip()
        parent = root / place.name.rpartition(":")[0]
        owner = (parent / "name").read_text().strip() if (parent / "name").is_file() else ""
        yield f"{owner} {name}".strip(), place


if __name__ == "__main__":
    main()
