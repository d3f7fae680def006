"""How many tasks of a GPU task graph are proven optimal in a minute, through the command line:
python benchmarks/exact_sizes.py [--sizes 10,12,15] [--seeds 5-14] [--transfers both]
[--solver cpsat] [--off "cpsat:cuts=no"]

Each instance is one ``optbench solve gpu_dag:tasks=N,transfers=yes|no`` in a fresh process, with
the cuts on and with them off; and once each with ``--work-limit 1``, whose bound is the early one
of the table. A run goes on where it was interrupted: every line of the raw file is one command. An
objective below the bound of another run of the same instance stops it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "exact_sizes.md"
RAW = ROOT / "docs" / "results" / "raw" / "exact_sizes.jsonl"
# What the command line takes besides solving: imports, checks, the JSON.
MARGIN_S = 120.0
# Relative differences of sums of floats.
ROUNDING = 1e-6
# A size counts as solved when this share of its instances is proven.
SHARE = 0.5


@dataclass(frozen=True)
class Proof:
    """One command and what it printed; ``cpu_s`` is the processor time of the whole process."""

    command: str
    objective: float | None
    bound: float | None
    proven: bool
    solve_s: float
    first_s: float | None
    cpu_s: float


@dataclass(frozen=True)
class Case:
    """One instance by one solver: the full run and the early one."""

    tasks: int
    transfers: bool
    seed: int
    solver: str
    full: Proof
    early: Proof


def main() -> int:
    options = parsed()
    known = read(options.raw)
    cases = []
    for tasks in options.sizes:
        for transfers in options.transfers:
            for seed in options.seeds:
                pair = [
                    case(options, known, tasks, transfers, seed, solver)
                    for solver in (options.solver, options.off)
                    if solver
                ]
                check(pair)
                cases += pair
                print("   ".join(line(each) for each in pair), flush=True)
    text = report(cases, options)
    print(text)
    options.output.write_text(text, encoding="utf-8")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=numbers, default=numbers("10,12,15,17,20"))
    parser.add_argument("--seeds", type=numbers, default=numbers("5-14"))
    parser.add_argument("--transfers", type=choices, default=choices("both"), help="yes, no, both")
    parser.add_argument("--solver", default="cpsat")
    parser.add_argument("--off", default="cpsat:cuts=no", help="the same without cuts; '' for none")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--raw", type=Path, default=RAW)
    parser.add_argument("-o", "--output", type=Path, default=REPORT)
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    """Return the numbers of a list such as 5-14,20."""
    out: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        out += range(int(low), int(high or low) + 1)
    return out


def choices(text: str) -> list[bool]:
    return {"yes": [True], "no": [False], "both": [True, False]}[text]


def read(raw: Path) -> dict[str, Proof]:
    lines = raw.read_text().splitlines() if raw.exists() else []
    return {proof.command: proof for proof in (Proof(**json.loads(line)) for line in lines)}


def case(
    options: argparse.Namespace,
    known: dict[str, Proof],
    tasks: int,
    transfers: bool,
    seed: int,
    solver: str,
) -> Case:
    """Run both commands of one instance, or take what the raw file has."""
    target = f"gpu_dag:tasks={tasks},transfers={'yes' if transfers else 'no'}"
    name, _, parameters = solver.partition(":")
    words = ["solve", target, "-s", name, "--seed", str(seed)]
    words += [word for each in parameters.split(",") if each for word in ("-p", each)]
    words += ["--threads", str(options.threads), "--json", "--quiet"]
    limits = (["--time-limit", f"{options.time_limit:g}s"], ["--work-limit", "1"])
    full, early = (run([*words, *limit], options, known) for limit in limits)
    return Case(tasks, transfers, seed, solver, full, early)


def run(words: list[str], options: argparse.Namespace, known: dict[str, Proof]) -> Proof:
    command = shlex.join(["optbench", *words])
    if command in known:
        return known[command]
    code = "import sys; from optbench.cli.main import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=options.time_limit + MARGIN_S,
    )
    after = os.times()
    if not done.stdout.startswith("{"):
        raise RuntimeError(f"{command} printed no result:\n{done.stdout}\n{done.stderr}")
    result = json.loads(done.stdout)
    spent = sum(after[2:4]) - sum(before[2:4])
    proof = Proof(
        command,
        result["objective"],
        result["bound"],
        result["status"] == "optimal",
        result["timings_s"]["solve"] if "timings_s" in result else result["wall_s"],
        result.get("time_to_first_s"),
        round(spent, 2),
    )
    known[command] = proof
    options.raw.parent.mkdir(parents=True, exist_ok=True)
    with options.raw.open("a") as out:
        out.write(json.dumps(asdict(proof)) + "\n")
    return proof


def check(pair: list[Case]) -> None:
    """Refuse bounds above an objective of the same instance."""
    proofs = [proof for each in pair for proof in (each.full, each.early)]
    least = min((p.objective for p in proofs if p.objective is not None), default=None)
    for proof in proofs:
        if least is not None and proof.bound is not None and proof.bound > least * (1 + ROUNDING):
            raise RuntimeError(f"{proof.command}: bound {proof.bound} above {least}")


def line(each: Case) -> str:
    gap = 100 * deviation(each.full.bound, each.full.objective)
    words = "proven" if each.full.proven else f"{gap:.2f} % open"
    return (
        f"{each.tasks} tasks, transfers {each.transfers}, seed {each.seed}, {each.solver}: {words} "
        f"in {each.full.solve_s:.1f} s ({each.full.cpu_s:.1f} s of the processor)"
    )


def deviation(bound: float | None, objective: float | None) -> float:
    """Return the gap of a bound to an objective, 1 where there is none."""
    if bound is None or objective is None:
        return 1.0
    return (objective - bound) / objective


def report(cases: list[Case], options: argparse.Namespace) -> str:
    seeds = f"{min(options.seeds)} to {max(options.seeds)}"
    lines = [
        "# Task graphs proven optimal, by size",
        "",
        f"`optbench solve gpu_dag:tasks=N,transfers=yes|no -s cpsat --time-limit "
        f"{options.time_limit:g}s --threads {options.threads}`,",
        f"seeds {seeds}, each in a fresh process; and the same with the cuts off. The times are",
        "those of the solver's own clock: the median counts instances that are not proven with the",
        "whole limit. The early bound is that of `--work-limit 1`; its gap is to the best",
        "objective of all runs of the instance.",
        "",
        f"Command: `{shlex.join(['python', *sys.argv])}`  ",
        f"Machine: {platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"{time.strftime('%Y-%m-%d')}",
        "",
        "| tasks | transfers | solver | proven | median | worst | first schedule, worst | gap of "
        "the early bound | gap left, mean |",
        "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    best: dict[tuple[int, bool, int], float] = {}
    for each in cases:
        for proof in (each.full, each.early):
            key = (each.tasks, each.transfers, each.seed)
            if proof.objective is not None:
                best[key] = min(best.get(key, proof.objective), proof.objective)
    groups = dict.fromkeys((c.tasks, c.transfers, c.solver) for c in cases)
    for tasks, transfers, solver in groups:
        mine = [c for c in cases if (c.tasks, c.transfers, c.solver) == (tasks, transfers, solver)]
        times = [c.full.solve_s if c.full.proven else options.time_limit for c in mine]
        first = [c.full.first_s for c in mine if c.full.first_s is not None]
        early = [deviation(c.early.bound, best.get((tasks, transfers, c.seed))) for c in mine]
        left = [deviation(c.full.bound, best.get((tasks, transfers, c.seed))) for c in mine]
        lines.append(
            f"| {tasks} | {'yes' if transfers else 'no'} | `{solver}` "
            f"| {sum(c.full.proven for c in mine)} of {len(mine)} | {median(times):.1f} s "
            f"| {max(times):.1f} s | {max(first, default=0.0):.2f} s "
            f"| {100 * mean(early):.2f} % | {100 * mean(left):.2f} % |"
        )
    return "\n".join([*lines, "", *largest(cases, options)])


def largest(cases: list[Case], options: argparse.Namespace) -> list[str]:
    """Say the largest size of which half of the instances are proven, per solver and transfers."""
    out = []
    for solver in dict.fromkeys(c.solver for c in cases):
        for transfers in options.transfers:
            sizes = []
            for tasks in options.sizes:
                proven = [
                    c.full.proven
                    for c in cases
                    if (c.tasks, c.transfers, c.solver) == (tasks, transfers, solver)
                ]
                if proven and sum(proven) >= SHARE * len(proven):
                    sizes.append(tasks)
            word = "with" if transfers else "without"
            found = f"{max(sizes)} tasks" if sizes else "none of these sizes"
            out.append(f"- `{solver}`, {word} transfers, at least half proven: {found}.")
    return [*out, ""]


if __name__ == "__main__":
    raise SystemExit(main())
