"""Threads of numeric libraries are limited within the block, and given back after it."""

from __future__ import annotations

import numpy as np
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from optbench.plugins.math_threads import math_threads


def blas_threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_threads_are_limited_and_given_back() -> None:
    assert np.ones((2, 2)).sum() == 4  # numpy has loaded its BLAS
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threadpool_limits(2):
            outside = blas_threads()
            with math_threads(1):
                assert torch.get_num_threads() == 1
                assert blas_threads() == {1}
            assert torch.get_num_threads() == 2
            assert blas_threads() == outside
    finally:
        torch.set_num_threads(before)
