"""Conformance suite of policies: that of solvers, and a check that no decision uses the future."""

from __future__ import annotations

from typing import ClassVar

from optbench.plugins.discovery import load_solver
from optbench.plugins.policy import Policy
from optbench.testing.causality import compared, streams_for
from optbench.testing.futures import STREAMS
from optbench.testing.solver_suite import SolverConformance


class PolicyConformance(SolverConformance):
    """Inherit, name your class ``Test...`` and set ``solver`` to the name of a policy.

    Later jobs get other sizes, kinds and arrival times, are left out, or come twice; devices fail
    later, or not at all. No earlier decision may change. A policy that uses the future on purpose
    declares ``clairvoyant = True`` in its class, and the test then requires a changed decision.
    ``quick`` is a spec of the same policy for this test alone, for policies whose defaults take
    long.
    """

    quick: ClassVar[str | None] = None
    # Names of ``optbench.testing.futures.FUTURES``; None for all of them.
    changes: ClassVar[tuple[str, ...] | None] = None

    def test_decisions_use_the_future_only_if_declared(self) -> None:
        name, policy = self.load()
        assert isinstance(policy, Policy), f"{name} is no policy: inherit SolverConformance"
        found = self.differences()
        unused = "declares clairvoyant = True, but no decision depends on the future"
        if policy.clairvoyant:
            assert found, f"{name} {unused}; remove the declaration"
        else:
            say = "or say clairvoyant = True in its class"
            assert not found, f"{name} reads the future: {found[0]}; {say}"

    def differences(self) -> list[str]:
        """Decisions that change before the futures part, one line for each."""
        name, policy = self.load() if self.quick is None else load_solver(self.quick)
        assert isinstance(policy, Policy)
        streams = streams_for(policy, name)
        names = [stream.name for stream in STREAMS]
        assert streams, f"{name} can run on no stream of arriving work: {names}"
        return [
            str(found)
            for stream in streams
            for found in compared(policy, stream, changes=self.changes)
            if found.difference is not None
        ]
