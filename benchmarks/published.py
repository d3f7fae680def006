"""``cpsat`` on every published job shop, flexible job shop and project: python
benchmarks/published.py [--only la38] [--limit 9]

20 s and 2 threads each, in fresh processes, through ``optbench.solve``. Cells of our side that
versus_pyjobshop.py has run are taken as they are, and an interrupted run goes on where it stopped.
It stops loudly on a schedule that fails the verifier, an objective below the best known lower bound
or a bound above the best known upper bound.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cells import FAMILIES, ROOT, Cell, Published, Store, arguments, machine, published
from optbench.model.measures import gap, rpd, shifted_geomean

REPORT = ROOT / "docs" / "results" / "published.md"


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    store = Store(options.raw)
    everything = published()
    chosen = [what for what in everything if not options.only or what.name in options.only][
        : options.limit
    ]
    rows: list[tuple[Published, Cell]] = []
    for k, what in enumerate(chosen):
        cell = store.run("optbench", what, options.time_limit, options.threads, options.seed)
        rows.append((what, cell))
        known = f"[{what.lower:g}, {what.upper:g}]"
        print(
            (
                f"{k + 1}/{len(chosen)} {what.name} {known} {cell.objective} >= {cell.bound} "
                f"{cell.wall_s:.1f} s"
            ),
            flush=True,
        )
    text = report(rows, options.time_limit, options.threads)
    print(text.split("## Instances", 1)[0])
    if len(rows) == len(everything):
        REPORT.write_text(text)
        print(f"written: {REPORT}")


def summary(name: str, rows: list[tuple[Published, Cell]]) -> str:
    """One line of the table of families."""
    solved = [(what, cell, cell.objective) for what, cell in rows if cell.objective is not None]
    gaps = [
        found for _, cell, objective in solved if (found := gap(objective, cell.bound)) is not None
    ]
    at_best = sum(objective <= what.upper for what, _, objective in solved)
    deviation = 100 * mean(rpd(objective, what.upper) for what, _, objective in solved)
    time_s = shifted_geomean([cell.wall_s for _, cell in rows], 1.0)
    proved = sum(cell.proved for _, cell in rows)
    counts = f"{len(rows)} | {len(solved)} | {proved} | {at_best}"
    return f"| {name} | {counts} | {deviation:.2f} % | {100 * mean(gaps):.2f} % | {time_s:.2f} s |"


def report(rows: list[tuple[Published, Cell]], time_limit_s: float, threads: int) -> str:
    lines = [
        "# cpsat on every published instance",
        "",
        f"`-s cpsat --time-limit {time_limit_s:g}s --threads {threads}`, everything included. Each",
        "schedule passed the verifier, no objective is below the best known lower bound and no",
        "bound above the best known upper bound: the script stops at the first that is. rpd is",
        "against the best known upper bound, gap is (objective - bound) / objective.",
        "",
        f"Command: `{shlex.join(['python', *sys.argv])}`  ",
        f"Machine: {machine()}",
        "",
        (
            "| family | files | solved | proven optimal | at the best known | mean rpd | mean "
            "gap | "
            "time (geometric, shift 1 s) |"
        ),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family in FAMILIES:
        members = [(what, cell) for what, cell in rows if what.family == family]
        if members:
            lines.append(summary(family, members))
    lines += [
        summary("all", rows),
        "",
        "## Instances",
        "",
        "| instance | best known | objective | bound | from | s |",
    ]
    lines.append("| --- | ---: | ---: | ---: | --- | ---: |")
    for what, cell in rows:
        known = (
            f"{what.upper:g}" if what.lower == what.upper else f"{what.lower:g} to {what.upper:g}"
        )
        objective = (
            "-" if cell.objective is None else f"{cell.objective:g}{'*' if cell.proved else ''}"
        )
        lines.append(
            f"| {what.name} | {known} | {objective} | {cell.bound} | {cell.bound_source} | "
            f"{cell.wall_s:.2f} |"
        )
    return "\n".join([*lines, "", "\\* proven optimal", ""])


if __name__ == "__main__":
    main()
