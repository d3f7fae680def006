"""Certified lower bounds on the cut: counting, trees and a semidefinite programme; the best wins.

Every bound is proved again from its certificate in whole numbers (``counting_bound``,
``tree_packing``, ``spreading_lp``, ``cut_sdp_proof``) and rounded up, since cuts are whole. Trees
come at every size; the LP of trees where there are few edges; the semidefinite programme up to
``MOST_SDP_NODES`` nodes, because its proof factorises a dense matrix, and where the time is enough
for it: before that, trees prove more.

The label of a bound says what its proof rests on: counting and trees are ``combinatorial``, the LP
of trees is ``exact-lp``, and the semidefinite programme ``verified-sdp``, whose value is summed in
whole numbers, but whose matrix is positive semidefinite by a factorisation in floats with a margin
for every rounding of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction

from optbench.errors import OptbenchError
from optbench.model.result import Bound, Proof
from optbench.shapes.gnn_training.training_data import GnnTraining
from optbench.shapes.gnn_training_bound.counting_bound import counted_cut
from optbench.shapes.gnn_training_bound.cut_certificate import (
    CutProof,
    read_certificate,
    write_certificate,
)
from optbench.shapes.gnn_training_bound.cut_problem import (
    CutProblem,
    cut_problem,
    without_small_components,
)
from optbench.shapes.gnn_training_bound.cut_sdp import sdp_multipliers
from optbench.shapes.gnn_training_bound.cut_sdp_proof import (
    MOST_SDP_NODES,
    CutMultipliers,
    proven_cut,
)
from optbench.shapes.gnn_training_bound.spreading_lp import proven_rounds, spreading_rounds
from optbench.shapes.gnn_training_bound.tree_packing import (
    TreePacking,
    packed_trees,
    proven_packing,
)

MOST_LP_EDGES = 2000
# Seconds of the semidefinite programme per square of the number of nodes, before it is worth it.
SDP_S = 8e-6
# Shares of the time; the semidefinite programme has the rest.
TREE_SHARE, LP_SHARE = 0.15, 0.1
CHEAP_S = 0.5
# Trees, and rounds of the semidefinite programme, of the bound in a formulation.
FIXED_TREES, FIXED_ROUNDS, MOST_FIXED_NODES = 300, 30, 400
METHODS = ("auto", "cheap", "counting", "trees", "spreading", "sdp")


def cut_bounds(
    data: GnnTraining, time_limit_s: float, method: str = "auto", known: int | None = None
) -> list[Bound]:
    """Return certified bounds on the cut, best first; ``known`` is the cut of a decision."""
    whole = cut_problem(data)
    problem = without_small_components(whole)
    found = [_proved(data, whole, problem, None)]
    if data.num_parts == 1 or problem.num_nodes <= problem.max_part:
        return found
    for search in _searches(problem, time_limit_s, method):
        if known is not None and max(each.value for each in found) >= known:
            break
        found.append(_proved(data, whole, problem, search(known)))
    return sorted(found, key=lambda each: -each.value)


def fixed_work_bound(data: GnnTraining, known: int | None = None) -> int:
    """Return a certified bound on the cut of a small graph that takes the same work every time; the
    search ends where it proves the cut of a decision.
    """
    whole = cut_problem(data)
    problem = without_small_components(whole)
    proofs: list[CutProof] = [None]
    if data.num_parts > 1 and problem.num_nodes > problem.max_part:
        proofs.append(packed_trees(problem, math.inf, most=FIXED_TREES))
        if problem.num_nodes <= MOST_FIXED_NODES:
            proofs.append(sdp_multipliers(problem, math.inf, known, FIXED_ROUNDS))
    return max(math.ceil(_value(whole, problem, proof)[0]) for proof in proofs)


Search = Callable[[int | None], CutProof]


def _searches(problem: CutProblem, time_limit_s: float, method: str) -> list[Search]:
    """Return the methods that are wanted and fit, each with its share of the time."""
    deadline = time.perf_counter() + time_limit_s
    fits = problem.num_nodes <= MOST_SDP_NODES and method in ("auto", "sdp")
    if method == "auto":
        fits = fits and SDP_S * problem.num_nodes**2 <= time_limit_s
    small = problem.num_edges <= MOST_LP_EDGES and method in ("auto", "spreading")
    tree_share = TREE_SHARE if fits else 1.0 - LP_SHARE * small
    lp_share = LP_SHARE if method == "auto" else 1.0
    tree_s = CHEAP_S if method == "cheap" else time_limit_s * tree_share
    out: list[Search] = []
    if method in ("auto", "cheap", "trees"):
        out.append(lambda known: packed_trees(problem, tree_s))
    if small or method == "spreading":
        out.append(lambda known: spreading_rounds(problem, time_limit_s * lp_share))
    if fits:
        out.append(lambda known: sdp_multipliers(problem, deadline - time.perf_counter(), known))
    return out


def _proved(data: GnnTraining, whole: CutProblem, problem: CutProblem, proof: CutProof) -> Bound:
    return _bound(whole, problem, proof, write_certificate(problem, proof))


def prove_cut(data: GnnTraining, certificate: str) -> Bound:
    """Prove a bound again from the instance and a certificate."""
    whole = cut_problem(data)
    problem = without_small_components(whole)
    _, proof = read_certificate(certificate, problem)
    return _bound(whole, problem, proof, certificate)


def _bound(whole: CutProblem, problem: CutProblem, proof: CutProof, certificate: str) -> Bound:
    value, source, label = _value(whole, problem, proof)
    return Bound(float(max(0, math.ceil(value))), source, label, certificate=certificate)


def _value(
    whole: CutProblem, problem: CutProblem, proof: CutProof
) -> tuple[Fraction | int, str, Proof]:
    if proof is None:
        return counted_cut(whole), "cut_counting", "combinatorial"
    if problem.num_parts == 1:
        raise OptbenchError("one part cuts nothing; its certificate is that of counting")
    if isinstance(proof, TreePacking):
        return proven_packing(problem, proof), "cut_trees", "combinatorial"
    if isinstance(proof, CutMultipliers):
        return proven_cut(problem, proof), "cut_sdp", "verified-sdp"
    return proven_rounds(problem, proof), "cut_spreading", "exact-lp"
