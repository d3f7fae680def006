"""Measured training steps on unequal devices: mis_spectral against METIS; writes
docs/results/unequal_devices.md and docs/results/raw/unequal_devices.jsonl.

    python benchmarks/unequal_devices.py [--cells TEXT] [--turns 3] [--seconds 3] [--page-only]

First the figures of a core of this machine are fitted for each network, as ``optbench gpu cores``
does, on one graph (raw/unequal_cores.json). Then each cell, a graph, a network and relative speeds,
is solved on these devices by three methods, whose plans execute the same kernels, and their steps
are measured in turns by the same processes. Rows that are there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402

PAGE = RESULTS / "unequal_devices.md"
RAW, CORES = RESULTS / "raw" / "unequal_devices.jsonl", RESULTS / "raw" / "unequal_cores.json"
GRAPHS = {
    "community": "graph=community,nodes=20000",
    "mesh": "graph=mesh,nodes=20000",
    "power": "graph=power,nodes=20000",
    "cora": "graph=cora",
}
# Hidden width and the kernels that every plan executes: sums over arcs write nothing per arc.
NETWORKS = {
    "gcn": (64, "spmm1+spmm2"),
    "sage": (64, "spmm1+spmm2"),
    "gat": (16, "attention1+attention2"),
}
# The graph on which cores are fitted, and those on which networks are trained.
FITTED_ON = "community"
TRAINED_ON = {"gcn": tuple(GRAPHS), "sage": ("community", "cora"), "gat": ("mesh",)}
SPEEDS = {"2:1": 2, "4:2:1": 3}
OURS, EQUAL, BY_SPEED = "mis_spectral", "metis", "metis:by_speed=true"
METHODS = (OURS, EQUAL, BY_SPEED)
GOAL = 0.8
# More devices than cores: the last two fit on two cores.
ASKED = ("1:1:1", "3:2:2", "2:1:1", "4:2:1")


@dataclass(frozen=True)
class StepRow:
    """A plan of one method: estimates and readings in seconds, and how fast processes were.

    ``nodes`` are those of devices, ``busy_s`` their computing in a step (processor time over
    speed, the mean of the readings), ``fitted_busiest_s`` the estimate of its maximum.
    ``held`` is processor time over time on the wall, of what each process computed in training.
    """

    graph: str
    network: str
    devices: str
    method: str
    readings: list[float]
    fitted_s: float
    shipped_s: float
    fitted_talk_s: float
    fitted_busiest_s: float
    bound_s: float | None
    nodes: list[int]
    busy_s: list[float]
    cut: float
    sent_mb: float
    speeds: list[float]
    solo: list[float]
    held: list[float]
    cores: list[int]

    @property
    def cell(self) -> tuple[str, str, str]:
        return self.graph, self.network, self.devices

    @property
    def measured_s(self) -> float:
        return float(np.mean(self.readings))


def rows_so_far() -> list[StepRow]:
    if not RAW.exists():
        return []
    rows = [StepRow(**json.loads(line)) for line in RAW.read_text(encoding="utf-8").splitlines()]
    return list({(row.cell, row.method): row for row in rows}.values())


def all_cells() -> Iterator[tuple[str, str, str]]:
    for devices in SPEEDS:
        for network, graphs in TRAINED_ON.items():
            for graph in graphs:
                yield graph, network, devices


def spec_of(graph: str, network: str, devices: str, parts: int) -> str:
    hidden, _ = NETWORKS[network]
    words = f"{GRAPHS[graph]},network={network},hidden={hidden},parts={parts},minimize=step"
    return f"gnn_training:{words},devices={devices}"


def instance_of(graph: str, network: str, devices: str, parts: int) -> Any:
    from optbench.plugins.discovery import load_problem

    return load_problem(spec_of(graph, network, devices, parts)).instance(0)


def cores_of(network: str, devices: str) -> Path:
    """The file of fitted devices; a core that is there is not fitted again."""
    from optbench.gnn.calibration.core_fit import fit_core
    from optbench.gnn.calibration.device_file import device_document
    from optbench.gnn.calibration.step_samples import measured_samples
    from optbench.gnn.runtime.measured_step import relative_speeds
    from optbench.shapes.gnn_training.fusion_names import fusion_numbers

    held = json.loads(CORES.read_text(encoding="utf-8")) if CORES.exists() else {}
    if network not in held:
        data = instance_of(FITTED_ON, network, "1", 1).data
        samples = measured_samples(data, fusion_numbers(data, NETWORKS[network][1]), 2)
        found = fit_core(samples)
        about = {"target": spec_of(FITTED_ON, network, "1", 1), "fusions": NETWORKS[network][1]}
        held[network] = device_document(found, [1.0], samples, about)
        CORES.parent.mkdir(parents=True, exist_ok=True)
        CORES.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
        print("fitted", network, found.core, found.gb_per_s, found.latency_s, flush=True)
        print("errors", [round(each, 3) for each in found.errors], flush=True)
    from optbench.gnn.calibration.device_file import throttled
    from optbench.shapes.gnn_training.training_data import TrainingDevice
    from optbench.shapes.protocol.plain_data import from_plain, to_plain

    core = from_plain(TrainingDevice, held[network]["devices"][0])
    speeds = relative_speeds(instance_of("mesh", network, devices, SPEEDS[devices]).data).tolist()
    made = [throttled(core, s, f"core{k}") for k, s in enumerate(speeds)]
    document = {**held[network], "devices": [to_plain(each) for each in made]}
    path = Path(gettempdir()) / f"unequal_cores_{network}_{len(speeds)}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def run_cell(cell: tuple[str, str, str], turns: int, seconds: float) -> list[StepRow]:
    """Solve a cell by all methods, and measure their plans in turns."""
    import optbench as ob
    from optbench.gnn.runtime.measured_turns import measured_in_turns
    from optbench.shapes.gnn_training.fusion_names import fusion_numbers

    graph, network, devices = cell
    names = NETWORKS[network][1]
    shipped = instance_of(graph, network, devices, SPEEDS[devices])
    fitted = instance_of(graph, network, str(cores_of(network, devices)), SPEEDS[devices])
    fusions = fusion_numbers(fitted.data, names)
    plans, bounds = list[Any](), list[Any]()
    for method in METHODS:
        solver = f"{method}:fusions={names}" if method == OURS else method
        result: Any = ob.solve(fitted, solver, seed=0, time_limit_s=seconds, bound=True)
        plans.append(replace(result.schedule, fusions=fusions))
        bounds.append(result.bound)
    measured = measured_in_turns([(fitted.data, each) for each in plans], turns)
    rows = []
    for method, plan, bound, found in zip(METHODS, plans, bounds, measured, strict=True):
        verdict, other = ob.verify(fitted, plan), ob.verify(shipped, plan)
        about, device = found.provenance, plan.device_of(fitted.data)
        rows.append(
            StepRow(
                *cell,
                method,
                list(found.readings["step_s"]),
                verdict.metrics["step_s"],
                other.metrics["step_s"],
                verdict.metrics["talk_s"],
                verdict.metrics["busiest_s"],
                bound,
                np.bincount(device[plan.part], minlength=SPEEDS[devices]).tolist(),
                np.mean(about["busy_s"], axis=0).tolist(),
                verdict.metrics["cut_edges"],
                about["sent_mb_per_step"],
                about["speeds"],
                about["solo_speeds"],
                [
                    held_speed(each, s)
                    for each, s in zip(about["device_rows"], about["speeds"], strict=True)
                ],
                about["cores"],
            )
        )
    return rows


def held_speed(rows: Sequence[dict[str, Any]], speed: float) -> float:
    """Processor time over the time on the wall that was not spent on waiting for others."""
    wall = sum(row["seconds"] - row["waited_s"] for row in rows)
    return sum(row["busy_s"] for row in rows) * speed / wall if wall else 0.0


def refusals() -> list[str]:
    """What --measure says to more devices than cores."""
    from optbench.errors import UnsupportedError
    from optbench.gnn.runtime.core_placement import cores_of_devices, usable_cores

    lines = []
    for asked in ASKED:
        speeds = [float(each) for each in asked.split(":")]
        speeds = [each / max(speeds) for each in speeds]
        try:
            words = f"measured, on cores {list(cores_of_devices(speeds, usable_cores()))}"
        except UnsupportedError as error:
            words = f"refused: {error}"
        lines.append(f"- `{asked}`: {words}.")
    return lines


def page(rows: Sequence[StepRow]) -> list[str]:
    head = page_head("Training steps on unequal devices", "python benchmarks/unequal_devices.py")
    lines = [
        line.replace("Times are those of the processor", "Times are wall time") for line in head
    ]
    by = {(row.cell, row.method): row for row in rows}
    cells = [each for each in all_cells() if all((each, m) in by for m in METHODS)]
    ratios = [by[c, OURS].measured_s / by[c, EQUAL].measured_s for c in cells]
    speeds = [by[c, OURS].measured_s / by[c, BY_SPEED].measured_s for c in cells]
    errors = {
        name: [getattr(row, name) / row.measured_s - 1 for row in rows]
        for name in ("fitted_s", "shipped_s")
    }
    reached = sum(each <= GOAL for each in ratios)
    lines += [
        "Seconds of a training step of real processes under plans of `mis_spectral` "
        "(`minimize=step`), of METIS with equal parts, and of METIS whose parts are to have the "
        "share of nodes that their device has in all speed (`tpwgts`, `metis:by_speed=true`). "
        "Plans execute the same kernels (GCN and SAGE: one sparse product for the sums over arcs, "
        "GAT: attention without arrays per arc); readings are means over 20 steps and alternate. "
        "2 : 1 are two cores, the second at duty 1/2; 4 : 2 : 1 is 4 alone on one core, 2 and 1 at "
        "duty 1/2 and 1/4 on the other. Estimates are `metrics.step_s`, with the core that is "
        f"fitted to this machine on the {FITTED_ON} graph and with the one that optbench ships.",
        "",
        f"Goal: at least {1 - GOAL:.0%} faster than METIS with equal parts. Measured: "
        f"**{reached} of {len(cells)}** cells; the step takes in the mean "
        f"**{np.mean(ratios):.2f}** of METIS's time with equal parts (worst {max(ratios):.2f}), "
        f"and {np.mean(speeds):.2f} of METIS's by speed (worst {max(speeds):.2f}). "
        f"Estimates are off by {mean_size(errors['fitted_s']):.0%} in the mean with the fitted "
        f"core and by {mean_size(errors['shipped_s']):.0%} with the shipped one.",
        "",
        "| graph | network | devices | METIS ms | by speed ms | ours ms | ours / METIS | ours / by "
        "speed | fitted estimate ms: METIS | by speed | ours | shipped: METIS | ours |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for cell in cells:
        ours, equal, fast = (by[cell, m] for m in (OURS, EQUAL, BY_SPEED))
        cells_of = [*cell, spread(equal), spread(fast), spread(ours)]
        cells_of += [f"**{ours.measured_s / equal.measured_s:.2f}**"]
        cells_of += [f"{ours.measured_s / fast.measured_s:.2f}"]
        cells_of += [f"{1e3 * each.fitted_s:.1f}" for each in (equal, fast, ours)]
        cells_of += [f"{1e3 * each.shipped_s:.1f}" for each in (equal, ours)]
        lines.append(f"| {' | '.join(cells_of)} |")
    return [*lines, "", *work_lines(rows), "", *speed_lines(rows), "", *core_lines()]


def work_lines(rows: Sequence[StepRow]) -> list[str]:
    """What devices compute, estimated and measured, and what they exchange."""
    lines = [
        "## Computing and exchanging",
        "",
        "Computing is that of the busiest device in a step, measured as processor time over speed; "
        "the least step that any plan of this method's kernels or of others can have is `bound`.",
        "",
        "| graph | network | devices | method | nodes by device | computing, estimate ms | "
        "measured ms | exchange, estimate ms | sent MB | cut | bound ms |",
        "|---|---|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        words = [*row.cell, row.method, " / ".join(map(str, row.nodes))]
        figures = [1e3 * row.fitted_busiest_s, 1e3 * max(row.busy_s), 1e3 * row.fitted_talk_s]
        words += [f"{each:.2f}" for each in [*figures, row.sent_mb]] + [f"{row.cut:.0f}"]
        words += ["" if row.bound_s is None else f"{1e3 * row.bound_s:.2f}"]
        lines.append(f"| {' | '.join(words)} |")
    return lines


def mean_size(values: Sequence[float]) -> float:
    return float(np.mean(np.abs(values)))


def spread(row: StepRow) -> str:
    """The mean with half the range of the readings."""
    half = (max(row.readings) - min(row.readings)) / 2
    return f"{1e3 * row.measured_s:.1f} ± {1e3 * half:.1f}"


def speed_lines(rows: Sequence[StepRow]) -> list[str]:
    """Solo speeds, speeds that were held in training, and refusals."""
    lines = [
        "## Speeds of the processes",
        "",
        "A throttled process sleeps after every section in proportion to its processor time. Its "
        "solo speed is measured before each training, the others waiting (at most 10 % off, else "
        "the reading is refused); *held* is processor time over the time on the wall that it did "
        "not wait for others, in the training itself.",
        "",
        "| relative speed | solo, least | solo, most | held, least | held, median | held, most |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    found: dict[float, list[tuple[float, float]]] = {}
    for row in rows:
        for speed, solo, held in zip(row.speeds, row.solo, row.held, strict=True):
            found.setdefault(speed, []).append((solo, held))
    for speed, pairs in sorted(found.items(), reverse=True):
        alone, kept = (np.array(each) for each in zip(*pairs, strict=True))
        figures = [speed, alone.min(), alone.max(), kept.min(), np.median(kept), kept.max()]
        lines.append(f"| {' | '.join(f'{each:.3f}' for each in figures)} |")
    return [*lines, "", "Devices that `--measure` is asked for, on this machine:", "", *refusals()]


def core_lines() -> list[str]:
    """The fitted cores, and how far their own samples are estimated."""
    held = json.loads(CORES.read_text(encoding="utf-8"))
    lines = [
        "## Fitted cores",
        "",
        "| network | Gflop/s | GB/s | launch µs | link GB/s | latency µs | largest error, one core "
        "| two cores |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for network, document in held.items():
        core, links = document["devices"][0], document.get("links", {})
        worst = {
            cores: max(
                (
                    abs(each["estimate_s"] / each["measured_s"] - 1)
                    for each in document["about"]["samples"]
                    if each["cores"] == cores
                ),
                default=float("nan"),
            )
            for cores in (1, 2)
        }
        figures = [core["gflops"], core["gb_per_s"], 1e6 * core["launch_s"]]
        figures += [links.get("gb_per_s", float("nan")), 1e6 * links.get("latency_s", float("nan"))]
        words = [f"{each:.3g}" for each in figures] + [f"{each:.1%}" for each in worst.values()]
        lines.append(f"| {network} | {' | '.join(words)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="", help="cells whose words contain this")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    from optbench.errors import UnsupportedError

    known = {(row.cell, row.method) for row in rows_so_far()}
    for cell in () if args.page_only else all_cells():
        missing = any((cell, method) not in known for method in METHODS)
        if args.cells not in " ".join(cell) or not missing:
            continue
        try:
            rows = run_cell(cell, args.turns, args.seconds)
        except UnsupportedError as error:  # a process had not its speed; the next run repeats it
            print(*cell, error, flush=True)
            continue
        with RAW.open("a", encoding="utf-8") as out:
            out.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
        for row in rows:
            print(*row.cell, row.method, spread(row), f"{1e3 * row.fitted_s:.1f}", flush=True)
    PAGE.write_text("\n".join(page(rows_so_far())).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
