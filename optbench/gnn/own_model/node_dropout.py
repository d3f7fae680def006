"""Dropout of a user's module by global numbers: whichever process computes a row drops the same.

While the mode is active, ``torch.nn.functional.dropout``, which ``torch.nn.Dropout`` and layers of
PyTorch Geometric call, takes its mask from ``CounterDropout``. The layer is the number of the call
within the forward pass. A row is that of

    a node v               where there are as many rows as nodes
    an arc u → v           where there are as many rows as arcs, as v n + u
    the same with loops    where there are as many rows as arcs and nodes together: layers append
                           an arc from every node to itself behind the other ones
    itself                 otherwise, which a parameter's row is.

Other random numbers would differ from process to process and are refused where there are several.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from optbench.errors import ModelError
from optbench.gnn.kernels.counter_dropout import LAYERS, CounterDropout, arc_numbers
from optbench.gnn.own_model.node_neighbourhood import NodeNeighbourhood
from optbench.shapes.gnn_training.training_data import Ints

RANDOM = frozenset(
    (
        *("alpha_dropout", "alpha_dropout_", "bernoulli", "bernoulli_", "dropout1d", "dropout2d"),
        *("dropout3d", "exponential_", "feature_alpha_dropout", "feature_dropout", "multinomial"),
        *("native_dropout", "normal", "normal_", "poisson", "rand", "rand_like", "randint"),
        *("randint_like", "randn", "randn_like", "random_", "randperm", "rrelu", "uniform_"),
    )
)


class RowNumbers:
    """The global numbers of rows of nodes, of arcs, and of arcs with loops."""

    def __init__(self, around: NodeNeighbourhood, num_nodes: int) -> None:
        nodes = np.concatenate([around.nodes, num_nodes + np.arange(around.padding)])
        arcs = arc_numbers(nodes[around.target], nodes[around.source], num_nodes)
        loops = arc_numbers(nodes, nodes, num_nodes)
        # Padding makes the three numbers of rows different.
        self._known = {
            len(nodes): nodes,
            len(arcs): arcs,
            len(arcs) + len(nodes): np.concatenate([arcs, loops]),
        }

    def of(self, rows: int) -> Ints:
        found = self._known.get(rows)
        return np.arange(rows, dtype=np.int64) if found is None else found


class NodeDropout(TorchFunctionMode):
    """The mode for one forward pass of one step; without ``step`` nothing is dropped."""

    def __init__(
        self, seed: int, rows: RowNumbers, step: int | None, only_dropout: bool, name: str
    ) -> None:
        super().__init__()
        self._seed, self._rows, self._step = seed, rows, step
        self._only_dropout, self._name = only_dropout, name
        self._calls = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.dropout:
            return self._dropout(*args, **kwargs)
        if func is torch.dropout:
            values, rate, training = _positional(args, kwargs)
            return self._dropout(values, rate, training)
        name = getattr(func, "__name__", "")
        if self._only_dropout and name in RANDOM and self._is_dropping(name, args, kwargs):
            raise ModelError(
                f"{self._name}: its code draws random numbers by {name}, which differ from process "
                "to process; of random operations only torch.nn.functional.dropout (also as "
                "torch.nn.Dropout) is the same on any number of devices. Use it instead, or train "
                "on one device"
            )
        return func(*args, **kwargs)

    def _is_dropping(self, name: str, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether a function draws: dropout of other kinds does so only while training."""
        if "dropout" not in name and name != "rrelu":
            return True
        return self._step is not None and bool(kwargs.get("training", True))

    def _dropout(
        self, values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        layer, self._calls = self._calls, self._calls + 1
        if not training or p == 0 or self._step is None or not values.numel():
            return values
        if layer >= LAYERS:
            raise ModelError(f"{self._name}: it calls dropout more than {LAYERS} times in a pass")
        if p >= 1:
            return values * 0
        flat = values.reshape(len(values), -1)
        made = CounterDropout(p, self._seed)
        mask = made.mask(self._step, layer, self._rows.of(len(flat)), flat.shape[1], values.dtype)
        mask = mask.to(values.device).view_as(values)
        return values.mul_(mask) if inplace else values * mask


def _positional(args: Any, kwargs: dict[str, Any]) -> tuple[Any, float, bool]:
    """The arguments of ``torch.dropout(input, p, train)``."""
    given = dict(zip(("input", "p", "train"), args, strict=False)) | kwargs
    return given["input"], given["p"], given["train"]
