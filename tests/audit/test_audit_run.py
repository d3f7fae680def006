"""A whole audit: policies above the bound, advice that is looked at on other runs, pages and
documents.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optbench.audit.advice import envelope
from optbench.audit.audit_json import document
from optbench.audit.audit_page import cards, render
from optbench.audit.audit_run import Audit, audit
from optbench.audit.log import AuditOptions
from optbench.audit.policies import PlayedPolicy, played, resting_after
from optbench.formats.imported import ImportOptions
from optbench.model.schedule import Schedule
from tests.audit.logs import HEAD, ORIGIN, cluster_from, line, options_of, profile_file
from tests.audit.slurm import Partition, sacct_log

PARTITIONS = (Partition("a100", 2, 8, 0.6), Partition("v100", 2, 4, 0.4))
RECORDS = ImportOptions({"a100": "A100-PCIe", "v100": "V100-PCIe"})
# The generated logs list every run since ORIGIN.
WHOLE = AuditOptions(RECORDS, since_s=float(ORIGIN), until_s=float(ORIGIN + 10**8))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    path = tmp_path_factory.mktemp("audit") / "march.sacct"
    path.write_text(sacct_log(1500, PARTITIONS, load=0.6, steps=True))
    found = audit(path, WHOLE)
    assert isinstance(found, Audit)
    return found


def test_the_record_verifies_on_its_nodes(done: Audit) -> None:
    assert done.record.feasible and done.record.nodes_checked == 1500
    assert done.record.energy_j == pytest.approx(done.record.busy_j + done.record.rest_j)


def test_the_bound_is_below_everything(done: Audit) -> None:
    made = [each for each in done.policies if each.error is None]
    assert len(made) >= 7
    assert done.least.energy_j < done.record.energy_j
    for each in made:
        assert done.floor_j <= each.least_j * (1 + 1e-9) <= each.energy_j * (1 + 1e-9)
        if each.sojourn_s <= done.record.sojourn_s:
            assert done.least.energy_j <= each.energy_j


def test_causes_add_up(done: Audit) -> None:
    assert sum(done.causes.values()) == pytest.approx(done.record.energy_j - done.least.energy_j)


def test_the_frontier_falls(done: Audit) -> None:
    energies = [j for _, j in done.frontier]
    assert energies == sorted(energies, reverse=True) and len(energies) >= 5


def test_the_advice_is_of_the_second_half(done: Audit) -> None:
    assert done.choice is not None
    in_time = done.choice.later.sojourn_s <= 1.02 * done.choice.later_recorded_s
    saves = done.choice.later_saving > 0 and done.choice.whole.inside_j < done.record.energy_j
    assert done.choice.holds == (in_time and saves)
    assert {each.gpu_type for each in done.choice.clocks} == {"a100", "v100"}


def test_the_document_is_json(done: Audit) -> None:
    found = json.loads(json.dumps(document(done), allow_nan=False))
    assert found["verified"] is True and found["runs"] == 1500
    assert found["least"]["energy_j"] == done.least.energy_j and found["policies"][0]["least_j"] > 0


def test_the_page_stands_alone(done: Audit) -> None:
    page = render(done)
    for words in (
        "Where the excess comes from",
        "Policies on the same runs",
        "Clock thresholds",
        "Assumptions",
    ):
        assert words in page
    assert (
        "http://" not in page.replace("http://www.w3.org", "")
        and "https://" not in page
        and "nan" not in page.split("<main>")[1]
    )


def test_what_is_kept_is_no_cause(tmp_path: Path) -> None:
    path = tmp_path / "log.sacct"
    path.write_text(sacct_log(200, PARTITIONS, load=0.5))
    found = audit(path, replace(WHOLE, keep=frozenset({"count", "placement", "idle"})))
    assert isinstance(found, Audit)
    assert set(found.causes) == {
        "clock",
        "waiting",
        "idle",
    }  # idle: until the last run of the record had ended
    assert {each.policy for each in found.policies} == {"fcfs", "fixed_dvfs", "min_energy"}
    assert not found.cluster.instance.pools.gated.any()
    assert all(each.error is None for each in found.policies)


def test_a_policy_that_cannot_run_says_why(tmp_path: Path) -> None:
    cluster = cluster_from(line(1, 0, 0, 10), options_of(profile_file(tmp_path)))
    (found,) = played(cluster, AuditOptions(policies=("cpsat",)))
    assert found.error is not None and "cannot decide as runs arrive" in found.error


def test_rest_after_the_end_of_the_record(tmp_path: Path) -> None:
    # Two GPUs awake at 1 W; the record ends at 10 s. The same run at half the clock lasts until 20
    # s: 10 s of the other GPU.
    text = line(1, 0, 0, 10) + line(2, 0, 0, 5, nodes="n2")
    cluster = cluster_from(text, options_of(profile_file(tmp_path), keep=("idle",)))
    instance = cluster.instance
    slow = int(
        next(
            m
            for m in range(instance.num_modes)
            if instance.modes.clock[m] == 0.5 and instance.modes.devices[m] == 1
        )
    )
    schedule = Schedule.of(instance, [slow, slow], [0.0, 0.0])
    assert (schedule.end * instance.tick_s).tolist() == [20.0, 10.0]
    assert resting_after(cluster, schedule) == pytest.approx(10.0)
    assert PlayedPolicy("p", {}, energy_j=30.0, after_j=10.0).inside_j == 20.0


def test_envelope_by_hand() -> None:
    # Lines 4 + 3 w, 6 + w, 5.5 + 2 w: the third lies above one of the others everywhere: at w = 1,
    # where they meet, it is 7.5.
    found = envelope(np.array([4.0, 6.0, 5.5]), np.array([3.0, 1.0, 2.0]))
    assert found == [(0, 0.0, 1.0), (1, 1.0, float("inf"))]


def test_no_advice_where_nothing_can_be_saved(tmp_path: Path) -> None:
    """Two runs side by side at the best clock: each half alone has a GPU that could sleep, the
    whole has none.
    """
    path = tmp_path / "log.sacct"
    path.write_text(HEAD + line(1, 0, 0, 10) + line(2, 0, 0, 10))
    found = audit(path, options_of(profile_file(tmp_path)))
    assert isinstance(found, Audit)
    assert found.saving == pytest.approx(0.0, abs=1e-6)
    assert found.choice is None or not found.choice.holds


def test_a_log_of_one_run(tmp_path: Path) -> None:
    path = tmp_path / "log.sacct"
    path.write_text(HEAD + line(1, 0, 0, 10))
    found = audit(path, options_of(profile_file(tmp_path)))
    assert isinstance(found, Audit) and found.choice is None
    assert "no policy drew less than the record" in render(found)


def test_without_advice_the_page_does_not_deny_what_a_policy_saved(tmp_path: Path) -> None:
    path = tmp_path / "log.sacct"
    path.write_text(HEAD + line(1, 0, 0, 10))
    done = audit(path, options_of(profile_file(tmp_path)))
    assert isinstance(done, Audit) and done.choice is None
    assert "no policy drew less than the record" in cards(replace(done, policies=()))
    saved = PlayedPolicy(
        "p", {}, energy_j=0.75 * done.record.energy_j, sojourn_s=done.record.sojourn_s, after_j=0.0
    )
    told = cards(replace(done, policies=(saved,)))
    assert (
        "p drew 25.0 % less than the record in its mean time, but nothing was to be chosen" in told
    )
