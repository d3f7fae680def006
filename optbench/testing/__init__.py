"""What plug-in authors test with: conformance suites to inherit, hand-solved cases, ``assert_gap``.

    from optbench.testing import SolverConformance

    class TestMine(SolverConformance):
        solver = "mine"

A policy inherits ``PolicyConformance`` instead, which tries in addition whether it reads the future.
"""

import pytest

pytest.register_assert_rewrite(
    "optbench.testing.problem_suite", "optbench.testing.solver_suite", "optbench.testing.policy_suite", "optbench.testing.gaps"
)

from optbench.testing.cases import CASES, Case  # noqa: E402
from optbench.testing.gaps import assert_gap  # noqa: E402
from optbench.testing.policy_suite import PolicyConformance  # noqa: E402
from optbench.testing.problem_suite import ProblemConformance  # noqa: E402
from optbench.testing.solver_suite import SolverConformance  # noqa: E402

__all__ = ["CASES", "Case", "PolicyConformance", "ProblemConformance", "SolverConformance", "assert_gap"]
