"""Policies of co-location in whole runs: rules, what they report, least power as an ablation, and
gogh with its networks from training to play.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import FileFormatError, ParameterError
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.process_policy import Playing
from optbench.plugins.training import Trainable, TrainingResult, TrainingRun
from optbench.shapes.colocation.colocation_shape import ColocationShape
from tests.plugins.colocation_futures import SMALL, quick_checkpoint
from tests.shapes.colocation.random_play import random_cluster

PLAIN = ("best_fit", "estimated_allocation", "greedy_efficiency", "oracle", "round_robin")


def simulated(policy: Any, seed: int = 1, **params: Any) -> Any:
    return ob.simulate(SMALL, policy, seed=seed, bound_time_limit_s=2.0, params=params)


@pytest.mark.parametrize("policy", PLAIN)
@pytest.mark.parametrize("seed", range(3))
def test_every_policy_keeps_the_rules_where_nothing_is_known(policy: str, seed: int) -> None:
    """Random clusters with pairs and jobs that do not fit: a row that is known not to fit breaks a
    rule, and the process refuses it."""
    data = random_cluster(seed)
    unknown = type(data)(**{**vars(data), "known": np.zeros_like(data.known)})
    instance: Any = ColocationShape().instance("random", unknown)
    played = ob.simulate(instance, policy, seed=seed, bound_time_limit_s=0.0)
    assert played.verified, played.violations


def test_gogh_is_simulated_beside_the_oracle() -> None:
    played = simulated("gogh", checkpoint=quick_checkpoint())
    assert played.verified and not played.clairvoyant and played.policy == "gogh"
    assert played.reference == "oracle" and isinstance(played.regret, float)
    shortfall, energy = played.objective
    assert played.metrics["shortfall_s"] == shortfall and played.metrics["energy_j"] == energy
    assert played.bound[1] <= energy and 0.0 <= played.gap[1] < 1.0
    params = {"checkpoint": quick_checkpoint()}
    again = ob.simulate(SMALL, "gogh", seed=1, bound=False, params=params)
    assert again.objective == played.objective


def test_the_oracle_does_not_regret_itself() -> None:
    played = simulated("oracle")
    assert played.regret == 0.0 and played.clairvoyant and played.metrics["misfits"] == 0


def test_least_power_in_every_epoch_is_not_least_energy() -> None:
    """Without a value of progress jobs are parked on slow GPUs, where they take longer."""
    power: Any = simulated("oracle", progress_price=0.0)
    default: Any = ob.simulate(SMALL, "oracle", seed=1, bound=False)
    assert power.metrics["energy_j"] > default.metrics["energy_j"]
    # Regret is against the oracle with its defaults.
    assert power.regret > 0.0 and default.regret is None
    assert power.metrics["drained_s"] >= default.metrics["drained_s"]


def training(path: Path, *on: str, **others: Any) -> TrainingResult:
    solver: Any = load_solver("gogh")[1]
    assert isinstance(solver, Trainable)
    settings = solver.settings(steps=5, rows=8, cells=32, folds=2)
    problems = [load_problem(each) for each in on]
    return solver.train(TrainingRun(problems, path, settings, on, **others))


def test_training_writes_a_checkpoint_of_public_facts(tmp_path: Path) -> None:
    """4 parts of 2 networks take 5 steps each: 40 steps, of which 25 make a point."""
    path, points = tmp_path / "a.safetensors", list[tuple[int, int]]()
    done = training(
        path, SMALL, f"{SMALL},load=0.5", on_point=lambda k, n, _: points.append((k, n))
    )
    assert points[0] == (25, 40) and done.history[0]["loss"] > 0 and not done.interrupted
    assert done.about["solver"] == "gogh" and done.about["settings"]["steps"] == 5
    instance = load_problem(SMALL).instance(3)  # another seed with the same families held out
    gogh: Any = load_solver("gogh", {"checkpoint": path})[1]
    gogh.warm_up(instance)
    other = load_problem("colocation:jobs=14,gpus=6,held_out=[LM]").instance(0)
    with pytest.raises(FileFormatError, match="trained on other public facts"):
        gogh.warm_up(other)
    with pytest.raises(ParameterError, match="is there already; --fresh"):
        training(path, SMALL)
    assert not training(path, SMALL, fresh=True).interrupted


def test_a_training_that_is_stopped_writes_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    done = training(tmp_path / "a.safetensors", SMALL, stop=stop)
    assert done.interrupted and not done.resumes and not list(tmp_path.iterdir())


def test_what_cannot_be_trained_on_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="--on gpu_dag: its instances are of the shape"):
        training(tmp_path / "a", "gpu_dag")
    with pytest.raises(ParameterError, match="their public facts differ at seed 0"):
        training(tmp_path / "a", SMALL, "colocation:jobs=14,gpus=6,held_out=[LM]")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"most_risk": 2}, "solver 'gogh': most_risk is 2.0; it must be a probability"),
        ({"network_seed": -1}, "network_seed is -1; it must be at least 0"),
        ({"p1": "lstm"}, "p1 is 'lstm'; it must be one of"),
        ({"checkpoint": "a", "network_seed": 1}, "checkpoint is 'a', which holds its networks"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        load_solver("gogh", params)


def test_no_decision_counts_the_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Networks are made by ``prepare``; when the policy acts, they are there."""
    from optbench.learn.colocation import network_files

    made = list[str]()
    read = network_files.load_networks

    def counted(path: Path, facts: Any) -> Any:
        made.append(str(path))
        return read(path, facts)

    monkeypatch.setattr(network_files, "load_networks", counted)
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(quick_checkpoint().read_bytes())
    instance = load_problem(SMALL).instance(0)
    playing = Playing(load_solver("gogh", {"checkpoint": copy})[1], instance, 0)  # type: ignore[arg-type]
    playing.prepare()
    assert made == [str(copy)] and playing.actions == 0
    assert playing.play(lambda: True) and made == [str(copy)]
