"""Whether clocks are restored after kill -9 of `optbench gpu apply`, of its watchdog and of both;
writes docs/results/gpu_restore.md and its raw rows.

    python benchmarks/gpu_restore.py [--seeds 4]

Every trial is a real `gpu apply --execute` on a made-up machine with two GPUs (the stub of NVML
that the tests compile), whose clock calls take 30 ms, so that a kill can hit one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402
from tests.hardware.clock_control.kill_trials import (  # noqa: E402
    DEVICES,
    MOMENTS,
    VICTIMS,
    KillTrial,
    run_trial,
)
from tests.hardware.gpu_machine import GpuMachine, StubLibraries  # noqa: E402

PAGE, RAW = RESULTS / "gpu_restore.md", RESULTS / "raw" / "gpu_restore.jsonl"


def trials(folder: Path, seeds: int) -> Iterable[KillTrial]:
    """All trials, each on a machine of its own."""
    libraries = StubLibraries.compile(folder / "libraries")
    for number, (victim, moment, seed) in enumerate(
        (victim, moment, seed) for victim in VICTIMS for moment in MOMENTS for seed in range(seeds)
    ):
        own = folder / f"machine-{number}"
        own.mkdir()
        trial = run_trial(GpuMachine(libraries, own, DEVICES), victim, moment, seed)
        print(trial, flush=True)
        yield trial


def table(rows: Sequence[KillTrial]) -> Iterable[str]:
    """A line per victim and kind of moment."""
    yield (
        "| killed | moment | trials | restored | clocks locked when killed | within a call that "
        "locks / resets | after, largest s | restored by |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---|"
    for victim in VICTIMS:
        for moment in MOMENTS:
            own = [row for row in rows if (row.victim, row.moment) == (victim, moment)]
            if not own:
                continue
            good = sum(row.restored and row.journals_left == 0 for row in own)
            calls = Counter(row.in_call for row in own)
            by = Counter(row.restored_by for row in own)
            words = ", ".join(f"{name} {count}" for name, count in sorted(by.items()))
            yield (
                f"| {victim} | {moment} | {len(own)} | {good} | "
                f"{sum(row.locked_at_kill for row in own)} | {calls['lock']} / {calls['reset']} | "
                f"{max(row.restored_after_s for row in own):.2f} | {words} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpu-restore-") as folder:
        rows = list(trials(Path(folder), args.seeds))
    RAW.write_text("".join(f"{json.dumps(asdict(row))}\n" for row in rows), encoding="utf-8")
    good = sum(row.restored and row.journals_left == 0 for row in rows)
    head = page_head("Clocks after kill -9", "python benchmarks/gpu_restore.py")
    head[2] = head[2].replace("of the processor", "of the wall clock; others used the machine too")
    lines = [
        *head,
        f"{len(rows)} trials, {good} with the clocks of both GPUs restored and no journal left.",
    ]
    PAGE.write_text("\n".join([*lines, "", *table(rows), ""]), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
    sys.exit(good != len(rows))


if __name__ == "__main__":
    main()
