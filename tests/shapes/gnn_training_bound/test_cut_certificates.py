"""Certificates of the cut: what they prove again, and corrupted ones."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from optbench.compiling.kernel_table import KERNELS
from optbench.errors import OptbenchError
from optbench.shapes.gnn_training_bound.cut_bound import METHODS, cut_bounds, prove_cut
from optbench.shapes.gnn_training_bound.cut_certificate import read_certificate, write_certificate
from optbench.shapes.gnn_training_bound.cut_problem import cut_problem
from optbench.shapes.gnn_training_bound.cut_rows import APART, ODD, TRIANGLE
from optbench.shapes.gnn_training_bound.cut_sdp import sdp_multipliers
from optbench.shapes.gnn_training_bound.cut_sdp_proof import (
    ONE,
    CutMultipliers,
    is_surely_semidefinite,
    proven_cut,
)
from optbench.shapes.gnn_training_bound.packed_numbers import (
    packed,
    packed_rising,
    unpacked,
    unpacked_rising,
)
from tests.shapes.gnn_training_bound.enumerated_cuts import (
    cut_data,
    cut_instance,
    least_cut,
    random_cut,
)

# A wheel: node 0 and a circle of seven around it.
WHEEL = sorted([(0, i) for i in range(1, 8)] + [(i, i + 1) for i in range(1, 7)] + [(1, 7)])
PAIR, TRIO = cut_data(8, np.array(WHEEL), 2, 4), cut_data(8, np.array(WHEEL), 3, 3)


def multipliers(data: Any) -> CutMultipliers:
    return sdp_multipliers(cut_problem(data), float("inf"), most_rounds=3)


PAIR_SDP, TRIO_SDP = multipliers(PAIR), multipliers(TRIO)


@pytest.mark.parametrize("data", [PAIR, TRIO, random_cut(11)], ids=["pair", "trio", "random"])
def test_a_certificate_proves_the_bound_again(data: Any) -> None:
    instance = cut_instance(data)
    for bound in cut_bounds(data, 2.0):
        again = prove_cut(data, bound.certificate or "")
        assert (again.value, again.source, again.proof) == (bound.value, bound.source, bound.proof)
        assert instance.shape.labelled(instance, bound) == bound


@pytest.mark.parametrize(("data", "given"), [(PAIR, PAIR_SDP), (TRIO, TRIO_SDP)])
def test_text_keeps_multipliers(data: Any, given: CutMultipliers) -> None:
    problem = cut_problem(data)
    method, read = read_certificate(write_certificate(problem, given), problem)
    assert method == "cut_sdp" and isinstance(read, CutMultipliers)
    assert proven_cut(problem, read) == proven_cut(problem, given)
    assert len(read.price) == len(given.price) > 0


def test_a_diagonal_that_is_too_small_is_refused() -> None:
    lower = PAIR_SDP.diagonal.copy()
    lower -= ONE // 4
    with pytest.raises(OptbenchError, match="not proved positive semidefinite"):
        proven_cut(cut_problem(PAIR), replace(PAIR_SDP, diagonal=lower))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": [ODD]}, "do not hold for this number of parts"),
        ({"kind": [7]}, "do not hold for this number of parts"),
        ({"nodes": [[0, 1, 8]]}, "a node that is not there"),
        ({"nodes": [[-1, 1, 2]]}, "a node that is not there"),
        ({"nodes": [[0, 1, 0]]}, "names a node twice"),
        ({"price": [-1]}, "outside 0 to"),
        ({"total": -1}, "outside 0 to"),
        ({"node": [1 << 60] * 8}, "outside 0 to"),
        ({"node": [0]}, "a multiplier for each of 8 nodes"),
        ({"diagonal": [ONE] * 9}, "a multiplier for each of 8 nodes"),
    ],
)
def test_false_multipliers_are_refused(changes: dict[str, Any], words: str) -> None:
    """One triangle row on three parts, with a field changed."""
    zero = np.zeros(8, dtype=np.int64)
    one_row = np.array([TRIANGLE]), np.array([[0, 1, 2]]), np.array([ONE])
    plain = CutMultipliers(*one_row, 0, zero, [], zero + 9 * ONE)
    arrays: Any = {k: v if k == "total" else np.array(v, np.int64) for k, v in changes.items()}
    proven_cut(cut_problem(TRIO), plain)
    with pytest.raises(OptbenchError, match=words):
        proven_cut(cut_problem(TRIO), replace(plain, **arrays))


def test_any_accepted_multipliers_prove_a_bound_that_holds() -> None:
    """Random changes of multipliers are refused, or prove no more than the least cut."""
    rng, accepted, refused = np.random.default_rng(5), 0, 0
    for data, given in ((PAIR, PAIR_SDP), (TRIO, TRIO_SDP)):
        problem, least = cut_problem(data), least_cut(data)
        for _ in range(150):
            changed = replace(
                given,
                price=_shaken(given.price, rng),
                diagonal=_shaken(given.diagonal, rng),
                total=int(given.total * rng.uniform(0, 2)),
                node=_shaken(given.node + int(rng.integers(0, ONE // 4)), rng),
            )
            try:
                value = proven_cut(problem, changed)
            except OptbenchError:
                refused += 1
                continue
            accepted += 1
            assert value <= least
    assert accepted > 30 and refused > 30


def _shaken(values: Any, rng: np.random.Generator) -> Any:
    share = rng.choice([0.0, 0.01, 0.3])
    return np.rint(values * rng.uniform(1 - share, 1 + 2 * share, len(values))).astype(np.int64)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"method":"cut_magic"}',
        '{"method":"cut_trees","roots":"","sizes":""}',
        '{"method":"cut_trees","roots":7,"sizes":7}',
        '{"method":"cut_trees","roots":"eJwDAAAAAAE=","sizes":"eJwDAAAAAAE=","first":-1}',
        '{"method":"cut_spreading","rounds":[{}]}',
        '{"method":"cut_sdp"}',
    ],
)
def test_unreadable_certificates_are_refused(text: str) -> None:
    with pytest.raises(OptbenchError, match="the certificate cannot be read"):
        prove_cut(PAIR, text)


def test_trees_of_other_graphs_are_refused_or_prove_little() -> None:
    """A root that is not there is refused; a tree of too many nodes adds nothing."""
    trees = {"method": "cut_trees", "first": 0, "sizes": packed(np.array([9]))}
    beyond = json.dumps({**trees, "roots": packed(np.array([8]))})
    with pytest.raises(OptbenchError, match="a tree at node 8, which is not there"):
        prove_cut(PAIR, beyond)
    assert prove_cut(PAIR, json.dumps({**trees, "roots": packed(np.array([0]))})).value == 0


def test_forged_certificates_of_every_method_are_refused_or_hold() -> None:
    """Multipliers times a hundred, sizes of trees above their number of nodes, the certificate of
    a graph with more edges: the core computes the value itself.
    """
    complete = cut_data(8, np.array(list(combinations(range(8), 2))), 2, 4)
    least, labels = least_cut(PAIR), set()
    for data in (PAIR, complete):
        for bound in cut_bounds(data, 1.0):
            fields = json.loads(bound.certificate or "")
            for forged in _forgeries(fields):
                instance = cut_instance(PAIR)
                claim = replace(bound, value=1000.0, certificate=json.dumps(forged))
                # A claim above what is proved is a solver's.
                assert instance.shape.labelled(instance, claim).proof == "solver"
                try:
                    proven = prove_cut(PAIR, json.dumps(forged))
                except OptbenchError:
                    continue
                assert proven.value <= least
                labels.add(proven.source)
    assert labels >= {"cut_counting", "cut_trees"}


def _forgeries(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields, and the same with each list of numbers a hundred times as large."""
    out = [fields]
    for name, text in fields.items():
        if isinstance(text, str) and name != "method":
            out.append({**fields, name: packed(unpacked(text, 1 << 16) * 100)})
    if "total" in fields:
        out.append({**fields, "total": fields["total"] * 100})
    for each in fields.get("rounds", []):
        prices = packed(unpacked(each["prices"], 1 << 16) * 100)
        out.append({**fields, "rounds": [{**each, "prices": prices}]})
    return out


def test_a_matrix_of_too_many_nodes_is_refused_before_it_is_made() -> None:
    """A path of 5,000 nodes: its matrix would have 25,000,000 entries."""
    path = np.column_stack([np.arange(4_999), np.arange(1, 5_000)])
    problem = cut_problem(cut_data(5_000, path, 2, 2_500))
    zero = np.zeros(5_000, dtype=np.int64)
    none = np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.zeros(0, np.int64)
    with pytest.raises(OptbenchError, match="a matrix of 5,000 nodes"):
        proven_cut(problem, CutMultipliers(*none, 0, zero, [], zero))


def test_every_damaged_certificate_is_refused_or_holds() -> None:
    """One character of the text is replaced at a time."""
    rng, least = np.random.default_rng(2), least_cut(PAIR)
    for bound in cut_bounds(PAIR, 1.0):
        text = bound.certificate or ""
        for at in rng.integers(0, len(text), 60).tolist():
            damaged = text[:at] + chr(int(rng.integers(32, 127))) + text[at + 1 :]
            try:
                assert prove_cut(PAIR, damaged).value <= least
            except OptbenchError as error:
                assert str(error)


def test_packed_numbers_are_whole() -> None:
    values = np.array([0, 3, 1 << 40, 5], dtype=np.int64)
    assert unpacked(packed(values), 4).tolist() == values.tolist()
    rising = np.array([2, 3, 9])
    assert unpacked_rising(packed_rising(rising), 3).tolist() == [2, 3, 9]
    with pytest.raises(ValueError, match="there may be 24"):
        unpacked(packed(values), 3)
    with pytest.raises(ValueError, match="do not"):
        unpacked_rising(packed(np.array([2, 0])), 2)


def test_semidefinite_by_hand() -> None:
    """[[2, −1], [−1, 2]] has the eigenvalues 1 and 3; with ones on the diagonal 0 and 2."""
    assert is_surely_semidefinite(np.array([[2.0, 0.0], [-1.0, 2.0]]))
    assert not is_surely_semidefinite(np.array([[1.0, 0.0], [-1.0, 1.0]]))
    assert not is_surely_semidefinite(np.array([[1.0, 0.0], [-2.0, 1.0]]))


def test_every_kind_of_row_occurs() -> None:
    assert set(PAIR_SDP.kind.tolist()) <= {TRIANGLE, ODD}
    assert APART in TRIO_SDP.kind
    assert "auto" in METHODS


def test_compiled_code_has_one_signature_that_the_table_names() -> None:
    """Otherwise it would be compiled while a clock runs."""
    for data in (PAIR, TRIO):
        instance = cut_instance(data)
        assert instance.shape.kernels(instance) == {"cut_bounds"}
        cut_bounds(data, 1.0)
        assert instance.formulation.start is not None
    for entry in KERNELS["cut_bounds"].entries:
        assert entry.function.signatures == [entry.signature], entry.name
