"""Tools to test plug-ins: conformance suites to inherit, hand-solved cases, and ``assert_gap``.

    from optbench.testing import SolverConformance

    class TestMine(SolverConformance):
        solver = "mine"

Tests of a policy inherit ``PolicyConformance`` instead, which also checks that it does not use
future arrivals; those of a policy for another shape with a process, ``ProcessConformance``.
"""

import pytest

pytest.register_assert_rewrite(
    "optbench.testing.problem_suite",
    "optbench.testing.solver_suite",
    "optbench.testing.policy_suite",
    "optbench.testing.process_suite",
    "optbench.testing.shape_suite",
    "optbench.testing.gaps",
)

from optbench.testing.cases import CASES, Case  # noqa: E402
from optbench.testing.gaps import assert_gap  # noqa: E402
from optbench.testing.policy_suite import PolicyConformance  # noqa: E402
from optbench.testing.problem_suite import ProblemConformance  # noqa: E402
from optbench.testing.process_suite import ProcessConformance  # noqa: E402
from optbench.testing.shape_suite import ShapeConformance  # noqa: E402
from optbench.testing.solver_suite import SolverConformance  # noqa: E402

__all__ = [
    "CASES",
    "Case",
    "PolicyConformance",
    "ProblemConformance",
    "ProcessConformance",
    "ShapeConformance",
    "SolverConformance",
    "assert_gap",
]
