"""Masks depend on global numbers alone, and are those of the published generator."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError
from optbench.gnn.kernels.counter_dropout import CounterDropout, arc_numbers, philox

DROPOUT = CounterDropout(0.5, seed=7)


# Known answers of philox4x32-10, from the tests of Random123 (kat_vectors): all words zero, all
# words ones, and digits of pi.
@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_words_are_those_of_philox(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert philox(*map(np.uint64, (*counter, *key))) == expected


def test_a_row_has_the_same_mask_in_any_company() -> None:
    everyone = DROPOUT.kept(3, 1, np.arange(100), 10)
    some = np.array([99, 4, 50])
    assert (DROPOUT.kept(3, 1, some, 10) == everyone[some]).all()
    # Fewer columns are the first ones.
    assert (DROPOUT.kept(3, 1, some, 6) == everyone[some, :6]).all()


def test_another_process_computes_the_same_mask() -> None:
    code = (
        "import numpy as np; from optbench.gnn.kernels.counter_dropout import CounterDropout; "
        "print(CounterDropout(0.5, 7).kept(3, 1, np.array([5, 2**40]), 9).tolist())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(DROPOUT.kept(3, 1, np.array([5, 2**40]), 9).tolist())


def test_every_argument_changes_the_mask() -> None:
    items = np.arange(50)
    seen = [
        DROPOUT.kept(0, 0, items, 8),
        DROPOUT.kept(1, 0, items, 8),
        DROPOUT.kept(0, 1, items, 8),
        DROPOUT.kept(0, 0, items + 2**32, 8),
        CounterDropout(0.5, 8).kept(0, 0, items, 8),
        CounterDropout(0.5, 7 + 2**32).kept(0, 0, items, 8),
    ]
    assert len({each.tobytes() for each in seen}) == len(seen)


def test_the_share_that_stays_is_one_minus_the_rate() -> None:
    # 100,000 draws of rate 0.3: the share of kept ones has mean 0.7 and deviation 0.00145.
    share = CounterDropout(0.3, 1).kept(0, 0, np.arange(10_000), 10).mean()
    assert abs(share - 0.7) < 0.006


def test_values_and_gradients_have_one_mask() -> None:
    import torch

    values: Any = torch.ones(40, 6, dtype=torch.float64, requires_grad=True)
    out: Any = DROPOUT.drop(values, 2, 0, np.arange(40))
    out.sum().backward()
    assert set(out.unique().tolist()) == {0.0, 2.0}
    assert values.grad is not None
    assert torch.equal(values.grad, out)
    assert CounterDropout(0.0, 1).drop(values, 2, 0, np.arange(40)) is values


def test_numbers_of_arcs_do_not_repeat() -> None:
    # Node 1 of 3 receives from 0 and 2: 3 + 0 and 3 + 2.
    assert arc_numbers(np.array([1, 1]), np.array([0, 2]), 3).tolist() == [3, 5]


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_no_share_is_refused(rate: float) -> None:
    with pytest.raises(ModelError, match=f"rate is {rate}"):
        CounterDropout(rate, 0)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ModelError, match="seed is -1"):
        CounterDropout(0.1, -1)
    with pytest.raises(ModelError, match="step is 4294967296"):
        DROPOUT.kept(2**32, 0, np.arange(2), 1)
    with pytest.raises(ModelError, match="layer is 256"):
        DROPOUT.kept(0, 256, np.arange(2), 1)
    with pytest.raises(ModelError, match="items hold -3"):
        DROPOUT.kept(0, 0, np.array([1, -3]), 1)
