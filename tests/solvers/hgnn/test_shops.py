"""Shops: which checkpoint is taken, and samples around the starts of a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import optbench as ob
from optbench.api import load_target
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Instance
from solvers.hgnn import Hgnn
from solvers.hgnn.network_checkpoint import NetworkCheckpoint, suited
from tests.solvers.hgnn.test_hgnn import rows, solved, value

SHOP = "jobshop:jobs=6,machines=5"
FLEXIBLE = "flexible_jobshop:jobs=5,machines=4,operations=3"
CLUSTER = "gpu_cluster:nodes=2,types=2,tasks=8"


@pytest.fixture(scope="module")
def shop() -> Instance:
    made: Instance = load_target(SHOP, 3)
    return made


def stating(features: list[str] | None) -> NetworkCheckpoint:
    about: dict[str, Any] = {} if features is None else {"features": features}
    return NetworkCheckpoint(None, {}, provenance=about)


def test_the_checkpoint_of_fewest_features_that_covers_an_instance_is_taken(
    shop: Instance,
) -> None:
    """Shops need precedence, flexible ones modes besides; an rcpsp has modes of several pools."""
    shops, chains = stating(["modes", "precedence"]), stating(["precedence"])
    anything, nothing = stating(None), stating([])
    flexible, project = load_target(FLEXIBLE), load_target("rcpsp:activities=6")
    assert suited([shops, chains, anything], shop) is chains
    assert suited([shops, chains, anything], flexible) is shops
    assert suited([anything, shops], flexible) is shops
    assert suited([shops, anything], project) is anything
    # Where none was trained on such instances, the last.
    assert suited([nothing, chains, shops], project) is shops


def test_shops_and_clusters_have_networks_of_their_own(shop: Instance) -> None:
    found = {
        spec: Hgnn().found(load_target(spec)).provenance["trained_on"][0].partition(":")[0]
        for spec in (SHOP, FLEXIBLE, CLUSTER, "rcpsp:activities=6", f"{CLUSTER},load=0.5")
    }
    assert found[SHOP] == found[FLEXIBLE] == "jobshop"
    assert {found[spec] for spec in found if spec not in (SHOP, FLEXIBLE)} == {"gpu_cluster"}


def test_samples_around_starts_are_repeatable_and_never_worse(
    shop: Instance, cluster: Instance, checkpoint: Path
) -> None:
    for instance in (shop, load_target(FLEXIBLE, 3), cluster):
        found = [solved(instance, checkpoint, samples=k, around="starts") for k in (1, 6, 60, 60)]
        values = [value(each) for each in found]
        assert values[2] <= values[1] <= values[0]
        assert values[2] < values[0]
        assert rows(found[2]) == rows(found[3])
        # The first is the network's.
        assert values[0] == value(solved(instance, checkpoint))


def test_what_samples_are_drawn_around_is_named() -> None:
    with pytest.raises(ParameterError, match="around is 'keys'; it must be one of answers, starts"):
        Hgnn(around="keys")  # type: ignore[arg-type]


def test_work_without_an_end_is_refused_around_starts(checkpoint: Path) -> None:
    """All jobs of this open stream are there at the beginning."""
    instance = load_target("geo_dc:days=0.02")
    assert "open_end" in instance.features
    with pytest.raises(UnsupportedError, match="compare whole schedules; use around=answers"):
        ob.solve(instance, Hgnn(checkpoint=str(checkpoint), samples=2, around="starts"))
