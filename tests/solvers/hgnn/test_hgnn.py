"""The solver: deterministic, what stands in the place of its weights, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.verify import verify
from solvers.hgnn import WEIGHTS, Hgnn
from solvers.hgnn.network_design import Weights
from solvers.hgnn.substitutes import permuted_weights, random_weights


@pytest.fixture(scope="module")
def cell() -> Instance:
    from optbench.api import load_target

    made: Instance = load_target("gpu_cluster:nodes=3,types=3,tasks=40")
    return made


def solved(instance: Instance, checkpoint: Path, seed: int = 0, **params: object) -> ob.Result:
    solver = Hgnn(checkpoint=str(checkpoint), **params)  # type: ignore[arg-type]
    found = ob.solve(instance, solver, seed=seed, bound=False, work_limit=1.0)
    assert found.verified
    return found


def value(result: ob.Result) -> float:
    assert isinstance(result.objective, float)
    return result.objective


def rows(result: ob.Result) -> list[list[float]]:
    s = result.schedule
    assert s is not None
    return [s.task.tolist(), s.mode.tolist(), s.start.tolist(), s.end.tolist()]


def test_the_same_seed_gives_the_same_schedule(
    cell: Instance, stream: Instance, checkpoint: Path
) -> None:
    for instance in (cell, stream):
        one, two = (solved(instance, checkpoint, seed=4, samples=4) for _ in range(2))
        assert rows(one) == rows(two)


def test_more_samples_are_never_worse(cell: Instance, checkpoint: Path) -> None:
    """The first sample is the same, and the best is returned."""
    values = [value(solved(cell, checkpoint, samples=k)) for k in (1, 4, 16)]
    assert values[2] <= values[1] <= values[0]
    assert values[2] < values[0]


def test_what_stands_in_the_place_of_the_weights_differs(
    cell: Instance, stream: Instance, checkpoint: Path
) -> None:
    """Read-outs are for arriving work: without it they alone are the plain rule."""
    for instance, alike in ((cell, {"readouts"}), (stream, set())):
        made = {
            name: solved(instance, checkpoint, weights=name, samples=2).objective
            for name in WEIGHTS
        }
        assert len(set(made.values())) == len(WEIGHTS) - len(alike), made
        assert all(made[name] == made["none"] for name in alike)


def test_without_a_network_no_checkpoint_is_read(
    cell: Instance, stream: Instance, tmp_path: Path
) -> None:
    for instance in (cell, stream):
        assert value(solved(instance, tmp_path / "absent", weights="none")) > 0


def test_substitutes_keep_shapes_and_values(weights: Weights) -> None:
    permuted, random = permuted_weights(weights), random_weights(weights)
    moved = 0
    for name, each in weights.items():
        assert (np.sort(permuted[name].ravel()) == np.sort(each.ravel())).all()
        assert random[name].shape == each.shape and random[name].dtype == np.float32
        moved += int((permuted[name] != each).sum())
    assert moved > 0.9 * sum(each.size for each in weights.values())


def test_played_as_a_policy_it_decides_as_when_it_solves(cell: Instance, checkpoint: Path) -> None:
    trace = Hgnn(checkpoint=str(checkpoint)).play(cell, np.random.default_rng(0))
    assert trace.schedule is not None
    assert verify(cell, trace.schedule).objectives[0] == solved(cell, checkpoint).objective


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ParameterError, match=r"hgnn: samples is 0; it must be at least 1"):
        Hgnn(samples=0)
    with pytest.raises(ParameterError, match=r"weights is 'best'; it must be one of trained, "):
        Hgnn(weights="best")  # type: ignore[arg-type]


def test_a_mode_without_a_device_is_refused(checkpoint: Path) -> None:
    m = ob.Model("wait")
    m.pool("a")
    m.task(modes=[m.mode(None, time_s=1.0)])
    m.minimize(makespan_s=1.0)
    with pytest.raises(UnsupportedError, match="some mode uses no device"):
        ob.solve(m.build(), Hgnn(checkpoint=str(checkpoint)))
