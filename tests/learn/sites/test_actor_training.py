"""Learning: duals, losses and rewards by hand, a plant on which the best is plain, and a training
that is stopped and goes on.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from optbench.errors import FileFormatError, ParameterError
from optbench.learn.duals import ProjectedDual, SignedDual
from optbench.learn.replay import Replay
from optbench.learn.sites.actor_training import SiteTrainer, train_sites
from optbench.learn.sites.networks import FlatNet
from optbench.learn.sites.soft_actor_critic import masked_log_softmax, quantile_loss
from optbench.learn.sites.training_settings import SiteTraining
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.training import Trainable, TrainingRun
from optbench.sim.kernel.sites.pilot import (
    DEVICES,
    ENERGY_J,
    LONGEST,
    NUM_MEASURED,
    REGRET_J,
    SERVICE_S,
    UNITS,
    WAITED_S,
)
from optbench.sim.kernel.sites.view import GLOBAL_FEATURES

SMALL = "geo_dc:days=0.05,rate=0.01,only=[us-west,ap-southeast],max_gpus=2"


def small(seed: int) -> Instance:
    made: Instance = load_problem(SMALL).instance(seed)
    return made


def quick(**more: object) -> SiteTraining:
    given = {
        "decisions": 1200,
        "envs": 4,
        "steps": 25,
        "updates": 4,
        "batch": 64,
        "calibrate": 3,
        "budgets_s": (1000.0, 3000.0),
    }
    return SiteTraining(**(given | more))  # type: ignore[arg-type]


def test_a_clipped_dual_can_never_fall_a_signed_one_can() -> None:
    clipped, signed = ProjectedDual(1.0, rate=0.5, clipped=True), SignedDual(10.0, integral=0.1)
    assert clipped.update(cost=3.0, threshold=2.0) == 1.5
    assert clipped.update(cost=0.0, threshold=2.0) == 1.5
    projected = ProjectedDual(1.0, rate=0.5)
    assert [projected.update(cost=c, threshold=2.0) for c in (3.0, 2.5, 1.0, 0.0)] == [
        1.5,
        1.75,
        1.25,
        0.25,
    ]
    assert projected.update(cost=0.0, threshold=2.0) == 0.0
    # e = (1 − 2) / 2 = −0.5: the logarithm falls by 0.05.
    assert signed.update(cost=1.0, threshold=2.0) == pytest.approx(10.0 * np.exp(-0.05))


def test_a_signed_dual_finds_the_price_of_a_budget() -> None:
    """Latency 1000 / √λ: a budget of 250 is kept at λ = 16."""
    dual = SignedDual(1.0, integral=0.5)
    for _ in range(200):
        dual.update(1000.0 / dual.value**0.5, 250.0)
    assert dual.value == pytest.approx(16.0, rel=1e-6)


def test_quantile_loss_by_hand() -> None:
    """Errors 0.5 and 2 against one sample: Huber 0.125 and 1.5, weighed by the shares 1/4 and 3/4
    of two quantiles.
    """
    found, wanted = torch.tensor([[0.5, -1.0]]), torch.tensor([[1.0]])
    assert float(quantile_loss(found, wanted)) == pytest.approx(0.25 * 0.125 + 0.75 * 1.5)
    assert float(quantile_loss(torch.tensor([[3.0]]), wanted)) == pytest.approx(1.5)


def test_what_is_masked_has_no_chance() -> None:
    pi = masked_log_softmax(
        torch.tensor([[5.0, 0.0, 0.0]]), torch.tensor([[False, True, True]])
    ).exp()
    assert pi[0].tolist() == pytest.approx([0.0, 0.5, 0.5])


def test_replay_forgets_the_oldest() -> None:
    replay = Replay(3, width=1, options=1)
    for k in range(5):
        replay.add([[float(k)]], [[True]], [0], [float(k)], [[0.0]], [[True]], [0.0])
    assert len(replay) == 3
    assert set(replay.sample(200, np.random.default_rng(0)).reward.tolist()) == {2.0, 3.0, 4.0}


def test_rewards_by_hand() -> None:
    measured = np.zeros((1, 1, NUM_MEASURED))
    for column, value in (
        (REGRET_J, 2.0),
        (UNITS, 30.0),
        (WAITED_S, 0.0),
        (SERVICE_S, 1600.0),
        (ENERGY_J, 9.0),
        (DEVICES, 2.0),
        (LONGEST, 60.0),
    ):
        measured[0, 0, column] = value
    corrected = SiteTrainer([small(1000)], quick())
    assert corrected.rewards(measured)[0, 0] == pytest.approx(
        -10.0 * 30.0 * 2.0 / (corrected.mean_units * corrected.least_j)
    )
    paper = SiteTrainer([small(1000)], quick(mode="paper"))
    full = paper.settings
    assert (full.network, full.hidden, full.replay, full.dual) == (
        "flat",
        256,
        200_000,
        "projected",
    )
    assert (full.learning_rate, corrected.settings.learning_rate) == (3e-4, 1e-3)
    assert paper.rewards(measured)[0, 0] == pytest.approx(-9.0 + 0.05 / 2.0)
    paper.multipliers["latency"].value, paper.multipliers["queue"].value = 0.01, 0.1
    assert paper.rewards(measured)[0, 0] == pytest.approx(-9.0 + 0.025 - 0.01 * 110.0 - 0.1 * 10.0)


def test_training_finds_what_is_plainly_best() -> None:
    """Two quiet sites: regrets fall to a fraction of those of a network that has learned
    nothing.
    """
    instances = [small(1000 + k) for k in range(4)]
    trainer = SiteTrainer(
        instances, quick(decisions=5000, gamma=0.5, updates=6, target_entropy=0.1)
    )
    first = mean_regret(trainer)
    while trainer.rolled < trainer.settings.rolls:
        trainer.round()
    assert mean_regret(trainer) < 0.5 * first


def mean_regret(trainer: SiteTrainer) -> float:
    for b in range(len(trainer.fleet)):
        trainer.fleet.set_price(b, 5.0)
    measured = trainer.fleet.roll(trainer.pilot, 200, np.random.default_rng(7)).measured
    return float(
        (measured[:, :, REGRET_J] * measured[:, :, UNITS]).sum() / measured[:, :, UNITS].sum()
    )


@pytest.mark.parametrize("mode", ["corrected", "paper"])
def test_the_same_seed_trains_the_same_network(mode: str) -> None:
    settings = quick(mode=mode, decisions=400, hidden=8, batch=32)
    made = [train_sites([small(1000), small(1001)], settings, seed=3).checkpoint for _ in range(2)]
    assert made[0].pilot.theta.tolist() == made[1].pilot.theta.tolist()
    assert made[0].prices_w.tolist() == made[1].prices_w.tolist()


def test_a_training_that_is_stopped_goes_on(tmp_path: Path) -> None:
    _, solver = load_solver("chsac_af")
    assert isinstance(solver, Trainable)
    stop, rounds = threading.Event(), list[int]()

    def once(done: int, total: int, point: dict[str, float]) -> None:
        rounds.append(done)
        stop.set()

    problems, output = [load_problem(SMALL)], tmp_path / "a.safetensors"
    settings = quick(decisions=2500, hidden=8)
    first = solver.train(TrainingRun(problems, output, settings, [SMALL], on_point=once, stop=stop))
    assert first.interrupted and output.exists() and rounds == [10]
    assert first.about["complete"] is False
    second = solver.train(TrainingRun(problems, output, settings, [SMALL], on_point=once))
    assert not second.interrupted and rounds == [10, 20, 25]
    assert second.about["decisions"] == 2500 and not (tmp_path / "a.safetensors.state").exists()
    finished = output.read_bytes()
    with pytest.raises(
        ParameterError, match=r"a\.safetensors is the checkpoint of a finished training; --fresh"
    ):
        solver.train(TrainingRun(problems, output, settings, [SMALL]))
    assert output.read_bytes() == finished


def test_the_state_of_another_training_is_left_alone(tmp_path: Path) -> None:
    kept, stop = tmp_path / "a.state", threading.Event()
    stop.set()
    train_sites([small(1000)], quick(gamma=0.9), names=[SMALL], kept=kept, stop=stop)
    before = kept.read_bytes()
    others = (
        (quick(gamma=0.8), [SMALL], "another settings"),
        (quick(gamma=0.9), ["geo_dc"], "another trained on"),
    )
    for settings, names, words in others:
        with pytest.raises(
            ParameterError, match=rf"(?s)a\.state is the state of a training with {words}.*--fresh"
        ):
            train_sites([small(1000)], settings, names=names, kept=kept)
    assert kept.read_bytes() == before
    kept.write_bytes(before[:300])
    with pytest.raises(FileFormatError, match=r"a\.state: the state of a training cannot be read"):
        train_sites([small(1000)], quick(gamma=0.9), names=[SMALL], kept=kept)


def test_actor_and_critics_of_the_paper_share_their_encoder() -> None:
    """One step moves it, for all of them alike; the targets follow in copies of their own."""
    trainer = SiteTrainer([small(1000)], quick(mode="paper", hidden=8, batch=16, decisions=400))
    sac = trainer.sac
    actor = sac.actor
    assert isinstance(actor, FlatNet)
    before = actor.first.detach().clone()
    while trainer.gradient_steps == 0:
        trainer.round()
    assert not torch.equal(actor.first, before)
    for critic, target in zip(sac.critics, sac.targets, strict=True):
        assert isinstance(critic, FlatNet) and isinstance(target, FlatNet)
        assert critic.first is actor.first and critic.third is actor.third
        assert target.first is not critic.first and not torch.equal(target.first, critic.first)


def test_the_papers_network_is_run_at_the_price_it_learned_at() -> None:
    """It learns beside multipliers that are not seen: the price among its inputs is nothing, then
    and later.
    """
    made = train_sites(
        [small(1000)], quick(mode="paper", decisions=100, hidden=8, batch=16)
    ).checkpoint
    trainer = SiteTrainer([small(1000)], quick(mode="paper", hidden=8))
    seen = []
    for price_w in (float(trainer.prices[0]), made.price_w(1490.0)):
        trainer.fleet.set_price(0, price_w)
        rolled = trainer.fleet.roll(made.pilot, 1, np.random.default_rng(0))
        seen.append(rolled.rows[0, 0, GLOBAL_FEATURES.index("latency_price")])
    assert seen[0] == pytest.approx(seen[1], abs=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"envs": 0}, "envs is 0"),
        ({"hidden": 0}, "hidden is 0"),
        ({"replay": -3}, "replay is -3"),
        ({"calibrate": -1}, "calibrate is -1"),
        ({"budgets_s": (5.0, 2.0)}, r"budgets_s is \[5.0, 2.0\]"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        SiteTraining(**given)  # type: ignore[arg-type]
