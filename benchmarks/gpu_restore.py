"""Whether clocks are restored after kill -9 of `optbench gpu apply`, of its watchdog and of both;
writes docs/results/gpu_restore.md and its raw rows.

    python benchmarks/gpu_restore.py [--least 20]

Every trial is a real `gpu apply --execute` on a made-up machine with two GPUs (the stub of NVML
that the tests compile), whose clock calls take 30 ms, so that a kill can hit one.
"""

from __future__ import annotations

import argparse
import itertools
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
    undisturbed_s,
)
from tests.hardware.gpu_machine import GpuMachine, StubLibraries  # noqa: E402

MEANING = (
    "Each trial is a real `optbench gpu apply --execute` on a made-up machine with two GPUs: a "
    "library with NVML's soname over a memory-mapped file, reached through `LD_LIBRARY_PATH` "
    "alone. A call that locks or resets takes 30 ms there, half of it before it takes effect, so "
    "that a kill can hit one on either side. `kill -9` comes at a random moment: any time of an "
    "undisturbed run's length (for a watchdog, from its start on); before the first lock; within "
    "the call of the first lock, after its effect; within any lock; between two calls; within "
    "the first reset that a SIGTERM in the middle of the plan causes, before its effect; while "
    "clocks are restored. Of both, the order is random, and in some trials the watchdog dies "
    "within its own restoration. `gpu restore` is run after both; in the last rows it is killed "
    "too, and run again. *Restored by* is whose reset was the last one, by the log of the "
    "made-up driver.",
    "",
    "A kill before the first call that locks proves little, and one after the last restoration "
    "nothing: a trial counts only if such a call had been made and a journal was there when the "
    "kill came. Trials are made, with new random moments, until each victim has the number that "
    "counts; the others are in the table too.",
    "",
    "The trials can fail: with the watchdog's restoration taken out, with a lock noted in the "
    "journal after the driver's call, or with a journal removed before the reset, they do (tried "
    "by hand).",
    "",
)
# The moment that hardly ever counts, tried so often all the same.
EARLY, EARLY_TRIALS = "before the first lock", 1
PAGE, RAW = RESULTS / "gpu_restore.md", RESULTS / "raw" / "gpu_restore.jsonl"


def counts(trial: KillTrial) -> bool:
    """Whether a clock may have been locked when the kill came, and was not restored yet."""
    return trial.lock_calls_before > 0 and trial.journals_at_kill > 0


def trials(folder: Path, least: int) -> Iterable[KillTrial]:
    """All trials, each on a machine of its own, until ``least`` of each victim count."""
    libraries = StubLibraries.compile(folder / "libraries")
    first = folder / "undisturbed"
    first.mkdir()
    whole_s = undisturbed_s(GpuMachine(libraries, first, DEVICES))
    number = 0
    for victim in VICTIMS:
        counted = 0
        for seed, moment in ((seed, moment) for seed in itertools.count() for moment in MOMENTS):
            if counted >= least:
                break
            if moment == EARLY and seed >= EARLY_TRIALS:
                continue
            own, number = folder / f"machine-{number}", number + 1
            own.mkdir()
            trial = run_trial(GpuMachine(libraries, own, DEVICES), victim, moment, seed, whole_s)
            print(trial, flush=True)
            counted += counts(trial)
            yield trial


def table(rows: Sequence[KillTrial]) -> Iterable[str]:
    """A line per victim and kind of moment."""
    yield (
        "| killed | moment | trials | of them count | restored | clocks locked when killed "
        "| within a call that locks / resets | after, largest s | restored by |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
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
                f"| {victim} | {moment} | {len(own)} | {sum(map(counts, own))} | {good} | "
                f"{sum(row.locked_at_kill for row in own)} | {calls['lock']} / {calls['reset']} | "
                f"{max(row.restored_after_s for row in own):.2f} | {words} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpu-restore-") as folder:
        rows = list(trials(Path(folder), args.least))
    RAW.write_text("".join(f"{json.dumps(asdict(row))}\n" for row in rows), encoding="utf-8")
    good = sum(row.restored and row.journals_left == 0 for row in rows)
    counted = [row for row in rows if counts(row)]
    good_counted = sum(row.restored and row.journals_left == 0 for row in counted)
    by_victim = Counter(row.victim for row in counted)
    each = [f"{victim} {by_victim[victim]}" for victim in VICTIMS]
    head = page_head("Clocks after kill -9", "python benchmarks/gpu_restore.py")
    head[2] = head[2].replace("of the processor", "of the wall clock; others used the machine too")
    lines = [
        *head,
        *MEANING,
        f"{len(rows)} trials, {good} with the clocks of both GPUs restored and no journal left. "
        f"{len(counted)} of them count, {good_counted} restored: {', '.join(each)}.",
    ]
    PAGE.write_text("\n".join([*lines, "", *table(rows), ""]), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
    sys.exit(good != len(rows))


if __name__ == "__main__":
    main()
