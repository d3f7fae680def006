"""Training prices of planned starts: the loss is the verifier's cost, the network learns, a
training that is stopped goes on.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optbench.errors import FileFormatError, ParameterError
from optbench.learn.sites.price_evolution import Evolution, TrainingDay, fit_by_imitation
from optbench.learn.sites.price_settings import PriceTraining
from optbench.learn.sites.prices import EXTRA, SIZE, fees, plans_from_parameters, read_prices
from optbench.model.verify import verify
from optbench.plugins.discovery import load_problem, load_solver
from optbench.plugins.training import Trainable, TrainingRun
from optbench.sim.sites.plans import play_plans

SMALL = (
    "geo_dc:days=0.25,shrink=0.1,rate=0.003,drain=yes,minimize=cost,local_hours=yes,sojourn_s=4h"
)
MIXED = f"{SMALL},inference=0.01,inference_units=2000,deadline_s=600"
QUICK = PriceTraining(
    envs=2, validation=1, imitate_on=1, imitation_steps=200, generations=4, pairs=2, check_every=2
)


def day(seed: int, spec: str = SMALL) -> TrainingDay:
    return TrainingDay(load_problem(spec).instance(seed))


@pytest.mark.parametrize("spec", [SMALL, MIXED, SMALL.replace("cost", "carbon")])
def test_a_play_costs_what_the_verifier_says(spec: str) -> None:
    played, theta = day(500, spec), np.random.default_rng(0).normal(size=SIZE + EXTRA)
    schedule = play_plans(
        played.board, plans_from_parameters(theta, played.board, played.x, played.unit)
    ).schedule
    assert schedule is not None
    cost, sojourn_s, late = played.play(theta)
    verdict = verify(played.instance, schedule)
    paid = sum(
        weight * verdict.metrics[name]
        for name, weight in dict(played.instance.objective.levels[0]).items()
    )
    assert paid == pytest.approx(cost, rel=1e-9)
    assert verdict.metrics["sojourn_mean_s"] == pytest.approx(sojourn_s, rel=1e-9)
    assert verdict.metrics["late_tasks"] == late


def test_imitation_finds_what_devices_were_worth() -> None:
    """The programme's duals, up to a small share of their variance; without steps the first draw is
    far from them.
    """
    one = day(1000)
    worth = one.worth(3600.0)
    theta, left = fit_by_imitation(
        [one], [one.worth(3600.0)], PriceTraining(imitation_steps=800), seed=0
    )
    assert left < 0.2
    assert np.mean((fees(theta, one.x, one.unit) / one.unit - worth) ** 2) == pytest.approx(
        left * worth.var(), rel=0.2
    )


def test_evolution_lowers_the_loss() -> None:
    """From prices that mean nothing: on the day it plays, checked on the same."""
    days = [[day(1000)]]
    evolution = Evolution(
        days, days, replace(QUICK, generations=10, pairs=4, check_every=5), seed=0
    )
    evolution.theta = np.random.default_rng(1).normal(size=SIZE + EXTRA)
    before = days[0][0].loss(evolution.theta)
    for _ in range(10):
        evolution.step()
    assert evolution.least < before


def test_a_training_that_is_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    _, solver = load_solver("learned_prices")
    assert isinstance(solver, Trainable)
    problems, stop, done = [load_problem(SMALL)], threading.Event(), list[int]()

    def once(generation: int, total: int, point: dict[str, float]) -> None:
        done.append(generation)
        stop.set()

    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    solver.train(TrainingRun(problems, whole, QUICK, [SMALL]))
    first = solver.train(TrainingRun(problems, parts, QUICK, [SMALL], on_point=once, stop=stop))
    assert first.interrupted and done == [1] and first.about["complete"] is False
    with pytest.raises(
        ParameterError,
        match=r"(?s)parts\.json\.state is the state of a training with another settings",
    ):
        solver.train(TrainingRun(problems, parts, replace(QUICK, pairs=3), [SMALL]))
    second = solver.train(TrainingRun(problems, parts, QUICK, [SMALL], on_point=once))
    assert (
        not second.interrupted
        and done == [1, 2, 3, 4]
        and not parts.with_name("parts.json.state").exists()
    )
    theta, about = read_prices(parts)
    assert theta.tolist() == read_prices(whole)[0].tolist()
    assert (
        about["trained_on"] == [SMALL]
        and about["instance_seeds"] == [1000, 1001]
        and about["validation_seeds"] == [500, 500]
    )
    with pytest.raises(
        ParameterError, match=r"parts\.json is the checkpoint of a finished training; --fresh"
    ):
        solver.train(TrainingRun(problems, parts, QUICK, [SMALL]))
    with pytest.raises(ParameterError, match=r"cannot be trained.*tariffs"):
        solver.train(
            TrainingRun([load_problem("geo_dc:days=0.05,drain=yes")], tmp_path / "b.json", QUICK)
        )


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    damaged = {
        "{": "not a readable JSON",
        '{"theta": [1, 2]}': "has 2 numbers",
        '{"theta": "x"}': "not a list of numbers",
    }
    for text, words in damaged.items():
        path.write_text(text)
        with pytest.raises(FileFormatError, match=rf"a\.json: .*{words}"):
            read_prices(path)
    with pytest.raises(FileFormatError, match="no such checkpoint"):
        read_prices(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pairs": 0}, "pairs is 0"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"imitate_on": 9}, "imitate_on is 9"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        PriceTraining(**given)  # type: ignore[arg-type]
