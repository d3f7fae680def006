"""How long the command line takes to answer: ``python benchmarks/startup.py`` writes
docs/results/startup.md.

Each command runs ten times in a process of its own; the median and the slowest are written.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "startup.md"
RUNS = 10
OPTBENCH = str(Path(sys.executable).with_name("optbench"))
COMMANDS = (
    ("python -c pass", [sys.executable, "-c", "pass"]),
    ('python -c "import optbench"', [sys.executable, "-c", "import optbench"]),
    ("optbench --help", [OPTBENCH, "--help"]),
    ("optbench solve --help", [OPTBENCH, "solve", "--help"]),
    ("optbench list", [OPTBENCH, "list"]),
    (
        "optbench solve jobshop:jobs=6,machines=4 -q",
        [OPTBENCH, "solve", "jobshop:jobs=6,machines=4", "-q"],
    ),
)


def measure(command: list[str]) -> list[float]:
    """Wall-clock seconds of each run, after one that warms the file cache."""
    out = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        out.append(time.perf_counter() - began)
    return out[1:]


def main() -> None:
    rows = []
    for shown, command in COMMANDS:
        times = measure(command)
        rows.append(f"| `{shown}` | {statistics.median(times):.3f} | {max(times):.3f} |")
    lines = [
        "# Start-up times",
        "",
        f"`python benchmarks/startup.py`: {RUNS} runs each, seconds, Python",
        f"{platform.python_version()}, {platform.system()}. `optbench --help` must answer within",
        "0.3 s.",
        "",
        "| command | median | slowest |",
        "| --- | --- | --- |",
        *rows,
        "",
    ]
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
