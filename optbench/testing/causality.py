"""Play a policy on an instance and on the same with another future, and compare its decisions.

A decision is the start of a job in a mode. Up to the moment at which the futures part, both runs
must decide the same. For a process of another shape it is an action, given the observations so far.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import UnsupportedError
from optbench.model.instance import Instance
from optbench.plugins.policy import Policy
from optbench.plugins.protocol import check_supported
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.state import partial_schedule
from optbench.testing.futures import MOMENTS, STREAMS, FutureStream, other_future
from optbench.units import HOUR_S

# A device that is lost from the beginning comes back after the moment, or does not.
FAULTS = "with other faults"
Start = tuple[float, int, int]


@dataclass(frozen=True)
class ChangedFuture:
    """One comparison: the decisions before the moment, and the first that differs, if any."""

    stream: str
    change: str
    moment: float
    decisions: int
    difference: str | None

    def __str__(self) -> str:
        return f"{self.stream}, later jobs {self.change} after {self.moment:g}: {self.difference}"


def streams_for(policy: Policy, name: str) -> list[FutureStream]:
    """The streams that a policy supports."""
    return [stream for stream in STREAMS if supports(policy, name, stream.instance)]


def supports(policy: Any, name: str, instance: Any) -> bool:
    try:
        check_supported(policy, name, instance)
    except UnsupportedError:
        return False
    return True


def compared(
    policy: Policy,
    stream: FutureStream,
    moments: Sequence[float] = MOMENTS,
    changes: Collection[str] | None = None,
) -> Iterator[ChangedFuture]:
    """Compare the decisions of a policy with those on changed futures of a stream, all by
    default.
    """
    instance = stream.instance
    for share in moments:
        moment, mine = stream.moment(share), decided(policy, instance)
        before = [start for start in mine if start[0] <= moment]
        for change in [*stream.changes(), FAULTS]:
            if changes is not None and change not in changes:
                continue
            if change == FAULTS:
                at = moment + round(0.1 * HOUR_S / instance.tick_s)
                pool = roomiest(instance)
                lost = Fault(0, pool, 1)
                mine = decided(policy, instance, (lost,))
                theirs = decided(policy, instance, (lost, Fault(at, pool, -1)))
            else:
                other = other_future(instance, moment, change)
                if other.hash == instance.hash:  # no outage comes after this moment
                    continue
                theirs = decided(policy, other)
            found = first_difference(mine, theirs, moment)
            yield ChangedFuture(stream.name, change, moment, len(before), found)


def roomiest(instance: Instance) -> int:
    """The pool with most devices, those that an outage takes aside."""
    count = instance.pools.count.copy()
    if instance.stream is not None:
        outages = instance.stream.outages
        np.subtract.at(count, outages.pool, np.maximum(outages.devices, 0))
    return int(count.argmax())


def decided(policy: Policy, instance: Any, faults: Sequence[Fault] = ()) -> list[Start]:
    """Starts in order of time: when, which job, in which mode."""
    trace = policy.play(instance, np.random.default_rng(7), faults)
    schedule, state = trace.schedule, trace.state
    if schedule is None:  # what was planned on a lost device never runs
        assert faults, f"{instance.name}: some jobs never ran"
        schedule = partial_schedule(instance, trace.plant, state)
    starts = (schedule.start, schedule.task, schedule.mode)
    order = np.lexsort((starts[1], starts[0]))
    return list(zip(*(column[order].tolist() for column in starts), strict=True))


def first_difference(mine: list[Start], theirs: list[Start], moment: float) -> str | None:
    """The first start up to a moment that differs between the two runs."""
    a, b = ([each for each in starts if each[0] <= moment] for starts in (mine, theirs))
    for one, other in zip([*a, None], [*b, None], strict=False):
        if one != other:
            return f"(time, job, mode) {one} becomes {other}"
    return None
