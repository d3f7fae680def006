"""What is remembered of arriving work: the load, means over the last jobs, and shadow prices."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from solvers.hgnn.answers import plain_answers
from solvers.hgnn.situation import Situation, situation_of, surroundings_of
from solvers.hgnn.stream_readouts import SHAPES, first_readouts, readouts_from
from solvers.hgnn.traffic import MOST_SHADOW, ClassTraffic


def job(tasks: int = 2) -> Instance:
    """Tasks of 3 s (300 ticks) each on two alike devices."""
    m = ob.Model("job", tick_s=0.01)
    pool = m.pool("pool", count=2, idle_w=10.0)
    kind = m.kind(modes=[m.mode({pool: 1}, time_s=1.0, energy_j=100.0)])
    for i in range(tasks):
        m.task(f"t{i}", units=3.0, kind=kind)
    m.minimize(energy_j=1.0, makespan_s=5.0)
    return m.build()


def parts(instance: Instance) -> tuple[Situation, ClassTraffic]:
    around = surroundings_of(instance)
    return situation_of(instance, around), ClassTraffic(instance, around.tables, 0.1, 0.9)


def test_a_job_of_more_tasks_than_are_remembered_is_the_whole_mean() -> None:
    """400 tasks: their answers replace those before, and are not counted more than once."""
    found, traffic = parts(job(400))
    answers = plain_answers(400, 1, 1)
    for value in (1.0, 0.0):
        given = replace(answers, device=np.full(1, value))
        made = traffic.arrive(found, given, 10.0 * (2.0 - value))[1]
        assert made.device == pytest.approx([value])
    assert traffic.mean_work == pytest.approx(300.0)


def test_shadow_prices_follow_what_is_asked_and_what_can_be_done() -> None:
    """Two tasks ask for 600 device-ticks of 2 devices, 300 each, which is the mean work of a task:
    + 0.1. In the 100 ticks until the next job 0.1 · 0.9 · 100 / 300 = 0.03 of it is worked off.
    """
    instance = job()
    found, traffic = parts(instance)
    plain = plain_answers(2, 1, 1)
    traffic.arrive(found, plain, 50.0)
    traffic.ask(instance, found, np.ones(1))
    assert traffic.mean_work == pytest.approx(300.0)
    assert traffic.shadow == pytest.approx([0.1])
    traffic.arrive(found, plain, 150.0)
    traffic.ask(instance, found, np.ones(1))
    assert traffic.shadow == pytest.approx([0.1 - 0.03 + 0.1])
    traffic.arrive(found, plain, 1e6)
    traffic.ask(instance, found, np.ones(1))
    assert traffic.shadow == pytest.approx([0.0])
    for _ in range(1000):
        traffic.ask(instance, found, np.ones(1))
    assert traffic.shadow == pytest.approx([MOST_SHADOW])


def test_load_and_crowd() -> None:
    """600 device-ticks every 600 ticks are half of what two devices do; the first job of a run
    counts as having taken the mean work of a task. 1,200 waiting are two tasks per device.
    """
    instance = job()
    found, traffic = parts(instance)
    for k in range(400):
        traffic.arrive(found, plain_answers(2, 1, 1), 600.0 * k)
    assert traffic.load() == pytest.approx(0.5, rel=0.05)
    assert traffic.crowd(1200.0) == pytest.approx(2.0)


def test_lasting_answers_are_means_over_the_last_tasks() -> None:
    """Two tasks with 1 after two with 0: the mean over the four is a half."""
    found, traffic = parts(job())
    plain = plain_answers(2, 1, 1)
    traffic.arrive(found, plain, 0.0)
    plain.whole[:], plain.device[:] = 1.0, 1.0
    _, made = traffic.arrive(found, plain, 1.0)
    assert made.device == pytest.approx([0.5])
    assert made.whole == pytest.approx([1, 1, 1, 1, 1, 0.5, 0.5, 1])


def test_readouts_reach_a_list_rule_of_fixed_prices() -> None:
    """All gains of the network at 0 and next to no share of the shadow price: what remains is the
    constant, whatever the network answers.
    """
    instance = job()
    found, traffic = parts(instance)
    row = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    row["gain"][:4], row["gain"][4] = -1.0, -30.0
    row["device"][-1], row["whole"][-1, 5], row["task"][-1, 2] = math.log(1.5), 2.0, 0.25
    made = readouts_from(np.concatenate([row[name].ravel() for name in SHAPES]))
    answers = plain_answers(2, 1, 1)
    answers.whole[:], answers.device[:], answers.task[:] = 3.0, 3.0, 3.0
    read = made.read(instance, found, answers, traffic, 0.0, 0.0)
    assert np.exp(read.device) == pytest.approx([1.5])
    # The late price and the price of time are those of one of the two devices.
    expected = [0, 0, 0, -math.log(2), 0, 2 - math.log(2), 0, 0]
    assert read.whole == pytest.approx(expected, abs=1e-6)
    assert read.task[:, 2] == pytest.approx([0.25, 0.25])


def test_first_readouts_have_the_length_of_all_shapes() -> None:
    total = sum(rows * columns for rows, columns in SHAPES.values())
    assert len(first_readouts()) == len(readouts_from(first_readouts()).flat()) == total
