"""The network of ``encoder`` in numpy, for solving: the same answers to 1e-5 without loading torch.

Pairs of tasks and classes are dense here (classes are few), messages along edges are sums over
sorted rows. Weights are named as in the state of the torch module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optbench.model.instance import Floats, Ints

from .answers import Answers
from .network_settings import LEVEL_HEADS, NetworkSettings
from .seen_arrays import SeenArrays
from .task_sampling import taking_part

Array = NDArray[np.float32]
# The slope of leaky ReLU in attention, and what EdgePooling adds to every score.
SLOPE, ADDED = 0.2, 0.5


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """The weights by name, and the settings of the network that they belong to."""

    weights: Mapping[str, Array]
    settings: NetworkSettings

    def answers(self, seen: SeenArrays) -> Answers:
        """Return the answers of the network."""
        x, d = self.two_layers("task_in", seen.task), self.two_layers("device_in", seen.device)
        z = self.two_layers("whole_in", seen.whole)
        edges = taking_part(seen, self.settings)
        for k in range(self.settings.rounds):
            x = self.task_round(f"rounds.{k}", x, edges[k])
        d = d + relu(self.attention("to_device", x, d, seen, to_device=True))
        d = d + relu(self.convolved(d, seen))
        if self.settings.levels == "hierarchy":
            d, z = self.through_levels(d, z, seen)
        back = self.attention("to_task", d, x, seen, to_device=False)
        x = x + relu(self.linear("mix_task", beside(x, back, z)))
        whole = self.linear("whole_out", np.concatenate((z, x.mean(axis=0), d.mean(axis=0))))
        device = self.linear("device_out", beside(d, z)) + self.linear("device_skip", seen.device)
        s = relu(self.linear("set_in", np.concatenate((d[seen.set_class], seen.sets), axis=1)))
        return Answers(
            np.asarray(whole + self.linear("whole_skip", seen.whole), dtype=float),
            np.asarray(device[:, 0], dtype=float),
            np.asarray(
                self.linear("task_out", x) + self.linear("task_skip", seen.task), dtype=float
            ),
            np.asarray(self.linear("task_factor", x), dtype=float),
            np.asarray(self.linear("set_factor", s), dtype=float),
        )

    def linear(self, name: str, x: Array) -> Array:
        out = x @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return np.asarray(out if bias is None else out + bias, dtype=np.float32)

    def two_layers(self, name: str, x: Array) -> Array:
        return self.linear(f"{name}.2", relu(self.linear(f"{name}.0", x)))

    def task_round(self, name: str, x: Array, edges: tuple[Ints, Ints]) -> Array:
        source, target = edges
        parts = (x, *gathered(x, source, target), *gathered(x, target, source), x.mean(axis=0))
        out = x + relu(self.linear(f"{name}.mix", beside(*parts)))
        centred = out - out.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        weight, bias = self.weights[f"{name}.norm.weight"], self.weights[f"{name}.norm.bias"]
        return np.asarray(centred / spread * weight + bias, dtype=np.float32)

    def shares(self, name: str, score: Array, axis: int) -> Array:
        """Return the shares of attention of these scores; ``name`` is that of the layer."""
        return softmax(score, axis)

    def attention(
        self, name: str, sender: Array, receiver: Array, seen: SeenArrays, *, to_device: bool
    ) -> Array:
        """Attention between tasks and the classes that fit them (GATv2), dense."""
        heads = self.settings.heads
        left, right = self.linear(f"{name}.lin_l", sender), self.linear(f"{name}.lin_r", receiver)
        edge = seen.pair @ self.weights[f"{name}.lin_edge.weight"].T  # (tasks, classes, hidden)
        both = left[:, None] + right[None] if to_device else right[:, None] + left[None]
        both = both + edge
        both = np.where(both > 0, both, SLOPE * both).reshape(*both.shape[:2], heads, -1)
        score = np.einsum("nchw,hw->nch", both, self.weights[f"{name}.att"][0])
        score = np.where(seen.fits[:, :, None], score, -np.inf)
        share = self.shares(name, score, 0 if to_device else 1)
        value = left.reshape(len(left), heads, -1)
        out = np.einsum("nch,nhw->chw" if to_device else "nch,chw->nhw", share, value)
        return np.asarray(out.reshape(len(receiver), -1) + self.weights[f"{name}.bias"], np.float32)

    def convolved(self, d: Array, seen: SeenArrays) -> Array:
        out = np.zeros_like(d)
        if self.settings.convolves("spectral"):
            degree = seen.near.sum(axis=0)
            root = np.where(degree > 0, 1.0 / np.sqrt(np.maximum(degree, 1e-30)), 0.0)
            shifted = -(root[:, None] * seen.near * root[None]).T
            terms: list[Array] = [d, np.asarray(shifted @ d, dtype=np.float32)]
            terms.append(np.asarray(2.0 * (shifted @ terms[1]) - d, dtype=np.float32))
            for k, term in enumerate(terms):
                out = out + term @ self.weights[f"spectral.lins.{k}.weight"].T
            out = out + self.weights["spectral.bias"]
        if self.settings.convolves("spatial"):
            out = out + self.between_classes(d, seen)
        return np.asarray(out, dtype=np.float32)

    def between_classes(self, d: Array, seen: SeenArrays) -> Array:
        """Attention over the links between classes."""
        heads, name, count = self.settings.heads, "spatial", len(d)
        left, right = self.linear(f"{name}.lin_l", d), self.linear(f"{name}.lin_r", d)
        both = left[:, None] + right[None] + seen.link @ self.weights[f"{name}.lin_edge.weight"].T
        both = np.where(both > 0, both, SLOPE * both).reshape(count, count, heads, -1)
        score = np.einsum("schw,hw->sch", both, self.weights[f"{name}.att"][0])
        score = np.where(np.eye(count, dtype=bool)[:, :, None], -np.inf, score)
        share = self.shares(name, score, 0)
        out = np.einsum("sch,shw->chw", share, left.reshape(count, heads, -1))
        return np.asarray(out.reshape(count, -1) + self.weights[f"{name}.bias"], dtype=np.float32)

    def through_levels(self, d: Array, z: Array, seen: SeenArrays) -> tuple[Array, Array]:
        """Return devices and cluster after the levels above the devices."""
        pooled = []
        if self.settings.pools_by("coarsening"):
            mean = seen.member / np.maximum(1e-9, seen.member.sum(axis=1, keepdims=True))
            near = np.asarray(mean @ seen.near @ mean.T, dtype=np.float32)
            nodes = self.between_nodes("coarse", mean @ d, near)
            pooled.append((nodes, seen.member.T @ nodes))
        if self.settings.pools_by("differentiable"):
            share = softmax(self.linear("soft.assign", d), 1)
            size = np.maximum(1e-9, share.sum(axis=0))[:, None]
            mean = np.asarray(share.T @ d / size, dtype=np.float32)
            near = np.asarray(share.T @ seen.near @ share, dtype=np.float32)
            nodes = self.between_nodes("soft", mean, near)
            pooled.append((nodes, share @ nodes))
        if self.settings.pools_by("edge"):
            pooled.append(self.contracted(d, seen))
        nodes, heads = np.concatenate([each for each, _ in pooled]), len(LEVEL_HEADS)
        q = self.linear("query", z).reshape(heads, -1)
        k = self.linear("key", nodes).reshape(len(nodes), heads, -1)
        v = self.linear("value", nodes).reshape(len(nodes), heads, -1)
        weight = self.shares("cluster", np.einsum("hw,nhw->hn", q, k) / np.sqrt(q.shape[1]), 1)
        gathered_up = np.einsum("hn,nhw->hw", weight, v).ravel()
        z = relu(self.linear("cluster", np.concatenate((z, gathered_up))))
        above = np.mean([back for _, back in pooled], axis=0)
        return d + relu(self.linear("down", beside(d, above, z))), z

    def between_nodes(self, name: str, x: Array, near: Array) -> Array:
        share = near / np.maximum(1e-9, near.sum(axis=1, keepdims=True))
        other = self.linear(f"{name}.between.others", share @ x)
        return relu(self.linear(f"{name}.between.own", x) + other)

    def contracted(self, d: Array, seen: SeenArrays) -> tuple[Array, Array]:
        """EdgePooling: pairs of classes in the order of their scores, each class at most once."""
        count = len(d)
        source, target = np.nonzero(~np.eye(count, dtype=bool))
        raw = self.linear("contracted.pool.lin", np.concatenate((d[source], d[target]), axis=1))
        table = np.full((count, count), -np.inf, dtype=np.float32)
        table[source, target] = raw[:, 0]
        score = (softmax(table, 0) if count > 1 else table)[source, target] + ADDED
        cluster, factors, taken = np.full(count, -1), list[float](), 0
        for e in np.argsort(-score, kind="stable").tolist():
            if cluster[source[e]] < 0 and cluster[target[e]] < 0:
                cluster[[source[e], target[e]]] = taken
                factors.append(float(score[e]))
                taken += 1
        left = np.flatnonzero(cluster < 0)
        cluster[left] = taken + np.arange(len(left))
        factor = np.asarray([*factors, *np.ones(len(left))], dtype=np.float32)
        member = np.zeros((len(factor), count), dtype=np.float32)
        member[cluster, np.arange(count)] = 1.0
        pooled = (member @ d) * factor[:, None]
        near = np.asarray(member @ seen.near @ member.T, dtype=np.float32)
        nodes = self.between_nodes("contracted", pooled, near)
        return nodes, nodes[cluster]


def relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def softmax(x: Floats | Array, axis: int) -> Array:
    """Return shares along an axis; rows without any finite entry are zero."""
    most = x.max(axis=axis, keepdims=True)
    raised = np.exp(x - np.where(np.isfinite(most), most, 0.0))
    return np.asarray(raised / np.maximum(1e-16, raised.sum(axis=axis, keepdims=True)), np.float32)


def beside(x: Array, *others: Array) -> Array:
    """Return columns side by side; a single row stands beside each row."""
    rows = [np.broadcast_to(each, (len(x), each.shape[-1])) for each in others]
    return np.concatenate((x, *rows), axis=1)


def gathered(x: Array, sender: Ints, receiver: Ints) -> tuple[Array, Array]:
    """Return mean and largest value over the senders of each receiver; 0 where there are none."""
    mean, most = np.zeros_like(x), np.zeros_like(x)
    if len(sender):
        order = np.argsort(receiver, kind="stable")
        rows, values = receiver[order], x[sender[order]]
        begins = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        count = np.diff(np.append(begins, len(rows)))[:, None]
        mean[rows[begins]] = np.add.reduceat(values, begins, axis=0) / count
        most[rows[begins]] = np.maximum.reduceat(values, begins, axis=0)
    return mean, most
