"""Training: deterministic, resumed exactly, and its messages."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optbench.api import solve
from optbench.errors import FileFormatError, ParameterError
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem
from optbench.plugins.training import TrainingResult, TrainingRun
from solvers.hgnn import Hgnn
from solvers.hgnn.learning_settings import HgnnTraining
from solvers.hgnn.network_checkpoint import NetworkCheckpoint, read_network
from solvers.hgnn.network_training import NetworkTraining
from solvers.hgnn.prepared_instances import targets_of
from solvers.hgnn.situation import situation_of

ON = ("gpu_cluster:nodes=2,types=2,tasks=8", "gpu_cluster:nodes=1,types=1,tasks=6")
STREAM = "gpu_cluster:nodes=2,types=2,tasks=8,load=0.8"
# Each stage takes two of six steps.
STAGES = {"imitate": 0.34, "label": 0.33}


def short(steps: int, **given: object) -> HgnnTraining:
    fixed = {"instances": 2, "samples": 2, "batch": 2, "check_every": 1, "hidden": 8}
    return HgnnTraining(steps=steps, **{**fixed, **given})  # type: ignore[arg-type]


def trained(
    path: Path,
    settings: HgnnTraining,
    stop_after: int | None = None,
    on: tuple[str, ...] = ON,
    seed: int = 0,
) -> TrainingResult:
    """Train, and interrupt after so many checks."""
    stop, seen = threading.Event(), list[float]()

    def on_point(done: int, total: int, point: dict[str, float]) -> None:
        seen.append(point["loss"])
        if len(seen) == stop_after:
            stop.set()

    problems = [load_problem(spec) for spec in on]
    run = TrainingRun(problems, path, settings, on, seed, False, on_point, stop)
    return Hgnn().train(run)


def same(one: NetworkCheckpoint, two: NetworkCheckpoint) -> bool:
    return all((one.weights[name] == two.weights[name]).all() for name in one.weights)


def test_two_steps_are_the_same_for_a_seed(tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}.safetensors" for k in range(3)]
    for path, seed in zip(paths, (0, 0, 1), strict=True):
        assert not trained(path, short(2), seed=seed).interrupted
    first, again, other = map(read_network, paths)
    assert same(first, again) and not same(first, other)
    assert first.provenance["gradient_steps"] == 2
    assert first.provenance["trained_on"] == list(ON)
    instances = [load_problem(spec).instance(1000) for spec in ON]
    assert first.features == instances[0].features | instances[1].features
    assert first.table == again.table


@pytest.mark.parametrize("after", [1, 3, 5])
def test_a_resumed_training_is_the_uninterrupted_one(tmp_path: Path, after: int) -> None:
    """Interrupted within imitation, labels and policy gradient."""
    settings = short(6, **STAGES)
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    trained(whole, settings)
    assert trained(broken, settings, stop_after=after).interrupted
    assert broken.with_name(f"{broken.name}.state").exists()
    assert read_network(broken).provenance["complete"] is False
    assert not trained(broken, settings).interrupted
    one, two = read_network(whole), read_network(broken)
    assert same(one, two) and one.table == two.table
    assert one.provenance["validation_loss"] == two.provenance["validation_loss"]
    assert not broken.with_name(f"{broken.name}.state").exists()


def test_the_network_is_kept_while_streams_are_trained(tmp_path: Path) -> None:
    """The third check of a network of two steps does not come; streams are stopped instead."""
    path, settings = tmp_path / "net.safetensors", short(2)
    done = trained(path, settings, on=(ON[1], STREAM))
    assert not done.interrupted
    found = read_network(path)
    assert found.streams is not None
    assert any("stream_loss" in point for point in done.history)
    # Alone, from that checkpoint: its network stays.
    alone, only = tmp_path / "alone.safetensors", short(2, only_streams=True, start=str(path))
    trained(alone, only, on=(STREAM,))
    assert same(read_network(alone), found)


def test_other_settings_do_not_go_on(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    trained(path, short(4), stop_after=1)
    with pytest.raises(ParameterError, match="other settings or problems"):
        trained(path, short(4, rate=1e-3))
    with pytest.raises(ParameterError, match="other settings or problems"):
        trained(path, short(4), on=ON[:1])
    path.with_name(f"{path.name}.state").write_bytes(b"no tensors")
    with pytest.raises(FileFormatError, match="not the state of a training"):
        trained(path, short(4))


def test_small_instances_are_imitated_from_cpsat() -> None:
    """The expert's seed is the first number that the training draws."""
    instances = [load_problem(spec).instance(0) for spec in ON]
    settings = short(1, imitate=1.0, label=0.0, expert="cpsat")
    training = NetworkTraining(instances, instances[:1], settings, 3)
    drawn = int(np.random.default_rng(3).integers(2**31))
    exact = solve(instances[1], "cpsat", time_limit_s=None, work_limit=0.2, seed=drawn, bound=False)
    expected = targets_of(training.pupils[1].prepared, exact.schedule)
    training.find_targets([1])
    found = training.targets[1]
    assert found is not None
    assert expected is not None
    assert found.stretch == expected.stretch
    assert (found.position == expected.position).all()


def test_answers_that_are_left_out_are_those_of_no_network(tmp_path: Path) -> None:
    """Devices and costs of sets stay at 0 through three steps; tasks and the whole move."""
    path, settings = tmp_path / "net.safetensors", short(3, answers="tasks", hold=0.01)
    trained(path, settings, on=ON[:1])
    solver, instance = Hgnn(checkpoint=str(path)), load_problem(ON[0]).instance(7)
    made = solver.answers(instance, situation_of(instance))
    assert (made.device == 0).all()
    assert (made.task_factor == 0).all() and (made.set_factor == 0).all()
    assert (made.task != 0).any() and (made.whole != 0).any()


def test_answers_are_held_near_those_of_no_network(tmp_path: Path) -> None:
    """With a heavy weight on their squares they come out smaller than without."""
    sizes = []
    for k, hold in enumerate((0.0, 100.0)):
        path = tmp_path / f"{k}.safetensors"
        trained(path, short(12, rate=1e-2, hold=hold, imitate=0.0, label=0.0), on=ON[:1])
        solver, instance = Hgnn(checkpoint=str(path)), load_problem(ON[0]).instance(7)
        sizes.append(float(np.abs(solver.answers(instance, situation_of(instance)).whole).sum()))
    assert sizes[1] < sizes[0]
    with pytest.raises(ParameterError, match=r"hold is -1; it must be at least 0"):
        HgnnTraining(hold=-1)
    with pytest.raises(ParameterError, match=r"answers is 'x'; it must be one of all, tasks"):
        HgnnTraining(answers="x")  # type: ignore[arg-type]


def test_a_finished_training_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    trained(path, short(1))
    with pytest.raises(ParameterError, match="--fresh trains anew"):
        trained(path, short(1))


def impossible(instance: Instance) -> Instance:
    """The same where every task has to end at once, which no schedule can."""
    tasks, count = instance.tasks, instance.num_tasks
    hard = replace(tasks, deadline=np.ones(count), deadline_hard=np.ones(count, dtype=bool))
    return replace(instance, tasks=hard)


def test_validation_without_a_schedule_to_compare_with(cluster: Instance) -> None:
    """One that no rule solves is left out; with no other one there is no training."""
    never = impossible(cluster)
    training = NetworkTraining([cluster], [never, cluster], short(1), 0)
    assert [each.prepared.instance for each in training.checks] == [cluster]
    assert np.isfinite(training.check()["loss"])
    with pytest.raises(ParameterError, match=rf"any validation instance \({never.name}\)"):
        NetworkTraining([cluster], [never], short(1), 0)


def test_weights_that_are_not_finite_end_the_training(cluster: Instance) -> None:
    training = NetworkTraining([cluster], [cluster], short(1), 0)
    training.check()
    kept = {name: value.clone() for name, value in training.best.items()}
    training.mean["whole_out.bias"][0] = float("nan")
    with pytest.raises(ParameterError, match=r"weights of whole_out\.bias are not"):
        training.check()
    assert all((training.best[name] == kept[name]).all() for name in kept)


def test_weights_of_no_valid_check_are_no_result(cluster: Instance) -> None:
    training = NetworkTraining([cluster], [cluster], short(1), 0)
    with pytest.raises(ParameterError, match="after 0 steps no check has made valid schedules"):
        training.require_a_valid_check()
    training.check()
    training.require_a_valid_check()


def test_going_on_from_a_checkpoint(tmp_path: Path, checkpoint: Path) -> None:
    """One step from the random network of 16 numbers; a network of 8 is refused."""
    path = tmp_path / "net.safetensors"
    trained(path, short(1, hidden=16, start=str(checkpoint), rate=1e-6))
    start, found = read_network(checkpoint), read_network(path)
    for name, each in start.weights.items():
        np.testing.assert_allclose(found.weights[name], each, atol=1e-4)
    with pytest.raises(ParameterError, match="a network of other settings"):
        trained(tmp_path / "other.safetensors", short(1, start=str(checkpoint)))


def test_problems_that_cannot_be_learned_are_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="at least one problem without arrivals"):
        trained(tmp_path / "a.safetensors", short(1), on=(STREAM,))
    with pytest.raises(ParameterError, match="only_streams needs a problem with arrivals"):
        trained(tmp_path / "b.safetensors", short(1, only_streams=True, start="x"), on=ON[:1])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"samples": 3}, "samples is 3; it must be even, at least 2"),
        ({"imitate": 0.7, "label": 0.5}, "label is 0.5; it must be at most 1 - imitate"),
        ({"keep": 0.0}, "keep is 0.0"),
        ({"hidden": 6}, "a multiple of 4"),
        ({"rate": float("inf")}, "rate is inf; it must be positive"),
        ({"expert": "highs"}, "expert is 'highs'; it must be one of lp_guided, cpsat"),
        ({"batch": 0}, "batch is 0; it must be at least 1"),
        ({"only_streams": True}, "only_streams is True; it must be no without start"),
    ],
)
def test_bad_settings_are_named(given: dict[str, object], match: str) -> None:
    with pytest.raises(ParameterError, match=f"training of hgnn: .*{match}"):
        short(1, **given)
