"""A workspace with a shape that unfolds in time: services that arrive at GPUs, and two policies."""

SERVING = '''"""Services arrive and ask for GPU memory: each is placed on a GPU, or refused."""

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

import optbench as ob
from optbench.shapes import ActionError, Findings, Metric, PyomoShape


@dataclass(frozen=True)
class Services:  # one arrives in each hour; and the memory of each GPU
    hours: tuple[float, ...]
    gb: tuple[float, ...]
    gpu_gb: tuple[float, ...]

    def together(self, s):  # the services that are here when s arrives
        return [k for k in range(s) if s < k + self.hours[k]]

    def free_gb(self, gpu, s):
        there = [(gpu[k], self.gb[k]) for k in self.together(s)]
        return [gb - sum(x for g, x in there if g == at) for at, gb in enumerate(self.gpu_gb)]

    def profit(self, s, g):
        return self.hours[s] * (0.02 * self.gb[s] - 0.004 * self.gpu_gb[g])


@dataclass(frozen=True)
class Placement:
    gpu: tuple[int | None, ...]


class Door:
    def __init__(self, data):
        self.data, self.gpu, self.done = data, [], not data.gb

    def observe(self):  # the service at the door, and the GPUs as they are now
        return self.data.gb[len(self.gpu)], self.data.free_gb(self.gpu, len(self.gpu))

    def act(self, gpu):
        if gpu not in (None, *range(len(self.data.gpu_gb))):
            raise ActionError("no such GPU")
        self.gpu.append(gpu)
        self.done = len(self.gpu) == len(self.data.gb)

    def decision(self):
        return Placement(tuple(self.gpu))


class Serving(PyomoShape):
    name, data, solution, maximize = "serving", Services, Placement, "profit_usd"
    metrics = {"profit_usd": Metric("USD", "payments less electricity")}
    constraints = {"memory": "the services on a GPU fit into its memory at any time"}

    def process(self, data, seed):
        return Door(data)

    def model(self, data):
        m, S, G = pyo.ConcreteModel(), range(len(data.gb)), range(len(data.gpu_gb))
        m.x = pyo.Var(S, G, domain=pyo.Binary)
        m.usd = pyo.Objective(expr=sum(data.profit(*i) * m.x[i] for i in m.x), sense=pyo.maximize)
        m.xce = pyo.Constraint(S, rule=lambda m, s: sum(m.x[s, g] for g in G) <= 1)
        m.memory = pyo.Constraint(S, G, rule=lambda m, s, g: sum(
            data.gb[k] * m.x[k, g] for k in (s, *data.together(s))) <= data.gpu_gb[g])
        return m

    def encode(self, data, decision, m):
        m.x.set_values({(s, g): int(decision.gpu[s] == g) for s, g in m.x})

    def decode(self, data, m):
        gpu = {s: g for s, g in m.x if m.x[s, g].value == 1}
        return Placement(tuple(gpu.get(s) for s in range(len(data.gb))))

    def verify(self, data, decision):
        served = [(s, g) for s, g in enumerate(decision.gpu) if g is not None]
        found = Findings({"profit_usd": sum(data.profit(s, g) for s, g in served)})
        for s, g in served:
            over = data.gb[s] - data.free_gb(decision.gpu, s)[g]
            found.require(over <= 0, "memory", f"service {s} lacks {over} GB on GPU {g}", over)
        return found


class Problem(ob.Problem):
    """Twenty random services at two large GPUs and a small, frugal one."""

    def instance(self, seed: int = 0):
        drawn = np.random.default_rng(seed).integers((1, 4), (12, 40), (20, 2)).astype(float)
        data = Services(*map(tuple, drawn.T.tolist()), (80.0, 80.0, 24.0))
        return Serving().instance(f"serving-{seed}", data)
'''

FIRST_ROOM = '''"""Each service goes to the first GPU with room."""

import optbench as ob


class FirstRoom(ob.ProcessPolicy):
    """The first GPU with room."""

    shapes = {"serving"}

    def act(self, seen):
        gb, free_gb = seen
        return next((g for g, free in enumerate(free_gb) if free >= gb), None)
'''

TIGHTEST = '''"""Each service goes to the GPU that it leaves with the least room."""

import optbench as ob


class Tightest(ob.ProcessPolicy):
    """The GPU with the least room that suffices."""

    shapes = {"serving"}

    def act(self, seen):
        gb, free_gb = seen
        room = [g for g, free in enumerate(free_gb) if free >= gb]
        return min(room, key=free_gb.__getitem__, default=None)
'''
