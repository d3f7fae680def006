"""Trainings of which a process is killed with SIGKILL at different moments, against the same
without: losses and weights; writes docs/results/gnn_recovery.md and
docs/results/raw/gnn_recovery.jsonl.

    python benchmarks/gnn_recovery.py [--networks gcn,sage,gat] [--minutes 3] [--page-only]

Two processes train on Cora by the fusion plan of the network, with the partition of
``mis_spectral``. One is killed once it has written a sample of the given step; the launcher ends
the other and starts both again from the last checkpoint. No training begins that would
probably end after the given minutes; the page says how many of the grid have run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from benchmarks._gnn_trainings import (  # noqa: E402
    instance_of,
    job_of,
    nodes_of,
    public_data,
    spectral_parts,
)

PAGE, RAW = RESULTS / "gnn_recovery.md", RESULTS / "raw" / "gnn_recovery.jsonl"
PLANS = {
    "gcn": ("aggregated_before", "one_pass1", "spmm_epilogue2"),
    "sage": ("aggregated_last_epilogue1", "aggregated_last_epilogue2"),
    "gat": ("attention_epilogue1", "attention_epilogue2"),
}
# The step after which, as a share of all, and the process that is killed.
MOMENTS = ((0.05, 1), (0.4, 0), (0.75, 1), (0.95, 0))
EPOCHS, EVERY, GIVE_UP_S = 60, 10, 600.0


@dataclass(frozen=True)
class Recovery:
    """One killed training against one that was not."""

    network: str
    wanted_step: int
    killed_at: int
    rank: int
    first_step: int
    restarts: int
    losses_equal: bool
    largest_difference: float
    weights_equal: bool
    final_loss: float
    seconds_lost: float

    def line(self) -> str:
        cells = [self.network, str(self.killed_at), str(self.rank), str(self.first_step)]
        cells += [str(self.restarts), "all" if self.losses_equal else "**not all**"]
        cells += [f"{self.largest_difference:g}", "all" if self.weights_equal else "**not all**"]
        cells += [f"{self.final_loss:.9f}", f"{self.seconds_lost:.1f}"]
        return f"| {' | '.join(cells)} |"


def kill_after(folder: Path, rank: int, step: int, killed: list[int]) -> None:
    """Kill a process once it has written a sample of this step; note the last step it wrote."""
    import psutil

    rows = folder / f"rows-{rank}.jsonl"
    end = time.monotonic() + GIVE_UP_S
    while time.monotonic() < end:
        written = rows.read_text().count("\n") if rows.exists() else 0
        if written >= step:
            break
        time.sleep(0.001)
    for child in psutil.Process().children():
        mine = str(folder.resolve()) in child.cmdline()
        if mine and child.environ().get("RANK") == str(rank):
            os.kill(child.pid, signal.SIGKILL)
            killed.append(rows.read_text().count("\n"))


def trained(folder: Path, job: Any, nodes: Any) -> tuple[int, float]:
    """Restarts and seconds of a training."""
    from optbench.gnn.runtime.training_job import write_job
    from optbench.gnn.runtime.training_processes import start_processes

    write_job(folder, job, nodes)
    began = time.perf_counter()
    return start_processes([folder]), time.perf_counter() - began


def recovery(root: Path, whole: tuple[Path, float], case: Any, moment: tuple[int, int]) -> Recovery:
    """Train with a process that is killed, and compare."""
    from optbench.gnn.runtime.training_result import read_result, trained_weights

    job, nodes = case
    step, rank = moment
    folder = root / f"{job.network.network}-{step}"
    killed: list[int] = []
    killer = threading.Thread(target=kill_after, args=(folder, rank, step, killed))
    killer.start()
    restarts, seconds = trained(folder, job, nodes)
    killer.join()
    if not killed:
        raise RuntimeError(f"{folder}: no process was killed in {GIVE_UP_S:g} s")
    wanted, found = read_result(whole[0]), read_result(folder)
    weights, kept = trained_weights(whole[0]), trained_weights(folder)
    pairs = list(zip(wanted.losses, found.losses, strict=True))
    return Recovery(
        job.network.network,
        step,
        killed[0],
        rank,
        found.first_step,
        restarts,
        found.losses == wanted.losses,
        max(abs(a - b) for a, b in pairs),
        all(kept[name].equal(value) for name, value in weights.items()),
        found.losses[-1],
        seconds - whole[1],
    )


def rows_so_far() -> list[Recovery]:
    if not RAW.exists():
        return []
    lines = RAW.read_text(encoding="utf-8").splitlines()
    return [Recovery(**json.loads(line)) for line in lines]


def run_all(networks: list[str], minutes: float) -> None:
    """Kill at every moment, one after the other, while the time allows; rows are written anew."""
    began = time.perf_counter()
    data = public_data("cora")
    part = spectral_parts(instance_of("graph=cora,parts=2,imbalance=0.03"), 3.0)
    others: dict[str, Any] = {"checkpoint_every": EVERY, "sample_s": 0.0}
    nodes, longest_s = nodes_of(data, part), 0.0
    undisturbed: dict[str, tuple[Path, float]] = {}
    RAW.write_text("", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="optbench-recovery-") as name:
        root = Path(name)
        for (share, rank), network in product(MOMENTS, networks):
            start = time.perf_counter()
            if start - began + longest_s > 60.0 * minutes:
                return
            job = job_of(network, data.classes, 2, epochs=EPOCHS, fusions=PLANS[network], **others)
            if network not in undisturbed:
                folder = root / f"{network}-whole"
                undisturbed[network] = folder, trained(folder, job, nodes)[1]
            moment = max(1, round(share * EPOCHS)), rank
            row = recovery(root, undisturbed[network], (job, nodes), moment)
            with RAW.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")
            print(row.line(), flush=True)
            longest_s = max(longest_s, time.perf_counter() - start)


def page(found: list[Recovery]) -> list[str]:
    declared = len(MOMENTS) * len(PLANS)
    same = sum(each.losses_equal and each.weights_equal for each in found)
    lines = page_head("A worker that dies", "python benchmarks/gnn_recovery.py", "on the wall")
    return [
        *lines,
        f"Two processes train on Cora for {EPOCHS} epochs, with a checkpoint after every "
        f"{EVERY}; one of them is killed (SIGKILL) once it has computed a given number of "
        "epochs, and both start again from the last checkpoint, the dropout going on as it would "
        "have. Losses of all epochs and all weights are compared, bit for bit, with those of a "
        "training that nobody disturbed.",
        "",
        f"**{same} of {len(found)} trainings are the same to the last bit; {declared} were "
        f"declared, {declared - len(found)} have not run.**",
        "",
        "| network | epochs done when killed | process | goes on after epoch | restarts "
        "| losses equal | largest difference | weights equal | final loss | seconds lost |",
        "|---|---:|---:|---:|---:|---|---:|---|---:|---:|",
        *(each.line() for each in sorted(found, key=lambda row: (row.network, row.killed_at))),
        "",
        "Fusion plans: "
        + "; ".join(f"{network} {', '.join(names)}" for network, names in PLANS.items())
        + ". Seconds lost are mostly the start of new processes, on a machine with other work. "
        "Each killed training is compared with an undisturbed one of the same run of the script.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default=",".join(PLANS))
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--page-only", action="store_true")
    args = parser.parse_args()
    if not args.page_only:
        RAW.parent.mkdir(parents=True, exist_ok=True)
        run_all(args.networks.split(","), args.minutes)
    lines = page(rows_so_far())
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
