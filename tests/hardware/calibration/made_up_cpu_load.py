"""A load of made-up processors: 20 f³ + 10 f + 5 W from package-0, and 0.01 / f s for a unit.

    python made_up_cpu_load.py POWERCAP CPUS SECONDS

f is the largest clock that cpufreq allows over the highest one; without cpufreq it is 1. The memory
of the package draws 4 W all the time, which another process writes.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

UJ = 1_000_000
COUNTER = "intel-rapl:0/energy_uj"
PERIOD_S = 0.001


def clock_share(cpus: Path) -> float:
    policies = sorted(cpus.glob("cpufreq/policy*"))
    if not policies:
        return 1.0
    now, top = (
        int((policies[0] / name).read_text()) for name in ("scaling_max_freq", "cpuinfo_max_freq")
    )
    return now / top


def main() -> None:
    counter, cpus = Path(sys.argv[1]) / COUNTER, Path(sys.argv[2])
    f, seconds = clock_share(cpus), float(sys.argv[3])
    watts, first_uj, began_s = 20 * f**3 + 10 * f + 5, int(counter.read_text()), time.monotonic()
    while (spent_s := time.monotonic() - began_s) < seconds:
        fresh = counter.with_name(".working")
        fresh.write_text(f"{first_uj + round(watts * spent_s * UJ)}\n")
        os.replace(fresh, counter)
        time.sleep(PERIOD_S)
    print(f"units={spent_s * f / 0.01} seconds={spent_s}", flush=True)


if __name__ == "__main__":
    main()
