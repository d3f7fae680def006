"""Tiny plants as chains: their states, what is refused, and that the kernel of sites behaves as the
chain says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optbench.errors import OptbenchError, ParameterError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem
from tests.tiny_plants.chain import Chain, chain_of
from tests.tiny_plants.chain_play import cumulated, lookup_of, play_lookup
from tests.tiny_plants.occupancy import OccupancyProgramme
from tests.tiny_plants.tabular import learn_table

LAWS = {
    "fast": {
        "power": {"alpha_p": 75.0, "beta_p": 80.0, "gamma_p": 110.0},
        "latency": {"alpha_t": 0.0045, "beta_t": 0.032, "gamma_t": 0.0012},
    },
    "lean": {
        "power": {"alpha_p": 45.0, "beta_p": 20.0, "gamma_p": 40.0},
        "latency": {"alpha_t": 0.0065, "beta_t": 0.06, "gamma_t": 0.0022},
    },
}
RATE = 0.0008


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sites of two GPUs with two clocks, no way between them and where work comes in."""
    table = {
        name: {
            "gpu_count": 2,
            "p_sleep_w": 28.0 if name == "fast" else 8.0,
            "freq_levels": [0.5, 1.0],
            "training": law,
        }
        for name, law in LAWS.items()
    }
    path = tmp_path_factory.mktemp("sites") / "tiny.json"
    path.write_text(
        json.dumps(
            {"sites": table, "ingresses": ["gw"], "wan_latency_ms": {"gw": dict.fromkeys(LAWS, 0)}}
        )
    )
    return path


def tiny(sites: Path, seed: int = 0, days: float = 60.0, **more: Any) -> Instance:
    params = "".join(f",{name}={value}" for name, value in more.items())
    made: Instance = load_problem(
        f"geo_dc:days={days},rate={RATE},sizes=exponential,sites={sites}{params}"
    ).instance(seed)
    return made


def chain(sites: Path, room: int = 5) -> Chain:
    return chain_of(tiny(sites, days=0.5), RATE, 50_000.0, room)


def test_states_count_what_runs_and_what_waits(sites: Path) -> None:
    made = chain(sites, room=2)
    # Two GPUs, two clocks: nothing; one job on one GPU (2); on both (2); two jobs on one each (3).
    assert [len(each) for each in made.counts] == [8, 8]
    assert made.num_states == (8 * 3) ** 2
    config, queue = made.states
    assert made.radix @ (config * 3 + queue) == pytest.approx(np.arange(made.num_states))
    assert made.power_w[0] == 2 * 28 + 2 * 8 and made.in_system[0] == 0
    # After a start the same mode's end leads back.
    for row in range(16):
        for m in np.flatnonzero(made.after_start[row] >= 0).tolist():
            other = int(made.first[made.pool_of[m]]) + int(made.after_start[row, m])
            assert made.first[made.pool_of[m]] + made.after_end[other, m] == row


def test_the_kernel_behaves_as_the_chain_says(sites: Path) -> None:
    made = chain(sites)
    programme = OccupancyProgramme(made)
    moves = programme.moves
    best = programme.minimum(3000.0, max_lost=1e-3)
    assert best is not None
    found = []
    for seed in range(6):
        instance = tiny(sites, seed)
        lookup = lookup_of(instance, made)
        lookup.chance[:] = cumulated(made, moves.states[moves.act_from], moves.action, best.share)
        trace = play_lookup(instance, lookup, np.random.default_rng(seed))
        assert trace.schedule is not None
        verdict = verify(instance, trace.schedule)
        assert verdict.feasible, verdict.violations
        found.append(
            [verdict.metrics[name] for name in ("j_per_unit", "sojourn_mean_s", "queue_mean")]
        )
    energy, sojourn, queue = np.mean(found, axis=0)
    # 25,000 jobs: the standard errors are about 0.1 %, 1 % and 4 %.
    assert energy == pytest.approx(best.j_per_unit, rel=0.005)
    assert sojourn == pytest.approx(best.sojourn_s, rel=0.04)
    assert queue == pytest.approx(best.queue_mean.sum(), rel=0.15)


def test_a_table_learned_from_arrivals_is_near_the_best_at_its_own_sojourn(sites: Path) -> None:
    made = chain(sites)
    programme = OccupancyProgramme(made)
    instances = [tiny(sites, 1000 + k) for k in range(10)]
    table = learn_table(
        lambda k: instances[k % 10], made, sojourn_s=3000.0, price_w=20.0, passes=200
    )
    share = programme.greedy(table.value)
    learned = programme.value(share)
    best = programme.minimum(learned.sojourn_s, max_lost=max(1e-4, 1.01 * learned.lost))
    assert best is not None and best.proven_j_per_unit is not None
    assert best.proven_j_per_unit <= learned.j_per_unit <= 1.05 * best.j_per_unit
    again = learn_table(
        lambda k: instances[k % 10], made, sojourn_s=3000.0, price_w=20.0, passes=200
    )
    assert np.array_equal(table.value, again.value) and table.price_w == again.price_w


def test_a_programme_without_an_answer_is_no_missing_policy(sites: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"no answer for [\d,]+ columns \(Time limit"):
        OccupancyProgramme(chain(sites, room=8)).minimum(3000.0, time_limit_s=0.01)


@pytest.mark.parametrize(
    ("params", "error", "culprit"),
    [
        ({"rate": 0.0}, ParameterError, "rate is 0.0"),
        ({"mean_units": float("inf")}, ParameterError, "mean_units is inf"),
        ({"room": -1}, ParameterError, "room is -1"),
        ({"room": 1000}, UnsupportedError, "64,128,064 states"),
    ],
)
def test_what_makes_no_chain_is_said(
    sites: Path, params: dict[str, Any], error: type[OptbenchError], culprit: str
) -> None:
    with pytest.raises(error, match=culprit):
        chain_of(
            tiny(sites, days=0.5), **({"rate": RATE, "mean_units": 50_000.0, "room": 5} | params)
        )


def test_ways_kinds_outages_and_large_plants_are_refused(sites: Path) -> None:
    def refused(spec: str, culprit: str) -> None:
        instance = load_problem(spec).instance(0)
        with pytest.raises(UnsupportedError, match=culprit):
            chain_of(instance, 0.01, 50_000.0, 5)

    refused("geo_dc:days=0.01,only=us-west,shrink=0.1", "a way takes 0.19 s")
    refused(
        f"geo_dc:days=0.5,rate={RATE},inference=0.001,sites={_with_inference(sites)}",
        "2 kinds of work",
    )
    refused(f"geo_dc:days=0.5,rate={RATE},sites={sites},outage=fast@1h+1h", "it has outages")
    table = json.loads(sites.read_text())
    table["sites"]["fast"]["gpu_count"] = 40
    large = sites.with_name("large.json")
    large.write_text(json.dumps(table))
    refused(f"geo_dc:days=0.5,rate={RATE},sites={large}", "ways to use 40 GPUs")


def _with_inference(sites: Path) -> Path:
    table = json.loads(sites.read_text())
    for site in table["sites"].values():
        site["inference"] = site["training"] | {
            "power": {"alpha_p": 70.0, "beta_p": 15.0, "gamma_p": 60.0}
        }
    path = sites.with_name("both.json")
    path.write_text(json.dumps(table))
    return path
