"""Drawn histories of speeds and drawn links of GNN training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optbench.api import load_target
from optbench.errors import ParameterError
from optbench.plugins.problems._training_devices import drawn_speeds
from optbench.shapes.gnn_training.training_data import GnnTraining

GRID = "gnn_training:graph=grid,nodes=64,devices=2:1:1,parts=6,minimize=step"


def drawn(more: str, seed: int = 0) -> GnnTraining:
    data: GnnTraining = load_target(GRID + more, seed=seed).data
    return data


def test_a_history_has_slowdowns_within_the_drop() -> None:
    speeds = drawn(",history=200,drop=0.5").speeds
    assert speeds.shape == (200, 3)
    # At full speed the jitter takes up to 5 %, a slowdown 15 to 50 % besides.
    assert 0.95 * 0.5 <= speeds.min() < 0.7
    assert speeds.max() <= 1.0
    slowed = speeds < 0.95 * 0.86
    # The chain is slowed 0.15 / 0.55 = 27 % of the time, and stays so for 2.5 windows in the mean.
    assert 0.15 < slowed.mean() < 0.4
    begins = (slowed[1:] & ~slowed[:-1]).sum()
    assert 1.7 < slowed.sum() / begins < 3.5


def test_links_are_drawn_alike_in_both_directions() -> None:
    links = drawn(",link_spread=4,link_gb_per_s=2").links.gb_per_s
    assert np.array_equal(links, links.T)
    apart = links[~np.eye(3, dtype=bool)]
    assert 0.5 <= apart.min() < apart.max() <= 8.0


def test_what_is_drawn_follows_the_seed_and_leaves_the_graph() -> None:
    one, again, other = drawn(",history=4"), drawn(",history=4"), drawn(",history=4", seed=1)
    assert np.array_equal(one.speeds, again.speeds)
    assert not np.array_equal(one.speeds, other.speeds)
    plain = drawn("")
    assert plain.speeds.size == 0
    assert np.array_equal(plain.links.gb_per_s, one.links.gb_per_s)
    assert np.array_equal(plain.graph.tail, one.graph.tail)


def test_devices_are_drawn_apart_from_the_graph_and_its_changes() -> None:
    """The stream 1 of a seed changes graphs; devices have the stream 2."""
    found = drawn(",history=4,drop=0.5", seed=7).speeds
    streams = [np.random.default_rng((7, k)) for k in (1, 2)]
    changes, devices = (drawn_speeds(3, 4, 0.5, rng) for rng in streams)
    assert np.array_equal(found, devices)
    assert not np.array_equal(found, changes)


@pytest.mark.parametrize("wrong", ["history=-1", "drop=1.0", "link_spread=0.5"])
def test_values_out_of_range_are_refused(wrong: str) -> None:
    with pytest.raises(ParameterError, match=wrong.partition("=")[0]):
        drawn(f",{wrong}")


def test_stated_speeds_are_not_drawn_over(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text('{"devices": [{"profile": "L4"}, {"profile": "L4"}], "speeds": [[1.0, 0.5]]}')
    text = f"gnn_training:graph=grid,nodes=64,devices={file},parts=4,minimize=step"
    with pytest.raises(ParameterError, match="states the speeds"):
        load_target(f"{text},history=3")
