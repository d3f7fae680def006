"""A workspace with two shapes of its own, their solvers, files of programmes, and studies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optbench.store.records import Record
from optbench.store.run_store import Store
from tests.cli.command_server import CommandServer
from tests.cli.conftest import environment
from tests.sample_files.knapsack_workspace import GREEDY, KNAPSACK, MAXIMISED_MPS
from tests.sample_files.packing_liars import LIAR
from tests.sample_files.packing_workspace import FIRST_FIT, PACKING
from tests.sample_files.slips_workspace import PAYS, SLIPPED, SLIPS

TIMEOUT_S = 200
PACK = """\
question = "Is first fit good enough?"
problems = ["packing:services=4"]
solvers = ["highs", "first_fit"]
seeds = 4
time_limit = "10s"
bound_limit = "2s"
[gates]
highs = "gap <= 0.01"
first_fit = "gpus <= 8 and study_gap <= 0.9"
[[claims]]
text = "first fit pays a third more"
source = "these tests"
paper = 0.36
ours = "rel(objective, first_fit, highs)"
"""
BAG = """\
question = "What is earned?"
problems = ["knapsack:rent_usd=[5,300]"]
solvers = ["highs", "cpsat", "greedy"]
seeds = 3
time_limit = "10s"
bound_limit = "2s"
[gates]
highs = "gap <= 0.01 and objective <= 0"
greedy = "rpd <= 0.5"
[[claims]]
text = "greedy loses 42 dollars"
source = "these tests"
paper = -42
ours = "mean(objective, greedy)"
better = "higher"
"""
SERVE = """\
question = "Which rule earns more?"
problems = ["serving"]
solvers = ["highs", "first_room", "tightest"]
seeds = 2
time_limit = "10s"
bound_limit = "2s"
[gates]
highs = "gap <= 0.01"
[[claims]]
text = "the tightest earns as much as the first"
source = "these tests"
paper = 1
ours = "ratio(objective, tightest, first_room)"
better = "higher"
"""
MPS = """\
question = "What fits?"
problems = ["../bag.mps"]
solvers = ["highs", "cpsat"]
time_limit = "10s"
bound_limit = "2s"
[gates]
highs = "objective == 13"
"""
LPS = """\
problems = ["../models/*.lp"]
solvers = ["highs"]
time_limit = "5s"
bound_limit = "1s"
"""
CRASH = """\
problems = ["knapsack"]
solvers = ["liar:how=crash"]
time_limit = "5s"
bound_limit = "1s"
"""
MODELS = {
    "infeasible": "Minimize\n x + y\nSubject To\n a: x + y <= 1\n b: x + y >= 2\nEnd\n",
    "unbounded": "Maximize\n x + y\nSubject To\n a: x - y <= 1\nEnd\n",
    # The least of x − 2 y with x ≥ y − 3 and y ≤ 4: y = 4 and x = 1 give −7.
    "negative": "Minimize\n x - 2 y\nSubject To\n b: x - y >= -3\nBounds\n x free\n"
    " y <= 4\nGeneral\n y\nEnd\n",
}
ASSERTED = """
import sys
from optbench.api import load_target
from optbench.testing import assert_gap

print(assert_gap("highs", ["packing:services=4", "knapsack"], seeds=2, at_most=0.01))
print(assert_gap("highs", "bag.mps", seeds=1, confidence=None, at_most=0.01))
try:
    assert_gap("first_fit", load_target("packing:services=4"), seeds=2, at_most=0.01)
except AssertionError as error:
    print(error)
"""
UNFIT = 'problems = ["packing:services=4"]\nsolvers = ["highs", "heft", "first_fit"]\n'
LIES = ("verify", "file", "bound", "false", "stored", "instance", "digits")
LIARS = f"""\
problems = ["packing:services=4"]
solvers = ["liar:how=[{",".join(LIES)}]", "first_fit"]
time_limit = "5s"
bound_limit = "2s"
"""


@dataclass(frozen=True)
class Workspace:
    """A folder in which commands run."""

    root: Path
    server: CommandServer

    @property
    def store(self) -> Store:
        return Store(self.root / ".optbench")

    def run(self, *words: str) -> tuple[int, Any, str]:
        """Return the exit code of a command, its JSON and what it says of errors."""
        done = self.server.run([*words, "--json"], self.root, environment(), TIMEOUT_S)
        assert "Traceback" not in done.err
        return done.code, json.loads(done.out), done.err

    def records(self, label: str) -> list[Record]:
        found = self.store.records().values()
        return [each for each in found if each.cell.label == label]


def shaped_workspace(root: Path, server: CommandServer) -> Workspace:
    """Write everything into a folder."""
    files = {
        "problems/packing.py": PACKING,
        "problems/knapsack.py": KNAPSACK,
        "problems/bills.py": SLIPS,
        "solvers/pays.py": PAYS,
        "studies/slips.toml": SLIPPED,
        "solvers/first_fit.py": FIRST_FIT,
        "solvers/greedy.py": GREEDY,
        "solvers/liar.py": LIAR,
        "studies/pack.toml": PACK,
        "studies/bag.toml": BAG,
        "studies/mps.toml": MPS,
        "studies/unfit.toml": UNFIT,
        "studies/lps.toml": LPS,
        "studies/crash.toml": CRASH,
        "studies/liars.toml": LIARS,
        "bag.mps": MAXIMISED_MPS,
        "optbench.toml": "",
    }
    files |= {f"models/{name}.lp": text for name, text in MODELS.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return Workspace(root, server)
