"""Train chsac_af with one part of it taken away at a time, then run the study geo_ablation on the
networks.

    python benchmarks/geo_ablation.py [--decisions 60000] [--keep FOLDER] [-o FILE]

Every network gets the same number of decisions on the same seeds (1000 and up); those that are
there already stay. With --keep the workspace stays: networks in checkpoints/geo_ablation, the
report in .optbench/studies/geo_ablation.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.geo_studies import run  # noqa: E402

# What each network was trained with; the names are those of the study.
VARIANTS = {
    "corrected": (),
    "gamma_0": ("gamma=0",),
    "no_quantiles": ("quantiles=1",),
    "no_masks": ("masks=no",),
    "cheapest_clock": ("clock=cheapest",),
    "flat_network": ("network=flat",),
    "paper_reward": ("reward=paper",),
    "paper": ("mode=paper",),
}
ON = "geo_dc:days=1"
COMMAND = "python benchmarks/geo_ablation.py"


def train(name: str, decisions: int, workspace: Path) -> float:
    """Seconds; 0 for a network that is there."""
    target = workspace / "checkpoints" / "geo_ablation" / f"{name}.safetensors"
    if target.exists():
        return 0.0
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "optbench.cli.main",
        "train",
        "chsac_af",
        "--on",
        ON,
        "-o",
        str(target),
        "--no-track",
        "-q",
    ]
    for each in (
        f"decisions={decisions}",
        "calibrate=30",
        "budgets_s=[1000,1490,2190]",
        *VARIANTS[name],
    ):
        command += ["-p", each]
    environment = {
        **os.environ,
        "OPTBENCH_WORKSPACE": str(workspace),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }
    began = time.perf_counter()
    subprocess.run(command, cwd=workspace, env=environment, check=True)
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=60_000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "geo_ablation.md"
    )
    given = parser.parse_args()
    workspace = (given.keep or Path(tempfile.mkdtemp(prefix="optbench-ablation-"))).absolute()
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "optbench.toml").touch()
    rows = []
    try:
        for name, switches in VARIANTS.items():
            seconds = train(name, given.decisions, workspace)
            print(f"{name}: {seconds:.0f} s", flush=True)
            took = f"{seconds:.0f}" if seconds else "kept"
            rows.append(
                f"| {name} | {', '.join(f'`{each}`' for each in switches) or 'nothing'} | {took} |"
            )
        found = run("geo_ablation", 1, workspace)
    finally:
        if given.keep is None:
            shutil.rmtree(workspace, ignore_errors=True)
    print(found.text)
    machine = (
        f"{platform.platform()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    )
    lines = [
        "# chsac_af with a part of it taken away",
        "",
        f"Command: `{COMMAND}`  ",
        f"Machine: {machine}",
        "",
        f"Each trained on `{ON}` for {given.decisions:,} decisions, seeds 1000 and up; judged on",
        "two days, seeds 0 to 4, at a budget of 1,490 s for the mean time in the system.",
        "",
        "| network | changed | training (s) |",
        "| --- | --- | ---: |",
        *rows,
        "",
        "```",
        found.text,
        "```",
        "",
        *found.table,
    ]
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(found.code not in (0, 6))


if __name__ == "__main__":
    sys.exit(main())
