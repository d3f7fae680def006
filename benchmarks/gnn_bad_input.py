"""Bad graphs, tables, models and devices of a user through the real command line; writes
docs/results/gnn_bad_input.md.

    python benchmarks/gnn_bad_input.py [--only WORD] [--go-on]

Each case is a folder with the files of a user, one of which is changed, and a process that runs
``optbench solve``, forked from one that has imported PyTorch. A fault is a traceback, a hang, an
exit code that is not the expected one, or a refusal without the words that name its cause.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import runpy
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._gnn_bad_inputs import (  # noqa: E402
    GROUPS,
    MODEL,
    REFUSED,
    RING,
    Case,
    devices,
    edges,
    nodes,
)

PAGE = ROOT / "docs" / "results" / "gnn_bad_input.md"
RAW = ROOT / "docs" / "results" / "raw" / "gnn_bad_input.jsonl"
MOST_S, SHOWN = 900.0, 230
OUT, ERR = "out.txt", "err.txt"


@dataclass(frozen=True)
class Outcome:
    """What the command did; ``fault`` is empty where it did what it should."""

    title: str
    exit: int | None
    seconds: float
    message: str
    fault: str


def run(case: Case, folder: Path) -> Outcome:
    """Write the files, and run the command."""
    held = {"my_graph.csv": edges(RING), "my_nodes.csv": nodes(), "my_model.py": MODEL}
    for name, text in {**held, "my.json": devices(), **case.files}.items():
        (folder / name).write_text(text)
    words = ["solve", f"gnn_training:{case.spec}", *case.words, "-q", "--files", "kept"]
    began = time.perf_counter()
    code = forked(words, folder)
    seconds = time.perf_counter() - began
    out, err = ((folder / name).read_text(errors="replace") for name in (OUT, ERR))
    said = " ".join((err + ("" if code == REFUSED else out)).split())
    fault = ""
    if code is None:
        fault = "it hangs"
    elif "Traceback" in said:
        fault = "a traceback"
    elif code != case.exit:
        fault = f"exit code {code}, not {case.exit}"
    elif case.says not in said:
        fault = f"it does not say {case.says!r}"
    refusal = out.partition("refused by the verifier")
    shown = " ".join((err + "".join(refusal[1:])).split()) or "(solved)"
    return Outcome(case.title, code, seconds, shown.replace(str(folder), "."), fault)


def forked(words: list[str], folder: Path) -> int | None:
    """Run ``optbench WORDS`` in a process that has imported PyTorch; return its exit code."""
    child = os.fork()
    if child == 0:
        _be_the_command(words, folder)
    end = time.monotonic() + MOST_S
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _be_the_command(words: list[str], folder: Path) -> NoReturn:
    """What ``python -m optbench.cli.main`` does, in a folder and with its output in files."""
    os.chdir(folder)
    os.environ.pop("OPTBENCH_WORKSPACE", None)
    for number, name in ((1, OUT), (2, ERR)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["optbench", *words]
    code = 1
    try:
        runpy.run_module("optbench.cli.main", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    finally:
        if sys.exc_info()[1] is not None:  # The interpreter would print it, too.
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def page(found: dict[str, list[Outcome]]) -> str:
    """The tables."""
    faults = [each for group in found.values() for each in group if each.fault]
    total = sum(len(group) for group in found.values())
    lines = [
        "# Bad graphs, models and devices",
        "",
        f"Written by `python benchmarks/gnn_bad_input.py` with Python {platform.python_version()} "
        f"on {platform.machine()}, {os.cpu_count()} cores, versions in `constraints.txt`.",
        "Each input is a process forked from one that has imported PyTorch; seconds are without "
        "that. A fault is a traceback, a hang, an exit code that is not the expected one, or a "
        "refusal without the words that name its cause.",
        "",
        f"**Faults: {len(faults)} of {total} inputs.**",
        "",
        *(f"- {each.title}: {each.fault}" for each in faults),
    ]
    for title, group in found.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| input | exit | s | message |",
            "| --- | --- | --- | --- |",
        ]
        for each in group:
            words = each.message if len(each.message) <= SHOWN else each.message[:SHOWN] + "..."
            words = words.replace("|", "\\|")
            lines.append(f"| {each.title} | {each.exit} | {each.seconds:.1f} | {words} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose title has this word")
    parser.add_argument("--go-on", action="store_true", help="keep the rows of a run before")
    args = parser.parse_args()
    for name in ("torch", "torch_geometric.nn", "torch.export", "scipy.sparse", "numba"):
        importlib.import_module(name)
    if not args.go_on:
        RAW.unlink(missing_ok=True)
    known = {row["title"]: Outcome(**row) for row in read_rows()}
    found: dict[str, list[Outcome]] = {}
    with tempfile.TemporaryDirectory(prefix="gnn-bad-input-") as root:
        for group, cases in GROUPS.items():
            for number, case in enumerate(cases):
                outcome = known.get(case.title)
                if outcome is None and args.only in case.title:
                    folder = Path(root) / f"{group[:3]}-{number}"
                    folder.mkdir()
                    outcome = run(case, folder)
                    with RAW.open("a") as file:
                        file.write(json.dumps(asdict(outcome)) + "\n")
                    print(f"{case.title}: {outcome.exit} {outcome.fault or 'as expected'}")
                    print(f"    {outcome.message[:400]}", flush=True)
                if outcome is not None:
                    found.setdefault(group, []).append(outcome)
    PAGE.write_text(page(found))
    return int(any(each.fault for group in found.values() for each in group))


def read_rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RAW.read_text().splitlines()] if RAW.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
