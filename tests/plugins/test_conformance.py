"""Every discovered plug-in meets its conformance suite; one that no test could run on fails."""

from __future__ import annotations

from typing import Any

import pytest

from optbench.plugins import discovery
from optbench.plugins.policy import Policy
from optbench.plugins.process_policy import ProcessPolicy
from optbench.testing import (
    PolicyConformance,
    ProblemConformance,
    ProcessConformance,
    SolverConformance,
)
from tests.plugins.colocation_futures import SHORT, other_future, quick_checkpoint

EXACT = {"column_generation", "cpsat", "highs"}
# What makes the default instance of a family small enough for a test of seconds.
SMALL = {
    "gnn_training": "gnn_training:graph=hubs,nodes=20,parts=2",
    "gpu_cluster": "gpu_cluster:nodes=4,tasks=40",
}
# Seconds for solvers that go on until their time is over.
SECONDS = {
    **dict.fromkeys(("mdp_allocation", "metis_best", "mis_spectral", "random_rules"), 0.3),
    "hyperscale": 0.5,
}
# Parameters with which a policy is tried on other futures, where its defaults take a minute.
QUICK = {"lp_guided": "lp_guided:resolve_every=1,steps=20"}
# The changes of the future for these; benchmarks/causality.py tries all.
CHANGES = dict.fromkeys(("lp_guided", "random_rules"), ("all of it", "absent"))

# Small problems of other shapes, for solvers that take these alone.
TRAINING = (
    "gnn_training:graph=grid,nodes=25,parts=2,imbalance=0.1",
    "gnn_training:graph=hubs,nodes=20,parts=2",
)
PROBLEMS = {
    **dict.fromkeys(("ldg", "metis", "metis_best", "random_parts", "mdp_allocation"), TRAINING[:1]),
    **dict.fromkeys(("hyperscale", "mis_spectral"), TRAINING),
    "repartition": ("gnn_training:graph=grid,nodes=16,parts=2,changed=0.2",),
    "column_generation": (
        "epoch_allocation:jobs=8,gpus=5",
        "epoch_allocation:jobs=12,gpus=5,requirement=tight,migration_w=20",
    ),
}


class ColocationConformance(ProcessConformance):
    """Policies of co-location; gogh plays networks of a few steps."""

    problem = SHORT
    seeds = 1

    def load(self) -> tuple[str, ProcessPolicy]:
        if self.solver != "gogh":
            return super().load()
        name, policy = discovery.load_solver("gogh", {"checkpoint": quick_checkpoint()})
        assert isinstance(policy, ProcessPolicy)
        return name, policy

    def future_after(self, data: Any, observations: list[Any]) -> Any:
        return other_future(data, observations)


def suite_of(solver: str) -> type:
    """The suite that a solver's class meets."""
    found = discovery.load_class("solver", solver)
    if issubclass(found, ProcessPolicy):
        assert found.shapes == {"colocation"}, f"{solver}: there is no suite for its shape"
        return ColocationConformance
    return PolicyConformance if issubclass(found, Policy) else SolverConformance


# One class per plug-in: pytest collects classes by their name in the module.
for _name in discovery.names("solver"):
    _body = {"solver": _name, "exact": _name in EXACT} | (
        {"time_limit_s": SECONDS[_name]} if _name in SECONDS else {}
    )
    _suite = suite_of(_name)
    _body |= {"quick": QUICK[_name]} if _name in QUICK else {}
    _body |= {"changes": CHANGES[_name]} if _name in CHANGES else {}
    _body |= {"problems": PROBLEMS[_name]} if _name in PROBLEMS else {}
    globals()[f"TestSolver_{_name}"] = type(f"TestSolver_{_name}", (_suite,), _body)
for _name in discovery.names("problem"):
    globals()[f"TestProblem_{_name}"] = type(
        f"TestProblem_{_name}", (ProblemConformance,), {"problem": SMALL.get(_name, _name)}
    )


@pytest.mark.parametrize("kind", discovery.KINDS)
def test_every_built_in_plugin_is_available(kind: discovery.Kind) -> None:
    assert [entry for entry in discovery.catalogue(kind) if not entry.available] == []


def test_the_promised_plugins_are_there() -> None:
    assert {"cpsat", "highs"} <= set(discovery.names("solver"))
    assert {"jobshop", "flexible_jobshop", "rcpsp", "gpu_dag"} <= set(discovery.names("problem"))
