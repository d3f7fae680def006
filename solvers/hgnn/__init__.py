"""A hierarchical graph network that sets due dates, prices of devices and clocks for a compiled
list rule.

The network reads the task graph and the cluster as classes of alike devices, nodes and the whole
(``encoder``). Its answers are the numbers of one list rule (``milestone_rule``): a due date, a key
and a price of lateness per task, a price per class of devices, a cost per task and (class, clock),
a price of time. The event kernel then plays the rule and chooses (class, clock) and node when
devices are free. Where work arrives over time, each job is encoded at its arrival together with the
state of the cluster (``online_play``).

``optbench train hgnn`` trains it (``network_training``); solving needs numpy only
(``forward_pass``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from optbench.errors import ParameterError
from optbench.model.instance import Instance

from . import learned_list_rule
from .hierarchical_design import HierarchicalDesign
from .learning_settings import HgnnTraining
from .lookup_table import table_for
from .network_design import AnsweringNetwork, NetworkDesign
from .stream_readouts import StreamReadouts
from .substitutes import permuted_weights, random_weights

WEIGHTS = ("trained", "random", "permuted", "table", "none", "readouts")
# Without the read-outs for arriving work.
PLAIN = ("table", "none")


@dataclass(frozen=True)
class Hgnn(learned_list_rule.LearnedListRule):
    """Due dates, prices and clocks from a hierarchical graph network, played by a compiled list
    rule.

    ``samples`` schedules are made, the first from the network's answers, the others with noise on
    the best answers so far or, with ``around=starts``, by rules drawn around the starts of the best
    schedule so far, as ``random_rules`` does; the best is returned. Where work arrives over time
    there is one. ``checkpoint`` is a file of ``optbench train hgnn``; without it, the shipped
    network that was trained on instances of such features is taken. ``weights`` puts something else
    in the place of the trained network, for comparison: ``random`` or ``permuted`` weights, a
    ``table`` of mean answers by device, ``none``, the rule at its plain values, or ``readouts``,
    which differs from ``none`` where work arrives over time: there it has the read-outs of the
    trained network.
    """

    settings: ClassVar[type] = HgnnTraining
    design: ClassVar[type[NetworkDesign]] = HierarchicalDesign
    shipped: ClassVar[tuple[Path, ...]] = (
        Path(__file__).with_name("shops.safetensors"),
        Path(__file__).with_name("clusters.safetensors"),
    )

    weights: Literal["trained", "random", "permuted", "table", "none", "readouts"] = "trained"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights not in WEIGHTS:
            raise ParameterError(
                f"hgnn: weights is {self.weights!r}; it must be one of {', '.join(WEIGHTS)}"
            )

    def network(self, instance: Instance) -> AnsweringNetwork | None:
        if self.weights in ("none", "readouts"):
            return None
        found = self.found(instance)
        if self.weights == "table":
            return table_for(instance, found.table)
        weights = found.weights
        if self.weights == "random":
            weights = random_weights(weights)
        elif self.weights == "permuted":
            weights = permuted_weights(weights)
        return self.design(found.settings).forward_pass(weights)

    def readouts(self, instance: Instance) -> StreamReadouts | None:
        """Random and permuted weights have the read-outs of the trained network."""
        return None if self.weights in PLAIN else super().readouts(instance)
