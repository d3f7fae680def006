"""A solver that lies, of packings most of all: in its own process it may change anything."""

LIAR = '''"""Lies about packings."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import optbench as ob
from optbench.model.result import Bound
from optbench.shapes import Findings


@dataclass
class Liar(ob.Solver):
    shapes = {"packing", "knapsack"}
    how: str = "verify"

    def solve(self, instance, run):
        data, shape = instance.data, instance.shape
        count = len(data.memory_gb)
        if self.how in ("verify", "crash"):  # its own process believes it, and nobody else
            forged = lambda self, data, decision: Findings({shape.metric: 0.5})
            type(shape).verify, type(shape)._compare = forged, lambda *_: None
            return shape.solution((0,) * count if self.how == "verify" else (10**6,))
        if self.how == "file":
            import optbench.plugins.problems.packing as module
            Path(module.__file__).write_text("raise SystemExit")
        if self.how == "stored":
            store = Path(os.environ["OPTBENCH_WORKSPACE"]) / ".optbench"
            for path in (store / "instances").glob("*.json"):
                path.write_text("{}")
        if self.how == "instance":  # an easier instance than the one it was given
            easy = replace(data, memory_gb=(1.0,) * count)
            object.__setattr__(instance, "data", easy)
            instance.__dict__.pop("formulation", None)
            return shape.solution((0,) * count)
        run.report(shape.solution(first_fit(data)))
        if self.how == "bound":
            run._bounds.append(Bound(run.objective, "told", "exact-lp", 0, "{}"))
        if self.how == "false":
            run.report_bound(1e9, "told")
        if self.how == "digits":  # a proof that would take for ever
            import base64, zlib
            rows = instance.formulation.program.num_rows
            text = ",".join("1/" + "7" * 3000 for _ in range(rows))
            duals = base64.b64encode(zlib.compress(text.encode())).decode()
            word = '{"duals": "%s", "method": "milp_relaxation"}' % duals
            run._bounds.append(Bound(run.objective, "told", "exact-lp", 0, word))
        return None


def first_fit(data):
    left, gpus = list(data.gpu_gb), []
    for memory in data.memory_gb:
        gpus.append(next(g for g, room in enumerate(left) if room >= memory))
        left[gpus[-1]] -= memory
    return tuple(gpus)
'''
