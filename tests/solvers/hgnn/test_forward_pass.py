"""The network in numpy and the torch modules give the same answers, whatever is switched off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from optbench.model.instance import Instance
from solvers.hgnn.encoder import HierarchicalNetwork, tensors_of
from solvers.hgnn.forward_pass import ForwardPass, gathered, softmax
from solvers.hgnn.gradients import arrays_of
from solvers.hgnn.network_settings import NetworkSettings
from solvers.hgnn.network_shapes import network_shapes
from solvers.hgnn.situation import situation_of
from tests.solvers.hgnn.conftest import random_network

SWITCHES: list[dict[str, Any]] = [
    {},
    {"levels": "flat"},
    *({"convolution": each} for each in ("spectral", "spatial")),
    *({"pooling": each} for each in ("coarsening", "differentiable", "edge")),
    *({"sampling": each, "keep": 0.4} for each in ("importance", "layer", "subgraph")),
    {"levels": "flat", "convolution": "spectral", "rounds": 1},
    {"rounds": 4, "heads": 2, "clusters": 3},
]


def named(switches: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in switches.items()) or "all"


@pytest.mark.parametrize("switches", SWITCHES, ids=named)
def test_numpy_and_torch_agree(
    switches: dict[str, Any], settings: NetworkSettings, problems: list[Instance]
) -> None:
    chosen = replace(settings, **switches)
    weights = random_network(chosen)
    module = HierarchicalNetwork(chosen)
    module.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()})
    for instance in problems:
        seen = situation_of(instance).seen
        with torch.no_grad():
            expected = arrays_of(module(tensors_of(seen, chosen)))
        found = ForwardPass(weights, chosen).answers(seen)
        for name, value in vars(expected).items():
            np.testing.assert_allclose(
                getattr(found, name), value, rtol=1e-5, atol=1e-5, err_msg=f"{instance.name} {name}"
            )


@pytest.mark.parametrize("switches", SWITCHES, ids=named)
def test_the_shapes_are_those_of_the_torch_module(
    switches: dict[str, Any], settings: NetworkSettings
) -> None:
    chosen = replace(settings, **switches)
    state = HierarchicalNetwork(chosen).state_dict()
    assert network_shapes(chosen) == {name: tuple(value.shape) for name, value in state.items()}


def test_switching_a_part_off_changes_the_answers(
    settings: NetworkSettings, cluster: Instance
) -> None:
    """The weights of what stays are the same, so that it is the part that matters."""
    seen, every = situation_of(cluster).seen, random_network(settings)
    full = ForwardPass(every, settings).answers(seen)
    for switches in SWITCHES[1:10]:
        chosen = replace(settings, **switches)
        some = {name: every[name] for name in network_shapes(chosen)}
        other = ForwardPass(some, chosen).answers(seen)
        assert np.abs(other.task - full.task).max() > 1e-4, switches


def test_softmax_of_nothing_is_zero() -> None:
    """exp(0) / (exp(0) + exp(ln 3)) = 1/4; a row without a finite entry has no shares."""
    rows = np.array([[0.0, np.log(3.0)], [-np.inf, -np.inf]])
    np.testing.assert_allclose(softmax(rows, 1), [[0.25, 0.75], [0.0, 0.0]], rtol=1e-6)


def test_mean_and_largest_of_senders() -> None:
    """Row 0 receives rows 1 and 2, with mean (3, 0) and largest (4, 1); the others nothing."""
    x = np.array([[9.0, 9.0], [2.0, 1.0], [4.0, -1.0]], dtype=np.float32)
    mean, most = gathered(x, np.array([2, 1]), np.array([0, 0]))
    assert mean.tolist() == [[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert most.tolist() == [[4.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
