"""The names that kernels take are those of the operator graph's fusions, and exclude alike."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from optbench.errors import ModelError
from optbench.gnn.kernels.fusion_plan import legal_plans
from optbench.gnn.kernels.kernel_names import fusions_of, plain_csr, require_fusions
from tests.gnn.kernels.kernel_cases import training_of

KINDS: Any = ("gcn", "sage", "gat")


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_exclusions_are_those_of_the_operator_graph(kind: Any) -> None:
    data = training_of(kind)
    names = [each.name for each in data.fusions]
    assert set(fusions_of(kind, 2)) == set(names)
    legal = {frozenset(plan) for plan in legal_plans(data.operators, data.fusions)}
    for pair in combinations(range(len(names)), 2):
        chosen = [names[k] for k in pair]
        if frozenset(pair) in legal:
            require_fusions(kind, 2, chosen)
        else:
            with pytest.raises(ModelError, match="both replace the"):
                require_fusions(kind, 2, chosen)


def test_plain_csr_has_one_product_in_each_layer() -> None:
    assert plain_csr("gcn", 3) == ("spmm1", "spmm2", "spmm3")
    assert plain_csr("gat", 2) == ()
    require_fusions("sage", 2, plain_csr("sage", 2))


def test_fusions_of_another_network_are_refused() -> None:
    with pytest.raises(ModelError, match="'attention1' is no fusion of a gcn of 2 layers"):
        require_fusions("gcn", 2, ["attention1"])
    with pytest.raises(ModelError, match="'aggregated_before' is no fusion of a gat"):
        require_fusions("gat", 2, ["aggregated_before"])
