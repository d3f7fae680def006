"""Problem ``colocation``: what it draws, what it fits, what is public, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.data.registry import DataError
from optbench.errors import ParameterError
from optbench.plugins.discovery import load_problem
from optbench.plugins.problems._colocation_jobs import held_out_families
from optbench.plugins.problems.colocation import ColocationCluster
from optbench.shapes.colocation.colocation_data import Colocation, JobType
from optbench.shapes.colocation.trace_replay import offered_load, required_gpu_s


def made(seed: int = 0, **parameters: Any) -> Colocation:
    data: Colocation = ColocationCluster(**parameters).data(seed)
    return data


def families(data: Colocation, known: bool) -> set[str]:
    """Families of which job types are public, or not, on the last GPU type."""
    return {
        each.family for each, k in zip(data.job_types, data.known[-1], strict=True) if k == known
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_makes_the_same_instance(seed: int) -> None:
    first, second = (load_problem("colocation:jobs=20").instance(seed) for _ in range(2))
    assert first.hash == second.hash
    assert first.hash != load_problem("colocation:jobs=20").instance(seed + 1).hash


def test_an_instance_survives_a_file(tmp_path: Path) -> None:
    instance = load_problem("colocation:jobs=9,failures=1").instance(0)
    ob.write_instance(instance, tmp_path / "nine.json")
    assert ob.read_instance(tmp_path / "nine.json").hash == instance.hash


@pytest.mark.parametrize("load", [0.5, 0.9, 1.1])
@pytest.mark.parametrize("trace", ["poisson", "max_min_fairness", "msr"])
def test_arrivals_are_fitted_to_the_load(load: float, trace: str) -> None:
    for seed in range(3):
        data = made(seed, load=load, trace=trace, aligned=False)
        assert offered_load(data) == pytest.approx(load, rel=1e-9)
        aligned = made(seed, load=load, trace=trace)
        assert (aligned.jobs.arrival_s % 360.0 == 0).all()
        # Rounding moves the last arrival by at most half an epoch of 360 s.
        span = data.jobs.arrival_s[-1]
        assert abs(aligned.jobs.arrival_s[-1] - span) <= 180.0
        assert abs(offered_load(aligned) / load - 1) <= 180.0 / (span - 180.0) + 1e-9


def test_a_trace_keeps_types_steps_and_proportions_of_times() -> None:
    data = made(2, trace="msr", services=0.0, aligned=False, load=0.7)
    # The first two jobs of the trace: ResNet-50 (batch size 64), 232,990 steps, at 0 s, and
    # LM (batch size 40), 1,317,408 steps, at 58,417 s. The last one that has a row in the tables is
    # ResNet-50 (batch size 32) at 2,914,848 s.
    names = [data.job_types[t].name for t in data.jobs.job_type[:2]]
    assert names == ["ResNet-50 (batch size 64)", "LM (batch size 40)"]
    assert data.jobs.work[:2].tolist() == [232_990, 1_317_408]
    assert data.jobs.arrival_s[0] == 0
    assert data.jobs.arrival_s[1] / data.jobs.arrival_s[-1] == pytest.approx(58_417 / 2_914_848)


def test_jobs_that_all_arrive_at_once_get_drawn_times() -> None:
    times = made(0, trace="artifact_evaluation", aligned=False).jobs.arrival_s
    assert (np.diff(times) > 0).all()
    assert times[3] != made(1, trace="artifact_evaluation", aligned=False).jobs.arrival_s[3]


def test_alibaba_gives_times(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    poisson, pods = (made(0, trace=each, jobs=40, aligned=False) for each in ("poisson", "alibaba"))
    assert offered_load(pods) == pytest.approx(0.9)
    assert pods.jobs.job_type.tolist() == poisson.jobs.job_type.tolist()
    assert not np.allclose(pods.jobs.arrival_s, poisson.jobs.arrival_s)
    with pytest.raises(ParameterError, match=r"jobs is 6,500; trace=alibaba has 6,358"):
        made(0, trace="alibaba", jobs=6_500)


def test_alibaba_needs_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPTBENCH_DATA", "OPTBENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(DataError, match=r"openb_pod_list_default.csv is not here"):
        made(0, trace="alibaba")


def test_requirements_are_drawn_from_the_stated_ranges() -> None:
    for requirements, low, high in (("tight", 0.3, 0.8), ("loose", 0.15, 0.55)):
        data = made(1, jobs=400, requirements=requirements)
        runs = np.where(data.alone_per_s > 0, data.alone_per_s, np.nan)
        base = np.nanmedian(runs, axis=0) if requirements == "tight" else np.nanmin(runs, axis=0)
        phi = data.jobs.required_per_s / base[data.jobs.job_type]
        assert low <= phi.min() < low + 0.02 and high - 0.02 < phi.max() <= high


def test_shares_are_exact_and_services_use_one_gpu() -> None:
    data = made(3, jobs=200, services=0.3, strangers=0.6, gangs=0.05)
    unknown = ~data.known[0][data.jobs.job_type]
    gpus = data.gangs[data.jobs.job_type]
    assert data.jobs.is_service.sum() == 60 and unknown.sum() == 120
    # A stranger whose families have no rows with several GPUs is a single job: at most 5 % of 200.
    assert 0 < (gpus > 1).sum() <= 10
    assert gpus[data.jobs.is_service].max() == 1
    # Of eight GPUs of a type a gang takes at most half.
    assert gpus.max() <= 4
    assert (data.jobs.work > 0).sum() == 140


def test_work_and_stay_are_the_same_time_at_the_required_rate() -> None:
    data = made(0, jobs=2_000, duration_s=1_000.0)
    time_s = np.where(
        data.jobs.is_service, data.jobs.stay_s, data.jobs.work / data.jobs.required_per_s
    )
    # Lognormal with σ = 0.6: the standard error of the median's logarithm is 1.25 × 0.6 / √2000.
    assert np.log(np.median(time_s) / 1_000) == pytest.approx(0.0, abs=4 * 1.25 * 0.6 / 2_000**0.5)
    assert np.log(time_s).std() == pytest.approx(0.6, abs=0.05)


def test_families_are_held_out_whole_and_differ_by_seed() -> None:
    drawn = set()
    for seed in range(12):
        data = made(seed, jobs=2)
        hidden, public = families(data, known=False), families(data, known=True)
        assert not hidden & public and len(hidden) >= 2 and public
        single = [each for each in data.job_types if each.gpus == 1]
        assert sum(each.family in hidden for each in single) >= 26 / 3
        drawn.add(frozenset(hidden))
    assert len(drawn) > 4


def test_named_families_are_held_out() -> None:
    data = made(0, held_out=("LM", "A3C"), strangers=1.0, jobs=30)
    assert families(data, known=False) == {"LM", "A3C"}
    assert {data.job_types[t].family for t in data.jobs.job_type} <= {"LM", "A3C"}


def test_a_single_family_stays_public() -> None:
    types = (JobType("a", "A", 1.0), JobType("b", "A", 2.0))
    assert held_out_families(np.random.default_rng(0), types) == ()


def test_what_one_parameter_changes_leaves_the_other_draws_alone() -> None:
    plain, other = made(5), made(5, failures=3, services=0.1, load=0.5)
    assert plain.jobs.job_type.tolist() == other.jobs.job_type.tolist()
    assert plain.jobs.required_per_s.tolist() == other.jobs.required_per_s.tolist()


def test_a_new_generation_appears_and_is_public_for_nobody() -> None:
    data = made(0, new_generation=0.5)
    assert not data.known[0].any() and data.known[1].any()
    half = data.jobs.arrival_s[-1] / 2
    epoch = int(np.ceil(half / 360))
    assert data.counts(epoch - 1).tolist() == [0, 8, 8] and data.counts(epoch).tolist() == [8, 8, 8]


def test_gpus_fail_for_the_repair_time() -> None:
    data = made(0, failures=4, repair_s=3_600.0)
    assert [each.end_epoch - each.first_epoch for each in data.outages] == [10] * 4
    assert all(each.first_epoch * 360 <= data.jobs.arrival_s[-1] for each in data.outages)
    total = [int(data.counts(epoch).sum()) for epoch in range(data.horizon_epochs)]
    assert min(total) >= 20 and total[-1] == 24


def test_gpus_are_split_evenly_with_the_powers_of_their_profiles() -> None:
    data = made(0, gpus=25)
    assert [each.count for each in data.gpu_types] == [9, 8, 8]
    # 85 % of 250, 250 and 149 W.
    assert [each.full_w for each in data.gpu_types] == pytest.approx([212.5, 212.5, 126.65])
    assert [each.idle_w for each in data.gpu_types] == [35, 28, 27]


def test_utilisation_is_stated_from_features() -> None:
    feature, flat, inverse = (
        made(0, jobs=2, utilisation=each).utilisation for each in ("feature", "flat", "inverse")
    )
    types = made(0, jobs=2).job_types
    at = {each.name: t for t, each in enumerate(types) if each.gpus == 1}
    # ResNet: batches 16 to 256, 0.60 to 0.95; 64 is half-way in logarithms. CycleGAN has one batch.
    assert feature[0, at["ResNet-18 (batch size 16)"]] == 0.60
    assert feature[1, at["ResNet-50 (batch size 64)"]] == pytest.approx(0.775)
    assert feature[2, at["ResNet-18 (batch size 256)"]] == pytest.approx(0.95)
    assert feature[0, at["CycleGAN"]] == pytest.approx(0.775)
    assert (flat == 0.65).all()
    # A3C has the least, 0.30 (the middle of 0.2 to 0.4); 0.30 + 0.95 - u mirrors.
    assert inverse + feature == pytest.approx(np.full(feature.shape, 1.25))
    assert (feature == feature[0]).all()


def test_the_horizon_leaves_room_to_drain() -> None:
    data = made(0)
    time_s = np.where(
        data.jobs.is_service, data.jobs.stay_s, data.jobs.work / data.jobs.required_per_s
    )
    needed = required_gpu_s(data).sum() / 24 + time_s.max()
    for factor in (1.0, 1.75, 2.5):
        room = made(0, horizon_factor=factor).horizon_epochs * 360 - data.jobs.arrival_s[-1]
        assert factor * needed <= room < factor * needed + 360
    assert made(0).horizon_epochs == made(0, horizon_factor=1.75).horizon_epochs


def test_synthetic_tables_are_those_of_their_seed() -> None:
    small = {"tables": "synthetic", "types": 24, "generations": 3, "jobs": 12, "gpus": 9}
    first, second = made(0, **small), made(1, **small)
    assert first.alone_per_s.tolist() == second.alone_per_s.tolist()
    assert first.alone_per_s.shape == (3, 24)
    assert not np.allclose(first.alone_per_s, made(0, **small, tables_seed=1).alone_per_s)
    assert [each.idle_w for each in first.gpu_types] == [27, 28, 35]
    assert made(0, **small, new_generation=0.3).known.any(axis=1).tolist() == [True, True, False]


def test_two_hundred_job_types_on_six_generations() -> None:
    data = made(0, tables="synthetic", types=200, generations=6)
    assert data.num_job_types == 200 and [each.count for each in data.gpu_types] == [4] * 6


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"load": 0.0}, r"load is 0.0; it must be none, or positive"),
        ({"jobs": 1}, r"jobs is 1; it must be none, or at least 2"),
        ({"gpus": 2}, r"gpus is 2; it must be at least one per GPU type, 3"),
        ({"services": 1.2}, r"services is 1.2; it must be a share from 0 to 1"),
        ({"requirements": "strict"}, r"requirements is 'strict'; it must be one of tight, loose"),
        ({"utilisation": "measured"}, r"utilisation is 'measured'; it must be one of feature"),
        ({"migration_s": 400.0}, r"migration_s is 400.0; it must be at most an epoch, 360 s"),
        ({"types": 50}, r"types is 50; it must be 200 unless tables=synthetic"),
        ({"new_generation": 1.0}, r"new_generation is 1.0; it must be none, or within 0 and 1"),
        ({"held_out": ("LLM",)}, r"'LLM' is none: did you mean 'LM'\?"),
        ({"tables": "gavell"}, r"tables is 'gavell'; it must be gavel, synthetic, or a CSV file"),
        ({"trace": "poison"}, r"trace is 'poison'; it must be poisson, alibaba, max_min_fairness"),
        (
            {"load": 1e-9},
            r"epoch_s is 360.0; it must be longer: the horizon has [\d,]+ epochs",
        ),
        ({"trace": "msr", "tables": "synthetic"}, r"trace=msr has job types of Gavel's tables"),
    ],
)
def test_what_is_out_of_range_is_named(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        made(0, **parameters)


def test_a_gang_that_no_type_has_gpus_for_is_named() -> None:
    with pytest.raises(ob.ModelError, match=r"job 2 \(LM \(batch size 20\) on 8 GPUs\) requires"):
        made(0, trace="msr", gpus=21)
