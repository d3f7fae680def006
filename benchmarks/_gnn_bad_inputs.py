"""Inputs of a user for gnn_bad_input.py: the files of a folder, one of which is changed, the
command that reads them, and what it has to say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

# The exit codes of optbench.
RIGHT, REFUSED, NOT_VERIFIED = 0, 2, 4
OWN = "data=my_graph.csv,node_table=my_nodes.csv,devices=my.json,parts=2,epochs=5"
NET = f"{OWN},model=my_model.py:Net"
PLAIN = "data=my_graph.csv,parts=2"
MODEL = """
import os
import torch
from torch_geometric.nn import GCNConv, global_mean_pool


class Net(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.one, self.two = GCNConv(features, hidden), GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        return self.two(torch.relu(self.one(x, edge_index)), edge_index)


class Narrow(Net):
    def __init__(self, features, hidden, classes):
        super().__init__(features, hidden, classes - 1)


class Flat(Net):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).sum(1)


class Whole(Net):
    def forward(self, x, edge_index):
        return global_mean_pool(super().forward(x, edge_index), None)


class Branching(Net):
    def forward(self, x, edge_index):
        if x.sum() > 0:
            return super().forward(x, edge_index)
        return self.one(x, edge_index)


class NeedsMore(Net):
    def forward(self, x, edge_index, edge_weight):
        return super().forward(x, edge_index)


class Batch(Net):
    def __init__(self, features, hidden, classes):
        super().__init__(features, hidden, classes)
        self.norm = torch.nn.BatchNorm1d(features)

    def forward(self, x, edge_index):
        return super().forward(self.norm(x), edge_index)


class Exploding(Net):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) * 1e38 * 1e38


class Dying(Net):
    def forward(self, x, edge_index):
        if os.environ.get("RANK") == "1" and not os.path.exists(MARK) and self.training:
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls == 15:
                open(MARK, "w").close()
                os._exit(9)
        return super().forward(x, edge_index)


MARK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "died")
no_module = 3
"""
DEVICE = {"gflops": 40.0, "gb_per_s": 16.0, "idle_w": 4, "alpha_w": 1, "beta_w": 1, "gamma_w": 1}
LEFT, RIGHT_ONE = {"name": "left", **DEVICE}, {"name": "right", **DEVICE}
# Room for the parameters, 328 bytes, and not for the rows of a node.
ROOM_GB = 4e-7
SMALL = json.dumps({"devices": [{**each, "memory_gb": ROOM_GB} for each in (LEFT, RIGHT_ONE)]})
RING = [(v, (v + 1) % 12) for v in range(12)]


def edges(pairs: list[tuple[int, int]], more: str = "") -> str:
    return "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs) + more


def nodes(count: int = 12, **changes: str) -> str:
    """A table of nodes; ``row3="..."`` replaces the row of node 3."""
    rows = [changes.get(f"row{v}", f"{v},{'ab'[v % 2]},{v},1") for v in range(count)]
    return changes.get("head", "id,label,x,y") + "\n" + "\n".join(rows) + "\n"


def devices(**changes: object) -> str:
    return json.dumps({"devices": [LEFT, {**RIGHT_ONE, **changes}]})


@dataclass(frozen=True)
class Case:
    """One input; ``says`` must stand in what is written."""

    title: str
    spec: str
    exit: int
    says: str
    files: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ("-s", "mis_spectral", "--work-limit", "3")


MEASURED = ("-s", "metis", "--time-limit", "2s", "--measure", "1")
GRAPHS = [
    Case("undamaged", NET, RIGHT, "verified"),
    Case(
        "two components",
        PLAIN,
        RIGHT,
        "2 components",
        {
            "my_graph.csv": edges(
                [(v, (v + 1) % 6) for v in range(6)] + [(6 + v, 6 + (v + 1) % 6) for v in range(6)]
            )
        },
    ),
    Case(
        "isolated nodes",
        OWN,
        RIGHT,
        "6 x isolated nodes",
        {"my_graph.csv": edges([(v, v + 1) for v in range(5)])},
    ),
    Case("no edge at all", OWN, REFUSED, "no row but", {"my_graph.csv": "source,target\n"}),
    Case(
        "all edges self-loops",
        PLAIN,
        RIGHT,
        "self-loops",
        {"my_graph.csv": edges([(v, v) for v in range(4)])},
    ),
    Case("self-loops", PLAIN, RIGHT, "2 self-loops", {"my_graph.csv": edges(RING, "3,3\n4,4\n")}),
    Case(
        "repeated edges", PLAIN, RIGHT, "1 repeated edges", {"my_graph.csv": edges(RING, "0,1\n")}
    ),
    Case(
        "negative weights",
        "data=my_graph.csv,parts=2",
        RIGHT,
        "",
        {"my_graph.csv": "source,target,weight\n" + "".join(f"{a},{b},-1\n" for a, b in RING)},
    ),
    Case(
        "weight is no number",
        PLAIN,
        REFUSED,
        "finite numbers",
        {"my_graph.csv": "source,target,weight\n0,1,heavy\n"},
    ),
    Case("one node", "data=my_graph.csv,parts=1", RIGHT, "", {"my_graph.csv": edges([(0, 0)])}),
    Case(
        "one node, two parts",
        PLAIN,
        REFUSED,
        "at most the 1 nodes",
        {"my_graph.csv": edges([(0, 0)])},
    ),
    Case("more parts than nodes", "data=my_graph.csv,parts=13", REFUSED, "at most the 12 nodes"),
    Case("empty file", PLAIN, REFUSED, "empty", {"my_graph.csv": ""}),
    Case("header alone", PLAIN, REFUSED, "no row but", {"my_graph.csv": "source,target\n"}),
    Case(
        "unknown columns",
        PLAIN,
        REFUSED,
        "no columns with the ends",
        {"my_graph.csv": "first,second\n0,1\n"},
    ),
    Case(
        "an end is empty",
        PLAIN,
        REFUSED,
        "target is empty",
        {"my_graph.csv": "source,target\n0,\n"},
    ),
    Case("no such file", "data=mygraph.csv,parts=2", REFUSED, "no such file"),
    Case("unknown suffix", "data=my_graph.xyz,parts=2", REFUSED, "does not follow from this name"),
    Case("binary file", PLAIN, REFUSED, "NUL", {"my_graph.csv": "source,target\n\0\0\n"}),
]
TABLES = [
    Case("NaN feature", OWN, REFUSED, "finite numbers", {"my_nodes.csv": nodes(row3="3,a,nan,1")}),
    Case("empty feature", OWN, REFUSED, "finite numbers", {"my_nodes.csv": nodes(row3="3,a,,1")}),
    Case(
        "feature is text",
        OWN,
        REFUSED,
        "finite numbers",
        {"my_nodes.csv": nodes(row3="3,a,high,1")},
    ),
    Case("node twice", OWN, REFUSED, "ids are different", {"my_nodes.csv": nodes(row3="2,a,1,1")}),
    Case(
        "edge to an unknown node",
        OWN,
        REFUSED,
        "no id of the table of nodes",
        {"my_graph.csv": edges(RING, "3,99\n")},
    ),
    Case(
        "no column id",
        OWN,
        REFUSED,
        "no column with the ids",
        {"my_nodes.csv": nodes(head="who,label,x,y")},
    ),
    Case("unknown split", OWN, REFUSED, "split", {"my_nodes.csv": nodes(head="id,split,x,y")}),
    Case(
        "nobody is trained on",
        NET,
        REFUSED,
        "no node with a label has split train",
        {"my_nodes.csv": "id,label,split,x\n" + "".join(f"{v},a,test,1\n" for v in range(12))},
        MEASURED,
    ),
    Case(
        "no labels",
        NET,
        RIGHT,
        "has no labels",
        {"my_nodes.csv": "id,x,y\n" + "".join(f"{v},{v},1\n" for v in range(12))},
        MEASURED,
    ),
    Case("empty table of nodes", OWN, REFUSED, "empty", {"my_nodes.csv": ""}),
]
MODELS = [
    Case("no such class", f"{OWN},model=my_model.py:Nett", REFUSED, "did you mean 'Net'"),
    Case("no such file of a model", f"{OWN},model=model.py:Net", REFUSED, "no such file"),
    Case("no class but a number", f"{OWN},model=my_model.py:no_module", REFUSED, "unknown class"),
    Case("syntax error", NET, REFUSED, "line 1", {"my_model.py": "class Net(\n"}),
    Case(
        "missing package",
        NET,
        REFUSED,
        "ModuleNotFoundError",
        {"my_model.py": "import no_such_package\n"},
    ),
    Case("fewer scores than classes", f"{OWN},model=my_model.py:Narrow", REFUSED, "scores"),
    Case("a number per node", f"{OWN},model=my_model.py:Flat", REFUSED, "a row of scores"),
    Case("a row for the graph", f"{OWN},model=my_model.py:Whole", REFUSED, "a row of scores"),
    Case(
        "cannot be exported",
        f"{OWN},model=my_model.py:Branching",
        REFUSED,
        "torch.export cannot follow",
    ),
    Case("needs a third input", f"{OWN},model=my_model.py:NeedsMore", REFUSED, "edge_weight"),
    Case(
        "batch normalisation on two devices",
        f"{OWN},model=my_model.py:Batch",
        REFUSED,
        "BatchNorm1d",
        {},
        MEASURED,
    ),
    Case(
        "scores are no numbers",
        f"{OWN},model=my_model.py:Exploding",
        REFUSED,
        "are not numbers",
        {},
        MEASURED,
    ),
    Case(
        "a process dies in epoch 15",
        f"{OWN},model=my_model.py:Dying".replace("=5,", "=30,"),
        RIGHT,
        "weights written",
        {},
        MEASURED,
    ),
]
DEVICES = [
    Case("no such file of devices", NET.replace("my.json", "mine.json"), REFUSED, "no such file"),
    Case("no JSON", NET, REFUSED, "not JSON", {"my.json": "{"}),
    Case("no devices", NET, REFUSED, "devices is missing", {"my.json": '{"devices": []}'}),
    Case("unknown field", NET, REFUSED, "gflop", {"my.json": devices(gflop=3)}),
    Case("negative speed", NET, REFUSED, "it must be positive", {"my.json": devices(gflops=-1)}),
    Case(
        "too small for the parameters",
        NET,
        REFUSED,
        "hold no part",
        {"my.json": devices(memory_gb=1e-9)},
    ),
    # hyperscale gives the other device all parts; mis_spectral, which minimises the cut alone, does
    # not place parts elsewhere, and the verifier refuses its plan.
    Case(
        "one device too small for any part, hyperscale",
        NET,
        RIGHT,
        "verified",
        {"my.json": devices(memory_gb=ROOM_GB)},
        ("-s", "hyperscale", "--work-limit", "3"),
    ),
    Case(
        "one device too small for any part, mis_spectral",
        NET,
        NOT_VERIFIED,
        "right keeps",
        {"my.json": devices(memory_gb=ROOM_GB)},
    ),
    Case("every device too small for any part", NET, NOT_VERIFIED, "keeps", {"my.json": SMALL}),
    Case(
        "more devices than cores",
        f"{NET}".replace("parts=2", "parts=12"),
        REFUSED,
        "do not fit",
        {"my.json": json.dumps({"devices": [{**LEFT, "name": f"d{k}"} for k in range(12)]})},
        MEASURED,
    ),
]
GROUPS = {"Graphs": GRAPHS, "Tables of nodes": TABLES, "Models": MODELS, "Devices": DEVICES}
