"""The baseline of reinforcement learning on a vector: a plain perceptron sets the numbers for the
whole and the prices of devices of the list rule of hgnn.

It sees a vector of fixed length (``feature_vector``) and no graph, and it has no answers for single
tasks. Rule, training, budget and play are those of hgnn: what differs is the network
(``vector_design``). ``optbench train vector_rl`` trains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..hgnn.learned_list_rule import LearnedListRule
from ..hgnn.network_design import NetworkDesign
from .vector_design import VectorDesign, VectorTraining


@dataclass(frozen=True)
class VectorRl(LearnedListRule):
    """Prices of devices and of time from a perceptron on a vector of fixed length, played by a
    compiled list rule; the baseline of hgnn without a graph.

    ``samples`` schedules are made, the first from the network's answers, the others with noise on
    the best answers so far or, with ``around=starts``, by rules drawn around the starts of the best
    schedule so far; the best is returned. Where work arrives over time there is one.
    ``checkpoint`` is a file of ``optbench train vector_rl``.
    """

    settings: ClassVar[type] = VectorTraining
    design: ClassVar[type[NetworkDesign]] = VectorDesign
    shipped: ClassVar[tuple[Path, ...]] = (Path(__file__).with_name("vector.safetensors"),)
