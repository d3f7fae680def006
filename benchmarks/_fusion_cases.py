"""Cases of benchmarks/gnn_fusion.py: graphs, features, and the steps that plans are compared with.

Plain CSR is what a careful user of torch writes: ``torch.nn.functional.linear``, one product by
torch's CSR matrix each way for the sums over arcs (with indices of 4 bytes, which are the faster
ones, and the transposed matrix made once), bias and activation apart. The order of operators is
that of PyTorch Geometric.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

HEADS = 8
PLAIN_CSR = frozenset({"spmm1", "spmm2"})


def taken_ms(steps: Sequence[Callable[[], None]], repeats: Sequence[int]) -> list[list[float]]:
    """Milliseconds of processor time of steps that take turns, after a round that is not counted;
    each has its own number of repeats.
    """
    taken: list[list[float]] = [[] for _ in steps]
    for turn in range(max(repeats) + 1):
        for step, times, most in zip(steps, taken, repeats, strict=True):
            if turn <= most:
                begin = time.process_time()
                step()
                times.append(1e3 * (time.process_time() - begin))
    return [times[1:] for times in taken]


@cache
def graph_case(spec: str) -> tuple[Any, int, int]:
    """The instance of a graph, with its numbers of features and classes."""
    from optbench.plugins.discovery import load_problem

    instance: Any = load_problem(f"gnn_training:graph={spec},parts=1,hidden=16").instance(0)
    cost = {each.name: each.cost for each in instance.data.operators}
    features = int(cost["dense1"].kept_bytes_per_node / 4)
    return instance.data, features, int(cost["loss"].kept_bytes_per_node / 4)


def case_of(spec: str, network: Any, hidden: int) -> Any:
    """A network of a hidden width on a graph."""
    from optbench.gnn.kernels.fused_network import NetworkWidths
    from optbench.gnn.kernels.kernel_rates import KernelCase
    from optbench.plugins.problems._modelled_networks import modelled

    data, features, classes = graph_case(spec)
    made = modelled(network, features, hidden, classes)
    parts = (tuple(made.operators), tuple(made.fusions))
    data = replace(data, operators=parts[0], fusions=parts[1], parameter_bytes=made.parameter_bytes)
    heads = HEADS if network == "gat" else 1
    return KernelCase(data, NetworkWidths(network, features, hidden, classes, heads))


@cache
def features_of(spec: str) -> Any:
    """The features of a citation graph as a sparse matrix, or drawn ones."""
    from scipy.sparse import csr_array, lil_array

    data, width, _ = graph_case(spec)
    nodes, name = data.graph.num_nodes, spec.partition(",")[0]
    if name not in ("cora", "citeseer"):
        return np.random.default_rng(0).standard_normal((nodes, width), dtype=np.float32)
    from optbench.data.registry import data_path
    from optbench.plugins.problems._planetoid import unpickled

    known, test = (
        unpickled(data_path(f"planetoid/ind.{name}.{part}").read_bytes()) for part in ("allx", "tx")
    )
    numbers = np.loadtxt(data_path(f"planetoid/ind.{name}.test.index"), dtype=np.int64)
    out = lil_array((nodes, width), dtype=np.float32)
    out[: known.shape[0]] = known
    out[numbers] = test
    rows = csr_array(out)
    total = np.maximum(np.asarray(rows.sum(axis=1)).ravel(), 1)
    rows.data /= np.repeat(total, np.diff(rows.indptr))
    return rows


@cache
def dense_features(spec: str) -> Any:
    """The same as a tensor."""
    import torch

    given = features_of(spec)
    return torch.from_numpy(given if isinstance(given, np.ndarray) else given.toarray())


class PlainCsr:
    """A step of GCN or SAGE by plain CSR with the parameters of a network."""

    def __init__(self, case: Any, network: Any, features: Any) -> None:
        from optbench.gnn.kernels.arc_rows import network_arcs

        dtype = features.new_empty(0).numpy().dtype
        self.rows = network_arcs(case.data.graph, case.widths.kind, dtype)
        self.network, self.features = network, features

    def layer(self, k: int, values: Any) -> Any:
        """Rows of a layer, numbered from 0, before its activation."""
        from torch.nn.functional import linear

        # One sparse product each way, and nothing else.
        from optbench.gnn.kernels.sparse_functions import sparse_product

        weight, bias = self.network.weights[k], self.network.biases[k]
        if self.network.widths.kind == "gcn":
            return sparse_product(self.rows, linear(values, weight)) + bias
        near, own = weight[: len(bias)], weight[len(bias) :]
        return linear(sparse_product(self.rows, values), near) + linear(values, own) + bias

    def forward(self) -> Any:
        return self.layer(1, self.layer(0, self.features).relu())

    def __call__(self) -> None:
        self.network.zero_grad()
        self.forward().square().sum().backward()


class PublishedStep:
    """A step by PyTorch Geometric's layers with the parameters of a network."""

    def __init__(self, case: Any, ours: Any, features: Any) -> None:
        import torch

        graph, self.kind, self.features = case.data.graph, case.widths.kind, features
        ends = np.array([[*graph.tail, *graph.head], [*graph.head, *graph.tail]])
        self.arcs = torch.from_numpy(ends)
        self.layers = torch.nn.ModuleList([_published(self.kind, ours, k) for k in range(2)])

    def forward(self) -> Any:
        import torch

        act = torch.nn.functional.elu if self.kind == "gat" else torch.relu
        hidden = act(self.layers[0](self.features, self.arcs))
        return self.layers[1](hidden, self.arcs)

    def __call__(self) -> None:
        self.layers.zero_grad()
        self.forward().square().sum().backward()


def _published(kind: str, ours: Any, k: int) -> Any:
    """One layer of PyTorch Geometric."""
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv

    weight, bias = ours.weights[k].detach(), ours.biases[k].detach()
    a, b = weight.shape[1], len(bias)
    layer: Any
    if kind == "gcn":
        layer = GCNConv(a, b)
        layer.lin.weight.data, layer.bias.data = weight, bias
    elif kind == "sage":
        layer = SAGEConv(a, b)
        layer.lin_l.weight.data, layer.lin_r.weight.data = weight[:b], weight[b:]
        layer.lin_l.bias.data = bias
    else:
        scores = ours.scores[k].detach()
        layer = GATConv(a, b // scores.shape[1], scores.shape[1])
        layer.lin.weight.data, layer.bias.data = weight, bias
        layer.att_src.data, layer.att_dst.data = scores[:1], scores[1:]
    return layer
