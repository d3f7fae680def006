"""Made-up processors: the files of cpufreq and powercap, and a load that follows them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.hardware.made_up_powercap import MadeUpPowercap

LOAD = Path(__file__).with_name("made_up_cpu_load.py")


class MadeUpCpus:
    """cpufreq with two policies of 800 to 2000 MHz, and powercap with one or more packages."""

    def __init__(self, folder: Path, clocks: bool = True, packages: int = 1) -> None:
        self.cpus, self.tree = folder / "cpu", MadeUpPowercap(folder / "powercap", packages)
        self.state = folder / "state"
        self.cpus.mkdir()
        for k in range(2 * clocks):
            place = self.cpus / "cpufreq" / f"policy{k}"
            place.mkdir(parents=True)
            for name, khz in (
                ("scaling_min_freq", "800000"),
                ("scaling_max_freq", "2000000"),
                ("cpuinfo_max_freq", "2000000"),
                ("scaling_available_frequencies", "2000000 1600000 1200000 800000"),
            ):
                (place / name).write_text(f"{khz}\n")

    @property
    def variables(self) -> dict[str, str]:
        return {
            "OPTBENCH_POWERCAP_ROOT": str(self.tree.root),
            "OPTBENCH_CPU_ROOT": str(self.cpus),
            "OPTBENCH_GPU_STATE": str(self.state),
        }

    @property
    def load(self) -> str:
        words = [sys.executable, str(LOAD), str(self.tree.root), str(self.cpus)]
        return f"{shlex.join(words)} {{seconds}} --on {{device}}"

    def ranges(self) -> set[tuple[str, str]]:
        return {
            (
                (place / "scaling_min_freq").read_text().strip(),
                (place / "scaling_max_freq").read_text().strip(),
            )
            for place in self.cpus.glob("cpufreq/policy*")
        }
