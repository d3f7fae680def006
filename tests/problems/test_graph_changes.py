"""Graphs that change: what is deleted and inserted, and the parts that are carried over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optbench.errors import ParameterError
from optbench.plugins.discovery import load_problem
from optbench.plugins.problems._graph_changes import changed_graph
from optbench.plugins.problems._graph_families import FAMILIES
from optbench.plugins.problems._metis_limits import default_partition


def made(spec: str, seed: int = 0) -> Any:
    return load_problem(f"gnn_training:{spec}").instance(seed)


def pairs(graph: Any) -> set[tuple[int, int]]:
    return set(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))


def test_a_tenth_of_a_mesh() -> None:
    """Of 1,000 nodes 50 go and 50 come; edges between nodes that stay were there, or close a
    walk of two steps.
    """
    before = FAMILIES["mesh"].draw(1000, 0.0, np.random.default_rng(0))
    after = changed_graph(before, 0.1, np.random.default_rng(1))
    assert after.graph.num_nodes == 1000 and (after.origin[-50:] == -1).all()
    stayed = after.origin[:950]
    assert (np.diff(stayed) > 0).all()
    old = pairs(before)
    neighbours: dict[int, set[int]] = {}
    for a, b in old:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    new = 0
    for a, b in pairs(after.graph):
        if b < 950:
            one, other = int(stayed[a]), int(stayed[b])
            known = (one, other) in old
            assert known or neighbours[one] & neighbours[other]
            new += not known
    # 5 % of about 3,000 edges, less those that were there.
    assert 60 <= new <= 150


def test_parts_are_carried_over_and_the_seed_decides() -> None:
    before, after = made("graph=mesh,nodes=200").data, made("graph=mesh,nodes=200,changed=0.1").data
    part = default_partition(before.graph, 4)
    kept = after.previous >= 0
    assert kept.sum() == 190 and len(after.previous) == after.graph.num_nodes == 200
    assert set(after.previous[kept].tolist()) <= set(part.tolist())
    again, other = (made("graph=mesh,nodes=200,changed=0.1", seed) for seed in (0, 1))
    assert again.hash == made("graph=mesh,nodes=200,changed=0.1").hash != other.hash


def test_graphs_that_do_not_change_keep_their_form() -> None:
    """No entry of the file names what came later."""
    instance = made("graph=grid,nodes=9,parts=2")
    assert "previous" not in instance.shape.write(instance)["data"]
    changed = made("graph=grid,nodes=9,parts=2,changed=0.3")
    document = changed.shape.write(changed)
    assert len(document["data"]["previous"]) == 9
    assert changed.shape.read(document).hash == changed.hash


@pytest.mark.parametrize("share", ["-0.1", "1"])
def test_shares_that_cannot_be_are_refused(share: str) -> None:
    with pytest.raises(ParameterError, match="changed is"):
        made(f"graph=grid,changed={share}")
