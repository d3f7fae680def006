"""A workspace whose shape has an objective of two levels, a process, and a reference policy."""

from pathlib import Path

BATCHES = '''"""Batches run one after another, fast (1 s and 3 J per unit) or slow (2 s and 1 J)."""

from dataclasses import dataclass

import optbench as ob
from optbench.shapes import DataShape, Findings, Metric


@dataclass(frozen=True)
class Batches:
    units: tuple[float, ...]
    due_s: tuple[float, ...]


@dataclass(frozen=True)
class Speeds:
    fast: tuple[bool, ...]


class Machine:
    def __init__(self, data):
        self.data, self.fast = data, []

    @property
    def done(self):
        return len(self.fast) == len(self.data.units)

    def observe(self):
        return len(self.fast)

    def act(self, fast):
        self.fast.append(bool(fast))

    def decision(self):
        return Speeds(tuple(self.fast))


class BatchesShape(DataShape):
    name, data, solution = "batches", Batches, Speeds
    metrics = {"late_s": Metric("s", "lateness"), "energy_j": Metric("J", "energy")}
    minimize = ("late_s", "energy_j")
    reference = "fast_first"

    def process(self, data, seed):
        return Machine(data)

    def verify(self, data, decision):
        now_s = late_s = energy_j = 0.0
        for units, due_s, fast in zip(data.units, data.due_s, decision.fast):
            now_s += units * (1 if fast else 2)
            late_s += max(0.0, now_s - due_s)
            energy_j += units * (3 if fast else 1)
        return Findings({"late_s": late_s, "energy_j": energy_j})

    def bounds(self, instance, method, time_limit_s, best):
        # At the rate of slow batches, all units take 1 J each; held lateness adds nothing here.
        least = 0.0 if instance.level == 0 else sum(instance.data.units)
        return [ob.Bound(least, "by hand", "combinatorial")]

    def regret(self, instance, decision, reference):
        ours, theirs = (
            self.verify(instance.data, each).metrics["energy_j"] for each in (decision, reference)
        )
        return (ours - theirs) / theirs


@dataclass
class Problem(ob.Problem):
    """Two batches of four units, due after 6 and 12 s."""

    def instance(self, seed: int = 0):
        return BatchesShape().instance(f"batches-{seed}", Batches((4.0, 4.0 + seed), (6.0, 12.0)))
'''

POLICY = '''import optbench as ob


class {name}(ob.ProcessPolicy):
    """{words}"""

    shapes = {{"batches"}}

    def act(self, batch):
        return {fast}
'''

STUDY = """question = "How much energy does lateness save?"
rank = "gap_last_level"
problems = ["batches"]
solvers = ["all_slow", "fast_first"]
seeds = 2
time_limit = "10s"
bound_limit = "2s"

[gates]
fast_first = "late_s == 0 and gap_last_level <= 60% and gap <= 60%"
all_slow = "gap_last_level == 0 and gap == 100%"

[[claims]]
text = "energy of being late"
source = "by hand"
paper = -0.5
ours = "rel(energy_j, all_slow, fast_first)"
better = "equal"
"""


def write_workspace(root: Path) -> Path:
    """Make the workspace in a folder."""
    for folder in ("problems", "solvers", "studies"):
        (root / folder).mkdir()
    (root / "problems" / "batches.py").write_text(BATCHES)
    for stem, fast in (("all_slow", "False"), ("fast_first", "batch == 0")):
        name = stem.title().replace("_", "")
        text = POLICY.format(name=name, words=f"Fast where {fast}.", fast=fast)
        (root / "solvers" / f"{stem}.py").write_text(text)
    (root / "studies" / "lateness.toml").write_text(STUDY)
    (root / "optbench.toml").touch()
    return root
