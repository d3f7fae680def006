"""The parts of the network that can be switched off, each for a training of its own (ablations)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Convolution = Literal["hybrid", "spectral", "spatial"]
Pooling = Literal["all", "coarsening", "differentiable", "edge"]
Sampling = Literal["none", "importance", "layer", "subgraph"]
# Names of the heads of attention at the cluster level. Nothing in training ties a head to what its
# name says.
LEVEL_HEADS = ("performance", "energy", "fairness")


@dataclass(frozen=True)
class NetworkSettings:
    """``convolution`` is what passes between classes of devices; ``pooling`` how they are gathered
    into nodes; ``levels=flat`` leaves nodes and cluster out; ``sampling`` says which edges of the
    task graph carry messages, a ``keep`` share of them.
    """

    hidden: int = 32
    rounds: int = 2
    heads: int = 4
    clusters: int = 4
    levels: Literal["hierarchy", "flat"] = "hierarchy"
    convolution: Convolution = "hybrid"
    pooling: Pooling = "all"
    sampling: Sampling = "none"
    keep: float = 0.15

    def pools_by(self, way: Pooling) -> bool:
        return self.levels == "hierarchy" and self.pooling in ("all", way)

    def convolves(self, way: Convolution) -> bool:
        return self.convolution in ("hybrid", way)
