"""What the Ray engine costs and withstands beside the local one; writes docs/results/ray_engine.md.

    python benchmarks/ray_engine.py [--cells 1000] [--kills 3]

A cluster of two nodes is started on this machine. A study is run at home, on the cluster, and on
the cluster with the worker node's raylet killed (SIGKILL) in the middle; many short cells are run
by both engines; hostile solvers are run on the cluster; a driver is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS  # noqa: E402
from optbench.store.records import code_version, installed_version, machine  # noqa: E402
from tests.hostile.cases import CASES, COMMAND, HONEST, MARK, make_workspace, marked, run  # noqa: E402
from tests.ray_nodes import RayNodes  # noqa: E402

PAGE, RAW = RESULTS / "ray_engine.md", RESULTS / "raw" / "ray_engine.jsonl"
RULES = """
problems = ["jobshop:jobs=6,machines=5", "gpu_dag:tasks=12,gpus=4"]
solvers = ["fcfs", "heft", "random_rules:k=[200,2000]"]
seeds = 6
work_limit = 4000
bound_limit = "1s"
"""
SHORT = """
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["fcfs"]
seeds = 2
repetitions = {repetitions}
work_limit = 1
bound_limit = "1s"
"""
# Run a study by one engine and print what the driver itself used.
DRIVER = """
import json, resource, sys, time
from optbench.run.engines import engine_for
from optbench.run.read_in_subprocess import load_study_in_subprocess
from optbench.run.runner import run_study
study = load_study_in_subprocess("study")
began = time.monotonic()
engine = engine_for(study, *json.loads(sys.argv[1]))
first = []
done = run_study(study, executor=engine, on_progress=lambda step: step.record and first.append(
    time.monotonic()))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cells": done.ran, "failed": done.failed, "wall_s": time.monotonic() - began,
    "first_s": first[0] - began, "rest_s": first[-1] - first[0],
    "driver_cpu_s": used.ru_utime + used.ru_stime, "driver_peak_mb": used.ru_maxrss / 1024,
    "solving_s": sum(r.total_s for r in done.records.values())}))
"""
KILLED_AFTER_CELLS = (5, 20, 40)
PATIENCE_S = 3000


@dataclass(frozen=True)
class Engine:
    """An engine as the programs above and the command line name it."""

    name: str
    environment: dict[str, str]
    address: str | None = None

    @property
    def words(self) -> list[str]:
        return [] if self.address is None else ["--backend", "ray", "--address", self.address]

    def driver(self, root: Path) -> dict[str, Any]:
        """Run the study ``study`` of a workspace, two cells at a time."""
        given = json.dumps(["local" if self.address is None else "ray", 2, self.address])
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, given],
            cwd=root,
            env={**self.environment, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
        return {"engine": self.name, **json.loads(done.stdout.splitlines()[-1])}

    def begun(self, root: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, "run", "study", "--no-track", "-n", "2", *self.words],
            cwd=root,
            env={**self.environment, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


def workspace(root: Path, study: str) -> Path:
    (root / "studies").mkdir(parents=True)
    (root / "optbench.toml").touch()
    (root / "studies" / "study.toml").write_text(study)
    return root


def results_of(root: Path) -> list[tuple[str, str]]:
    """Key and everything that was computed, of each line of the store."""
    same = ("status", "objective", "bound", "gap", "reason", "metrics", "bounds", "verified")
    path = root / ".optbench" / "results.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted((each["key"], json.dumps([each[name] for name in same])) for each in records)


def losing_a_node(
    nodes: RayNodes, engine: Engine, root: Path, after: int, expected: Sequence[Any]
) -> dict[str, Any]:
    """Run the study and kill the worker's raylet after so many cells."""
    nodes.complete()
    started = engine.begun(workspace(root, RULES))
    while len(results_of(root)) < after and started.poll() is None:
        time.sleep(0.02)
    was_running = started.poll() is None
    nodes.kill_node(nodes.workers()[0])
    began = time.monotonic()
    _, errors = started.communicate(timeout=PATIENCE_S)
    found = results_of(root)
    return {
        "part": "node killed",
        "after": after,
        "was_running": was_running,
        "code": started.returncode,
        "cells": len(found),
        "equal": found == list(expected),
        "announced": "was lost; its cells run elsewhere" in errors,
        "rest_s": round(time.monotonic() - began, 1),
    }


def losing_the_driver(engine: Engine, root: Path, expected: Sequence[Any]) -> dict[str, Any]:
    """Kill the driver after five cells, wait until nothing of it is left, and resume."""
    started = engine.begun(workspace(root, RULES))
    while len(results_of(root)) < KILLED_AFTER_CELLS[0] and started.poll() is None:
        time.sleep(0.02)
    processes = len(marked(root))
    started.kill()
    began = time.monotonic()
    started.communicate()
    while marked(root) and time.monotonic() - began < PATIENCE_S:
        time.sleep(0.02)
    gone_s, kept = time.monotonic() - began, len(results_of(root))
    resumed = engine.begun(root)
    resumed.communicate(timeout=PATIENCE_S)
    return {
        "part": "driver killed",
        "processes": processes,
        "gone_s": round(gone_s, 2),
        "kept": kept,
        "code": resumed.returncode,
        "equal": results_of(root) == list(expected),
    }


def hostile(nodes: RayNodes, engine: Engine, root: Path) -> list[dict[str, Any]]:
    """Run the hostile solvers among honest ones; a row for each."""
    specs = [*(case.spec for case in CASES), *HONEST]
    alone = run(make_workspace(root / "alone"), HONEST)
    study = run(
        make_workspace(root / "mixed"),
        specs,
        arguments=engine.words,
        environment=nodes.environment(),
    )
    rows = []
    for case in CASES:
        (record,) = [each for each in study.records().values() if case.is_of(each)]
        kind = None if record.reason is None else record.reason.kind
        expected = None if case.later else case.reason
        holds = kind == expected and (case.later or case.says in str(record.reason))
        rows.append({"part": "hostile", "case": case.spec, "reason": kind, "holds": holds})
    deadline = time.monotonic() + 10
    while marked(study.root) and time.monotonic() < deadline:
        time.sleep(0.05)
    unharmed = study.honest() == alone.honest() and bool(alone.honest())
    left = len(marked(study.root))
    return [*rows, {"part": "hostile", "honest_unharmed": unharmed, "processes_left": left}]


def measured(folder: Path, cells: int, kills: int) -> list[dict[str, Any]]:
    nodes = RayNodes()
    try:
        home = Engine("local", dict(os.environ))
        cluster = Engine("ray", nodes.environment(), nodes.address)
        rows: list[dict[str, Any]] = []
        for engine in (home, cluster):
            short = SHORT.format(repetitions=(cells - 2) // 2)
            root = workspace(folder / f"short-{engine.name}", short)
            rows.append({"part": "short cells", **engine.driver(root)})
            print(rows[-1], flush=True)
        home.driver(workspace(folder / "home", RULES))
        expected = results_of(folder / "home")
        cluster.driver(workspace(folder / "cluster", RULES))
        equal = results_of(folder / "cluster") == expected
        rows.append({"part": "both nodes", "cells": len(expected), "equal": equal})
        print(rows[-1], flush=True)
        for k, after in enumerate(KILLED_AFTER_CELLS[:kills]):
            rows.append(losing_a_node(nodes, cluster, folder / f"lost-{k}", after, expected))
            print(rows[-1], flush=True)
        nodes.complete()
        rows.append(losing_the_driver(cluster, folder / "driver", expected))
        print(rows[-1], flush=True)
        return rows + hostile(nodes, cluster, folder / "hostile")
    finally:
        nodes.close()


def page(rows: Sequence[dict[str, Any]], words: str) -> str:
    def of(part: str) -> list[dict[str, Any]]:
        return [row for row in rows if row["part"] == part]

    here = machine()
    head = [
        "# The Ray engine beside the local one",
        "",
        f"`{words}` · {here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, Python "
        f"{here['python']}, ray {installed_version('ray')}, {code_version()}, "
        f"{time.strftime('%Y-%m-%d')}; load of the machine at the end {os.getloadavg()[0]:.0f}, by "
        "others: seconds are of the clock and compare within this page only.",
        "",
        "Two nodes are started on this machine by `ray start`, so that they share its cores with "
        "each other and with the driver: the figures show what the engine itself costs, not what "
        "a second machine gains. Two cells run at a time, each on a core of its own.",
        "",
    ]
    costs = short_cells(of("short cells"))
    return "\n".join([*head, *costs, *equality(of), *hostile_cells(of("hostile"))])


def short_cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "## Short cells",
        "",
        "Cells that have nothing to do (3 jobs on 3 machines by a list rule). `per cell` is the "
        "time between the first record and the last, divided by the cells; `driver` is the "
        "process that judges and stores, alone.",
        "",
        "| engine | cells | failed | until the first | per cell | driver, processor time per cell "
        "| driver, peak memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| {row['engine']} | {row['cells']:,} | {row['failed']} | {row['first_s']:.1f} s | "
            f"{1000 * row['rest_s'] / row['cells']:.1f} ms | "
            f"{1000 * row['driver_cpu_s'] / row['cells']:.1f} ms | {row['driver_peak_mb']:.0f} MB |"
        )
    return [*lines, ""]


def equality(of: Callable[[str], list[dict[str, Any]]]) -> list[str]:
    (whole,), (lost,) = of("both nodes"), of("driver killed")
    lines = [
        "## The same results",
        "",
        f"A study of {whole['cells']} cells at home and on two nodes: statuses, objectives, "
        f"bounds, gaps, metrics and reasons are {'equal' if whole['equal'] else '**not equal**'}. "
        "With the raylet of one node killed (SIGKILL) while the study runs:",
        "",
        "| killed after | was running | cells in the store | equal to the run at home "
        "| loss announced | rest |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in of("node killed"):
        lines.append(
            f"| {row['after']} cells | {yes(row['was_running'])} | {row['cells']} | "
            f"{yes(row['equal'])} | {yes(row['announced'])} | {row['rest_s']} s |"
        )
    return [
        *lines,
        "",
        f"With the driver killed after {KILLED_AFTER_CELLS[0]} cells, its {lost['processes']} "
        f"processes on both nodes were gone after {lost['gone_s']} s; the same command kept the "
        f"{lost['kept']} records and ran the rest; the results are those at home: "
        f"{yes(lost['equal'])}.",
        "",
    ]


def hostile_cells(rows: Sequence[dict[str, Any]]) -> list[str]:
    cases = [row for row in rows if "case" in row]
    (end,) = [row for row in rows if "honest_unharmed" in row]
    held = sum(row["holds"] for row in cases)
    return [
        "## Hostile solvers",
        "",
        f"Of the {len(cases)} hostile configurations of [hostile.md](hostile.md), {held} are "
        "recorded with the reason that they have at home. Honest cells beside them unharmed: "
        f"{yes(end['honest_unharmed'])}. Processes left on the nodes: {end['processes_left']}.",
        "",
    ]


def yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=len(KILLED_AFTER_CELLS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="optbench-ray-") as folder:
        rows = measured(Path(folder), args.cells, args.kills)
    RAW.write_text("".join(json.dumps(row) + "\n" for row in [machine(), *rows]), "utf-8")
    PAGE.write_text(page(rows, f"python benchmarks/ray_engine.py --cells {args.cells}"), "utf-8")
    print(PAGE.read_text(encoding="utf-8"))
    wrong = [row for row in rows if False in (row.get("equal"), row.get("holds"))]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
