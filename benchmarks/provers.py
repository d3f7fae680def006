"""CP-SAT's strategies where the aim is a proof, compared on published and generated instances:
python benchmarks/provers.py (--quick | --full) [--time-limit 20] [--settings old,lp] [--fresh]

Each setting replaces the strategies of ``solvers/_cpsat_search.py`` and solves every instance in a
fresh process on two threads with ``ob.solve(..., "cpsat")``. ``--quick`` is 6 instances (at most 8
minutes), ``--full`` is 36 (at most 50 minutes at 20 s). Nothing of the hold-out list is among them.
A run goes on where it was interrupted. A bound above another setting's schedule stops it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.cells import data_dir, published  # noqa: E402
from benchmarks.holdout import holdout  # noqa: E402
from optbench.model.measures import gap, shifted_geomean  # noqa: E402

REPORT = ROOT / "docs" / "results" / "provers.md"
RAW = ROOT / "docs" / "results" / "raw" / "provers.jsonl"
# Strategies, whether nothing runs beside them, and what they are.
SETTINGS = {
    "old": (("no_lp", "lb_tree_search"), False, "one of them, and neighbourhoods"),
    "both": (("no_lp", "lb_tree_search"), True, "both of them, alone"),
    "lp": (("pseudo_costs", "reduced_costs"), True, "both of them, alone"),
    "plain": ((), False, "CP-SAT's own choice"),
}
GENERATED = {
    "gpu_dag": [f"gpu_dag:tasks={n}" for n in (10, 12, 15)]
    + ["gpu_dag:tasks=12,transfers=no", "gpu_dag:tasks=12,gpus=9,gang=3"],
    "jobshop": ["jobshop:jobs=10,machines=10", "jobshop:jobs=15,machines=10"],
    "flexible-jobshop": ["flexible_jobshop:jobs=8,machines=6,operations=8"],
    "rcpsp": ["rcpsp:activities=45", "rcpsp:activities=60"],
}
SEEDS = (100, 101)
# Published instances that settings may be chosen on, per family: so many, spread over the names.
PREFIXES = ("mt10", "setb4", "kacem", "fattahi", "behnke", "j30", "j60", "j90")
PER_FAMILY = {"flexible-jobshop": 8, "rcpsp": 8}
QUICK_PER_FAMILY = 1
MARGIN_S = 120.0
ROUNDING = 1e-6


@dataclass(frozen=True)
class ProverRun:
    """One setting on one instance."""

    setting: str
    family: str
    target: str
    seed: int
    time_limit_s: float
    objective: float | None
    bound: float | None
    proven: bool
    wall_s: float

    @property
    def key(self) -> tuple[str, str, int, float]:
        return (self.setting, self.target, self.seed, self.time_limit_s)


def main() -> int:
    options = parsed()
    if options.child:
        print(json.dumps(asdict(solved(*json.loads(options.child)))))
        return 0
    if options.fresh:
        options.raw.unlink(missing_ok=True)
    lines = options.raw.read_text().splitlines() if options.raw.exists() else []
    known = {row.key: row for row in (ProverRun(**json.loads(line)) for line in lines)}
    rows = []
    for family, target, seed in targets(quick=options.quick):
        mine = []
        for setting in options.settings:
            key = (setting, target, seed, options.time_limit)
            if key not in known:
                known[key] = in_process(setting, family, target, seed, options)
            mine.append(known[key])
        check(mine)
        rows += mine
        words = [f"{r.setting} {r.objective} >= {r.bound} in {r.wall_s:.1f} s" for r in mine]
        print(f"{Path(target).name} seed {seed}: {'   '.join(words)}", flush=True)
    text = report(rows, options)
    print(text)
    if not options.quick:
        options.output.write_text(text, encoding="utf-8")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--quick", action="store_true")
    size.add_argument("--full", action="store_true")
    size.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--settings", type=lambda t: t.split(","), default=list(SETTINGS))
    parser.add_argument("--fresh", action="store_true", help="forget what the raw file has")
    parser.add_argument("--raw", type=Path, default=RAW)
    parser.add_argument("-o", "--output", type=Path, default=REPORT)
    return parser.parse_args()


def targets(quick: bool) -> list[tuple[str, str, int]]:
    """Return family, target and seed of every instance."""
    out = [
        (family, spec, s) for family, specs in GENERATED.items() for spec in specs for s in SEEDS
    ]
    out = out[2::5] if quick else out
    held = {what.name for what in holdout()}
    reported = {path.stem for path in (data_dir() / "report-sets").rglob("*") if path.is_file()}
    for family, most in PER_FAMILY.items():
        free = [
            what
            for what in published((family,))
            if what.name.startswith(PREFIXES) and what.name not in held | reported
        ]
        number = min(QUICK_PER_FAMILY if quick else most, len(free))
        chosen = [free[k * len(free) // number] for k in range(number)]
        out += [(family, str(what.path), 0) for what in chosen]
    return out


def in_process(
    setting: str, family: str, target: str, seed: int, options: argparse.Namespace
) -> ProverRun:
    """Run one cell in a fresh process and append it to the raw file."""
    settings = json.dumps([setting, family, target, seed, options.time_limit])
    done = subprocess.run(
        [sys.executable, __file__, "--child", settings],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=options.time_limit + MARGIN_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{setting} on {target} failed:\n{done.stderr[-3000:]}")
    row = ProverRun(**json.loads(done.stdout.splitlines()[-1]))
    options.raw.parent.mkdir(parents=True, exist_ok=True)
    with options.raw.open("a") as out:
        out.write(json.dumps(asdict(row)) + "\n")
    return row


def solved(setting: str, family: str, target: str, seed: int, time_limit_s: float) -> ProverRun:
    """Solve with the strategies of a setting, in this process."""
    from optbench.api import load_target, solve
    from optbench.compiling.kernel_table import prepare
    from optbench.plugins.discovery import load_solver

    load_solver("cpsat", {})
    search = import_module("optbench.plugins.solvers._cpsat_search")
    names, alone, _ = SETTINGS[setting]
    vars(search)["PROVERS"] = vars(search)["LP_PROVERS"] = search.Strategies(names, alone)
    prepare({"shop_search", "project_search", "deductions", "sampling"})
    instance = load_target(target, seed) if ":" in target else load_target(target)
    began = time.perf_counter()
    result = solve(instance, "cpsat", time_limit_s=time_limit_s, threads=2, seed=seed, bound=False)
    wall_s = time.perf_counter() - began
    objective, bound = result.objective, result.bound
    assert not isinstance(objective, tuple) and not isinstance(bound, tuple), "one level"
    proven = result.status == "optimal"
    return ProverRun(setting, family, target, seed, time_limit_s, objective, bound, proven, wall_s)


def check(rows: list[ProverRun]) -> None:
    """Refuse bounds above an objective of the same instance."""
    least = min((row.objective for row in rows if row.objective is not None), default=None)
    for row in rows:
        if least is not None and row.bound is not None and row.bound > least * (1 + ROUNDING):
            raise RuntimeError(f"{row.setting} on {row.target}: bound {row.bound} above {least}")


def report(rows: list[ProverRun], options: argparse.Namespace) -> str:
    """One line per family and setting; rpd is to the best objective of all settings."""
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        key = (row.target, row.seed)
        if row.objective is not None:
            best[key] = min(best.get(key, row.objective), row.objective)
    lines = [
        "# Strategies that prove",
        "",
        f"`cpsat` on two threads, {options.time_limit:g} s, one run per instance. `rpd` is to the",
        "best objective of all settings, the gap is each run's own. " + settings_in_words(),
        "",
        f"Command: `python benchmarks/provers.py --{'quick' if options.quick else 'full'}`  ",
        f"Machine: {platform.machine()}, {time.strftime('%Y-%m-%d')}",
        "",
        "| family | setting | proven | mean rpd | mean gap | time (geometric, shift 1 s) |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for family, setting in dict.fromkeys((row.family, row.setting) for row in rows):
        mine = [row for row in rows if (row.family, row.setting) == (family, setting)]
        gaps = [gap(row.objective, row.bound) for row in mine]
        rpds = [
            1.0 if row.objective is None else row.objective / best[row.target, row.seed] - 1
            for row in mine
        ]
        lines.append(
            f"| {family} | {setting} | {sum(row.proven for row in mine)} of {len(mine)} "
            f"| {100 * mean(rpds):.2f} % "
            f"| {100 * mean(1.0 if each is None else each for each in gaps):.2f} % "
            f"| {shifted_geomean([row.wall_s for row in mine], 1.0):.2f} s |"
        )
    return "\n".join([*lines, ""])


def settings_in_words() -> str:
    """Say what each setting is."""
    words = [
        f"`{name}`: {', '.join(names) or 'no strategies named'}; {text}."
        for name, (names, _, text) in SETTINGS.items()
    ]
    return " ".join(words)


if __name__ == "__main__":
    raise SystemExit(main())
