"""Every discovered plug-in meets its conformance suite; one that no test could run on fails."""

from __future__ import annotations

import pytest

from optbench.plugins import discovery
from optbench.plugins.policy import Policy
from optbench.testing import PolicyConformance, ProblemConformance, SolverConformance

EXACT = {"column_generation", "cpsat", "highs"}
# What makes the default instance of a family small enough for a test of seconds.
SMALL: dict[str, str] = {}
# Seconds for solvers that go on until their time is over.
SECONDS = {"random_rules": 0.3}
# Parameters with which a policy is tried on other futures, where its defaults take a minute.
QUICK = {"lp_guided": "lp_guided:resolve_every=1,steps=20"}
# The changes of the future for these; benchmarks/causality.py tries all.
CHANGES = dict.fromkeys(("lp_guided", "random_rules"), ("all of it", "absent"))

# Small problems of other shapes, for solvers that take these alone.
PROBLEMS = {
    "column_generation": (
        "epoch_allocation:jobs=8,gpus=5",
        "epoch_allocation:jobs=12,gpus=5,requirement=tight,migration_w=20",
    )
}

# One class per plug-in: pytest collects classes by their name in the module.
for _name in discovery.names("solver"):
    _body = {"solver": _name, "exact": _name in EXACT} | (
        {"time_limit_s": SECONDS[_name]} if _name in SECONDS else {}
    )
    _suite = (
        PolicyConformance
        if issubclass(discovery.load_class("solver", _name), Policy)
        else SolverConformance
    )
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
