"""The text of a certificate of the cut, which names its method and the numbers that it needs.

    cut_counting    nothing: degrees, parts and components of the instance are enough
    cut_trees       roots and sizes of the trees of a packing, and the first one that counts
    cut_spreading   rounds of lengths, each with roots, sizes and multipliers
    cut_sdp         rows with multipliers, those of the total and of nodes, and a diagonal

Trees and multipliers are those of the problem without small components (``cut_problem``).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from optbench.errors import OptbenchError
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.cut_rows import CutRows, rows_of_keys
from optbench.shapes.gnn_training_bound.cut_sdp_proof import MOST_ROWS, CutMultipliers
from optbench.shapes.gnn_training_bound.packed_numbers import (
    packed,
    packed_rising,
    unpacked,
    unpacked_rising,
)
from optbench.shapes.gnn_training_bound.spreading_lp import (
    LENGTH_ONE,
    MOST_ROUNDS,
    LengthRound,
)
from optbench.shapes.gnn_training_bound.tree_packing import MOST_TREES, TreePacking

COUNTING, TREES, SPREADING, SDP = "cut_counting", "cut_trees", "cut_spreading", "cut_sdp"
CutProof: TypeAlias = TreePacking | list[LengthRound] | CutMultipliers | None


def write_certificate(problem: CutProblem, proof: CutProof) -> str:
    """Return the certificate as JSON; None stands for counting."""
    if proof is None:
        fields: dict[str, Any] = {"method": COUNTING}
    elif isinstance(proof, TreePacking):
        trees = {"roots": _ints(proof.roots), "sizes": _ints(proof.sizes)}
        fields = {"method": TREES, **trees, "first": proof.first}
    elif isinstance(proof, list):
        fields = {"method": SPREADING, "rounds": [_round_fields(each) for each in proof]}
    else:
        fields = {"method": SDP, **_multiplier_fields(problem, proof)}
    return json.dumps(fields, separators=(",", ":"))


def _ints(values: list[int]) -> str:
    return packed(np.array(values, dtype=np.int64))


def _round_fields(given: LengthRound) -> dict[str, Any]:
    lists = {name: _ints(getattr(given, name)) for name in ("roots", "sizes", "prices")}
    return {"lengths": packed(given.lengths), **lists}


def _multiplier_fields(problem: CutProblem, given: CutMultipliers) -> dict[str, Any]:
    keys = CutRows(given.kind, given.nodes, np.zeros(0)).keys(problem.num_nodes)
    order = np.argsort(keys, kind="stable")
    return {
        "rows": packed_rising(keys[order]),
        "prices": packed(given.price[order]),
        "total": given.total,
        "node": packed(given.node),
        "trees": [_round_fields(each) for each in given.trees],
        "diagonal": packed(given.diagonal),
    }


def read_certificate(text: str, problem: CutProblem) -> tuple[str, CutProof]:
    """Return method and proof of an untrusted certificate, whose numbers are not checked yet."""
    try:
        fields = json.loads(text)
        method = fields["method"]
        if method == COUNTING:
            return method, None
        if method == TREES:
            roots, sizes = (unpacked(fields[name], MOST_TREES) for name in ("roots", "sizes"))
            return method, TreePacking(roots.tolist(), sizes.tolist(), _first(fields["first"]))
        if method == SPREADING:
            return method, _rounds(fields["rounds"], problem)
        if method == SDP:
            return method, _multipliers(fields, problem)
        raise ValueError(f"its method is {method!r:.40}")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error) as error:
        raise OptbenchError(f"the certificate cannot be read ({error})") from None


def _first(given: Any) -> int:
    if type(given) is not int or given < 0:
        raise ValueError(f"first is {given!r:.20}; it must be a whole number from 0")
    return given


def _rounds(given: list[Any], problem: CutProblem) -> list[LengthRound]:
    if len(given) > MOST_ROUNDS:
        raise ValueError(f"{len(given)} rounds; there are at most {MOST_ROUNDS}")
    return [_round(each, problem) for each in given]


def _round(fields: Mapping[str, Any], problem: CutProblem) -> LengthRound:
    lengths = unpacked(fields["lengths"], problem.num_edges)
    if len(lengths) != problem.num_edges or ((lengths < 1) | (lengths > 1 + LENGTH_ONE)).any():
        raise ValueError(f"a round needs lengths from 1 to {1 + LENGTH_ONE} of every edge")
    most = problem.num_nodes
    lists = [unpacked(fields[name], most).tolist() for name in ("roots", "sizes", "prices")]
    if len({len(each) for each in lists}) > 1:
        raise ValueError("roots, sizes and prices of a round differ in number")
    return LengthRound(lengths, *lists)


def _multipliers(fields: Mapping[str, Any], problem: CutProblem) -> CutMultipliers:
    rows = rows_of_keys(unpacked_rising(fields["rows"], MOST_ROWS), problem.num_nodes)
    prices = _exactly(fields["prices"], rows.count)
    total, n = fields["total"], problem.num_nodes
    if type(total) is not int:
        raise ValueError(f"total is {total!r:.20}")
    node, diagonal = _exactly(fields["node"], n), _exactly(fields["diagonal"], n)
    trees = _rounds(fields["trees"], problem)
    return CutMultipliers(rows.kind, rows.nodes, prices, total, node, trees, diagonal)


def _exactly(text: str, count: int) -> Ints:
    values = unpacked(text, count)
    if len(values) != count:
        raise ValueError(f"{len(values)} packed numbers; there must be {count}")
    return values
