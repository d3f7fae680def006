"""The energy of our own runs: measured against made-up machines of known watts, what measuring
costs per cell, and a real study with the pay-back of a learned solver; writes
docs/results/run_energy.md and docs/results/raw/run_energy.json.

    python benchmarks/run_energy.py [--minutes 1] [--instances 10]

The made-up powercap tree is advanced by a process of known watts, the made-up GPU is the stub of
NVML that the tests compile. The study runs on this machine, which exposes no counters here, so that
its energies are estimated.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import _run_energy_cases as cases  # noqa: E402
from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from tests.hardware.gpu_machine import StubLibraries  # noqa: E402

PAGE, RAW = RESULTS / "run_energy.md", RESULTS / "raw" / "run_energy.json"
HEADS = ("case", "measured (J)", "true (J)", "difference", "said with it")
WITHOUT_INSTANT_POWER = {"has_counter": 0, "instant_power": 0}
TRAINED_ON = STUDIED = "gpu_dag:tasks=30,deadlines=none"
STUDY = """
question = "Has the training been paid back?"
problems = ["{problem}"]
solvers = [
    {{ name = "learned", solver = "hgnn:checkpoint=trained.safetensors" }},
    {{ name = "hardly trained", solver = "hgnn:checkpoint=hardly.safetensors" }},
    "hgnn", "fcfs", "heft", "min_energy", "fixed_dvfs", "tuned_rule",
]
seeds = {instances}
time_limit = "20s"
bound_limit = "1s"
"""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    out = [f"| {' | '.join(heads)} |", f"|:---|{'---:|' * (len(heads) - 1)}"]
    return [*out, *(f"| {' | '.join(row)} |" for row in rows), ""]


def processors(libraries: StubLibraries, raw: dict[str, Any]) -> list[str]:
    """Packages that are shared, on a made-up clock and by real cells; counters that wrap."""
    made_up = [each for seed in range(5) for each in cases.split_of_made_up_runs(seed, 3)]
    sums = [
        cases.Compared(
            f"three runs, seed {seed}, their sum",
            sum(each.measured_j for each in made_up[3 * seed : 3 * seed + 3]),
            sum(each.true_j for each in made_up[3 * seed : 3 * seed + 3]),
            f"worst single run {worst_of(made_up[3 * seed : 3 * seed + 3])}",
        )
        for seed in range(5)
    ]
    real = [
        *cases.real_cells(libraries, 2.0, 1, 262_144.0),
        *cases.real_cells(libraries, 2.0, 2, 262_144.0),
        *cases.real_cells(libraries, 4.0, 2, 200.0),
        *cases.real_cells(libraries, 2.0, 2, 10.0),
    ]
    raw["split"] = [vars(each) for each in made_up]
    raw["cells"] = [vars(each) for each in real]
    return [
        "## Processors",
        "",
        "Three runs and others of random loads on one package (40 W + 30 W per busy core), phases "
        "of 0.05 s to 3 s. True is the integral of power × the run's load / all loads. Intervals "
        "are of a second, and /proc/stat counts in ticks of 10 ms.",
        "",
        *table(HEADS, cases.rows_of(sums)),
        "Cells of real studies while a process advances a made-up tree by 100 W and 10 W of "
        "memory. True is 110 W × the seconds of the cell's process × its share of the machine's "
        "processor time, which others on this machine have reduced. A counter of 200 J wraps "
        "every two seconds at 110 W, one of 10 J ten times a second; the last is read less often "
        "than it could wrap at 2,000 W, and says so.",
        "",
        *table(HEADS, cases.rows_of(real)),
    ]


def worst_of(found: Sequence[cases.Compared]) -> str:
    return f"{100 * max((each.error for each in found), key=abs):+.2f} %"


def gpus(libraries: StubLibraries, raw: dict[str, Any]) -> list[str]:
    found = [
        *cases.gpu_cells(libraries, 0.05, 1),
        *cases.gpu_cells(libraries, 1.0, 1),
        *cases.gpu_cells(libraries, 1.0, 2),
        *cases.gpu_cells(libraries, 1.0, 1, {"has_counter": 0, "noise": 0.01}),
        cases.gpu_bursts(libraries, 5.0, "bursts of 0.3 s, counter"),
        cases.gpu_bursts(
            libraries, 5.0, "bursts of 0.3 s, counter in steps of 0.1 s", {"counter_step_ns": 10**8}
        ),
        cases.gpu_bursts(
            libraries,
            5.0,
            "bursts, integral of power, 1 % noise",
            {"has_counter": 0, "noise": 0.01},
        ),
        cases.gpu_bursts(
            libraries,
            5.0,
            "bursts, integral of means over 1 s",
            {"has_counter": 0, "instant_power": 0},
        ),
    ]
    raw["gpus"] = [vars(each) for each in found]
    return [
        "## GPUs",
        "",
        "The made-up GPU draws 250 W under load and 40 W idle, and hides processes, as in a "
        "container: runs are charged for it that were given it by name. Cells of real studies "
        "hold it while it is under load (of two at a time true is 250 W × the longer one, though "
        "they do not begin at the same moment); in the cases with bursts a run of 5 s watches it "
        "while a load comes and goes, and true is the integral of the stub's own power. A counter "
        "that moves in steps of 0.1 s lags behind by up to a step at either end.",
        "",
        *table(HEADS, cases.rows_of(found)),
    ]


def costs(raw: dict[str, Any]) -> list[str]:
    found = cases.overheads()
    raw["overhead_ms"] = dict(found)
    rows = [[what, f"{cost:.3f} ms"] for what, cost in found]
    return [
        "## What measuring costs",
        "",
        "Processor time per cell, all that the slot and the runner do for its energy; and of one "
        "of the looks, 20 to 100 a second, that the slot takes at a running cell anyway. Between "
        "looks nothing runs; GPUs are read ten times a second by a thread, where there are any.",
        "",
        *table(("per", "processor time"), rows),
    ]


def real_study(minutes: float, instances: int, raw: dict[str, Any]) -> list[str]:
    """Train a network, run a study with it and the rules, and quote its report."""
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        folder = Path(name)
        (folder / "optbench.toml").touch()
        (folder / "study.toml").write_text(STUDY.format(problem=STUDIED, instances=instances))
        words = ["train", "hgnn", "--on", TRAINED_ON, "-p", "instances=20", "-p", "validation=5"]
        words += ["--no-track", "--json"]
        more = ["-p", f"cpu_minutes={minutes:g}", "-o", "trained.safetensors"]
        trained = optbench(folder, [*words, *more])
        optbench(folder, [*words, "-p", "steps=1", "-o", "hardly.safetensors"])
        optbench(folder, ["run", "study.toml", "--no-track", "--jobs", "2", "-q"])
        told = optbench(folder, ["report", "study.toml", "--json"])
    energy, runs = trained["energy"], told["run_energy"]
    raw["training"], raw["study"] = energy, runs
    solvers = [
        [each["solver"], f"{each['cells']}", f"{each['energy_j'] / each['cells']:.3f}"]
        for each in runs["solvers"]
    ]
    paid = [paid_back(each) for each in runs["payback"]]
    heads = (
        *("learned", "training (J)", "best rule", "rule: schedule + run (J)"),
        *("learned: schedule + run (J)", "saving per instance (J)", "paid back"),
    )
    return [
        "## A real study",
        "",
        f"`{STUDIED}`, {instances} instances; `learned` is a network of `optbench train hgnn` "
        f"with cpu_minutes={minutes:g} on this machine, `hardly trained` one after a single step, "
        "`hgnn` the shipped one, of which nobody has measured the training. The training of "
        f"`learned` drew {energy['energy_j']:,.0f} J (estimated: {energy['cpu_s']:,.1f} s of "
        "processor time at 12 W). All runs are estimated by processor time: this machine has no "
        "powercap tree. The schedules are those of a modelled cluster, whose joules are many times "
        "those of finding them.",
        "",
        *table(("solver", "cells", "J per cell"), solvers),
        *table(heads, paid),
    ]


def paid_back(each: dict[str, Any]) -> list[str]:
    saving = "-" if each["saving_j"] is None else f"{each['saving_j']:,.0f}"
    if each["saving_low_j"] is not None:
        saving += f" ({each['saving_low_j']:,.0f} to {each['saving_high_j']:,.0f})"
    count = each["after_instances"]
    after = f"after {count} instance{'' if count == 1 else 's'}"
    if each["never"] or each["unknown"]:
        after = "never" if each["never"] else f"unknown: {each['unknown']}"
    return [
        each["solver"],
        "unknown" if each["training_j"] is None else f"{each['training_j']:,.0f}",
        str(each["rule"]),
        f"{each['rule_energy_j']:,.0f} + {each['rule_run_j']:.2f}",
        f"{each['learned_energy_j']:,.0f} + {each['learned_run_j']:.2f}",
        saving,
        after,
    ]


def optbench(folder: Path, words: Sequence[str]) -> Any:
    """Run a command and return its document, if it prints one."""
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "optbench.cli.main", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout) if "--json" in words else None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="of training (default 1)")
    parser.add_argument("--instances", type=int, default=10, help="of the study (default 10)")
    options = parser.parse_args()
    raw: dict[str, Any] = {}
    lines = page_head("The energy of our own runs", "python benchmarks/run_energy.py")
    with tempfile.TemporaryDirectory(prefix="optbench-energy-") as name:
        libraries = StubLibraries.compile(Path(name) / "stub")
        lines += processors(libraries, raw) + gpus(libraries, raw)
    lines += costs(raw) + real_study(options.minutes, options.instances, raw)
    RAW.write_text(f"{json.dumps(raw, indent=1)}\n", encoding="utf-8")
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
