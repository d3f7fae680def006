"""Certificates of the offline bound: what they prove again, and false ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError, OptbenchError
from optbench.shapes.colocation_bound.offline_bound import offline_bounds, prove_offline
from optbench.shapes.colocation_bound.offline_certificate import (
    OfflineCertificate,
    read_certificate,
    write_certificate,
)
from optbench.shapes.colocation_bound.offline_demand import even_edges
from optbench.shapes.colocation_bound.offline_proof import OfflineMultipliers, proven_sum
from optbench.shapes.colocation_bound.offline_relaxation import in_whole_numbers, relaxation
from tests.shapes.colocation.two_gpus import ALONE, cluster
from tests.shapes.colocation_bound.bounded_traces import (
    ASLEEP_J,
    FREE,
    HELD,
    by_source,
    slow_is_cheap,
)


def test_a_certificate_proves_the_bound_again() -> None:
    data = slow_is_cheap()
    for bound in offline_bounds(data, 1, 50.0, 20.0):
        assert bound.certificate is not None
        again = prove_offline(data, 1, 50.0, bound.certificate)
        assert (again.value, again.source, again.proof) == (bound.value, bound.source, "exact-lp")


def test_a_held_value_proves_nothing_of_a_larger_one() -> None:
    data = slow_is_cheap()
    certificate = by_source(data, 50.0)[HELD].certificate or ""
    assert prove_offline(data, 1, 20.0, certificate).value <= ASLEEP_J + 9_000
    with pytest.raises(OptbenchError, match=r"holds shortfall_s at 50\.0; the instance at 50\.1"):
        prove_offline(data, 1, 50.1, certificate)
    with pytest.raises(OptbenchError, match="the instance does not hold it"):
        prove_offline(data, 1, None, certificate)
    with pytest.raises(OptbenchError, match="is of level 1; the instance is at 0"):
        prove_offline(data, 0, None, certificate)


def test_a_free_certificate_holds_whatever_is_held() -> None:
    data = slow_is_cheap()
    bound = by_source(data, None)[FREE]
    again = prove_offline(data, 1, 3.0, bound.certificate or "")
    assert (again.value, again.source) == (bound.value, FREE)


def random_multipliers(rng: np.random.Generator, jobs: int, bins: int) -> OfflineMultipliers:
    """Multipliers of one class per job, some kinds of them 0."""
    shapes = ((jobs, bins), (jobs,), *[(jobs, bins)] * 4)
    kept = rng.random(len(shapes)) < 0.6
    sizes = 10.0 ** rng.integers(-3, 3, len(shapes))
    return OfflineMultipliers(
        *(
            keep * rng.exponential(size, shape)
            for keep, size, shape in zip(kept, sizes, shapes, strict=True)
        )
    )


def test_any_multipliers_prove_a_bound_that_holds() -> None:
    # Held at 50 s the optimum of the LP is 9,000 J beyond sleep.
    rng, data = np.random.default_rng(3), slow_is_cheap()
    edges = even_edges(data, 5)
    for _ in range(150):
        given = random_multipliers(rng, 1, len(edges) - 1)
        text = write_certificate(OfflineCertificate(1, 50.0, 9, edges, given))
        assert prove_offline(data, 1, 50.0, text).value <= ASLEEP_J + 9_000


def test_multipliers_of_any_size_prove_no_more_than_the_least_shortfall() -> None:
    # Two services, one GPU that they cannot share: one of them lacks 100 s.
    rng, found = np.random.default_rng(4), []
    data = cluster([(ALONE, 0.0, 1.0, 0.0, 100.0)] * 2)
    edges = even_edges(data, 1)
    bins = len(edges) - 1
    zero = np.zeros((2, bins))
    for _ in range(50):
        services = 10.0 ** rng.uniform(-2, 4) * rng.uniform(0.8, 1, (2, bins))
        services[:, 1:] = 0.0  # nothing is needed after the first epoch
        given = OfflineMultipliers(zero, np.zeros(2), zero, zero, services, zero)
        text = write_certificate(OfflineCertificate(0, None, 9, edges, given))
        found.append(prove_offline(data, 0, None, text).value)
    assert 80 < max(found) <= 100


def test_multipliers_below_0_prove_nothing() -> None:
    data = slow_is_cheap()
    edges = even_edges(data, 2)
    whole = in_whole_numbers(relaxation(data, edges, 1, 50.0))
    zeros = [np.zeros(shape, dtype=object) for shape in ((1, len(edges) - 1), (1,))]
    given = OfflineMultipliers(zeros[0], zeros[1] - 1, *[zeros[0]] * 4)
    with pytest.raises(OptbenchError, match="below 0, of work"):
        proven_sum(whole, given, True)


def test_multipliers_that_price_shortfall_need_a_held_value() -> None:
    data = slow_is_cheap()
    held = read_certificate(by_source(data, 50.0)[HELD].certificate or "", data)
    text = write_certificate(replace(held, held_shortfall_s=None))
    with pytest.raises(OptbenchError, match="prices shortfall, and none is held"):
        prove_offline(data, 1, None, text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "other"}, "its method is 'other'"),
        ({"level": 2}, "level 2"),
        ({"level": True}, "level True"),
        ({"groups": 0}, "groups 0"),
        ({"held": -1.0}, r"held at -1\.0"),
        ({"held": float("nan")}, "held at nan"),
        ({"edges": [0, 8, 4]}, "edges of bins must rise"),
        ({"edges": [0, 4]}, "from at most 0 to 8"),
        ({"edges": [1, 8]}, "from at most 0 to 8"),
        ({"edges": [0.0, 8.0]}, "whole numbers"),
        ({"edges": list(range(1000))}, "999 bins"),
        ({"edges": [0, 8]}, "multipliers of 1"),
        ({"multipliers": "AAAA"}, "cannot be read"),
        ({"multipliers": 3}, "cannot be read"),
    ],
)
def test_what_is_no_certificate_is_refused(change: dict[str, Any], words: str) -> None:
    data = slow_is_cheap()
    text = json.loads(by_source(data, 50.0)[HELD].certificate or "")
    with pytest.raises((OptbenchError, ModelError), match=words):
        prove_offline(data, 1, 50.0, json.dumps(text | change))


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", "[" * 100_000, '{"method":1}'])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(OptbenchError, match="cannot be read"):
        prove_offline(slow_is_cheap(), 1, 50.0, text)
