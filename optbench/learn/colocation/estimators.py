"""Estimators by name, made from public facts alone.

Those that know families (networks, trees) also learn of a type from new relatives of it.

Networks are trained when they are first asked for, and kept in the workspace by a hash of what they
were trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.learn.colocation.look_up import Frozen, LookUp
from optbench.learn.colocation.matrix_completion import MatrixCompletion
from optbench.learn.colocation.partner_mean import PartnerMean
from optbench.learn.colocation.row_tables import KnownRows, RowModel
from optbench.shapes.colocation.colocation_process import PublicFacts
from optbench.shapes.colocation.estimates import Estimator
from optbench.workspace import kept_folders

if TYPE_CHECKING:
    from optbench.learn.colocation.estimator_settings import Kind
    from optbench.learn.colocation.network_files import HashedFacts, TrainedNetworks
    from optbench.learn.colocation.network_rows import NetworkRows

# Where trained networks are kept, within the store of the workspace.
NETWORKS = "networks"


def partner_mean(facts: PublicFacts) -> LookUp:
    """The mean over the known types, with measured cells replaced by their means."""
    return LookUp(facts, PartnerMean.of(KnownRows.of(facts)))


def frozen_partner_mean(facts: PublicFacts) -> Frozen:
    """The mean over the known types, never updated."""
    return Frozen(facts, PartnerMean.of(KnownRows.of(facts)))


def matrix_completion(facts: PublicFacts) -> LookUp:
    """Low-rank matrix completion, updated by what has been seen."""
    return LookUp(facts, MatrixCompletion.plain(KnownRows.of(facts)))


def related_completion(facts: PublicFacts) -> LookUp:
    """Matrix completion that also uses measured types of the family: what ``networks`` have without
    the networks.
    """
    return LookUp(facts, MatrixCompletion.plain(KnownRows.of(facts)), relatives=True)


def additive_completion(facts: PublicFacts) -> LookUp:
    """Additive matrix completion: two effects per new type, updated by what has been seen."""
    return LookUp(facts, MatrixCompletion.additive(KnownRows.of(facts)))


def trees(facts: PublicFacts) -> LookUp:
    """Boosted trees with the inputs of the networks."""
    from optbench.learn.colocation.boosted_trees import BoostedTrees

    return LookUp(facts, BoostedTrees.of(KnownRows.of(facts)), relatives=True)


def networks(facts: PublicFacts) -> LookUp:
    """First sight, and refinement by what has been seen."""
    from optbench.learn.colocation.estimator_settings import KINDS_BY_VALIDATION

    return LookUp(facts, trained_networks(facts, KINDS_BY_VALIDATION), relatives=True)


def frozen_networks(facts: PublicFacts) -> Frozen:
    """First sight alone: nothing that is measured changes an estimate."""
    from optbench.learn.colocation.estimator_settings import KINDS_BY_VALIDATION

    return Frozen(facts, trained_networks(facts, KINDS_BY_VALIDATION))


def trained_networks(facts: PublicFacts, kinds: tuple[Kind, Kind], seed: int = 0) -> NetworkRows:
    """The networks of these kinds for these facts: those of this process or of the workspace, or
    newly trained ones.
    """
    from optbench.learn.colocation.estimator_settings import EstimatorSettings
    from optbench.learn.colocation.network_files import HashedFacts, TrainedNetworks

    return _trained(TrainedNetworks(HashedFacts.of(facts), kinds, EstimatorSettings(), seed))


def networks_or_completion(facts: PublicFacts, kinds: tuple[Kind, Kind], seed: int = 0) -> RowModel:
    """The networks; where too little is public to train them, the low-rank completion beneath."""
    from optbench.learn.colocation.network_rows import is_enough

    rows = KnownRows.of(facts)
    if not is_enough(rows):
        return MatrixCompletion.plain(rows)
    return trained_networks(facts, kinds, seed)


def networks_of_file(path: Path, facts: PublicFacts) -> NetworkRows:
    """The networks of a checkpoint that was trained on these facts."""
    from optbench.learn.colocation.network_files import HashedFacts

    return _read(path, path.stat().st_mtime_ns if path.exists() else 0, HashedFacts.of(facts))


@lru_cache(maxsize=4)
def _trained(wanted: TrainedNetworks) -> NetworkRows:
    from optbench.learn.colocation.network_files import trained_or_kept

    return trained_or_kept(kept_folders(NETWORKS), wanted)


@lru_cache(maxsize=4)
def _read(path: Path, _modified_ns: int, known: HashedFacts) -> NetworkRows:
    from optbench.learn.colocation.network_files import load_networks

    return load_networks(path, known.facts)


MAKERS: dict[str, Callable[[PublicFacts], Estimator]] = {
    "partner_mean": partner_mean,
    "frozen_partner_mean": frozen_partner_mean,
    "matrix_completion": matrix_completion,
    "related_completion": related_completion,
    "additive_completion": additive_completion,
    "trees": trees,
    "networks": networks,
    "frozen_networks": frozen_networks,
}


def estimator_named(name: str, facts: PublicFacts) -> Estimator:
    """Return a new estimator of a kind."""
    return MAKERS[name](facts)
