"""Networks: the same seed gives the same weights, the past stays, and files hold tensors only."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

from optbench.errors import FileFormatError, ModelError
from optbench.learn.colocation.estimator_settings import KINDS, EstimatorSettings
from optbench.learn.colocation.estimators import networks_or_completion
from optbench.learn.colocation.look_up import Frozen, LookUp
from optbench.learn.colocation.matrix_completion import MatrixCompletion
from optbench.learn.colocation.network_files import (
    HashedFacts,
    TrainedNetworks,
    facts_hash,
    load_networks,
    save_networks,
    trained_or_kept,
)
from optbench.learn.colocation.network_rows import NetworkRows, check_enough, train
from optbench.learn.colocation.row_tables import KnownRows
from tests.learn.colocation.small_facts import by_hand, some_runs, synthetic, synthetic_facts

QUICK = EstimatorSettings(steps=30, rows=12, cells=64)


@cache
def trained(steps: int = 30, seed: int = 0) -> NetworkRows:
    settings = EstimatorSettings(steps=steps, rows=12, cells=64)
    return train(synthetic_facts(), ("recurrent", "feed_forward"), settings, seed)


def weights(model: NetworkRows) -> list[torch.Tensor]:
    parts = (model.alone_part, model.ratio_part)
    networks = [n for part in parts for n in (*part.first.networks, *part.networks)]
    return [weight for network in networks for weight in network.state_dict().values()]


def test_the_same_seed_gives_the_same_weights_and_another_one_others() -> None:
    before = torch.random.get_rng_state()
    again = train(synthetic_facts(), ("recurrent", "feed_forward"), QUICK, 0)
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = list(zip(weights(trained()), weights(again), strict=True))
    assert all(torch.equal(one, other) for one, other in pairs)
    other = train(synthetic_facts(), ("recurrent", "feed_forward"), QUICK, 1)
    assert not torch.equal(weights(again)[0], weights(other)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_finite_estimates_and_keeps_the_past(kind: str) -> None:
    settings = EstimatorSettings(steps=5, rows=8, cells=32, folds=2)
    model = train(synthetic_facts(), (kind, kind), settings, 0)  # type: ignore[arg-type]
    estimator = LookUp(synthetic_facts(), model)
    first = estimator.estimates().beside_per_s
    estimator.learn(some_runs(synthetic(), 0, [8, 9, 10]))
    second = estimator.estimates()
    assert np.isfinite(second.beside_per_s).all() and np.isfinite(second.ratio_sd).all()
    assert (second.ratio_sd >= 0).all() and (second.alone_log_sd >= 0).all()
    ratio = second.beside_per_s / second.alone_per_s[:, :, None]
    assert ratio.max() <= 1 + 1e-9
    fresh = LookUp(synthetic_facts(), model)
    assert np.array_equal(fresh.estimates().beside_per_s, first)


def test_first_sight_of_a_new_size_is_better_than_the_partner_mean() -> None:
    """Type 20 is of a known family; its relatives say more of it than the mean of all."""
    tables, facts = synthetic(), synthetic_facts()
    truth = tables.beside_per_s[:, 20] / tables.alone_per_s[:, 20, None]
    known = [t for t in range(24) if t not in (0, 1, 2, 3, 4, 5, 20)]
    fits = truth[:, known] > 0
    errors = []
    for model in (trained(100), MatrixCompletion.plain(KnownRows.of(facts))):
        found = LookUp(facts, model).estimates()
        ratio = (found.beside_per_s[:, 20] / found.alone_per_s[:, 20, None])[:, known]
        errors.append(np.abs(ratio - truth[:, known])[fits].mean())
    assert errors[0] < 0.8 * errors[1]


def test_measurements_improve_cells_that_were_not_measured() -> None:
    """Of the six types of the new family, beside the types of one family, after runs beside those
    of two others."""
    tables = synthetic()
    estimator = LookUp(synthetic_facts(), trained(100))
    new, partners = np.arange(6), np.arange(6, 12)
    at = np.ix_(new, partners)
    truth = tables.beside_per_s[0][at] / tables.alone_per_s[0, new, None]

    def error() -> float:
        found = estimator.estimates()
        ratio = found.beside_per_s[0][at] / found.alone_per_s[0, new, None]
        return float(np.abs(ratio - truth)[truth > 0].mean())

    before = error()
    for t in new.tolist():
        fitting = [s for s in (*range(12, 20), 22, 23) if tables.beside_per_s[0, t, s] > 0]
        estimator.learn(some_runs(tables, t, fitting))
    assert error() < before


def test_frozen_networks_do_not_learn() -> None:
    estimator = Frozen(synthetic_facts(), trained())
    first = estimator.estimates().beside_per_s
    estimator.learn(some_runs(synthetic(), 0, [8]))
    assert np.array_equal(estimator.estimates().beside_per_s, first)


def test_a_file_gives_back_the_same_estimates(tmp_path: Path) -> None:
    facts = synthetic_facts()
    path = tmp_path / "networks.safetensors"
    save_networks(path, trained(), facts, {"seed": 0})
    estimators = [LookUp(facts, model) for model in (trained(), load_networks(path, facts))]
    for each in estimators:
        each.learn(some_runs(synthetic(), 0, [8, 9]))
    one, other = (each.estimates() for each in estimators)
    assert np.array_equal(one.beside_per_s, other.beside_per_s)
    assert np.array_equal(one.ratio_sd, other.ratio_sd)
    # The file is tensors and one JSON text.
    with safe_open(str(path), framework="numpy") as file:
        assert set(file.metadata()) == {"optbench"}
        assert json.loads(file.metadata()["optbench"])["provenance"] == {"seed": 0}


def quick(seed: int = 0) -> TrainedNetworks:
    settings = EstimatorSettings(steps=2, rows=4, cells=16, folds=2)
    facts = HashedFacts.of(synthetic_facts())
    return TrainedNetworks(facts, ("feed_forward", "feed_forward"), settings, seed)


def test_networks_are_trained_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "kept"
    trained_or_kept([folder], quick())
    assert "training the networks of gogh" in capsys.readouterr().err
    (path,) = folder.iterdir()
    stamp = path.stat().st_mtime_ns
    trained_or_kept([folder], quick())
    assert path.stat().st_mtime_ns == stamp and capsys.readouterr().err == ""
    trained_or_kept([folder], quick(seed=1))
    assert len(list(folder.iterdir())) == 2


def test_a_confined_process_reads_everywhere_and_writes_to_the_last_folder(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    trained_or_kept([shared, own], quick())
    assert not shared.exists() and len(list(own.iterdir())) == 1
    trained_or_kept([own], quick(seed=1))
    trained_or_kept([own, shared], quick(seed=1))
    assert not shared.exists()


def test_a_kept_file_that_is_broken_is_replaced(tmp_path: Path) -> None:
    trained_or_kept([tmp_path], quick())
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    trained_or_kept([tmp_path], quick())
    assert path.read_bytes() == whole


def test_where_nothing_can_be_written_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    trained_or_kept([tmp_path / "file" / "kept"], quick())
    assert "cannot be written, so the next process trains again" in capsys.readouterr().err


def test_files_that_are_no_checkpoints_are_refused(tmp_path: Path) -> None:
    facts = synthetic_facts()
    path = tmp_path / "networks.safetensors"
    with pytest.raises(FileFormatError, match="no such checkpoint"):
        load_networks(path, facts)
    path.write_bytes(b"cbuiltins\neval\n")
    with pytest.raises(FileFormatError, match="not a readable safetensors file"):
        load_networks(path, facts)
    save_file({"x": np.zeros(2)}, str(path))
    with pytest.raises(FileFormatError, match="not one of networks for co-location"):
        load_networks(path, facts)


def test_a_file_of_other_facts_or_other_shapes_is_refused(tmp_path: Path) -> None:
    facts = synthetic_facts()
    path = tmp_path / "networks.safetensors"
    save_networks(path, trained(), facts, {})
    with pytest.raises(FileFormatError, match=facts_hash(facts)[:12]):
        load_networks(path, synthetic_facts((0, 1)))
    with safe_open(str(path), framework="numpy") as file:
        about = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    name = "ratio.network0.last.weight"
    save_file(arrays | {name: np.zeros((3, 3), dtype=np.float32)}, str(path), metadata=about)
    with pytest.raises(FileFormatError, match=r"last\.weight has the shape \(3, 3\)"):
        load_networks(path, facts)
    wrong = arrays[name].copy()
    wrong[0, 0] = np.nan
    save_file(arrays | {name: wrong}, str(path), metadata=about)
    with pytest.raises(FileFormatError, match="not finite"):
        load_networks(path, facts)
    del arrays[name]
    save_file(arrays, str(path), metadata=about)
    with pytest.raises(FileFormatError, match="is missing"):
        load_networks(path, facts)


def test_too_few_known_types_are_refused() -> None:
    with pytest.raises(ModelError, match="the public facts have 2 of 2"):
        train(by_hand(), ("recurrent", "recurrent"), QUICK, 0)


def test_the_hash_is_that_of_what_is_public() -> None:
    """What is not public is in no hash; a public cell is."""
    one = synthetic_facts()
    assert facts_hash(one) == facts_hash(synthetic_facts())
    one.alone_per_s[0, 8] *= 1.01
    assert facts_hash(one) != facts_hash(synthetic_facts())


def test_too_few_families_leave_the_completion() -> None:
    """Two families: no network can be held against a third one."""
    facts = synthetic_facts()
    names = sorted({each.family for each in facts.job_types})
    two = tuple(replace(each, family=names[k % 2]) for k, each in enumerate(facts.job_types))
    found = networks_or_completion(replace(facts, job_types=two), ("recurrent", "feed_forward"))
    assert isinstance(found, MatrixCompletion)
    with pytest.raises(ModelError, match=r"of 3 families; the public facts have .* of 2"):
        check_enough(KnownRows.of(replace(facts, job_types=two)))
