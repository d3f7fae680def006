"""`optbench tune` and `optbench train` on a real two-node Ray cluster, with workers and nodes
killed; writes docs/results/ray_tune_train.md.

    python benchmarks/ray_remote.py [-o docs/results/ray_tune_train.md]

The search runs with two Ray workers and a PostgreSQL store (a cluster of its own under a temporary
folder; needs PostgreSQL's programs and psycopg2). ``kill -9`` hits workers, then a whole node, then
the command itself, which is started again. In the end no trial may be lost or doubled, each has all
of its cells, every cell stands in the driver's store once, and MLflow shows one run per trial. With
one worker the trials must be those of a search at home. The trainings run in one process at home,
on one node, on two nodes, and on two of which one is killed: all checkpoints must have the same
weights. Exit code 1 when anything does not hold. About ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._ray_remote_cases import (  # noqa: E402
    LIMIT_S,
    RayCase,
    Training,
    kill_node,
    kill_worker,
    trials_of,
    wait_for_cells,
)
from benchmarks.tune_workers import check, postgres  # noqa: E402
from tests.ray_nodes import RayNodes  # noqa: E402

COMMAND = "python benchmarks/ray_remote.py"
STREAM = "drain=yes,minimize=cost,local_hours=yes,sojourn_s=4h"
# (solver, problems, settings): sizes of which rollouts take at least half a minute in one process.
TRAININGS = (
    (
        "learned_prices",
        (f"geo_dc:days=2,{STREAM}",),
        {
            "envs": "4",
            "validation": "2",
            "imitate_on": "2",
            "generations": "10",
            "pairs": "8",
            "check_every": "4",
        },
    ),
    (
        "hgnn",
        ("gpu_cluster:nodes=8,tasks=120", "gpu_cluster:nodes=8,tasks=120,load=0.5"),
        {"steps": "16", "instances": "4", "check_every": "8", "samples": "16"},
    ),
    (
        "chsac_af",
        ("geo_dc:days=0.5",),
        {"decisions": "20000", "envs": "16", "calibrate": "45"},
    ),
)
WAYS = ("home", "one node", "two nodes", "node killed")


def search(base: Path, nodes: RayNodes, database: str) -> RayCase:
    """Two workers; kills of workers, of a node and of the command."""
    case = RayCase("small, PostgreSQL", "small", database, base / "search", nodes=nodes)
    case.prepare()
    began, command = time.monotonic(), case.start()
    for cells, act in ((40, kill_worker), (80, kill_worker), (120, kill_node), (170, kill_worker)):
        if wait_for_cells(case, command, cells):
            print(f"  {case.count()} cells: killed {act(case)}", flush=True)
    if wait_for_cells(case, command, 210):
        command.kill()
        command.communicate()
        case.kills["command"] += 1
        print(f"  {case.count()} cells: killed the command", flush=True)
        command = case.start()
    out, _ = command.communicate(timeout=LIMIT_S)
    if command.returncode:
        case.problems.append(f"the command ended with exit code {command.returncode}")
    else:
        case.told = json.loads(out)
        check(case)
    case.seconds, case.said = time.monotonic() - began, case.told_on_stderr()
    if case.kills["worker"] < 1 or case.kills["node"] < 1:
        case.problems.append(f"too few kills: {dict(case.kills)}")
    return case


def alone(base: Path, nodes: RayNodes) -> tuple[bool, int]:
    """Whether one worker on a node draws and finds what one at home does, trial by trial."""
    found = []
    for name, where in (("home", None), ("node", nodes)):
        case = RayCase(name, "small", None, base / f"alone-{name}", nodes=where, workers=1)
        case.prepare()
        text = (case.folder / "studies" / "small.toml").read_text()
        fewer = text.replace("trials = 60", "trials = 16")
        (case.folder / "studies" / "small.toml").write_text(fewer)
        command = case.start()
        out, _ = command.communicate(timeout=LIMIT_S)
        case.told = json.loads(out)
        found.append(trials_of(case)[:16])
    return found[0] == found[1], len(found[0])


def train(base: Path, nodes: RayNodes) -> list[Training]:
    """Every training in all ways; nodes of one core each."""
    out = []
    for solver, problems, settings in TRAININGS:
        training = Training(solver, problems, settings, base)
        training.run("home", None)
        training.run("one node", nodes, "-n", "1")
        training.run("two nodes", nodes, "-n", "2")
        training.run("node killed", nodes, "-n", "2", kill="node")
        nodes.add_node()
        for way in WAYS:
            same = training.is_same(way, "home")
            print(f"  {solver}, {way}: {training.wall_s[way]:.1f} s, same {same}", flush=True)
        out.append(training)
    return out


@contextmanager
def two_nodes() -> Iterator[RayNodes]:
    nodes = RayNodes()
    try:
        yield nodes
    finally:
        nodes.close()


def render(case: RayCase, one: tuple[bool, int], trainings: list[Training], spent_s: float) -> str:
    """The page."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("ray", "optuna", "torch"))
    lines = [
        "# Searches and trainings on a Ray cluster",
        "",
        f"`{COMMAND}`, {datetime.now(UTC):%Y-%m-%d}, {platform.node()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {versions}; {spent_s:.0f} s. Two raylets on this "
        "machine, which other work used at the same time: seconds are noisy, and the two nodes "
        "share two cores.",
        "",
        "## A search with two workers, PostgreSQL and kills",
        "",
        f"Killed: {', '.join(f'{n} × {what}' for what, n in sorted(case.kills.items()))}; the "
        f"command was started {case.starts} times. {case.seconds:.0f} s.",
        "",
        "| | |",
        "| --- | ---: |",
        *(f"| {name.replace('_', ' ')} | {value} |" for name, value in case.facts.items()),
        "",
        f"No trial lost, none doubled, every cell once, every value as the store has it: "
        f"**{'yes' if not case.problems else '; '.join(case.problems)}**.",
        "",
        *(f"- `{line}`" for line in case.said),
        "",
        f"With one worker, the {one[1]} trials of a search on a node have the parameters and the "
        f"values of those at home: **{'yes' if one[0] else 'no'}**.",
        "",
        "## Trainings",
        "",
        "Seconds of the whole command. Calls are what the workers did; the training waited for "
        "them. The speed-up of calls is their seconds over the seconds waited, on two nodes.",
        "",
        "| training | home (s) | one node (s) | two nodes (s) | one of two killed (s) | "
        "calls (s) | waited (s) | speed-up of calls | of the command, one node to two | "
        "same weights |",
        "| --- | " + "---: | " * 9,
    ]
    for each in trainings:
        two = each.told["two nodes"]
        same = all(each.is_same(way, "home") for way in WAYS)
        lines.append(
            f"| {each.solver} | "
            + " | ".join(f"{each.wall_s[way]:.1f}" for way in WAYS)
            + f" | {two['calls_s']:.1f} | {two['waited_for_calls_s']:.1f} | "
            f"{two['calls_s'] / two['waited_for_calls_s']:.2f} | "
            f"{each.wall_s['one node'] / each.wall_s['two nodes']:.2f} | "
            f"{'yes' if same else '**no**'} |"
        )
    lines += ["", "What the trainings said when the node was killed:", ""]
    lines += [f"- {t.solver}: `{_lost(t)}`" for t in trainings]
    return "\n".join([*lines, ""])


def _lost(training: Training) -> str:
    said = [line for line in training.told["node killed"]["said"].splitlines() if "lost" in line]
    return said[0] if said else "nothing was at work there"


def raw(case: RayCase, trainings: list[Training]) -> dict[str, Any]:
    return {
        "search": {"kills": dict(case.kills), "facts": case.facts, "problems": case.problems},
        "trainings": {
            each.solver: {
                "wall_s": each.wall_s,
                "told": {way: {k: v for k, v in told.items() if k != "said"}
                         for way, told in each.told.items()},
            }
            for each in trainings
        },
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    page = ROOT / "docs" / "results" / "ray_tune_train.md"
    parser.add_argument("-o", "--output", type=Path, default=page)
    args = parser.parse_args()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="optbench-remote-") as name,
        two_nodes() as nodes,
        postgres(Path(name)) as database,
    ):
        base = Path(name)
        case = search(base, nodes, database)
        held = case.problems or "all holds"
        print(f"search: {dict(case.kills)}, {case.facts}: {held}", flush=True)
        one = alone(base, nodes)
        print(f"one worker: same trials {one}", flush=True)
        trainings = train(base, nodes)
        args.output.write_text(render(case, one, trainings, time.monotonic() - began))
        rows = args.output.parent / "raw" / f"{args.output.stem}.json"
        rows.write_text(json.dumps(raw(case, trainings), indent=1, default=str) + "\n")
        same = all(each.is_same(way, "home") for each in trainings for way in WAYS)
        return 0 if same and one[0] and not case.problems else 1


if __name__ == "__main__":
    sys.exit(main())
