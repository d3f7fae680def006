"""The least energy by hand, never above any schedule, and monotone in what is freed."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from optbench.audit.audit_run import prices_of
from optbench.audit.causes import causes_of, shapley
from optbench.audit.least_energy import least_energy, sojourn_of
from optbench.audit.log import FREEDOMS, AuditOptions, log_of
from optbench.audit.logged_cluster import LoggedCluster, cluster_of, on_nodes
from optbench.bounds.streams.stream_bound import path_bound
from optbench.formats.imported import ImportOptions
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.audit.logs import ORIGIN, cluster_from, line, options_of, profile_file
from tests.audit.slurm import Partition, sacct_log

ALL = frozenset(FREEDOMS)
# One GPU, one run of 100 s that waited as long: 100 units, 1000 J at work and 100 J idle before it.
WAITED = line(1, 0, 100, 200)


@pytest.fixture
def waited(tmp_path: Path) -> LoggedCluster:
    return cluster_from(WAITED, options_of(profile_file(tmp_path)))


def drawn(cluster: LoggedCluster) -> float:
    return verify(cluster.awake, cluster.schedule).metrics["energy_j"]


def test_the_record_of_one_run(waited: LoggedCluster) -> None:
    assert drawn(waited) == pytest.approx(1100.0)


def test_least_of_one_run(waited: LoggedCluster) -> None:
    # In 200 s all 100 units fit at clock 0.5: 200 s at 3 W. A GPU that is never idle has no rest to
    # pay.
    assert least_energy(waited, ALL, 200.0).energy_j == pytest.approx(600.0, rel=1e-7)
    # In 150 s half of them do: 50 units at 6 J and 50 at 10 J.
    assert least_energy(waited, ALL, 150.0).energy_j == pytest.approx(800.0, rel=1e-7)
    # A second less costs 4 J: one unit in 100 at the top clock instead.
    assert least_energy(waited, ALL, 150.0).second_w == pytest.approx(4.0)


def test_causes_of_one_run(waited: LoggedCluster) -> None:
    # A low clock needs the time that the run waited: each of the two alone saves nothing, together
    # 400 J. The 100 J of idling before the run are the rest of 1100 - 600.
    found = causes_of(waited, ALL, 1100.0)
    assert found == pytest.approx(
        {"clock": 200.0, "count": 0.0, "placement": 0.0, "idle": 100.0, "waiting": 200.0}, abs=1e-3
    )


def test_nothing_freed_is_the_record() -> None:
    text = sacct_log(60, (Partition("v100", 2, 4, 1.0),), seed=3)
    log = log_of(text, "log", AuditOptions(ImportOptions({"v100": "V100-PCIe"})))
    cluster = cluster_of(log, frozenset())
    end = float(log.end.max())
    assert least_energy(cluster, frozenset(), log.work_s, last_s=end).energy_j == pytest.approx(
        drawn(cluster), rel=1e-7
    )


def two_types(jobs: int, seed: int) -> LoggedCluster:
    partitions = (Partition("a100", 1, 4, 0.5), Partition("v100", 2, 2, 0.5))
    records = ImportOptions({"a100": "A100-PCIe", "v100": "V100-PCIe"})
    options = AuditOptions(records, since_s=float(ORIGIN), until_s=float(ORIGIN + 10**8))
    return cluster_of(log_of(sacct_log(jobs, partitions, seed=seed), "log", options), frozenset())


def test_more_freedom_never_costs_more() -> None:
    cluster = two_types(40, 0)
    known = {
        frozenset(subset): least_energy(
            cluster, frozenset(subset), sojourn_of(cluster.log, frozenset(subset)), last_s=0.0
        ).energy_j
        for size in range(6)
        for subset in combinations(FREEDOMS, size)
    }
    for subset, value in known.items():
        for name in ALL - subset:
            assert known[subset | {name}] <= value * (1 + 1e-7)


def random_schedule(cluster: LoggedCluster, rng: np.random.Generator) -> Schedule:
    """Runs one after the other in random ways, each in the first gap behind all others in its pool:
    feasible, seldom good.
    """
    instance, ready = cluster.instance, np.zeros(cluster.instance.num_pools)
    mode = rng.integers(0, instance.num_modes, instance.num_tasks)
    start = np.zeros(instance.num_tasks)
    for task in range(instance.num_tasks):
        pool = instance.modes.primary[mode[task]]
        start[task] = max(float(instance.tasks.release[task]), ready[pool])
        ready[pool] = start[task] + instance.duration(mode[task], instance.tasks.units[task])
    return Schedule.of(instance, mode, start)


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_is_below_the_bound(seed: int) -> None:
    cluster = two_types(8, seed)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        verdict = verify(cluster.instance, random_schedule(cluster, rng))
        assert verdict.feasible
        total_s = verdict.metrics["flow_time_s"]
        assert least_energy(cluster, ALL, total_s).energy_j <= verdict.metrics["energy_j"] * (
            1 + 1e-9
        )
        assert least_energy(cluster, ALL, None).energy_j <= verdict.metrics["energy_j"] * (1 + 1e-9)


def test_twice_the_power_is_twice_the_energy(tmp_path: Path) -> None:
    text = WAITED + line(2, 50, 200, 260) + line(3, 60, 60, 160, nodes="n2")
    one, two = (
        cluster_from(text, options_of(profile_file(tmp_path, scale=scale))) for scale in (1.0, 2.0)
    )
    assert drawn(two) == pytest.approx(2 * drawn(one))
    total_s = one.log.sojourn_s
    assert least_energy(two, ALL, total_s).energy_j == pytest.approx(
        2 * least_energy(one, ALL, total_s).energy_j, rel=1e-7
    )


def test_prices_hold() -> None:
    cluster = two_types(40, 1)
    total_s = cluster.log.sojourn_s
    least = least_energy(cluster, ALL, total_s)
    prices = prices_of(cluster, ALL, least)
    for more_s in (-0.2 * total_s, 10.0, 0.5 * total_s):
        # Convex in the seconds: the dual is a slope that holds on both sides.
        changed = least_energy(cluster, ALL, total_s + more_s).energy_j
        assert changed >= least.energy_j - least.second_w * more_s - 1e-6 * least.energy_j
    assert prices.second_j == pytest.approx(least.second_w * cluster.log.num_runs)
    for t, name in enumerate(cluster.log.types):
        more = np.eye(len(cluster.log.types), dtype=np.int64)[t]
        with_one = least_energy(cluster, ALL, total_s, more=more).energy_j
        assert prices.gpu_j[name] == pytest.approx(least.energy_j - with_one)


def test_on_its_nodes_the_record_draws_the_same() -> None:
    cluster = two_types(30, 2)
    found = on_nodes(cluster.log)
    assert found is not None
    verdict = verify(*found)
    assert verdict.feasible and found[0].num_tasks == 30
    assert verdict.metrics["energy_j"] == pytest.approx(drawn(cluster), rel=1e-9)


def test_shapley_of_a_glove_game() -> None:
    # A pair of gloves saves 1: the only left one is worth 2/3, each of two right ones 1/6 (all 6
    # orders written out).
    def value(gloves: frozenset[str]) -> float:
        return -float("left" in gloves and len(gloves) > 1)

    assert shapley(("left", "one", "other"), value) == pytest.approx(
        {"left": 2 / 3, "one": 1 / 6, "other": 1 / 6}
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_path_bound_of_streams_says_the_same(seed: int) -> None:
    """Two programmes, written apart: that of all streams knows nothing of logs."""
    cluster = two_types(60, seed)
    total_s = cluster.log.sojourn_s
    mine, other = (
        least_energy(cluster, ALL, total_s),
        path_bound(cluster.instance, sojourn_s=total_s / cluster.log.num_runs),
    )
    assert other is not None
    assert mine.energy_j == pytest.approx(other.energy_j, rel=1e-6)
    assert mine.second_w * cluster.log.num_runs == pytest.approx(
        other.sojourn_value_j_per_s, rel=1e-4, abs=1e-3
    )
