"""`optbench tune` and `optbench train` on a real two-node Ray cluster, with workers and nodes
killed; writes docs/results/ray_tune_train.md.

    python benchmarks/ray_remote.py [--part search|train] [-o docs/results/ray_tune_train.md]

The search runs with two Ray workers and a PostgreSQL store (a cluster of its own under a temporary
folder; needs PostgreSQL's programs and psycopg2). ``kill -9`` hits workers, then a whole node, then
the command itself, which is started again. In the end no trial may be lost or doubled, each has all
of its cells, every cell stands in the driver's store once, and MLflow shows one run per trial. With
one worker the trials must be those of a search at home. The trainings run in one process at home,
on one node, on two nodes, and on two of which one is killed: all checkpoints must have the same
weights. Exit code 1 when anything does not hold. About ten minutes; a part alone
keeps the figures of the other.
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
# (solver, problems, settings): small ones, so that all ways of all of them take minutes.
TRAININGS = (
    (
        "learned_prices",
        (f"geo_dc:days=1,{STREAM}",),
        {
            "envs": "2",
            "validation": "1",
            "imitate_on": "1",
            "imitation_steps": "300",
            "generations": "5",
            "pairs": "6",
            "check_every": "5",
        },
    ),
    (
        "hgnn",
        ("gpu_cluster:nodes=8,tasks=120", "gpu_cluster:nodes=8,tasks=120,load=0.5"),
        {"steps": "6", "instances": "2", "check_every": "3", "samples": "16"},
    ),
    (
        "chsac_af",
        ("geo_dc:days=0.25",),
        {"decisions": "6000", "envs": "8", "calibrate": "30"},
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


def search_facts(case: RayCase, one: tuple[bool, int]) -> dict[str, Any]:
    """The raw figures of the search."""
    kept = ("kills", "starts", "seconds", "facts", "problems", "said")
    return {**{name: getattr(case, name) for name in kept}, "alone": list(one)}


def train_facts(trainings: list[Training]) -> dict[str, Any]:
    """The raw figures of the trainings."""
    return {
        each.solver: {
            "wall_s": each.wall_s,
            "same": {way: each.is_same(way, "home") for way in WAYS},
            "told": {
                way: {name: value for name, value in told.items() if name not in ("said", "energy")}
                for way, told in each.told.items()
            },
            "lost": [line for line in each.said_when_killed() if "lost" in line],
            "problems": each.problems,
            "settings": each.settings,
        }
        for each in trainings
    }


def render(rows: dict[str, Any]) -> str:
    """The page, from the raw figures of both parts."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("ray", "optuna", "torch"))
    return "\n".join(
        [
            "# Searches and trainings on a Ray cluster",
            "",
            f"`{COMMAND}`, {datetime.now(UTC):%Y-%m-%d}, {platform.node()}, {os.cpu_count()} "
            f"cores, Python {platform.python_version()}, {versions}. Two raylets on this machine, "
            "which much other work used at the same time: seconds are noisy, and the two nodes "
            "share two cores. Raw figures: [ray_tune_train.json](raw/ray_tune_train.json).",
            "",
            *(search_lines(rows["search"]) if "search" in rows else ()),
            *(train_lines(rows["train"]) if "train" in rows else ()),
        ]
    )


def search_lines(found: dict[str, Any]) -> list[str]:
    held = "; ".join(found["problems"]) or "yes"
    alone_held, count = found["alone"]
    killed = ", ".join(f"{n} × {what}" for what, n in sorted(found["kills"].items()))
    return [
        "## A search with two workers, PostgreSQL and kills",
        "",
        f"Killed: {killed}; the command was started {found['starts']} times. "
        f"{found['seconds']:.0f} s.",
        "",
        "| | |",
        "| --- | ---: |",
        *(f"| {name.replace('_', ' ')} | {value} |" for name, value in found["facts"].items()),
        "",
        "No trial lost, none doubled, every cell once, every value as the store has it: "
        f"**{held}**.",
        "",
        *(f"- `{line}`" for line in found["said"]),
        "",
        f"With one worker, the {count} trials of a search on a node have the parameters and the "
        f"values of those at home: **{'yes' if alone_held else 'no'}**.",
        "",
    ]


def train_lines(found: dict[str, Any]) -> list[str]:
    lines = [
        "## Trainings",
        "",
        "Seconds of the whole command, connecting and starting the workers included. Calls are "
        "what the workers did on two nodes, and the training waited for them: calls over waited is "
        "the speed-up of the rollouts. The speed-up of the training is over the same training "
        "whose calls had waited for each other. Where other work competes for the cores, two "
        "processes get a larger share of them than one, which flatters both.",
        "",
        "| training | home (s) | one node (s) | two nodes (s) | one of two killed (s) | calls (s) "
        "| waited (s) | speed-up of rollouts | of the training | same weights in all four |",
        "| --- | " + "---: | " * 9,
    ]
    for solver, each in found.items():
        two = each["told"]["two nodes"]
        walls = " | ".join(f"{each['wall_s'][way]:.1f}" for way in WAYS)
        rollouts = two["calls_s"] / two["waited_for_calls_s"]
        lines.append(
            f"| {solver} | {walls} | {two['calls_s']:.1f} | {two['waited_for_calls_s']:.1f} | "
            f"{rollouts:.2f} | {two['speed_up']:.2f} | "
            f"{'yes' if all(each['same'].values()) else '**no**'} |"
        )
    lines += ["", "When the node was killed:", ""]
    for solver, each in found.items():
        words = each["lost"][0] if each["lost"] else "no call was there at that moment"
        lines.append(f"- {solver}: `{words}`")
    lines += ["", "What was trained:", ""]
    for solver, each in found.items():
        words = " ".join(f"-p {name}={value}" for name, value in each["settings"].items())
        problems = " ".join(f"--on {problem}" for problem in each["problems"])
        lines.append(f"- `optbench train {solver} {problems} {words}`")
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    page = ROOT / "docs" / "results" / "ray_tune_train.md"
    parser.add_argument("-o", "--output", type=Path, default=page)
    parser.add_argument("--part", choices=("search", "train"), action="append")
    args = parser.parse_args()
    raw = args.output.parent / "raw" / f"{args.output.stem}.json"
    rows = json.loads(raw.read_text()) if raw.exists() else {}
    wanted = args.part or ["search", "train"]
    with tempfile.TemporaryDirectory(prefix="optbench-remote-") as name, two_nodes() as nodes:
        base = Path(name)
        if "search" in wanted:
            with postgres(base) as database:
                case = search(base, nodes, database)
            rows["search"] = search_facts(case, alone(base, nodes))
        if "train" in wanted:
            rows["train"] = train_facts(train(base, nodes))
    raw.write_text(json.dumps(rows, indent=1, default=str) + "\n")
    args.output.write_text(render(rows))
    same = all(all(each["same"].values()) for each in rows.get("train", {}).values())
    found = rows.get("search", {"problems": [], "alone": [True]})
    return 0 if same and found["alone"][0] and not found["problems"] else 1


if __name__ == "__main__":
    sys.exit(main())
