"""The packing shape with a mistake: a ``verify``, or a model, that forgets the memory."""

from __future__ import annotations

from pathlib import Path

from tests.sample_files.packing_workspace import PACKING, write_workspace

CHECK = 'found.require(load <= data.gpu_gb[g], "memory", f"GPU {g} holds {load} GB", load)'
ROWS = "data.memory_gb[s] * m.on[s, g] for s in m.S) <= data.gpu_gb[g] * m.used[g])"
TEXTS = {
    "careless": PACKING.replace(CHECK, "pass"),
    "roomy": PACKING.replace(ROWS, "m.on[s, g] for s in m.S) <= 1000 * m.used[g])"),
}
STACK = '''import optbench as ob


class Stack(ob.Solver):
    """Every service on the first GPU."""

    shapes = {"careless", "roomy"}

    def solve(self, instance, run):
        return instance.shape.solution((0,) * len(instance.data.memory_gb))
'''


def write_disagreeing(root: Path) -> Path:
    """Make a workspace with the right shape and both wrong ones."""
    write_workspace(root)
    for name, text in TEXTS.items():
        assert text != PACKING
        named = text.replace('name = "packing"', f'name = "{name}"')
        (root / "problems" / f"{name}.py").write_text(named)
    (root / "solvers" / "stack.py").write_text(STACK)
    return root
