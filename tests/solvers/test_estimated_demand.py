"""From estimates to a demand: kinds, risks and prices by hand, and what guards a requirement."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import ParameterError
from optbench.plugins.solvers._estimated_demand import (
    AllocationSettings,
    demand_of,
    kinds_of,
    of_kinds,
    placement_of,
    progress_prices,
    risks,
)
from optbench.shapes.colocation.colocation_process import ColocationProcess, Observation
from optbench.shapes.colocation.estimates import Estimates
from tests.shapes.colocation.two_gpus import FAST, GANG, HEAVY, LIGHT, SLOW, cluster

SETTINGS = AllocationSettings()


def observed(*jobs: tuple[Any, ...], **others: Any) -> Observation:
    """Jobs are (type, required per second), training jobs that arrive at 0."""
    rows = [(kind, 0.0, required, 1e4, 0.0) for kind, required in jobs]
    return ColocationProcess(cluster(rows, **others), 0).observe()


def certain(seen: Observation) -> Estimates:
    """The public throughputs, which are all of them in these tests."""
    alone, beside = seen.public.alone_per_s, seen.public.beside_per_s
    zero = np.zeros_like(beside)
    return Estimates(alone, beside, np.zeros_like(alone), zero, (beside > 0).astype(float))


def phi(z: float) -> float:
    """The normal distribution."""
    return (1 + math.erf(z / math.sqrt(2))) / 2


def test_few_jobs_are_kinds_of_their_own() -> None:
    seen = observed((LIGHT, 2.0), (HEAVY, 1.0), (LIGHT, 1.0))
    kinds = kinds_of(seen.jobs)
    assert kinds.job_type.tolist() == [HEAVY, LIGHT, LIGHT]
    assert kinds.required_per_s.tolist() == [1.0, 1.0, 2.0]
    assert kinds.of_job.tolist() == [2, 0, 1]


def test_many_jobs_of_a_type_are_four_kinds() -> None:
    """101 jobs with the requirements 1, 2, ..., 101 (in hundredths, in a random order): job k of
    them (from 0) is of kind ⌊4 k / 101⌋, so that kinds hold 26, 25, 25 and 25 jobs. Their means are
    those of 1..26, 27..51, 52..76, 77..101: 13.5, 39, 64, 89."""
    required = np.random.default_rng(0).permutation(np.arange(1, 102)) / 100
    kinds = kinds_of(observed(*((LIGHT, each) for each in required)).jobs)
    assert kinds.job_type.tolist() == [LIGHT] * 4
    assert kinds.required_per_s == pytest.approx([0.135, 0.39, 0.64, 0.89])
    assert np.bincount(kinds.of_job).tolist() == [26, 25, 25, 25]
    assert kinds.of_job[required == 0.26] == 0 and kinds.of_job[required == 0.27] == 1


def test_risks_by_hand() -> None:
    """One kind on one GPU type: 2 per second alone, with a deviation of 10 %, 0.2. A requirement of
    2.2 is one deviation above it: Φ(1). Beside its own kind 1 per second with a deviation of
    √((2 · 0.1)² + (1 · 0.1)²) = 0.2236: the requirement is (2.2 − 1) / 0.2236 = 5.3666 above."""
    here = Estimates(
        np.array([[2.0]]),
        np.array([[[1.0]]]),
        np.array([[0.1]]),
        np.array([[[0.1]]]),
        np.array([[[1.0]]]),
    )
    alone, beside = risks(here, np.array([2.2]), 1.0)
    assert alone[0, 0] == pytest.approx(phi(1.0), abs=1e-6)
    assert beside[0, 0, 0] == pytest.approx(phi(1.2 / math.sqrt(0.05)), abs=1e-6)


def test_what_is_certain_has_no_risk_or_all_of_it() -> None:
    seen = observed((HEAVY, 1.9), (HEAVY, 1.0))
    here = of_kinds(certain(seen), np.array([HEAVY, HEAVY]))
    alone, _ = risks(here, np.array([1.9, 2.1]), 1.0)
    assert alone[FAST].tolist() == pytest.approx([0.0, 1.0])  # 2 per second
    assert alone[SLOW].tolist() == pytest.approx([1.0, 1.0])  # 1 per second


def test_progress_prices_by_hand() -> None:
    """Half used, a fast GPU draws 30 + 100/2 = 80 W and a slow one 20 + 40/2 = 40 W. Per unit:
    heavy 80/2 = 40/1 = 40 J; light 80/4 = 40/2 = 20 J; alone 80/1, and nothing on slow GPUs; the
    gang has two GPUs: 2 · 80/5 = 2 · 40/2.5 = 32 J."""
    public = observed((HEAVY, 1.0)).public
    idle = np.array([each.idle_w for each in public.gpu_types])
    full = np.array([each.full_w for each in public.gpu_types])
    gangs = np.array([each.gpus for each in public.job_types])
    prices = progress_prices(public.alone_per_s, public.utilisation, gangs, idle, full)
    assert prices.tolist() == pytest.approx([40.0, 20.0, 80.0, 32.0])


def test_a_service_earns_nothing_and_a_training_job_its_price() -> None:
    rows = [(HEAVY, 0.0, 1.0, 1e4, 0.0), (HEAVY, 0.0, 1.0, 0.0, 500.0), (GANG, 0.0, 1.0, 1e4, 0.0)]
    seen = ColocationProcess(cluster(rows), 0).observe()
    demand = demand_of(seen, certain(seen), replace(SETTINGS, progress_price=0.5))
    assert demand.jobs.price_j.tolist() == pytest.approx([20.0, 0.0, 16.0])
    assert demand.gangs[demand.jobs.job_type].tolist() == [1, 1, 2]


def test_a_throughput_that_proved_wrong_is_not_chosen_again() -> None:
    """A heavy job requires 0.95. Alone it is expected to do 2.0 ± 10 % on the fast GPU and 1.0 ±
    10 % on slow ones (a risk of Φ(−0.5) = 0.31). Measured at 0.9 ± 3 % on the fast one, it misses
    its requirement there with Φ(0.05 / 0.027) = 0.97, and goes to a slow GPU. If those are measured
    below it, too, no GPU type serves it: it runs where it is fastest, at best effort."""
    seen = observed((HEAVY, 0.95))
    first = certain(seen)
    first = replace(first, alone_log_sd=np.full_like(first.alone_per_s, 0.1))
    settings = replace(SETTINGS, progress_price=2.0)
    assert placement_of(seen, first, settings).gpu_type.tolist() == [FAST]
    wrong = measured(first, FAST, 0.9)
    assert placement_of(seen, wrong, settings).gpu_type.tolist() == [SLOW]
    neither = measured(wrong, SLOW, 0.1)
    assert placement_of(seen, neither, settings).gpu_type.tolist() == [FAST]


def measured(expected: Estimates, gpu_type: int, per_s: float) -> Estimates:
    alone, sd = expected.alone_per_s.copy(), expected.alone_log_sd.copy()
    alone[gpu_type, HEAVY], sd[gpu_type, HEAVY] = per_s, 0.03
    return replace(expected, alone_per_s=alone, alone_log_sd=sd)


def test_a_pair_is_tried_only_where_it_is_likely_to_fit() -> None:
    """A heavy and a light job at rates that the fast GPU serves together (1 and 3 per second), and
    no other GPU: they share it, unless the pair fits with less than ``least_fit``."""
    seen = observed((HEAVY, 0.9), (LIGHT, 2.5))
    seen = replace(seen, counts=np.array([1, 0]))
    sure = certain(seen)
    assert placement_of(seen, sure, SETTINGS).second.max() >= 0
    doubtful = replace(sure, fits=0.4 * sure.fits)
    assert placement_of(seen, doubtful, SETTINGS).second.tolist() == [-1]
    assert placement_of(seen, sure, replace(SETTINGS, pairs=False)).num_rows == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("progress_price", -1.0), ("most_risk", 1.5), ("least_fit", -0.1), ("gap", 1.0),
     ("ilp_limit_s", 0.0), ("caution", 0.0), ("nodes", 0), ("waiting_w", math.inf)],
)  # fmt: skip
def test_settings_out_of_range_are_named(field: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"{field} is {value}; it must be"):
        AllocationSettings(**{field: value})
