"""Conformance suite of policies: that of solvers, and a check that no decision uses the future."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from optbench.errors import UnsupportedError
from optbench.plugins.discovery import load_solver
from optbench.plugins.policy import Policy
from optbench.plugins.protocol import check_supported
from optbench.testing.futures import FUTURES, MOMENTS, STREAMS, FutureStream, other_future
from optbench.testing.solver_suite import SolverConformance


class PolicyConformance(SolverConformance):
    """Inherit, name your class ``Test...`` and set ``solver`` to the name of a policy.

    Later jobs get other sizes, kinds and arrival times; no earlier decision may change. A policy
    that uses the future on purpose declares ``clairvoyant = True`` in its class, and the test then
    requires a changed decision. ``quick`` is a spec of the same policy for this test alone, for
    policies whose defaults take long.
    """

    quick: ClassVar[str | None] = None

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
        """Decisions that change before the streams differ: at most one line per stream and
        change.
        """
        name, policy = self.load() if self.quick is None else load_solver(self.quick)
        assert isinstance(policy, Policy)
        streams, found = [stream for stream in STREAMS if _runs(policy, name, stream)], []
        names = [stream.name for stream in STREAMS]
        assert streams, f"{name} can run on no stream of arriving work: {names}"
        for stream in streams:
            mine = _decided(policy, stream.instance)
            for change in FUTURES:
                for share in MOMENTS:
                    moment = stream.moment(share)
                    theirs = _decided(policy, other_future(stream.instance, moment, change))
                    line = _first_difference(mine, theirs, moment)
                    if line is not None:
                        found.append(f"{stream.name}, later jobs {change} after {moment:g}: {line}")
                        break
        return found


def _runs(policy: Policy, name: str, stream: FutureStream) -> bool:
    try:
        check_supported(policy, name, stream.instance)
    except UnsupportedError:
        return False
    return True


def _decided(policy: Policy, instance: Any) -> list[tuple[float, int, int]]:
    """Starts in order of time: when, which job, in which mode."""
    schedule = policy.play(instance, np.random.default_rng(7)).schedule
    if schedule is None:
        pytest.fail(f"{instance.name}: some jobs never ran")
    order = np.lexsort((schedule.task, schedule.start))
    columns = (schedule.start, schedule.task, schedule.mode)
    return list(zip(*(column[order].tolist() for column in columns), strict=True))


def _first_difference(
    mine: list[tuple[float, int, int]], theirs: list[tuple[float, int, int]], moment: float
) -> str | None:
    """The first start before a moment that differs between the two runs."""
    a, b = ([each for each in starts if each[0] <= moment] for starts in (mine, theirs))
    for one, other in zip([*a, None], [*b, None], strict=False):
        if one != other:
            return f"(time, job, mode) {one} becomes {other}"
    return None
