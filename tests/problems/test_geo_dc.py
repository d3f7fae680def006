"""geo_dc: the setting of the paper, files of sites, drawn work, and everything that is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError, ModelError, ParameterError
from optbench.model.instance import Instance
from optbench.model.validate import validate
from optbench.plugins.discovery import load_problem

SHIPPED = Path(__file__).parents[2] / "problems" / "_geo_paper.json"
Change = Callable[[dict[str, Any]], None]


def made(spec: str, seed: int = 0) -> Instance:
    made: Instance = load_problem(spec).instance(seed)
    return made


def sites_file(tmp_path: Path, change: Change) -> Path:
    """The shipped file of sites with something changed."""
    data = json.loads(SHIPPED.read_text())
    change(data)
    path = tmp_path / "sites.json"
    path.write_text(json.dumps(data))
    return path


def test_defaults_are_the_paper() -> None:
    instance = made("geo_dc:days=0.1")
    assert (
        instance.stream is not None
        and instance.is_open
        and (instance.tick_s, instance.horizon) == (1e-9, 8_640 * 10**9)
    )
    assert instance.pools.count.sum() == 1488 and instance.num_modes == 8 * 8 * 8
    assert instance.stream.latency_s.shape == (8, 8) and instance.stream.latency_s.max() == 0.348
    # 0.02 a second at each of eight ingresses: 1,382.4 jobs in 8,640 s, standard deviation 37.
    assert instance.num_tasks == pytest.approx(1382.4, abs=4 * 37.2)
    # E[lognormal] = 50,000 exp(0.4² / 2) = 54,164.
    assert made("geo_dc:days=2").tasks.units.mean() == pytest.approx(54_164, rel=0.01)


def test_times_and_powers_follow_the_laws() -> None:
    """us-west, n = 3, f = 0.5: T = (0.0045 + 0.032 / 0.5 + 0.0012 · 3) / 3, P = 3 (75 / 8 + 80 / 2
    + 110).
    """
    instance = made("geo_dc:days=0.01")
    modes = instance.modes
    (mode,) = np.flatnonzero((modes.primary == 0) & (modes.devices == 3) & (modes.clock == 0.5))
    time_s, power_w = 0.0721 / 3, 3 * (75 / 8 + 40 + 110)
    assert modes.time_per_unit_s[mode] == pytest.approx(time_s, rel=1e-12)
    assert modes.power_w[mode] == pytest.approx(power_w, rel=1e-12)
    assert modes.energy_per_unit_j[mode] == pytest.approx(time_s * power_w, rel=1e-12)
    assert instance.pools.rest_w[0] == 28.0 and instance.pools.gated.all()


def test_published_coefficients_are_the_shipped_ones(data_dir: Path) -> None:
    published, shipped = (
        json.loads((data_dir / "chsac-af" / "coefficients.json").read_text()),
        json.loads(SHIPPED.read_text()),
    )
    assert (
        list(published["sites"]) == list(shipped["sites"])
        and list(published["ingresses"]) == shipped["ingresses"]
    )
    for name, site in shipped["sites"].items():
        for key in ("gpu_type", "gpu_count", "p_sleep_w", "freq_levels", "training", "inference"):
            assert site[key] == published["sites"][name][key], (name, key)
    for ingress, row in shipped["wan_latency_ms"].items():
        assert row == published["wan_shortest_path_ms"][ingress]
    assert shipped["price_usd_per_kwh_by_hour"] == published["energy_price_usd_per_kwh_by_hour"]


def test_inference_comes_beside_training_with_deadlines_that_are_soft() -> None:
    instance = made("geo_dc:days=0.05,inference=0.5,inference_units=2000,deadline_s=900")
    inference = instance.tasks.kind == 1
    assert 0 < inference.sum() < instance.num_tasks
    assert (instance.tasks.units[inference] >= 2000).all()  # Pareto from one on, times 2,000
    assert (instance.tasks.deadline - instance.tasks.release)[inference] == pytest.approx(
        900e9, abs=1
    )
    assert (
        np.isinf(instance.tasks.deadline[~inference]).all()
        and not instance.tasks.deadline_hard[inference].any()
    )
    assert (np.diff(instance.tasks.release) >= 0).all()


def test_bursts_multiply_arrivals_in_their_time_only() -> None:
    instance = made("geo_dc:days=2,burst=[3@12h+12h,0.5@36h+6h]")
    count = np.histogram(
        instance.tasks.release * instance.tick_s, bins=[0, 43_200, 86_400, 129_600, 151_200]
    )[0]
    base = 0.16 * 43_200
    assert count == pytest.approx([base, 3 * base, base, base / 4], rel=0.05)


def test_a_burst_of_one_changes_nothing_but_the_draw() -> None:
    assert made("geo_dc:days=0.5,burst=[1@1h+1h]").num_tasks == pytest.approx(
        made("geo_dc:days=0.5").num_tasks, rel=0.05
    )


def test_local_hours_shift_prices_by_the_time_zone() -> None:
    """Power is dear from 7 to 19: at 0 h UTC it is 16 h in Los Angeles and 9 h in Tokyo, both dear;
    in London cheap.
    """
    spec = "geo_dc:jobs=3,drain=yes,minimize=cost"
    plain, local = made(spec).tariffs, made(f"{spec},local_hours=yes").tariffs
    assert plain is not None and local is not None
    assert len(set(plain.price_usd_per_kwh[:, 0].tolist())) == 1
    names = list(made(spec).pools.names)
    first = {
        name: float(local.price_usd_per_kwh[names.index(name), 0])
        for name in ("us-west", "eu-west", "ap-northeast")
    }
    assert first == {"us-west": 0.2, "eu-west": 0.12, "ap-northeast": 0.2}


def test_carbon_that_nobody_knows_is_the_mean_of_what_is_known() -> None:
    instance = made("geo_dc:jobs=3,drain=yes,minimize=carbon")
    assert instance.tariffs is not None
    carbon = dict(
        zip(instance.pools.names, instance.tariffs.carbon_g_per_kwh[:, 0].tolist(), strict=True)
    )
    assert (
        carbon["us-west"] == 350 and carbon["eu-central"] == 220 and carbon["ap-southeast"] == 500
    )
    assert carbon["us-east"] == pytest.approx((350 + 220 + 500) / 3)


def test_sites_have_hours_of_their_own(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["sites"]["us-west"] |= {
            "carbon_g_per_kwh": [100.0 + h for h in range(24)],
            "price_usd_per_kwh_by_hour": [0.5] * 24,
        }

    path = sites_file(tmp_path, change)
    tariffs = made(f"geo_dc:jobs=3,drain=yes,minimize=carbon,sites={path}").tariffs
    assert tariffs is not None
    assert tariffs.carbon_g_per_kwh[0, :26].tolist() == [100.0 + h % 24 for h in range(26)]
    assert (
        set(tariffs.price_usd_per_kwh[0].tolist()) == {0.5}
        and len(set(tariffs.price_usd_per_kwh[1].tolist())) > 1
    )


def test_a_drained_week_has_to_be_done_and_leaves_nothing_to_gain() -> None:
    """Of the drained instance everything is done; the open one with the same jobs leaves some."""
    for spec, all_done in (("geo_dc:days=0.05,drain=yes", True), ("geo_dc:days=0.05", False)):
        result = ob.solve(made(spec), "joint_nf", bound=False)
        assert (result.metrics["completed"] == result.metrics["arrivals"]) == all_done
    drained = made("geo_dc:days=0.05,drain=yes,sojourn_s=5000")
    assert (
        drained.limits.metric_max == {"flow_time_s": 5000.0 * drained.num_tasks}
        and drained.horizon is None
    )


@pytest.mark.parametrize(
    "spec",
    [
        "only=[us-west]", "only=[us-west,us-east],shrink=0.01", "shrink=3", "max_gpus=1",
        "sizes=exponential", "jobs=2", "drain=yes,tick_s=30", "drain=yes,minimize=carbon",
        "preemptive=yes", "outage=[largest@10m+10m]",
        "outage=[us-west@1m+2m,us-west@3m+1m],maintenance=[eu-west@0s+1h]", "rate=0,inference=1",
    ],
)  # fmt: skip
def test_every_variant_is_valid_and_the_same_for_the_same_seed(spec: str) -> None:
    instance = made(f"geo_dc:days=0.02,{spec}", 3)
    assert (
        validate(instance) is instance and instance.hash == made(f"geo_dc:days=0.02,{spec}", 3).hash
    )
    assert instance.hash != made(f"geo_dc:days=0.02,{spec}", 4).hash


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("days=0", "days is 0.0; it must be positive"),
        ("days=1e9", "days is 1000000000.0; it must be 36525 at most"),
        (
            "rate=1e9",
            (
                "rate is 1000000000.0; it must be lower, or days fewer: 4.84e.15 arrivals are more "
                "than 100,000,000"
            ),
        ),
        ("inference=1e9", "inference is 1000000000.0; it must be lower, or days fewer"),
        (
            "rate=1,burst=1000@1h+1h",
            "rate is 1.0; it must be lower, or days fewer, or bursts weaker",
        ),
        ("rate=-1", "rate is -1.0; it must be at least 0"),
        ("rate=0", "rate is 0.0; it must be above 0, or inference is"),
        ("only=[us-wets]", "only is 'us-wets'; it must be a site: us-west"),
        ("max_gpus=0", "max_gpus is 0; it must be at least 1"),
        ("jobs=0", "jobs is 0; it must be none, or at least 1"),
        ("minimize=cost", "minimize is 'cost'; it must be energy, unless drain=yes"),
        ("sojourn_s=100", "sojourn_s is 100.0; it must be none, or positive with drain=yes"),
        ("tick_s=100", "tick_s is 100.0; it must be none, or positive with drain=yes"),
        ("pace=2", "pace is 2.0; it must be 1.0 without recorded arrivals"),
        ("begin_days=2", "begin_days is 2.0; it must be 0.0 without recorded arrivals"),
        ("reference=us-west", "reference is 'us-west'; it must be None without recorded arrivals"),
        ("outage=[us-west]", r"outage is 'us-west'; it must be site@begin\+length, such as"),
        (
            "outage=[us-wets@1h+1h]",
            "outage is 'us-wets@1h.1h'; it must be an outage of a known site or of 'largest'; "
            "did you mean 'us-west'",
        ),
        ("outage=[us-west@1h+0h]", "it must be of a positive length"),
        (
            "outage=[us-west@1h+2h,us-west@2h+2h]",
            "outages: 32 of 16 devices of pool 'us-west' would be gone",
        ),
        ("burst=[x@1h+1h]", "burst is 'x@1h.1h'; it must be a burst with a factor from 0"),
        ("burst=[2@1h]", r"burst is '2@1h'; it must be factor@begin\+length"),
        ("days=0.00001", "days is 1e-05; it must be long enough for one arrival"),
    ],
)
def test_parameters_are_refused_by_name(spec: str, message: str) -> None:
    with pytest.raises((ParameterError, ModelError), match=message):
        made(f"geo_dc:{spec}")


def drop(*keys: str) -> Change:
    def change(data: dict[str, Any]) -> None:
        part = data
        for key in keys[:-1]:
            part = part[key]
        del part[keys[-1]]

    return change


def put(*keys: str, value: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        part = data
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value

    return change


def cut_off(data: dict[str, Any]) -> None:
    """No ingress leads to sa-east."""
    for row in data["wan_latency_ms"].values():
        del row["sa-east"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut_off, "site 'sa-east' cannot be reached: no ingress has a wan_latency_ms to it"),
        (
            put("wan_latency_ms", "gw-us-west", value={}),
            "wan_latency_ms.gw-us-west leads to no site",
        ),
        (
            put("wan_latency_ms", "gw-us-west", "mars", value=9),
            "wan_latency_ms.gw-us-west leads to 'mars', which is no site",
        ),
        (
            put("wan_latency_ms", "gw-us-west", "us-west", value=-9),
            "latency gw-us-west to us-west is -9; it must be",
        ),
        (drop("wan_latency_ms", "gw-us-west"), "wan_latency_ms: 'gw-us-west' is missing"),
        (
            put("sites", "us-west", "gpu_count", value=0),
            "site 'us-west': gpu_count is 0; a site has at least one GPU",
        ),
        (put("sites", "us-west", "gpu_count", value=2.5), "gpu_count is 2.5; it must be int"),
        (
            put("sites", "us-west", "freq_levels", value=[]),
            r"freq_levels is \[\]; it must be positive shares",
        ),
        (
            put("sites", "us-west", "freq_levels", value=[0.5, 0.3]),
            r"freq_levels is \[0.5, 0.3\]; .* rising",
        ),
        (
            put("sites", "us-west", "training", "power", "beta_p", value=-1),
            "power.beta_p is -1; it must be a number from 0",
        ),
        (
            put("sites", "us-west", "training", "latency", "alpha_t", value="x"),
            "alpha_t is 'x'; it must be a number",
        ),
        (
            put(
                "sites",
                "us-west",
                "training",
                "latency",
                value={"alpha_t": 0, "beta_t": 0, "gamma_t": 1},
            ),
            "work must take time",
        ),
        (drop("sites", "us-west", "training", "power"), "training: 'power' is missing"),
        (drop("sites", "us-west", "p_sleep_w"), "site 'us-west': 'p_sleep_w' is missing"),
        (
            put("sites", "us-west", "p_slep_w", value=1),
            "unknown key 'p_slep_w'; did you mean 'p_sleep_w'",
        ),
        (
            put("sites", "us-west", "utc_offset_h", value=99),
            "utc_offset_h is 99; it must be a number of hours",
        ),
        (
            put("sites", "us-west", "carbon_g_per_kwh", value=[1, 2]),
            "carbon_g_per_kwh has 2 values; it must have 24",
        ),
        (
            put("price_usd_per_kwh_by_hour", value=[0.1]),
            "price_usd_per_kwh_by_hour has 1 values; it must have 24",
        ),
        (put("sites", value={}), "sites is empty"),
        (put("sites", value=[]), "sites is .*; it must be dict"),
        (put("ingresses", value=[]), r"ingresses is \[\]; it must name at least one"),
        (put("prices", value=[]), "unknown key 'prices'"),
    ],
)
def test_files_of_sites_are_refused_by_place(change: Change, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        made(f"geo_dc:days=0.01,sites={sites_file(tmp_path, change)}")


@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "line 1, column 2: not JSON"), ('{"sites": NaN}', "NaN is not JSON"),
     ("", "the file is empty"), ("[]", "'sites' is missing"), ("7", "'sites' is missing"),
     ('{"sites": 1, "sites": 2}', "'sites' stands twice")],
)  # fmt: skip
def test_what_is_no_file_of_sites(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sites.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        made(f"geo_dc:days=0.01,sites={path}")
    with pytest.raises(FileFormatError, match="no such file"):
        made(f"geo_dc:days=0.01,sites={tmp_path / 'elsewhere.json'}")


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files_of_sites_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    """One value anywhere in the file becomes something else: an error of ours, or a valid
    instance.
    """
    rng = np.random.default_rng(seed)
    data = json.loads(SHIPPED.read_text())
    spots: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        for key in part if isinstance(part, dict) else range(len(part)):
            spots.append((part, key))
            if isinstance(part[key], (dict, list)):
                walk(part[key])

    for _ in range(5):
        damaged, spots = copy.deepcopy(data), []
        walk(damaged)
        part, key = spots[int(rng.integers(len(spots)))]
        part[key] = [None, -1, 0, 1e308, "x", [], {}, True, [[]], {"a": 1}][int(rng.integers(10))]
        path = tmp_path / "sites.json"
        path.write_text(json.dumps(damaged))
        try:
            instance = made(f"geo_dc:days=0.01,sites={path}")
        except ob.OptbenchError as error:
            assert (
                str(path) in str(error)
                or "task" in str(error)
                or "pool" in str(error)
                or "mode" in str(error)
            ), error
        else:
            assert validate(instance) is instance
