"""Agents that place parts: training, checkpoints, what the network must not depend on, controls."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from optbench.errors import FileFormatError, ParameterError
from optbench.gnn.placement.allocation_process import play
from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_search import work_order
from optbench.gnn.placement.placement_table import PlacementTable
from optbench.learn.placement.graph_transformer import batch_of
from optbench.learn.placement.learned_placement import (
    permuted_weights,
    place_by_network,
    random_weights,
)
from optbench.learn.placement.placement_checkpoints import SHIPPED, read_agent, write_agent
from optbench.learn.placement.placement_settings import PlacementTraining
from optbench.learn.placement.placement_tokens import tokens_of
from optbench.learn.placement.placement_training import (
    NO_PLACEMENT,
    PlacementTrainer,
    PreparedTable,
    TrainedPlacement,
    fresh_network,
    quantile_huber,
    train_placement,
    validation_ratio,
)
from optbench.shapes.gnn_training.operator_costs import Operator, OperatorCost

OPERATORS = (
    Operator("a", "dense", (-1,), OperatorCost(flop_per_node=2.0)),
    Operator("b", "sum", (0,), OperatorCost(bytes_per_arc=8.0, row_bytes=4.0, exchanges=1)),
)
QUICK = PlacementTraining(rounds=3, cpu_minutes=inf, tables=2, episodes=4, trials=50, check_every=1)


def drawn_table(seed: int, parts: int = 8, devices: int = 3) -> PlacementTable:
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((parts, parts)) < 0.4, rng.integers(1, 9, (parts, parts)), 0)
    np.fill_diagonal(rows, 0)
    work = rng.uniform(0.5, 1.5, (parts, devices, 4))
    flat, limits = np.full((devices, devices), 0.05), np.full(devices, inf)
    rate = np.ones((devices, devices))
    return PlacementTable(
        work, rows.astype(float), 3e7, 2.0, rate, flat, 0.2, np.ones(parts), limits,
        operators=OPERATORS,
    )  # fmt: skip


def trained(agent: Any) -> TrainedPlacement:
    tables = [drawn_table(k) for k in range(3)]
    settings = replace(QUICK, agent=agent)
    return train_placement(tables, [drawn_table(9)], settings, seed=1)


@pytest.mark.parametrize("agent", ["distributional", "policy_gradient"])
def test_the_same_seed_trains_the_same_agent(agent: str) -> None:
    first, again = trained(agent), trained(agent)
    assert len(first.history) == 4
    assert {k: v.tolist() for k, v in first.weights.items()} == {
        k: v.tolist() for k, v in again.weights.items()
    }


@pytest.mark.parametrize("agent", ["distributional", "policy_gradient"])
def test_an_agent_without_rules_learns(agent: Any) -> None:
    """Without the weights that a network begins with, sixty rounds on one table shorten the step
    there, and on a table that it has not seen, by a tenth; the mean of its draws rises, too.
    """
    settings = replace(QUICK, agent=agent, rounds=60, episodes=16)
    trainer = PlacementTrainer([drawn_table(0)], settings, 1)
    with torch.no_grad():
        trainer.network.skip.weight.zero_()
    tables = [[PreparedTable(drawn_table(k))] for k in (0, 9)]
    before = [validation_ratio(trainer.network, each) for each in tables]
    returns = [trainer.round()["return"] for _ in range(60)]
    after = [validation_ratio(trainer.network, each) for each in tables]
    assert all(late < 0.9 * early for early, late in zip(before, after, strict=True))
    assert np.mean(returns[-10:]) > np.mean(returns[:10]) + 0.1


def test_training_changes_the_network() -> None:
    network = fresh_network(1)
    before = network.skip.weight.detach().numpy().copy()
    settings = replace(QUICK, rounds=2, check_every=100)
    train_placement([drawn_table(0)], [drawn_table(1)], settings, seed=1)
    assert np.array_equal(before, fresh_network(1).skip.weight.detach().numpy())
    trainer = PlacementTrainer([drawn_table(0)], settings, 1)
    trainer.round()
    assert not np.array_equal(before, trainer.network.skip.weight.detach().numpy())
    assert len(trainer.tables[0].elite) == 8


def test_embeddings_follow_a_permutation_of_parts_and_devices() -> None:
    table, network = drawn_table(3), random_weights(2)
    parts, devices = np.random.default_rng(0).permutation(8), np.array([2, 0, 1])
    moved = replace(
        table,
        work_s=table.work_s[np.ix_(parts, devices)],
        rows=table.rows[np.ix_(parts, parts)],
        gb_per_s=table.gb_per_s[np.ix_(devices, devices)],
    )
    (one,), (other,) = (network.heads([tokens_of(each)]) for each in (table, moved))
    assert np.allclose(one.part[parts], other.part, atol=1e-5)
    assert np.allclose(one.device[devices], other.device, atol=1e-5)


def test_padding_and_operators_in_the_embedding() -> None:
    network, table = random_weights(2), drawn_table(3)
    small, large = tokens_of(table), tokens_of(drawn_table(4, parts=11, devices=4))
    alone, padded = network.heads([small])[0], network.heads([small, large])[0]
    assert np.allclose(alone.part, padded.part, atol=1e-5)
    heavier = Operator("a", "dense", (-1,), OperatorCost(bytes_per_arc=24.0))
    other = tokens_of(replace(table, operators=(heavier, OPERATORS[1])))
    assert not np.allclose(alone.part, network.heads([other])[0].part, atol=1e-4)


def test_compiled_scores_are_those_of_the_network() -> None:
    """Without heat the compiled episode takes the best score of the network in every step."""
    table, network = drawn_table(5), random_weights(3)
    prepared = PreparedTable(table)
    costs, order = costs_of(table), work_order(costs_of(table))
    (head,) = network.heads([prepared.tokens])
    played = play(costs, order, head, 0.0, 0.0, NO_PLACEMENT, 1, 0)
    with torch.no_grad():
        part, device = network.embeddings(batch_of([prepared.tokens]))
        wide = device.expand(len(order), -1, -1)
        scores = network.scores(part[0, order], wide, torch.from_numpy(played.seen[0]))
    assert scores.argmax(dim=1).tolist() == played.action[0].tolist()


def test_quantile_loss_by_hand() -> None:
    # Two quantiles at shares 1/4 and 3/4, at 0 and 1, for a return of 0.5: errors 0.5 and -0.5,
    # huber 0.45 each; 1/4 x 0.45 + |3/4 - 1| x 0.45 = 0.225.
    loss = quantile_huber(torch.tensor([[0.0, 1.0]]), torch.tensor([0.5]))
    assert float(loss) == pytest.approx(0.225)


def test_a_checkpoint_is_read_as_written_and_its_faults_are_named(tmp_path: Path) -> None:
    network, path = random_weights(1), tmp_path / "agent.safetensors"
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    write_agent(path, weights, {"seed": 3})
    again, about = read_agent(path)
    assert about == {"seed": 3}
    assert np.array_equal(again.skip.weight.detach(), network.skip.weight.detach())
    write_agent(path, {**weights, "skip.weight": weights["skip.weight"] * np.nan}, {})
    with pytest.raises(FileFormatError, match=r"'skip.weight' holds a weight that is not finite"):
        read_agent(path)
    write_agent(path, {k: v for k, v in weights.items() if k != "last.weight"}, {})
    with pytest.raises(FileFormatError, match=r"'last.weight' is missing"):
        read_agent(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(FileFormatError, match="not a readable safetensors file"):
        read_agent(path)
    with pytest.raises(FileFormatError, match="there is no such checkpoint"):
        read_agent(tmp_path / "absent")


def test_shipped_agents_say_how_they_were_trained() -> None:
    for name, path in SHIPPED.items():
        _, about = read_agent(path)
        expected = "distributional" if name == "agent" else "policy_gradient"
        assert about["settings"]["agent"] == expected
        assert about["instance_seeds"][0] >= 1000
        assert about["complete"] is True


def test_controls_have_other_weights() -> None:
    network = random_weights(1)
    permuted = permuted_weights(network, 2)
    one, other = network.first.weight.detach().numpy(), permuted.first.weight.detach().numpy()
    assert not np.array_equal(one, other)
    assert np.array_equal(np.sort(one.ravel()), np.sort(other.ravel()))
    assert not np.array_equal(one, random_weights(2).first.weight.detach().numpy())


def test_placing_repeats_itself_and_ends() -> None:
    table, network = drawn_table(6), random_weights(1)
    first, again = (
        place_by_network(network, table, np.random.default_rng(3), lambda: inf) for _ in range(2)
    )
    assert first.tolist() == again.tolist()
    place_by_network(network, table, np.random.default_rng(3), lambda: 0.0)


def test_settings_are_checked() -> None:
    with pytest.raises(ParameterError, match="tables is 0"):
        PlacementTraining(tables=0)
    with pytest.raises(ParameterError, match="optimism is 1"):
        PlacementTraining(optimism=1.0)
