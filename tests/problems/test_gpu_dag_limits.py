"""gpu_dag: power caps, deadlines, tariffs, and the parameters that are refused."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError, UnknownNameError
from optbench.model.instance import Instance
from optbench.model.metrics import peak_power
from optbench.model.windows import windows
from tests.problems.gpu_graphs import best, make, optimum

TINY = "gpu_dag:tasks=4,gpus=3,types=2,clocks=2,shape=batch,transfers=no"


def top_power_w(instance: Instance, result: ob.Result, place: int) -> float:
    schedule = result.schedule
    assert schedule is not None
    return peak_power(instance, schedule, place).watts


def ends(instance: Instance, result: ob.Result) -> np.ndarray:
    schedule = result.schedule
    assert schedule is not None
    out = np.zeros(instance.num_tasks)
    out[schedule.task] = schedule.end
    return out


@pytest.mark.parametrize(("option", "places"), [("power_cap=0.5", [0]), ("node_cap=0.7", [1, 2])])
def test_a_power_cap_binds(option: str, places: list[int]) -> None:
    free, capped = make(TINY), make(f"{TINY},{option}")
    assert capped.limits.cap_place.tolist() == places
    loose, tight = best(free), best(capped)
    cap_w = dict(zip(places, capped.limits.cap_w.tolist(), strict=True))
    assert any(top_power_w(free, loose, place) > cap_w[place] for place in places)
    assert all(top_power_w(capped, tight, place) <= cap_w[place] + 1e-6 for place in places)
    assert isinstance(tight.objective, float) and isinstance(loose.objective, float)
    assert tight.objective > loose.objective + 1


@pytest.mark.parametrize("option", ["power_cap=1", "node_cap=1"])
def test_all_of_the_power_binds_nothing(option: str) -> None:
    assert optimum(make(f"{TINY},{option}")) == pytest.approx(optimum(make(TINY)), rel=1e-9)


def test_both_caps_hold_at_once() -> None:
    limits = make(f"{TINY},power_cap=0.6,node_cap=0.7").limits
    assert limits.cap_place.tolist() == [0, 1, 2]
    # Node 1 holds two A100s of 254.99 W at work, node 2 an L4 of 61.2 W: 70 % of 509.98 and of 61.2
    # W, rounded down to mW; 60 % of 571.18 W, rounded down to W.
    assert limits.cap_w.tolist() == pytest.approx([342.0, 356.986, 42.84], abs=1e-3 + 1e-9)


def test_a_hard_tight_deadline_binds() -> None:
    spec = "gpu_dag:tasks=6,gpus=3,clocks=2,gang=1"
    free, due = make(f"{spec},deadlines=none", 2), make(f"{spec},deadlines=tight,hard=yes", 2)
    assert due.tasks.deadline_hard.tolist() == np.isfinite(due.tasks.deadline).tolist()
    loose, tight = best(free), best(due)
    assert any((ends(free, loose) > due.tasks.deadline).tolist())
    assert all((ends(due, tight) <= due.tasks.deadline).tolist())
    assert isinstance(tight.objective, float) and isinstance(loose.objective, float)
    assert tight.objective > loose.objective + 1


def test_deadlines_are_multiples_of_the_earliest_end() -> None:
    free = make("gpu_dag:deadlines=none")
    bounds = windows(free)
    last = sorted(set(range(20)) - set(free.edges.source.tolist()))
    for word, slack in (("tight", 1.5), ("loose", 3.0), ("flexible", 6.0)):
        deadline = make(f"gpu_dag:deadlines={word}").tasks.deadline
        assert np.flatnonzero(np.isfinite(deadline)).tolist() == last
        assert (
            deadline[last].tolist()
            == np.ceil(slack * (bounds.head + bounds.shortest)[last]).tolist()
        )


def test_carbon_and_price_series_are_there_and_weighed() -> None:
    # Two minutes each; they go round again after three.
    instance = make("gpu_dag:carbon=yes,tasks=4")
    assert instance.tariffs is not None
    assert instance.tariffs.times.tolist() == [0, 120, 240, 360]
    assert instance.tariffs.carbon_g_per_kwh[0].tolist() == [350, 500, 220, 350]
    assert instance.objective.metrics == {"carbon_g", "makespan_s", "tardiness_s"}
    both = make("gpu_dag:carbon=yes,price=yes,tasks=4")
    assert both.objective.metrics == {"carbon_g", "cost_usd", "makespan_s", "tardiness_s"}
    assert both.tariffs is not None and both.tariffs.price_usd_per_kwh[0].tolist() == [
        0.12,
        0.20,
        0.16,
        0.12,
    ]


@pytest.mark.parametrize(
    ("spec", "culprit"),
    [
        ("gpu_dag:types=13", r"types is 13; it must be from 1 to 12 \(A100-PCIe"),
        ("gpu_dag:clocks=9", "clocks is 9; it must be from 1 to 8"),
        ("gpu_dag:shape=star", "shape is 'star'.*layered"),
        ("gpu_dag:power_cap=1.5", "power_cap is 1.5; it must be none, or above 0 and at most 1"),
        ("gpu_dag:power_cap=0.01", "power_cap is 0.01, but some task needs at least"),
        ("gpu_dag:tick_s=7,price=yes", "tick_s is 7.0; it must be a divisor of 120 s"),
        ("gpu_dag:tick_s=0", "tick_s is 0.0"),
        ("gpu_dag:node_cap=0", "node_cap is 0.0; it must be none, or above 0 and at most 1"),
        (
            "gpu_dag:node_cap=0.2",
            (
                "node_cap is 0.2, but some task needs at least 0.[0-9]+ of the .* W or more of "
                "each "
                "node"
            ),
        ),
        ("gpu_dag:tick_s=7,carbon=yes", "tick_s is 7.0; it must be a divisor of 120 s"),
        ("gpu_dag:cpus=-1", "cpus is -1; it must be at least 0"),
        ("gpu_dag:nodes=0", "nodes is 0; it must be at least 1"),
        ("gpu_dag:stages=1", "stages is 1; it must be at least 2"),
        ("gpu_dag:replicas=0", "replicas is 0; it must be at least 1"),
        ("gpu_dag:iterations=0", "iterations is 0; it must be at least 1"),
        ("gpu_dag:sizes=huge", "sizes is 'huge'.*medium"),
        ("gpu_dag:prepare=gpu", "prepare is 'gpu'.*either"),
        (
            "gpu_dag:profiles=[A100,A100-PCIe]",
            r"profiles is \['A100', 'A100-PCIe'\]; it must be different profiles",
        ),
        (
            "gpu_dag:gpus=900,pooled=no",
            # 300 GPUs of a node: 300 alone and 300 * 299 / 2 pairs, times 3 types and 5 clocks.
            (
                "every choice of up to 2 devices of a node, at 5 clocks, makes 677,250 modes, more "
                "than 50,000"
            ),
        ),
    ],
)
def test_a_bad_parameter_is_named_with_its_value(spec: str, culprit: str) -> None:
    with pytest.raises(ParameterError, match=culprit):
        make(spec)


def test_an_unknown_profile_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"'H1000'; did you mean 'H100'\?"):
        make("gpu_dag:profiles=[H1000]")


@pytest.mark.parametrize("cap", ["power_cap", "node_cap"])
@pytest.mark.parametrize(
    "options", ["", ",gpus=1", ",nodes=2,gpus=7,cpus=3", ",gpus=5,pooled=no", ",sizes=small"]
)
def test_the_least_cap_that_is_named_works(cap: str, options: str) -> None:
    with pytest.raises(ParameterError, match="at least") as caught:
        make(f"gpu_dag:{cap}=0.01{options}")
    share = str(caught.value).partition("at least ")[2].split()[0]
    assert make(f"gpu_dag:{cap}={share}{options}").limits.cap_w.min() > 0
