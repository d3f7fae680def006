"""Decision time of the agents that place parts, and their controls.

The first starts of the planner are the best actions in both orders of the parts; further ones are
drawn from the policy. ``random_weights`` draws all weights anew, ``permuted_weights`` permutes
each layer of the trained agent; both keep the planner, as the tuned rule does.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import torch

from optbench.gnn.placement.allocation_process import play
from optbench.gnn.placement.fewer_devices import search_on_fewer
from optbench.gnn.placement.placement_board import BoardCosts, costs_of
from optbench.gnn.placement.placement_planner import Planner, PlannerSettings, Starts, TimeLeft
from optbench.gnn.placement.placement_search import bound_order, work_order
from optbench.gnn.placement.placement_table import PlacementTable
from optbench.learn.placement.graph_transformer import PlacementNetwork
from optbench.learn.placement.placement_checkpoints import SHIPPED, cached_agent
from optbench.learn.placement.placement_tokens import tokens_of
from optbench.shapes.gnn_training.training_data import Ints

# Chosen on the validation instances: temperature of draws, episodes at once, and of the annealing.
HEAT, DRAWN = 0.3, 4
AGENT_PLANNER = PlannerSettings()
NO_PLACEMENT = np.zeros(0, dtype=np.int64)


def place_learned(
    method: str, table: PlacementTable, rng: np.random.Generator, time_left: TimeLeft
) -> Ints:
    """Return the placement of an agent by the name of its method."""
    return place_by_network(network_of(method, rng), table, rng, time_left)


def network_of(method: str, rng: np.random.Generator) -> PlacementNetwork:
    """Return a trained network, or one of the two controls, which are drawn."""
    if method in SHIPPED:
        return cached_agent(SHIPPED[method])
    if method == "random_weights":
        return random_weights(int(rng.integers(1 << 31)))
    return permuted_weights(cached_agent(SHIPPED["agent"]), int(rng.integers(1 << 31)))


def place_by_checkpoint(
    path: Path, table: PlacementTable, rng: np.random.Generator, time_left: TimeLeft
) -> Ints:
    """Return the placement of the agent of a file."""
    return place_by_network(cached_agent(path), table, rng, time_left)


def place_by_network(
    network: PlacementNetwork,
    table: PlacementTable,
    rng: np.random.Generator,
    time_left: TimeLeft,
    settings: PlannerSettings = AGENT_PLANNER,
) -> Ints:
    """Return the placement of a network with the planner, which may leave devices out; the time of
    its encoder is included, for each set of devices.
    """

    def search(some: PlacementTable, left: TimeLeft) -> Ints:
        costs = costs_of(some)
        planner = Planner(some, costs, settings, rng, left)
        return planner.run(network_starts(network, some, costs, rng))

    return search_on_fewer(table, search, time_left)


def network_starts(
    network: PlacementNetwork, table: PlacementTable, costs: BoardCosts, rng: np.random.Generator
) -> Starts:
    """Return the starts of a network: the best actions first, then draws."""
    (head,) = network.heads([tokens_of(table)])
    orders = (bound_order(costs), work_order(costs))

    def starts(number: int) -> list[Ints]:
        if number == 0:
            return [play(costs, o, head, 0.0, 0.0, NO_PLACEMENT, 1, 0).device[0] for o in orders]
        seed = int(rng.integers(1 << 40))
        order = orders[number % 2]
        return list(play(costs, order, head, 0.0, HEAT, NO_PLACEMENT, DRAWN, seed).device)

    return starts


def greedy_rollout(
    network: PlacementNetwork, table: PlacementTable, costs: BoardCosts
) -> list[Ints]:
    """Return the placements of the best actions, in both orders, without a planner."""
    return network_starts(network, table, costs, np.random.default_rng(0))(0)


def random_weights(seed: int) -> PlacementNetwork:
    """Return a network whose weights are all drawn, those that skip the network included."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PlacementNetwork()


def permuted_weights(network: PlacementNetwork, seed: int) -> PlacementNetwork:
    """Return a network of the same weights at other places of their layers."""
    generator = torch.Generator().manual_seed(seed)
    out = copy.deepcopy(network)
    with torch.no_grad():
        for each in out.parameters():
            order = torch.randperm(each.numel(), generator=generator)
            each.copy_(each.flatten()[order].view_as(each))
    return out
