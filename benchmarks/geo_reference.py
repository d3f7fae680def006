"""The reference week of the CHSAC-AF paper, replayed job by job; writes
docs/results/geo_reference.md.

    python benchmarks/geo_reference.py [-o docs/results/geo_reference.md]

Recorded arrivals on recorded routes through default_policy, ucb1 and joint_nf. Compared are every
finished job (site, number of GPUs, clock, start, end), energy, J per unit as that simulator logs
it, and the queues of Table III. Exit code 1 when anything differs. Data: $OPTBENCH_DATA.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import optbench as ob  # noqa: E402
from optbench.api import load_target  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.schedule import Schedule  # noqa: E402
from optbench.model.task_progress import whole_durations  # noqa: E402
from optbench.simulation import Simulation  # noqa: E402

COMMAND = "python benchmarks/geo_reference.py"
# What the paper's Table II says.
PAPER = {"default_policy": (60_595, 11.80), "ucb1": (63_111, 11.70), "joint_nf": (67_396, 10.34)}
TIME_S, ENERGY = 1e-5, 1e-9
DAYS = range(1, 8)


@dataclass(frozen=True)
class Compared:
    """One policy beside its reference: jobs that are not there or differ, the largest difference of
    a start or an end.
    """

    policy: str
    done: Simulation
    reference: dict[str, Any]
    differing: int
    worst_s: float

    @property
    def energy(self) -> float:
        """Relative difference."""
        return float(self.done.energy_j / 1e3 / self.reference["energy_kJ"] - 1.0)

    @property
    def cells(self) -> list[tuple[float, float]]:
        """Table III: queued at the end of each day, ours and the reference's; then by site at the
        end.
        """
        days = [
            (float((self.done.queue_by_day or ())[k - 1]), float(self.reference[f"queue_day{k}"]))
            for k in DAYS
        ]
        ours = self.done.queue_end_by_site or {}
        return days + [
            (float(ours.get(site, -1)), float(count))
            for site, count in self.reference["queue_end"].items()
        ]

    @property
    def wrong(self) -> list[str]:
        completed, j_per_unit = PAPER[self.policy]
        logged = self.done.j_per_unit_logged or 0.0
        checks = {
            "not verified": self.done.verified,
            f"completed {self.done.completed}": self.done.completed
            == completed
            == self.reference["completed"],
            f"{self.differing} jobs differ": self.differing == 0,
            f"times differ by {self.worst_s:.1e} s": self.worst_s <= TIME_S,
            f"energy differs by {self.energy:.1e}": abs(self.energy) <= ENERGY,
            f"{logged:.4f} J per unit as logged": round(logged, 2) == j_per_unit,
            "a queue differs": all(a == b for a, b in self.cells),
        }
        return [what for what, holds in checks.items() if not holds]


def compare(instance: Instance, policy: str, folder: Path) -> Compared:
    done = ob.simulate(instance, policy, bound=False)
    reference = json.loads((folder / "results.json").read_text())[policy]
    with gzip.open(folder / f"{policy}_finished.csv.gz", "rt") as file:
        rows = {row["job"]: row for row in csv.DictReader(file)}
    differing, worst_s = jobs(instance, done.schedule, rows)
    return Compared(policy, done, reference, differing, worst_s)


def jobs(
    instance: Instance, schedule: Schedule, rows: dict[str, dict[str, str]]
) -> tuple[int, float]:
    """Finished jobs with another site, number of GPUs or clock, or in one of the two only; the
    largest difference of times.
    """
    modes, names = instance.modes, instance.tasks.names
    assert names is not None
    whole = schedule.end - schedule.start == whole_durations(instance, schedule)
    start_s, end_s = schedule.start * instance.tick_s, schedule.end * instance.tick_s
    differing, worst_s, seen = 0, 0.0, set()
    for k in whole.nonzero()[0].tolist():
        name, mode = names[schedule.task[k]], int(schedule.mode[k])
        row = rows.get(name)
        seen.add(name)
        if row is None:
            differing += 1
            continue
        ours = (
            instance.pools.names[modes.primary[mode]],
            int(modes.devices[mode]),
            float(modes.clock[mode]),
        )
        differing += ours != (row["site"], int(row["gpus"]), float(row["frequency"]))
        worst_s = max(
            worst_s, abs(start_s[k] - float(row["start_s"])), abs(end_s[k] - float(row["finish_s"]))
        )
    return differing + len(rows.keys() - seen), float(worst_s)


def report(found: list[Compared]) -> str:
    versions = (
        f"Python {platform.python_version()}, numpy {version('numpy')}, numba {version('numba')}"
    )
    lines = [
        "# The reference week of the CHSAC-AF paper, replayed",
        "",
        f"`{COMMAND}`, {platform.machine()}, {versions}. 96,748 recorded arrivals on recorded",
        "routes; the reference is a run of the authors' simulator.",
        "",
        "| policy | completed, paper | ours | jobs that differ | worst start or end | energy, "
        "relative "
        "| J/unit as logged, paper | ours | J/unit of work done | verified |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for each in found:
        completed, j_per_unit = PAPER[each.policy]
        lines.append(
            f"| `{each.policy}` | {completed:,} | {each.done.completed:,} | {each.differing} | "
            f"{each.worst_s:.1e} s "
            f"| {each.energy:+.1e} | {j_per_unit:.2f} | {each.done.j_per_unit_logged:.4f} | "
            f"{each.done.j_per_unit:.4f} "
            f"| {'yes' if each.done.verified else 'no'} |"
        )
    lines += [
        "",
        "A start or an end is recorded to 1e-6 s. J/unit as logged divides by units that the",
        "simulator counts a little too high: a job that began inside a sample counts the whole of",
        "it.",
    ]
    lines += queues(
        "Table III: jobs that wait at the end of each day",
        [f"day {k}" for k in DAYS],
        found,
        slice(len(DAYS)),
    )
    lines += queues(
        "By site, at the end", list(found[0].reference["queue_end"]), found, slice(len(DAYS), None)
    )
    same = sum(a == b for each in found for a, b in each.cells)
    return "\n".join(
        [*lines, "", f"{same} of {sum(len(each.cells) for each in found)} cells are equal.", ""]
    )


def queues(title: str, head: list[str], found: list[Compared], which: slice) -> list[str]:
    """A table of cells, ours above the reference's."""
    lines = [
        "",
        f"## {title}",
        "",
        f"| policy | | {' | '.join(head)} |",
        f"| --- | --- |{' ---: |' * len(head)}",
    ]
    for each in found:
        for who, column in (("ours", 0), ("reference", 1)):
            lines.append(
                f"| `{each.policy}` | {who} | "
                f"{' | '.join(f'{cell[column]:,.0f}' for cell in each.cells[which])} |"
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/results/geo_reference.md")
    output = parser.parse_args().output
    folder = Path(os.environ["OPTBENCH_DATA"]) / "chsac-af/reference"
    instance = load_target(f"geo_dc:arrivals={folder / 'arrivals.csv.gz'}")
    found = [compare(instance, policy, folder) for policy in PAPER]
    output.write_text(report(found), encoding="utf-8")
    print(report(found))
    for each in found:
        for what in each.wrong:
            print(f"{each.policy}: {what}", file=sys.stderr)
    return 1 if any(each.wrong for each in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
