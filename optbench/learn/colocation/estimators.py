"""Estimators by name, made from public facts alone."""

from __future__ import annotations

from collections.abc import Callable

from optbench.learn.colocation.look_up import Frozen, LookUp
from optbench.learn.colocation.matrix_completion import MatrixCompletion
from optbench.learn.colocation.partner_mean import PartnerMean
from optbench.learn.colocation.row_tables import KnownRows
from optbench.shapes.colocation.colocation_process import PublicFacts
from optbench.shapes.colocation.estimates import Estimator


def partner_mean(facts: PublicFacts) -> LookUp:
    """The mean over the known types, with measured cells replaced by their means."""
    return LookUp(facts, PartnerMean.of(KnownRows.of(facts)))


def frozen_partner_mean(facts: PublicFacts) -> Frozen:
    """The mean over the known types, never updated."""
    return Frozen(facts, PartnerMean.of(KnownRows.of(facts)))


def matrix_completion(facts: PublicFacts) -> LookUp:
    """Low-rank matrix completion, updated by what has been seen."""
    return LookUp(facts, MatrixCompletion.plain(KnownRows.of(facts)))


def additive_completion(facts: PublicFacts) -> LookUp:
    """Additive matrix completion: two effects per new type, updated by what has been seen."""
    return LookUp(facts, MatrixCompletion.additive(KnownRows.of(facts)))


MAKERS: dict[str, Callable[[PublicFacts], Estimator]] = {
    "partner_mean": partner_mean,
    "frozen_partner_mean": frozen_partner_mean,
    "matrix_completion": matrix_completion,
    "additive_completion": additive_completion,
}


def estimator_named(name: str, facts: PublicFacts) -> Estimator:
    """Return a new estimator of a kind."""
    return MAKERS[name](facts)
