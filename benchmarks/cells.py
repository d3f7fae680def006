"""Cells of the benchmarks on published instances: one solver on one instance in a fresh process,
kept as JSON lines.

A clock starts when both solvers and the instance are in memory and stops when the answer is there,
so that building models, bounds, heuristics and verification count for both alike, and imports and
reading files for neither.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = ("jobshop", "flexible-jobshop", "rcpsp")


@dataclass(frozen=True)
class Cell:
    """What one solver did on one instance; ``violations`` is empty for a verified schedule."""

    side: str
    family: str
    instance: str
    time_limit_s: float
    threads: int
    seed: int
    objective: float | None
    bound: float | None
    wall_s: float
    violations: list[str]
    bound_source: str = ""

    @property
    def proved(self) -> bool:
        return (
            self.objective is not None
            and self.bound is not None
            and self.bound >= self.objective - 1e-6
        )

    @property
    def key(self) -> tuple[str, str, str, float, int, int]:
        return (self.side, self.family, self.instance, self.time_limit_s, self.threads, self.seed)


@dataclass(frozen=True)
class Published:
    """An instance file and the best bounds known."""

    family: str
    name: str
    path: Path
    lower: float
    upper: float


def data_dir() -> Path:
    """Folder of the published data."""
    found = Path(os.environ.get("OPTBENCH_DATA", ROOT.parent / "shared" / "data"))
    if not (found / "jobshop" / "bounds.json").exists():
        raise SystemExit(f"no published instances in {found}: set OPTBENCH_DATA to the data folder")
    return found


def published(families: tuple[str, ...] = FAMILIES) -> list[Published]:
    """Every instance with its best known bounds."""
    out = []
    for family in families:
        folder = data_dir() / family
        for name, entry in json.loads((folder / "bounds.json").read_text()).items():
            out.append(
                Published(
                    family, name, folder / entry["file"], entry["lower_bound"], entry["upper_bound"]
                )
            )
    return out


class Store:
    """Cells already run, one JSON object per line; what is there is not run again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.cells = {
            cell.key: cell for cell in (Cell(**json.loads(line)) for line in lines if line.strip())
        }

    def run(self, side: str, what: Published, time_limit_s: float, threads: int, seed: int) -> Cell:
        """The cell of these settings, from the file or from a process of its own."""
        key = (side, what.family, what.name, time_limit_s, threads, seed)
        if key not in self.cells:
            settings = [side, what.family, what.name, str(time_limit_s), str(threads), str(seed)]
            command = [sys.executable, str(Path(__file__)), *settings]
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                cwd=ROOT,
                timeout=10 * time_limit_s + 120,
            )
            if done.returncode != 0:
                raise SystemExit(f"{side} on {what.name} failed:\n{done.stderr[-3000:]}")
            cell = Cell(**json.loads(done.stdout.splitlines()[-1]))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(asdict(cell)) + "\n")
            self.cells[key] = cell
        check(self.cells[key], what)
        return self.cells[key]


def check(cell: Cell, what: Published) -> None:
    """Stop loudly on what cannot be: an unverified schedule, one below the best known bound, a
    bound above the best known.
    """
    where = f"{cell.side} on {cell.instance}"
    if cell.violations:
        raise SystemExit(f"{where}: the schedule is not feasible: {cell.violations}")
    if cell.objective is not None and cell.objective < what.lower - 1e-6:
        raise SystemExit(
            f"{where}: objective {cell.objective:g} is below the best known lower bound "
            f"{what.lower:g}"
        )
    if cell.bound is not None and cell.bound > what.upper + 1e-6:
        raise SystemExit(
            f"{where}: bound {cell.bound:g} is above the best known upper bound {what.upper:g}"
        )


def run_optbench(what: Published, time_limit_s: float, threads: int, seed: int) -> Cell:
    """The solver ``cpsat`` through ``ob.solve``; its own bounds only, all within its time."""
    from optbench.api import load_target, solve
    from optbench.compiling.kernel_table import prepare
    from optbench.plugins.discovery import load_solver

    load_solver("cpsat", {})
    # What the solver imports late: imports count for neither side.
    import_module("optbench.plugins.solvers._cpsat_search")
    prepare({"shop_search", "project_search", "deductions"})
    instance = load_target(what.path)
    began = time.perf_counter()
    result = solve(
        instance, "cpsat", time_limit_s=time_limit_s, threads=threads, seed=seed, bound=False
    )
    wall_s = time.perf_counter() - began
    source = result.bounds[0].source if result.bounds else ""
    values = (result.objective, result.bound)
    assert not isinstance(values[0], tuple) and not isinstance(values[1], tuple), (
        "one objective level"
    )
    settings = (what.family, what.name, time_limit_s, threads, seed)
    return Cell(
        "optbench", *settings, values[0], values[1], wall_s, list(result.violations), source
    )


def run_pyjobshop(what: Published, time_limit_s: float, threads: int, seed: int) -> Cell:
    """PyJobShop on the same numbers; its schedule is checked by our verifier, which takes no number
    from it but the starts.
    """
    import numpy as np
    import pyjobshop

    from optbench.api import load_target
    from optbench.model.schedule import Schedule
    from optbench.model.verify import verify

    instance = load_target(what.path)
    pairs, modes, pools = instance.pairs, instance.modes, instance.pools
    began = time.perf_counter()
    model = pyjobshop.Model()
    resources = [
        model.add_machine() if count == 1 else model.add_renewable(capacity=count)
        for count in pools.count.tolist()
    ]
    tasks = [model.add_task() for _ in range(instance.num_tasks)]
    for task, mode, duration in zip(
        pairs.task.tolist(), pairs.mode.tolist(), pairs.duration.tolist(), strict=True
    ):
        needs = slice(int(modes.req_ptr[mode]), int(modes.req_ptr[mode + 1]))
        used = [resources[pool] for pool in modes.req_pool[needs].tolist()]
        # A machine takes no number.
        demands = [
            count if pools.count[pool] > 1 else 0
            for pool, count in zip(
                modes.req_pool[needs].tolist(), modes.req_count[needs].tolist(), strict=True
            )
        ]
        model.add_mode(tasks[task], used, duration, demands=demands)
    for source, target in zip(
        instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True
    ):
        model.add_end_before_start(tasks[source], tasks[target])
    data = model.data()
    left = time_limit_s - (time.perf_counter() - began)
    result = pyjobshop.solve(
        data, "ortools", time_limit=left, display=False, num_workers=threads, random_seed=seed
    )
    wall_s = time.perf_counter() - began
    found = result.best.tasks
    objective, violations = None, []
    if found:
        verdict = verify(
            instance,
            Schedule.of(
                instance, pairs.mode[[t.mode for t in found]], np.array([t.start for t in found])
            ),
        )
        violations = [str(violation) for violation in verdict.violations]
        objective = verdict.metrics.get("makespan")
        if objective != result.objective:
            violations.append(f"PyJobShop says {result.objective}, the verifier {objective}")
    settings = (what.family, what.name, time_limit_s, threads, seed)
    return Cell("pyjobshop", *settings, objective, result.lower_bound, wall_s, violations)


def machine() -> str:
    """What the numbers were measured on."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("ortools", "numba", "numpy", "pyjobshop")
    )
    return (
        f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{packages}"
    )


def arguments(text: str) -> argparse.ArgumentParser:
    """What both scripts take."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument(
        "--time-limit",
        type=float,
        default=20.0,
        metavar="S",
        help="seconds per solve, all included (20)",
    )
    parser.add_argument("--threads", type=int, default=2, help="threads per solve (2)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N instances")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these instances")
    parser.add_argument("--fresh", action="store_true", help="forget the cells run before")
    parser.add_argument(
        "--raw",
        type=Path,
        default=ROOT / "docs/results/raw/published.jsonl",
        help="file of the cells",
    )
    return parser


if __name__ == "__main__":
    _side, _family, _name, _limit, _threads, _seed = sys.argv[1:]
    _what = next(p for p in published((_family,)) if p.name == _name)
    _run = {"optbench": run_optbench, "pyjobshop": run_pyjobshop}[_side]
    print(json.dumps(asdict(_run(_what, float(_limit), int(_threads), int(_seed)))))
