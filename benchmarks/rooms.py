"""Figures of the rooms of optbench, before and after their rebuilding; docs/results/rooms.md.

    python benchmarks/rooms.py [-o docs/results/rooms.md] [--json FILE]   all figures, a minute
    python benchmarks/rooms.py --walk solve|cell|week|audit               files that calls enter
    python benchmarks/rooms.py --diagram                                  layers, as Mermaid text
    python benchmarks/rooms.py --architecture    all figures, and the page docs/architecture.md

The figures of the source are counted in parsed files, those of commands in processes of their own
with warm caches. `rooms_before.json` holds what this script, with `--json`, wrote for the code
before the rebuilding; the page shows both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _architecture
from benchmarks._source_figures import Layers, Source, diagram
from benchmarks._walks import ROOT, SOLVE, WALKS, Walk, modules_loaded, startup_s, traced, verbs

PAGE = ROOT / "docs" / "results" / "rooms.md"
BEFORE = ROOT / "benchmarks" / "rooms_before.json"
# The commit that the page names is the last one that changed these.
SOURCES = ("optbench", "problems", "solvers")
SIMULATE = ("simulate", "geo_dc")
# Figures of the source: key, what the row of the page says, and what issue 12 asks for.
ROWS = (
    ("module cycles", "cycles of modules", "0"),
    ("rooms that import each other", "pairs of rooms that import each other", "0"),
    ("top folders that import each other", "the same, top folders only", ""),
    ("repeated public class names", "public class names that occur more than once", "≤ 8"),
    ("repeated basenames", "file names that occur more than once", ""),
    ("copies of the spec split", "copies of the spec split in `optbench/`", "0"),
    ('partition(":")', '`partition(":")` in `optbench/`', ""),
    ('split(":")', '`split(":")` in `optbench/`', ""),
    ("files that assemble an outcome", "files that assemble an outcome", "1"),
    ("files", "files, with plug-ins", ""),
    ("lines of optbench", "lines of `optbench/`", "fewer"),
    ("lines with plug-ins", "lines, with plug-ins", "fewer"),
    ("lines over 100 columns", "lines over 100 columns, with plug-ins", ""),
)


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def measured() -> dict[str, Any]:
    """All figures of this checkout."""
    layers = Layers(ROOT)
    print("source", flush=True)
    found: dict[str, Any] = {
        "commit": git("log", "-1", "--format=%h", "--", *SOURCES),
        "changed": bool(git("status", "--porcelain", "--", *SOURCES)),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "source": Source(ROOT).figures(),
        "modules": {},
        "walks": {},
        "startup": {},
    }
    for verb in (SIMULATE, SOLVE):
        print("modules", *verb, flush=True)
        found["modules"][" ".join(verb)] = modules_loaded(verb)
    for name in WALKS:
        print("walk", name, flush=True)
        found["walks"][name] = Walk(name, traced(name), layers).figures()
    for words in (["--help"], ["list"], *([verb, "--help"] for verb in verbs())):
        print("start-up", *words, flush=True)
        found["startup"][" ".join(words)] = startup_s(words)
    return found


def count(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def largest(files: Mapping[str, int]) -> str:
    """The top folder with most files, plug-ins aside."""
    name = max(files, key=lambda each: files[each])
    return f"{files[name]} (`{name}`)"


def slowest(startup: Mapping[str, Mapping[str, float]], clock: str) -> str:
    name = max(startup, key=lambda each: startup[each][clock])
    return f"{startup[name][clock]:.2f} (`{name}`)"


def rows_of(found: Mapping[str, Any]) -> dict[str, str]:
    """The figures of one checkout, by what their rows say."""
    source, walks, startup = found["source"], found["walks"], found["startup"]
    rows = {words: f"{count(source[key]):,}" for key, words, _ in ROWS}
    rows["files of the largest top folder"] = largest(source["files by top folder"])
    for verb, names in found["modules"].items():
        rows[f"modules loaded by `{verb}`"] = str(len(names))
    rows[f"files passed by `{' '.join(SOLVE)}`"] = str(walks["solve"]["files"])
    rows["slowest start-up, seconds"] = slowest(startup, "wall_s")
    rows["slowest start-up, seconds of the processor"] = slowest(startup, "cpu_s")
    return rows


def wanted() -> dict[str, str]:
    """What issue 12 asks for, by what the rows say."""
    return {
        **{words: goal for _, words, goal in ROWS},
        "files of the largest top folder": "≤ 60",
        f"modules loaded by `{' '.join(SIMULATE)}`": "≤ 150",
        f"modules loaded by `{' '.join(SOLVE)}`": "≤ 140",
        f"files passed by `{' '.join(SOLVE)}`": "≤ 70",
    }


def main_table(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    old, new, goals = rows_of(before), rows_of(after), wanted()
    lines = ["| figure | before | after | asked for |", "| --- | ---: | ---: | ---: |"]
    for words, value in new.items():
        lines.append(f"| {words} | {old.get(words, '')} | {value} | {goals.get(words, '')} |")
    return lines


def walk_table(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    head = (
        "files",
        "rooms",
        "on a path of calls",
        "rooms, by time",
        "entries, by time",
        "all pairs",
    )
    lines = [f"| walk | {' | '.join(head)} |", f"| --- |{' ---: |' * len(head)}"]
    for name in WALKS:
        old, new = _walk_cells(before["walks"][name]), _walk_cells(after["walks"][name])
        cells = [f"{a} → {b}" for a, b in zip(old, new, strict=True)]
        lines.append(f"| {name}: `{' '.join(WALKS[name][0])}` | {' | '.join(cells)} |")
    return lines


def _walk_cells(figures: Mapping[str, Any]) -> list[int]:
    again = figures["rooms entered again"]
    pairs = figures["rooms entered again, every pair of files"]
    on_stack = len(figures["entered again on the stack by"])
    entries = [on_stack, len(again), sum(again.values()), sum(pairs.values())]
    return [figures["files"], figures["rooms"], *entries]


def again_list(after: Mapping[str, Any], key: str) -> list[str]:
    """The calls of each walk that enter a room again."""
    lines = []
    for name in WALKS:
        calls = after["walks"][name][key]
        lines += ["", f"**{name}**", "", *([f"* {call}" for call in calls] or ["* none"])]
    return lines


def startup_table(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    lines = [
        "| command | before, s | after, s | before, processor s | after, processor s |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    by_time = sorted(after["startup"].items(), key=lambda item: -item[1]["cpu_s"])
    for name, new in by_time:
        old = before["startup"].get(name, {})
        cells = [old.get("wall_s", ""), new["wall_s"], old.get("cpu_s", ""), new["cpu_s"]]
        shown = (f"{cell:.2f}" if isinstance(cell, float) else cell for cell in cells)
        lines.append(f"| `{name}` | {' | '.join(shown)} |")
    return lines


def names_list(after: Mapping[str, Any]) -> list[str]:
    """The names behind the counts that should be small."""
    source = after["source"]
    keys = [key for key, _, _ in ROWS if not isinstance(source[key], int)]
    lines = []
    for key in keys:
        names = [", ".join(each) if isinstance(each, list) else each for each in source[key]]
        lines.append(f"* {key}: {'; '.join(names) or 'none'}")
    folders = ", ".join(f"{name} {files}" for name, files in source["files by top folder"].items())
    return [*lines, f"* files by top folder: {folders}"]


def described(found: Mapping[str, Any]) -> str:
    changed = ", with changes" if found["changed"] else ""
    where = f"{found['date']}, Python {found['python']}, {found['machine']}"
    return f"{found['commit']}{changed} ({where})"


READINGS = """\
A room is a folder or module directly under `optbench/`; where pairs are counted, a folder inside a
room is a room of its own. A spec split is `partition(":")[0].partition("[")`. A file assembles an
outcome if it calls `check_bound`, and `gap` in a comprehension. Modules loaded: `optbench.*` in
`sys.modules` at the exit of the command's process. Files passed: files of ours with a function that
is called, except while modules are imported.

## Walks

Only calls count, returns do not. Two readings say when a walk enters a room twice:

* *On a path of calls*, the reading of issue 12: on the stack from `main` (or the start of a
  process) to a called function, a room stands again after calls had left it for another room. A
  thread continues the stack that started it. Counted are pairs of a calling file and the room that
  it enters again.
* *By time*, which is stricter: the first call into a file comes from a room in a higher layer after
  the file's room had been entered before, by whatever call. The last column counts the first call
  between every two files instead. A room that several rooms above it use (`model`) is entered again
  in this sense whatever the order.

`python benchmarks/rooms.py --walk NAME` prints the lists. Before → after.
"""


def page(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    lines = [
        "# Rooms",
        "",
        "Written by `python benchmarks/rooms.py`; OMP_NUM_THREADS=1.",
        f"Before: {described(before)}. After: {described(after)}.",
        "",
        *main_table(before, after),
        "",
        READINGS,
        *walk_table(before, after),
        "",
        "Entries again on a path of calls, after, and the reason of each:",
        *again_list(after, "entered again on the stack by"),
        "",
        "Entries again by time, after:",
        *again_list(after, "entered again by"),
        "",
        "## Start-up",
        "",
        "The best of three runs, from the start of the process to its end.",
        "",
        *startup_table(before, after),
        "",
        "## Names behind the figures, after",
        "",
        *names_list(after),
        "",
    ]
    return "\n".join(lines)


def renew_architecture(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Write the diagram, the walks and the table of figures into docs/architecture.md."""
    layers = Layers(ROOT)
    walks = [Walk(name, traced(name), layers) for name in WALKS]
    dates = f"Before: {described(before)}. After: {described(after)}."
    parts = {
        "diagram": _architecture.mermaid(diagram(Source(ROOT), layers)),
        **_architecture.walk_lists(walks),
        "figures": "\n".join([dates, "", *main_table(before, after)]),
    }
    page = _architecture.PAGE
    page.write_text(_architecture.rewritten(page.read_text(), parts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures there")
    parser.add_argument("--walk", choices=WALKS, help="print the files of one walk alone")
    parser.add_argument("--diagram", action="store_true", help="print the diagram alone")
    parser.add_argument(
        "--architecture", action="store_true", help="also renew the parts of docs/architecture.md"
    )
    options = parser.parse_args()
    if options.diagram:
        print(diagram(Source(ROOT), Layers(ROOT)))
        return
    if options.walk:
        print(Walk(options.walk, traced(options.walk), Layers(ROOT)).text())
        return
    after = measured()
    if options.json:
        options.json.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n")
    before = json.loads(BEFORE.read_text()) if BEFORE.exists() else after
    options.output.write_text(page(before, after))
    if options.architecture:
        renew_architecture(before, after)
    print(page(before, after))


if __name__ == "__main__":
    main()
