"""Which nodes a cell may go to: room, equal hardware, and nodes that are set aside."""

from __future__ import annotations

import time
from typing import Any

import pytest

from optbench.execute.ray_cluster.connection import (
    NODE_LABEL,
    ClusterConnection,
    ClusterError,
    ClusterNode,
)
from optbench.execute.ray_cluster.doubtful_outcomes import CellWork
from optbench.execute.ray_cluster.node_agent import AgentSettings
from optbench.execute.ray_cluster.node_roster import NodeRoster, NoFittingNodeError, RosterEntry
from optbench.study.declared import CellBudget

HEFT, HGNN, VERIFY = CellWork("solve", "heft"), CellWork("solve", "hgnn"), CellWork("verify")


def roster_of(told: list[str] | None = None, **models: str) -> NodeRoster:
    """Nodes by name with their CPU models; each has 4 CPUs, 3 usable cores and 8,000 MB."""
    say = ([] if told is None else told).append
    roster = NodeRoster(ClusterConnection("head:1", {}), AgentSettings("s"), say)
    for name, cpu in models.items():
        node = ClusterNode(name, f"host-{name}", "10.0.0.1", 4.0, 1.0, 8000.0)
        roster.entries[name] = RosterEntry(node, None, {"cpu": cpu}, cores=3)
    return roster


def chosen(roster: NodeRoster, comparison: str = "i", **fields: Any) -> str:
    avoided = fields.pop("avoided", ())
    found = roster.places_for(CellBudget(**fields), 1000.0, comparison, avoided)
    assert found is not None
    return found[NODE_LABEL]


def test_a_cell_waits_for_its_kind_of_hardware_while_a_node_of_it_is_silent() -> None:
    roster = roster_of(a="EPYC", b="Xeon")
    kinds = {each: chosen(roster, each) for each in map(str, range(30))}
    roster.entries["b"].suspected_until = time.monotonic() + 60.0
    for each, where in kinds.items():
        found = roster.places_for(CellBudget(), 1000.0, each, ())
        assert (found is None) == (where == "in(b)")


def test_cells_of_one_instance_go_to_one_kind_of_hardware() -> None:
    roster = roster_of(a="EPYC", b="Xeon", c="EPYC")
    found = {comparison: chosen(roster, comparison) for comparison in map(str, range(30))}
    # Both kinds get some of the instances, and always all nodes of the kind.
    assert set(found.values()) == {"in(a,c)", "in(b)"}
    assert all(chosen(roster, comparison) == where for comparison, where in found.items())
    # A lost node moves no instance between the kinds that are left.
    del roster.entries["b"]
    assert {chosen(roster, each) for each in found} == {"in(a,c)"}


def test_an_avoided_node_is_left_out_where_there_is_another() -> None:
    roster = roster_of(a="EPYC", c="EPYC")
    assert chosen(roster, avoided={"a"}) == "in(c)"
    assert chosen(roster, avoided={"a", "c"}) == "in(a,c)"
    roster.entries["c"].suspected_until = time.monotonic() + 60.0
    assert chosen(roster) == "in(a)"
    roster.entries["a"].suspected_until = time.monotonic() + 60.0
    # Nobody answers: the cell waits until Ray knows more, and is not sent to a dead node.
    assert roster.places_for(CellBudget(), 1000.0, "i", ()) is None
    roster.entries["c"].suspected_until = 0.0
    assert chosen(roster) == "in(c)"
    assert roster.others("a") and not roster_of(a="EPYC", b="Xeon").others("a")


def test_room_is_that_of_an_idle_node() -> None:
    roster = roster_of(a="EPYC")
    assert chosen(roster, threads=3, gpus=1) == "in(a)"
    # Ray gives away four CPUs there, but processes may use three cores.
    with pytest.raises(ClusterError, match="no node that is left has room for a cell with 4 thr"):
        chosen(roster, threads=4)
    with pytest.raises(NoFittingNodeError, match="has room"):
        chosen(roster, gpus=2)
    assert roster.memory_per_core_mb == 2000.0 and roster.total_cpus == 4


def test_a_node_is_set_aside_after_failures_in_a_row() -> None:
    told: list[str] = []
    roster = roster_of(told, a="EPYC", b="EPYC")
    for _ in range(2):
        roster.strike("a", "why")
    roster.worked("a", HEFT)
    for _ in range(2):
        roster.strike("a", "why")
    assert chosen(roster) == "in(a,b)"
    roster.strike("a", "no process can be started")
    assert chosen(roster) == "in(b)" and "a" in roster.refused
    assert told == [
        "node host-a (10.0.0.1, a) is set aside: 3 cells in a row failed there "
        "(no process can be started)"
    ]
    for _ in range(3):
        roster.strike("b", "why")
    with pytest.raises(ClusterError, match="no node of the cluster can run cells"):
        chosen(roster)


def test_a_solver_that_works_on_a_node_hides_no_other_that_keeps_failing_there() -> None:
    """The failures of ``hgnn`` are in a row, whatever else is run in between."""
    told: list[str] = []
    roster = roster_of(told, a="EPYC", b="EPYC")
    for _ in range(2):
        roster.strike("a", "signal: ended by signal 6", HGNN)
        roster.worked("a", HEFT)
        roster.worked("a", VERIFY)
    assert chosen(roster) == "in(a,b)"
    roster.strike("a", "signal: ended by signal 6", HGNN)
    assert chosen(roster) == "in(b)" and "a" in roster.refused
    assert told == [
        "node host-a (10.0.0.1, a) is set aside: 3 cells of hgnn in a row failed there "
        "(signal: ended by signal 6)"
    ]
    # The same work in between shows that the node can do it; work of no solver has no name.
    for work in (HGNN, HGNN, None, VERIFY, VERIFY):
        roster.strike("b", "why", work)
    roster.worked("b", HGNN)
    for work in (HGNN, HGNN, None, None):
        roster.strike("b", "why", work)
    assert chosen(roster) == "in(b)"
    roster.strike("b", "why", VERIFY)
    assert told[1] == "node host-b (10.0.0.1, b) is set aside: 3 cells in a row failed there (why)"


def test_cells_that_wait_for_cores_are_announced_once() -> None:
    told: list[str] = []
    roster = roster_of(told, a="EPYC")
    for seconds in (29.0, 31.0, 61.0):
        roster.note_wait(roster.entries["a"], 2, seconds)
    assert len(told) == 1 and told[0].startswith(
        "node host-a (10.0.0.1, a): 2 cells have waited for cores for 31 s: other processes hold"
    )
    for seconds in (0.0, 40.0):
        roster.note_wait(roster.entries["a"], 1, seconds)
    assert len(told) == 2
